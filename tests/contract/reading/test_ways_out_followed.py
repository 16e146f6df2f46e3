"""The alternative in an error works as written, and has the results of Django on SQLite."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import models as django_models
from django.db.models import Count, F, Q
from django.db.models.functions import Lower

from dynamo_single import models
from dynamo_single.exceptions import NotSupported
from tests.contract.sqlite import ALIAS, sqlite
from tests.unit.declaring import declare, forgotten

pytestmark = pytest.mark.usefixtures("table")


class Shop:
    """Customers, their orders and tags, here or on SQLite; ``all`` gives the objects of a model."""

    def __init__(self, customer: Any, order: Any, tag: Any, gives: Callable[[Any], Any]) -> None:
        self.Customer, self.Order, self.Tag, self.all = customer, order, tag, gives

    @property
    def names(self) -> dict[str, Any]:
        """Return the names in an expression of a message."""
        return {each.__name__: each for each in (self.Customer, self.Order, self.Tag)}

    def fill(self) -> None:
        """Create four customers, one without an order, and two tags."""
        for model in (self.Order, self.Customer, self.Tag):
            self.all(model).delete()
        tags = [self.all(self.Tag).create(tag_id=name, title=name.title()) for name in ("sale", "new")]
        for number, name in enumerate(("ann", "Bob", "cy", "Dee")):
            customer = self.all(self.Customer).create(customer_id=f"c{number}", name=name, low=number, high=2)
            if number:
                self.all(self.Order).create(
                    order_id=f"o{number}", customer=customer, status="open" if number % 2 else "paid", total=number
                )
            if number < 2:
                customer.tags.add(tags[number])


def on_sqlite() -> Shop:
    class SqlTag(django_models.Model):
        tag_id = django_models.CharField(max_length=10, primary_key=True)
        title = django_models.CharField(max_length=10)

        class Meta:
            app_label = "catalog"

        def __str__(self) -> str:
            return self.tag_id

    class SqlCustomer(django_models.Model):
        customer_id = django_models.CharField(max_length=10, primary_key=True)
        name = django_models.CharField(max_length=10)
        low = django_models.IntegerField()
        high = django_models.IntegerField()
        tags = django_models.ManyToManyField(SqlTag, related_name="customers")

        class Meta:
            app_label = "catalog"

        def __str__(self) -> str:
            return self.customer_id

    class SqlOrder(django_models.Model):
        order_id = django_models.CharField(max_length=10, primary_key=True)
        customer = django_models.ForeignKey(SqlCustomer, django_models.CASCADE, related_name="orders")
        status = django_models.CharField(max_length=10)
        total = django_models.IntegerField()

        class Meta:
            app_label = "catalog"

        def __str__(self) -> str:
            return self.order_id

    return Shop(SqlCustomer, SqlOrder, SqlTag, lambda model: model.objects.using(ALIAS))


def on_dynamodb() -> Shop:
    tag = declare(
        "ShopTag",
        ("SHOPTAG#{tag_id}", "#METADATA"),
        {"listed": models.IndexKey("gs1", "SHOPTAG", "{tag_id}")},
        tag_id=models.UnicodeAttribute(),
        title=models.UnicodeAttribute(),
    )
    customer = declare(
        "Shopper",
        ("SHOPPER#{customer_id}", "#METADATA"),
        {"listed": models.IndexKey("gs1", "SHOPPER", "{customer_id}")},
        customer_id=models.UnicodeAttribute(),
        name=models.UnicodeAttribute(),
        low=models.IntegerAttribute(),
        high=models.IntegerAttribute(),
        tags=models.ManyToMany("catalog.ShopTag", related_name="customers"),
        bought=models.Children("ShopOrder"),
    )
    order = declare(
        "ShopOrder",
        ("SHOPORDER#{order_id}", "#METADATA"),
        {
            "listed": models.IndexKey("gs1", "SHOPORDER", "{order_id}"),
            "by_customer": models.IndexKey("gs2", "OF#{customer_id}", "{order_id}"),
        },
        order_id=models.UnicodeAttribute(),
        customer=models.ReferenceAttribute(customer, on_delete=models.CASCADE, related_name="orders"),
        status=models.UnicodeAttribute(),
        total=models.IntegerAttribute(),
    )
    return Shop(customer, order, tag, lambda model: model.objects.all())


@pytest.fixture(scope="module")
def declared(django_db_blocker: Any) -> Iterator[tuple[Shop, Shop]]:
    with forgotten(), django_db_blocker.unblock(), sqlite() as connection:
        theirs = on_sqlite()
        with connection.schema_editor() as editor:
            for model in (theirs.Tag, theirs.Customer, theirs.Order):
                editor.create_model(model)
        yield on_dynamodb(), theirs


@pytest.fixture
def shops(declared: tuple[Shop, Shop]) -> tuple[Shop, Shop]:
    """Ours and SQLite's, with the same data."""
    for shop in declared:
        shop.fill()
    return declared


def pks(found: Any) -> list[str]:
    return sorted({each.pk for each in found})


#: Queries over relations, the verb of the alternative, and the text for its dots.
RELATED: dict[str, tuple[Callable[[Shop], Any], str, str]] = {
    "none": (lambda shop: shop.all(shop.Customer).filter(orders__isnull=True), "exclude", ""),
    "none, excluded": (lambda shop: shop.all(shop.Customer).exclude(orders__isnull=False), "exclude", ""),
    "one": (lambda shop: shop.all(shop.Customer).filter(orders__isnull=False), "filter", ""),
    "one, excluded": (lambda shop: shop.all(shop.Customer).exclude(orders__isnull=True), "filter", ""),
    "a value": (lambda shop: shop.all(shop.Customer).filter(orders__status="open"), "filter", "'open'"),
    "a comparison": (lambda shop: shop.all(shop.Customer).filter(orders__total=2), "filter", "2"),
    "a value, excluded": (lambda shop: shop.all(shop.Customer).exclude(orders__status="open"), "exclude", "'open'"),
    "either": (lambda shop: shop.all(shop.Customer).filter(Q(orders__status="paid")), "filter", "'paid'"),
    "through": (lambda shop: shop.all(shop.Customer).filter(tags__title="Sale"), "filter", "'Sale'"),
    "through, other side": (lambda shop: shop.all(shop.Tag).filter(customers__name="Bob"), "filter", "'Bob'"),
    "edges": (lambda shop: shop.all(shop.Customer).filter(tags="new"), "filter", "'new'"),
    "edges, other side": (lambda shop: shop.all(shop.Tag).filter(customers="c1"), "filter", "'c1'"),
}


@pytest.mark.parametrize("name", RELATED)
def test_way_out_of_a_relation_gives_djangos_objects(shops: tuple[Shop, Shop], name: str) -> None:
    """The error contains the whole query, which the test runs unchanged."""
    ask, verb, value = RELATED[name]
    ours, theirs = shops
    with pytest.raises(NotSupported) as refused:
        list(ask(ours))
    written = re.findall(verb + r"\(pk__in=.*?flat=True\)\)", str(refused.value))
    assert written, str(refused.value)
    model = ours.Tag if "other side" in name else ours.Customer
    # If there are several, the one with dots is about a condition.
    chosen = next((each for each in written if value and "..." in each), written[0])
    filled = chosen.replace("=...", f"={value}").replace("(...)", f"(status={value})")
    found = eval(f"objects.{filled}", ours.names | {"objects": model.objects})  # noqa: S307 - the message's own
    assert pks(found) == pks(ask(theirs))


@pytest.mark.parametrize("alias", ["count", "save", "scan", "query"])
def test_annotation_may_have_the_name_of_a_method(shops: tuple[Shop, Shop], alias: str) -> None:
    """Django's rule is about fields alone, and PynamoDB's methods are none of a project's business."""
    ours, theirs = shops
    found = [
        sorted(getattr(each, alias) for each in rows.annotate(**{alias: Count(children)}))
        for rows, children in (
            (ours.Customer.objects.allow_in_memory(), "bought"),
            (theirs.all(theirs.Customer), "orders"),
        )
    ]
    assert found[0] == found[1]
    rows = ours.all(ours.Customer).allow_in_memory().values("high").annotate(**{alias: Count("pk")})
    assert [each[alias] for each in rows] == [4]


@pytest.mark.parametrize("alias", ["name", "orders", "customer_id", "tags"])
def test_annotation_conflicts_where_djangos_does(shops: tuple[Shop, Shop], alias: str) -> None:
    for shop in shops:
        with pytest.raises(ValueError, match="conflicts with a field on the model"):
            shop.all(shop.Customer).annotate(**{alias: Count("pk")})


LISTS: list[Callable[[Any], Any]] = [
    lambda rows: rows.filter(low__in=[F("high")]),
    lambda rows: rows.filter(low__in=[F("high"), 0]),
    lambda rows: rows.exclude(low__in=[F("high"), 0]),
    lambda rows: rows.filter(low__range=[0, F("high")]),
]


@pytest.mark.parametrize("ask", LISTS)
def test_list_with_an_attribute_gives_djangos_objects(shops: tuple[Shop, Shop], ask: Callable[[Any], Any]) -> None:
    ours, theirs = ([each.pk for each in ask(shop.all(shop.Customer)).order_by("pk")] for shop in shops)
    assert ours == theirs


@pytest.mark.parametrize("members", [[F("high") + 1], [F("high"), F("low") - 1], [0, Lower("name")]])
def test_list_with_a_sum_is_refused_by_name(shops: tuple[Shop, Shop], members: list[Any]) -> None:
    """In the past, it raised a ``TypeError``."""
    with pytest.raises(NotSupported, match="in this condition is not supported"):
        list(shops[0].all(shops[0].Customer).filter(low__in=members))


@pytest.mark.parametrize("others", [[], ["c1"]])
@pytest.mark.parametrize("name", ["customer", "customer_id"])
def test_attribute_among_references_names_what_works(shops: tuple[Shop, Shop], name: str, others: list[str]) -> None:
    """The refusal had a ``Col``, which the user had not written."""
    ours = shops[0].all(shops[0].Order)
    with pytest.raises(NotSupported, match=rf"{name}__in=\[F\('order_id'\)\]") as refused:
        ours.filter(**{f"{name}__in": [F("order_id"), *others]})
    written = re.search(r"Use (.*)\.$", str(refused.value))
    assert written, str(refused.value)
    condition = eval(written[1].replace("[...]", str(others)), {"Q": Q, "F": F})  # noqa: S307 - the message's own
    assert pks(ours.filter(condition)) == pks(each for each in ours if each.customer_id in (each.order_id, *others))
