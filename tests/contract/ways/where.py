"""Refusals of conditions and of the names in them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.db.models import BooleanField, ExpressionWrapper, F, Field, Q, Value
from django.db.models.functions import Lower
from django.db.models.lookups import Exact
from django.test.utils import register_lookup

from dynamo_single import models
from dynamo_single.orm.where.arguments import MAX_NESTING, MAX_OPERATORS
from dynamo_single.orm.where.lookups import ADVICE, MAX_MEMBERS
from tests.contract.ways.asking import mem
from tests.contract.ways.rows import Row, redeclared
from tests.contract.ways.shop import T0, Shop, customers, notes

Ask = Callable[[Shop], Any]

#: Conditions of customers, of which each may have several orders.
OPEN, ROMAN = Q(orders__status="open"), Q(city="Rome")
#: Python functions that replace a condition.
PYTHON = "[each for each in queryset if ...]"


def filtered(of: str, *args: Any, **kwargs: Any) -> Ask:
    """Return a query with one ``filter()``, which is evaluated."""
    return lambda shop: list(shop.all(getattr(shop, of)).filter(*args, **kwargs))


def in_python(predicate: str, of: str, *args: Any, theirs: Ask | None = None, **kwargs: Any) -> Row:
    """A condition that the message puts into a comprehension."""
    return Row(ask=filtered(of, *args, **kwargs), says=PYTHON, dots=(predicate,), of=of, theirs=theirs)


def instead(says: str, of: str, *args: Any, **kwargs: Any) -> Row:
    """Return a condition for which the message names another one."""
    return Row(ask=filtered(of, *args, **kwargs), says=says, of=of, run="queryset.filter({})")


def folded(shop: Shop, code: str) -> Any:
    """A model with the copy that the message declares."""
    model = redeclared(shop.Customer, customers, "ShopFolded", name_folded=eval(code, {"models": models}))  # noqa: S307
    return model.objects.filter(name__icontains="ANN")


def canonical(shop: Shop, code: str) -> Any:
    """A model with the variable that the message puts into a key."""
    keys = {"by_name": models.IndexKey("gs2", "SHOPCANONICAL", code)}
    return redeclared(shop.Customer, customers, "ShopCanonical", keys=keys).objects.filter(name__iexact="BOB")


def nested(levels: int) -> Q:
    """Conditions in each other."""
    found = Q(name="x")
    for _ in range(levels):
        found = ~Q(found & ~Q(name="y"))
    return found


def many(shop: Shop) -> Any:
    queryset = shop.all(shop.Customer)
    for number in range(MAX_OPERATORS + 1):
        queryset = queryset.exclude(name=f"n{number}")
    return list(queryset)


def in_turns(shop: Shop, code: str) -> Any:
    """The loop of the message, whose body is an expression."""
    loop, _, body = code.partition(": ")
    found = f"[each {loop} for each in {body}]"
    return eval(found, {"queryset": shop.all(shop.Customer), "values": long_list(), "range": range, "len": len})  # noqa: S307


def long_list() -> list[str]:
    return [f"c{number}" for number in range(MAX_MEMBERS + 1)]


MONTHS = "placed__year__range=(2020, 2024)"
OF_TEXTS = {
    "iendswith": ("@X.org", "each.email.lower().endswith('@x.org')"),
    "endswith": ("@x.org", "each.email.endswith('@x.org')"),
    "regex": ("^ann[01]", "re.search('^ann[01]', each.email)"),
    "iregex": ("^ANN[01]", "re.search('^ann[01]', each.email)"),
}

ROWS: dict[str, Row] = {
    # dates
    "month": Row(
        ask=filtered("Order", placed__month=3), says=MONTHS, of="Order", run="queryset.filter({}, placed__month=3)"
    ),
    "month in Python": in_python("each.placed.month == 3", "Order", placed__month=3),
    "part by text": Row(
        ask=filtered("Order", placed__year__startswith="202"),
        says="gte",
        of="Order",
        run="queryset.filter(placed__year__{}=2020)",
    ),
    "quarter": Row(
        ask=filtered("Order", placed__year=2024, placed__quarter=1),
        says="placed__month__in=(1, 2, 3)",
        of="Order",
        run="queryset.filter({}, placed__year=2024)",
    ),
    "week": Row(
        ask=filtered("Order", placed__week=5, placed__year=2024),
        says="placed__date__range=(monday, sunday)",
        of="Order",
        run="queryset.filter({})",
        names=lambda shop: {"monday": T0.date() + timedelta(days=19), "sunday": T0.date() + timedelta(days=25)},
    ),
    "hour": in_python("each.placed.hour == 12", "Order", placed__hour=12),
    # strings
    "folded copy": Row(
        ask=filtered("Customer", name__icontains="ANN"), says="models.CanonicalAttribute(source='name')", do=folded
    ),
    "canonical key": Row(ask=filtered("Customer", name__iexact="BOB"), says="{name:canonical}", do=canonical),
    "case in Python": in_python("'ann' in each.name.lower()", "Customer", name__icontains="ANN"),
    "case of a number": in_python("'1' in str(each.number)", "Note", number__icontains="1"),
    "case of a flag": in_python("each.is_vip is True", "Customer", is_vip__iexact="1"),
    **{
        f"lookup {name}": in_python(predicate, "Customer", **{f"email__{name}": value})
        for name, (value, predicate) in OF_TEXTS.items()
    },
    "case of a place": in_python("each.data['title'].lower() == 't1'", "Note", data__title__iexact="t1"),
    # what DynamoDB would have to compute
    "function": in_python("each.name == each.name.lower()", "Customer", name=Lower("name")),
    "sum": in_python("each.stock == each.reorder_level + 8", "Product", stock=F("reorder_level") + 8),
    "sum in a list": in_python(
        "each.stock in (each.reorder_level + 8,)", "Product", stock__in=[F("reorder_level") + 8]
    ),
    "computed condition": in_python(
        "each.name == 'bob'", "Customer", ExpressionWrapper(Q(name="bob"), output_field=BooleanField())
    ),
    "computed side": in_python("each.name.lower() == 'bob'", "Customer", Exact(Lower("name"), Value("bob"))),
    "transform": Row(
        ask=lambda shop: lowered(shop),
        says=PYTHON,
        dots=("each.name.lower() == 'bob'",),
    ),
    "queryset as a value": Row(
        ask=lambda shop: list(
            shop.all(shop.Customer).filter(pk=shop.all(shop.Order).filter(status="paid").values("customer")[:1])
        ),
        says="queryset.first()",
        base=lambda shop: shop.all(shop.Order).filter(status="paid"),
        run="ShopCustomer.objects.filter(pk={}.customer_id)",
    ),
    "exclusive or": Row(
        ask=filtered("Customer", Q(city="Rome") ^ Q(is_vip=True)),
        says="(one | other) & ~(one & other)",
        run="queryset.filter({})",
        names=lambda shop: {"one": Q(city="Rome"), "other": Q(is_vip=True)},
    ),
    "exclusive or over several objects": Row(
        ask=lambda shop: mem(shop.all(shop.Customer)).filter(OPEN ^ ROMAN),
        says=".filter(one | other).exclude(one & other)",
        base=lambda shop: mem(shop.all(shop.Customer)),
        run="sorted(queryset{}.values_list('pk', flat=True))",
        names=lambda shop: {"one": OPEN, "other": ROMAN},
        theirs=lambda shop: sorted(
            shop.all(shop.Customer).filter(OPEN | ROMAN).exclude(OPEN & ROMAN).distinct().values_list("pk", flat=True)
        ),
    ),
    "start of a number": in_python("str(each.number).startswith('1')", "Note", number__startswith="1"),
    "part of a moment": in_python("'2024-02' in str(each.seen)", "Note", seen__contains="2024-02"),
    "part of a number": in_python("'1' in str(each.number)", "Note", number__contains="1"),
    "text in a number": in_python("each.is_vip > False", "Customer", is_vip__gt=False),
    "long expression": Row(
        ask=filtered("Note", number__in=list(range(1001))),
        says="allow_in_memory()",
        of="Note",
        run="queryset.{}.filter(number__in=list(range(1001)))",
    ),
    # documents
    "JSON text": in_python("each.raw['price'] == 1", "Note", raw__price=1),
    "JSON text, compared": Row(
        ask=filtered("Note", raw__startswith="{"), says=PYTHON, dots=("str(each.raw).startswith('{')",), of="Note"
    ),
    "JSON as a map": Row(
        ask=filtered("Note", raw__price=1),
        says="MapAttribute",
        of="Note",
        do=lambda shop, code: redeclared(
            shop.Note, notes, "ShopMapped", raw=getattr(models, code)(default=dict)
        ).objects.filter(raw__price=1),
    ),
    "name in a list": Row(
        ask=filtered("Note", steps__first=1),
        says="steps__0=...",
        dots=("1",),
        of="Note",
        run="queryset.filter({})",
        theirs=filtered("Note", steps__0=1),
    ),
    "key of a list": Row(
        ask=filtered("Note", steps__has_key="x"),
        says="steps__0=...",
        dots=("2",),
        of="Note",
        run="queryset.filter({})",
        theirs=filtered("Note", steps__0=2),
    ),
    "many numbers": in_python("each.data.get('0')", "Note", **{"data__" + "__".join(map(str, range(9))): 1}),
    # two attributes
    "attributes of two types": in_python("each.seen.date() < each.day", "Note", seen__lt=F("day")),
    "attribute by text": in_python("(each.text or '').startswith(each.note_id)", "Note", text__startswith=F("note_id")),
    "documents in order": in_python(
        "False", "Note", steps__lt=F("steps"), theirs=lambda shop: shop.all(shop.Note).none()
    ),
    "pk of several": in_python(
        "each.pk == each.order_id", "Line", pk=F("order"), theirs=lambda shop: shop.all(shop.Line).none()
    ),
    "place and value": Row(
        ask=filtered("Note", data__price__in=[F("number"), 7]),
        says="Q(data__price=...) | Q(data__price=...)",
        dots=("F('number')", "7"),
        of="Note",
        run="queryset.filter({})",
        theirs=filtered("Note"),
    ),
    "place between": Row(
        ask=filtered("Note", data__price__range=[0, F("number")]),
        says="Q(data__price__gte=...) & Q(data__price__lte=...)",
        dots=("0", "F('number')"),
        of="Note",
        run="queryset.filter({})",
        theirs=filtered("Note"),
    ),
    "reference in a list": Row(
        ask=filtered("Order", customer__in=[F("order_id"), "c1"]),
        says="Q(customer=F('order_id')) | Q(customer__in=[...])",
        dots=("'c1'",),
        of="Order",
        run="queryset.filter({})",
    ),
    # pk
    "order of a pk": Row(
        ask=filtered("Line", pk__gt="o1"),
        says="order_id",
        of="Line",
        run="queryset.filter({}__gt='o1')",
        theirs=filtered("Line", order_id__gt="o1"),
    ),
    # numbers of conditions
    "nesting": Row(
        ask=filtered("Customer", nested(MAX_NESTING)),
        says="Q(name__in=[...])",
        dots=("'x', 'bob'",),
        run="queryset.filter({})",
        theirs=filtered("Customer", name__in=["x", "bob"]),
    ),
    "many conditions": Row(
        ask=many, says="exclude(name__in=[...])", dots=("'n1', 'n2'",), run="queryset.allow_in_memory().{}"
    ),
    "many members": Row(
        ask=lambda shop: list(shop.all(shop.Customer).filter(pk__in=long_list())),
        says=f"for start in range(0, len(values), {MAX_MEMBERS}): "
        f"queryset.filter(customer_id__in=values[start : start + {MAX_MEMBERS}])",
        do=in_turns,
        theirs=filtered("Customer"),
    ),
    # relations
    "reference": Row(
        ask=filtered("Order", customer__name="bob"),
        says="customer__in=ShopCustomer.objects.filter(name=...)",
        dots=("'bob'",),
        of="Order",
        run="queryset.filter({})",
    ),
    "attributes of two models": in_python(
        "each.customer.customer_id == each.order_id", "Order", customer__name=F("order_id")
    ),
    "reference, excluded": Row(
        ask=lambda shop: list(shop.all(shop.Order).exclude(customer__city="Rome")),
        says="customer__in=ShopCustomer.objects.filter(city=...)",
        dots=("'Rome'",),
        of="Order",
        run="queryset.exclude({})",
    ),
    "reference of a reference": Row(
        ask=filtered("Line", product__category__name="Cups"),
        says="product__in=ShopProduct.objects.filter(category__in=ShopCategory.objects.filter(name=...))",
        dots=("'Cups'",),
        of="Line",
        run="queryset.filter({})",
    ),
}


def lowered(shop: Shop) -> Any:
    with register_lookup(Field, Lower):
        return list(shop.all(shop.Customer).filter(name__lower="bob"))


# Queries over relations; the verb of the alternative, and the text for its dots.
ORDERS = "ShopOrder.objects.values_list('customer_id', flat=True)"
CHOSEN = "ShopOrder.objects.filter(...).values_list('customer_id', flat=True)"


def related(ask: Ask, says: str, *dots: str, of: str = "Customer") -> Row:
    return Row(ask=lambda shop: list(ask(shop)), says=says, dots=dots, of=of, run="queryset.{}")


ROWS |= {
    "none": related(lambda shop: shop.all(shop.Customer).filter(orders__isnull=True), f"exclude(pk__in={ORDERS})"),
    "none, excluded": related(
        lambda shop: shop.all(shop.Customer).exclude(orders__isnull=False), f"exclude(pk__in={ORDERS})"
    ),
    "one": related(
        lambda shop: shop.all(shop.Customer).filter(orders__isnull=False).distinct(), f"filter(pk__in={ORDERS})"
    ),
    "one, excluded": related(
        lambda shop: shop.all(shop.Customer).exclude(orders__isnull=True).distinct(), f"filter(pk__in={ORDERS})"
    ),
    "a value": related(
        lambda shop: shop.all(shop.Customer).filter(orders__status="open").distinct(),
        f"filter(pk__in={CHOSEN.replace('(...)', '(status=...)')})",
        "'open'",
    ),
    "a value, excluded": related(
        lambda shop: shop.all(shop.Customer).exclude(orders__status="open"),
        f"exclude(pk__in={CHOSEN})",
        "status='open'",
    ),
    "through": related(
        lambda shop: shop.all(shop.Product).filter(tags__name="sale"),
        "filter(pk__in=ShopProduct.tags.through.objects.filter(shoptag__in=ShopTag.objects.filter(name=...))"
        ".values_list('shopproduct_id', flat=True))",
        "'sale'",
        of="Product",
    ),
    "through, other side": related(
        lambda shop: shop.all(shop.Tag).filter(products__name="Bowl"),
        "filter(pk__in=ShopTag.products.through.objects.filter(shopproduct__in=ShopProduct.objects.filter(name=...))"
        ".values_list('shoptag_id', flat=True))",
        "'Bowl'",
        of="Tag",
    ),
    "edges": related(
        lambda shop: shop.all(shop.Product).filter(tags="new"),
        "filter(pk__in=ShopProduct.tags.through.objects.filter(shoptag=...).values_list('shopproduct_id', flat=True))",
        "'new'",
        of="Product",
    ),
}

#: Lookups that SQLite does not have either.
NOT_ON_SQLITE = ADVICE.keys() - OF_TEXTS.keys()
