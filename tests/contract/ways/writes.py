"""Errors of writes; the stored objects are compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db.models import F, Q, Value
from django.db.models.functions import Concat, Length, Lower

from dynamo_single import transactions
from tests.contract.ways.rows import Row
from tests.contract.ways.shop import T0, Shop

CONDITION = "save(condition=Q(...))"


def stored(shop: Shop, name: str, *values: str) -> list[Any]:
    """Return the values of a model's objects in one order."""
    found = shop.all(getattr(shop, name))
    return sorted(([getattr(each, value) for value in values] for each in found), key=str)


def updated(name: str, pk: str, /, **values: Any) -> Callable[[Shop], Any]:
    """Call ``update()`` on one object, and return the values of all."""

    def ask(shop: Shop) -> Any:
        shop.all(getattr(shop, name)).filter(pk=pk).update(**values)
        return stored(shop, name, *values)

    return ask


def computed(of: str, pk: str, value: Callable[[Any], Any], /, on_sql: Any = ..., **values: Any) -> Row:
    """Compute an update in Python, and save it with the message's condition.

    ``on_sql`` is the value instead on SQLite, if that computes nonsense; ``None`` for no change.
    """
    (changed,) = values
    theirs = None
    if on_sql is None:
        theirs = lambda shop: stored(shop, of, changed)  # noqa: E731 - one of two
    elif on_sql is not ...:
        theirs = updated(of, pk, **{changed: on_sql})

    def do(shop: Shop, code: str) -> Any:
        obj = shop.all(getattr(shop, of)).get(pk=pk)
        before = getattr(obj, changed)
        setattr(obj, changed, value(obj))
        eval(f"obj.{code}", {"obj": obj, "Q": Q, "before": before})  # noqa: S307 - the message's own
        return stored(shop, of, changed)

    return Row(ask=updated(of, pk, **values), says=CONDITION, dots=(f"{changed}=before",), do=do, theirs=theirs)


def instead(ask: Callable[[Shop], Any], says: str, do: Callable[[Shop], Any], theirs: Any = None) -> Row:
    """Return an alternative with another call, which ``do`` makes in the message's words."""
    return Row(ask=ask, says=says, do=lambda shop, _: do(shop), theirs=theirs)


def saved(shop: Shop, name: str, pk: str, /, **values: Any) -> Any:
    """Load, change and save one object."""
    obj = shop.all(getattr(shop, name)).get(pk=pk)
    for each, value in values.items():
        setattr(obj, each, value)
    obj.save()
    return stored(shop, name, *values)


def upsert(shop: Shop, **options: Any) -> Any:
    """Write two customers with ``bulk_create()``, one of which exists."""
    made = [shop.Customer(customer_id=pk, name=f"New {pk}", email=f"{pk}@new.org", created=T0) for pk in ("c0", "c8")]
    shop.all(shop.Customer).bulk_create(made, update_conflicts=True, update_fields=["name"], **options)
    return stored(shop, "Customer", "pk", "name")


def renamed(shop: Shop) -> Any:
    """A customer under another key, with its order."""
    shop.all(shop.Order).filter(customer="c2").delete()
    obj = shop.all(shop.Customer).get(pk="c4")
    if shop.on_sql:
        shop.all(shop.Customer).filter(pk="c4").update(customer_id="c7")
    else:
        obj.move(customer_id="c7")
    return stored(shop, "Customer", "pk", "name")


def swapped(shop: Shop) -> Any:
    """Two customers exchange their addresses."""
    one, other = shop.all(shop.Customer).filter(pk__in=["c0", "c1"]).order_by("pk")
    one.email, other.email = "gone@y.com", one.email
    shop.all(shop.Customer).bulk_update([one, other], ["email"])
    return stored(shop, "Customer", "pk", "email")


def swapped_apart(shop: Shop) -> Any:
    one, other = shop.all(shop.Customer).filter(pk__in=["c0", "c1"])
    one.email, other.email = "gone@y.com", one.email
    one.save()
    other.save()
    return stored(shop, "Customer", "pk", "email")


def in_block(write: Callable[[Shop], Any], read: Callable[[Shop], Any]) -> Callable[[Shop], Any]:
    """Run a write and the code after it in one block of the table's, or of Django's on SQLite."""

    def ask(shop: Shop) -> Any:
        if shop.on_sql:
            write(shop)
            return read(shop)
        with transactions.atomic():
            write(shop)
            return read(shop)

    return ask


def tagged(shop: Shop) -> Any:
    product = shop.all(shop.Product).get(pk="p0")
    product.tags.add("sale")
    return sorted(shop.all(shop.Product).get(pk="p0").tags.values_list("pk", flat=True))


def tagged_in_block(shop: Shop) -> Any:
    if shop.on_sql:
        return tagged(shop)
    with transactions.atomic():
        return tagged(shop)


def edge_created(shop: Shop) -> Any:
    through = shop.Product.tags.through
    with transactions.atomic():
        through.objects.create(shopproduct_id="p0", shoptag_id="sale")
    return sorted(shop.all(shop.Product).get(pk="p0").tags.values_list("pk", flat=True))


def close(shop: Shop) -> None:
    order = shop.all(shop.Order).get(pk="o0")
    order.status = "paid"
    order.save()


def status(shop: Shop) -> Any:
    return shop.all(shop.Order).get(pk="o0").status


def outside(shop: Shop) -> Any:
    with transactions.atomic():
        close(shop)
    return status(shop)


def same_twice(shop: Shop) -> Any:
    """Save one object twice."""
    order = shop.all(shop.Order).get(pk="o0")
    order.status = "paid"
    order.save()
    order.note = "x"
    order.save()
    return None


def noted(shop: Shop) -> Any:
    return stored(shop, "Order", "pk", "status", "note")


def once(shop: Shop) -> Any:
    order = shop.Order.objects.get(pk="o0")
    order.status, order.note = "paid", "x"
    with transactions.atomic():
        order.save()
    return noted(shop)


def twice_in_block(shop: Shop) -> Any:
    in_block(same_twice, lambda _: None)(shop)
    return noted(shop)


ROWS: dict[str, Row] = {
    # update() by an expression
    "product": computed("Product", "p1", lambda each: each.stock * 2, stock=F("stock") * 2),
    "value of a function": computed("Product", "p1", lambda each: each.name.lower(), name=Lower("name")),
    "concatenation": computed("Product", "p1", lambda each: each.name + "!", name=Concat("name", Value("!"))),
    "three parts": computed(
        "Product",
        "p0",
        lambda each: each.stock + each.reorder_level + 1,
        stock=F("stock") + F("reorder_level") + 1,
    ),
    "number of a text": computed("Product", "p1", lambda each: len(each.name), stock=Length("name")),
    "copy of another type": computed("Note", "n1", lambda each: str(each.number), text=F("number")),
    "sum of another type": computed(
        "Product", "p1", lambda each: each.stock + 1, stock=F("price") * 0 + F("stock") + 1
    ),
    # names
    "unknown attribute": Row(
        ask=updated("Product", "p1", stocks=3),
        says="stock",
        do=lambda shop, code: updated("Product", "p1", **{code: 3})(shop),
        theirs=updated("Product", "p1", stock=3),
    ),
    "place in a text": Row(
        ask=updated("Product", "p1", name__first="x"),
        says="update(name=...)",
        dots=("'x'",),
        do=lambda shop, code: (
            eval(f"queryset.{code}", {"queryset": shop.Product.objects.filter(pk="p1")}),  # noqa: S307
            stored(shop, "Product", "name"),
        )[1],
        theirs=updated("Product", "p1", name="x"),
    ),
    "unknown source": Row(
        ask=updated("Product", "p1", stock=F("stocks") + 1),
        says="stock",
        do=lambda shop, code: updated("Product", "p1", stock=F(code) + 1)(shop),
        theirs=updated("Product", "p1", stock=F("stock") + 1),
    ),
    "number of a moment": computed(
        "Note", "n1", lambda each: each.number + 1, number=F("day") - F("day") + F("number") + 1, on_sql=2
    ),
    "sum of texts": computed("Note", "n1", lambda each: int(each.note_id[1:]) + 1, number=F("note_id") + 1, on_sql=2),
    "moment and number": computed("Note", "n1", lambda each: each.seen, seen=F("seen") + 0, on_sql=None),
    "text and number": computed("Note", "n1", lambda each: each.text + "1", text=F("text") + 1, on_sql="Text 11"),
    "position by a name": Row(
        ask=lambda shop: shop.Note.objects.filter(pk="n1").update(steps__first=7),
        says="0",
        do=lambda shop, code: (
            shop.Note.objects.filter(pk="n1").update(**{f"steps__{code}": 7}),
            stored(shop, "Note", "steps"),
        )[1],
        theirs=updated("Note", "n1", steps=[7, "x"]),
    ),
    # keys
    "part of the key, updated": instead(
        updated("Customer", "c4", customer_id="c7"), "Call move() on each object instead", renamed, renamed
    ),
    "part of the key, saved": instead(
        lambda shop: saved(shop, "Customer", "c4", customer_id="c7"), "move(customer_id=...) does", renamed, renamed
    ),
    # bulk_create()
    "unique_fields": instead(
        lambda shop: upsert(shop, unique_fields=["email"]),
        "Remove unique_fields",
        lambda shop: upsert(shop),
        lambda shop: upsert(shop, unique_fields=["customer_id"]),
    ),
    "conflicts in transactions": instead(
        lambda shop: shop.Customer.objects.in_transactions().bulk_create(
            [shop.Customer(customer_id="c8", name="New c8", email="c8@new.org", created=T0)],
            update_conflicts=True,
            update_fields=["name"],
            unique_fields=["pk"],
        ),
        "Omit in_transactions",
        lambda shop: upsert(shop),
        lambda shop: upsert(shop, unique_fields=["customer_id"]),
    ),
    "conflicts in a block": instead(
        in_block(lambda shop: upsert(shop), lambda shop: None),
        "Call it outside the block",
        lambda shop: upsert(shop),
        lambda shop: upsert(shop, unique_fields=["customer_id"]),
    ),
    "unique for several": instead(
        lambda shop: shop.Customer.objects.filter(pk__in=["c0", "c1"]).update(email="one@x.org"),
        "save()",
        lambda shop: saved(shop, "Customer", "c0", email="one@x.org"),
        lambda shop: saved(shop, "Customer", "c0", email="one@x.org"),
    ),
    "value passed on": instead(swapped, "Save the object that releases the value first", swapped_apart, swapped_apart),
    # blocks
    "read in a block": instead(
        in_block(lambda shop: close(shop), lambda shop: status(shop)), "read after the block", outside
    ),
    "saved twice": instead(twice_in_block, "before its one save()", once),
    "edges in a block": instead(tagged_in_block, "objects instead", edge_created),
}
