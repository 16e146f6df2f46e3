"""Conditions on related objects: keys read each side, with Django's results on SQLite."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db.models import Q

from dynamo_single.exceptions import TooManyMatches
from tests.contract.ways.asking import mem
from tests.contract.ways.month import days, some
from tests.contract.ways.shop import Shop

#: The model, and the conditions of a ``filter()`` or an ``exclude()`` of it.
CONDITIONS: dict[str, tuple[str, Q]] = {
    "an attribute": ("Order", Q(customer__city="Rome")),
    "two attributes": ("Order", Q(customer__city="Rome", customer__is_vip=True)),
    "a reference of a reference": ("Line", Q(product__category__name="Cups")),
    "two references": ("Line", Q(order__status="paid", product__name="Bowl")),
    "a list": ("Order", Q(customer__city__in=["Rome", ""])),
    "a start": ("Order", Q(customer__name__startswith="Ann")),
    "no match": ("Order", Q(customer__city="Paris")),
    "and an own attribute": ("Order", Q(customer__city="Rome", status="open")),
    "or an own attribute": ("Order", Q(customer__city="Rome") | Q(status="paid")),
    "or another one's": ("Order", Q(customer__city="Rome") | Q(lines__qty=5)),
    "negated": ("Order", ~Q(customer__city="Rome")),
    "negated twice": ("Order", ~Q(~Q(customer__city="Rome"))),
    "children": ("Customer", Q(orders__status="open")),
    "children of one kind": ("Customer", Q(orders__status="open", orders__total__gt=100)),
    "children of either kind": ("Customer", Q(orders__status="open") | Q(orders__total__gt=100)),
    "one of two and another": (
        "Customer",
        (Q(orders__status="open") | Q(city="Oslo")) & Q(orders__total__gt=100),
    ),
    "children, negated": ("Customer", ~Q(orders__status="open")),
    "children, negated beside": ("Customer", Q(~Q(orders__status="open"), city="Rome")),
    "children, negated among": ("Customer", Q(orders__total__gt=50) & ~Q(orders__status="open")),
    "children of children": ("Customer", Q(orders__lines__qty__gt=4)),
    "children of children of one": ("Customer", Q(orders__lines__qty__gt=4, orders__status="paid")),
    "children's references": ("Customer", Q(orders__lines__product__name="Bowl")),
    "no children": ("Customer", Q(orders__isnull=True)),
    "some children": ("Customer", Q(orders__isnull=False)),
    "no value of children": ("Customer", Q(orders__note__isnull=True)),
    "a value of children": ("Customer", Q(orders__note__isnull=False)),
    "None of children": ("Customer", Q(orders__note=None)),
    "no value of children of a kind": ("Customer", Q(orders__note__isnull=True, orders__status="open")),
    "a known child": ("Customer", Q(orders="o4")),
    "known children": ("Customer", Q(orders__in=["o1", "o2"])),
    "a child by its key": ("Customer", Q(orders__pk="o1")),
    "a child before": ("Customer", Q(orders__placed__lt=days(30))),
    "children between": ("Customer", Q(orders__placed__range=(days(10), days(50)))),
    "tags": ("Product", Q(tags__name="sale")),
    "a known tag": ("Product", Q(tags="new")),
    "tags of a list": ("Product", Q(tags__in=["new", "sale"])),
    "no tags": ("Product", Q(tags__isnull=True)),
    "some tags": ("Product", Q(tags__isnull=False)),
    "tags, negated": ("Product", ~Q(tags__name="sale")),
    "products of a tag": ("Tag", Q(products__name="Bowl")),
    "products' references": ("Tag", Q(products__category__name="Tea")),
    "a tag's products' lines": ("Tag", Q(products__lines__qty__gt=2)),
    "references and back": ("Order", Q(customer__orders__status="sent")),
    "references and back, two": ("Order", Q(customer__orders__status="sent", customer__orders__total__gt=200)),
}


@pytest.mark.parametrize("excludes", [False, True], ids=["filter", "exclude"])
@pytest.mark.parametrize("name", CONDITIONS)
def test_related_condition_finds_djangos_objects(shops: tuple[Shop, Shop], name: str, excludes: bool) -> None:
    of, condition = CONDITIONS[name]

    def found(shop: Shop) -> Any:
        objects = mem(shop.all(getattr(shop, of)))
        return key(objects.exclude(condition) if excludes else objects.filter(condition))

    ours, theirs = shops
    assert found(ours) == found(theirs)


def key(queryset: Any) -> list[Any]:
    """Return the name of an object on both sides."""
    if "Line" in queryset.model.__name__:
        return sorted({(each.order_id, each.number) for each in queryset})
    return some(queryset)


def rome(shop: Shop) -> Any:
    return mem(shop.all(shop.Order)).filter(customer__city="Rome")


def several(shop: Shop) -> Any:
    return mem(shop.all(shop.Order)).filter(lines__qty__gt=4)


#: Querysets with conditions on related objects, and slices, combined.
COMBINED: dict[str, Callable[[Shop], Any]] = {
    "or": lambda shop: (rome(shop) | several(shop)).distinct(),
    "or an own attribute": lambda shop: rome(shop) | mem(shop.all(shop.Order)).filter(status="paid"),
    "and": lambda shop: (several(shop) & rome(shop)).distinct(),
    "or, then a condition": lambda shop: (rome(shop) | several(shop)).filter(status="open").distinct(),
    "or a slice": lambda shop: rome(shop) | mem(shop.all(shop.Order)).order_by("-placed")[:1],
    "or nothing": lambda shop: rome(shop) | mem(shop.all(shop.Order)).none(),
}


@pytest.mark.parametrize("name", COMBINED)
def test_combined_querysets_have_djangos_objects(shops: tuple[Shop, Shop], name: str) -> None:
    ours, theirs = shops
    assert key(COMBINED[name](ours)) == key(COMBINED[name](theirs))


def test_combined_querysets_are_bounded(shops: tuple[Shop, Shop]) -> None:
    ours, _ = shops
    held = ours.Order.objects.allow_in_memory(2)
    with pytest.raises(TooManyMatches):
        list(held.filter(customer__is_vip=True) | held.filter(status="open"))
