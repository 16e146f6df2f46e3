"""A shop's first month of queries, written for Django, and their results here.

A query works as written, or after ``allow_in_memory()``.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

from django.db.models import Avg, Count, F, Max, Min, Q, Sum, Value
from django.db.models.functions import Concat, Lower, TruncMonth

from tests.contract.ways.asking import mem
from tests.contract.ways.shop import T0, Shop

Ask = Callable[[Any], Any]


def days(number: int) -> dt.datetime:
    return T0 + dt.timedelta(days=number)


def pks(queryset: Any) -> list[str]:
    return [each.pk for each in queryset]


def some(queryset: Any) -> list[str]:
    return sorted({each.pk for each in queryset})


class Asked:
    """A shop as queries name it: ``asked.Order`` contains the model's objects, in memory if allowed."""

    def __init__(self, shop: Shop, *, in_memory: bool) -> None:
        self.shop, self.in_memory = shop, in_memory

    def __getattr__(self, name: str) -> Any:
        queryset = self.shop.all(getattr(self.shop, name))
        return mem(queryset) if self.in_memory else queryset


QUERIES: dict[str, Ask] = {
    "a customer by key": lambda m: m.Customer.get(pk="c1").name,
    "a customer by mail": lambda m: m.Customer.get(email="ann0@y.com").pk,
    "the customers": lambda m: pks(m.Customer.order_by("name")),
    "the last customers": lambda m: pks(m.Customer.order_by("-created")[:2]),
    "vips": lambda m: some(m.Customer.filter(is_vip=True)),
    "customers of two cities": lambda m: some(m.Customer.filter(city__in=["Rome", "Oslo"])),
    "customers without a city": lambda m: some(m.Customer.filter(city="")),
    "names by their start": lambda m: some(m.Customer.filter(name__startswith="Ann")),
    "names by a part": lambda m: some(m.Customer.filter(name__icontains="ann")),
    "by mail domain": lambda m: some(m.Customer.filter(email__endswith="@x.org")),
    "names without case": lambda m: pks(m.Customer.order_by(Lower("name"))),
    "vips or of Rome": lambda m: some(m.Customer.filter(Q(is_vip=True) | Q(city="Rome"))),
    "not of Rome": lambda m: some(m.Customer.exclude(city="Rome")),
    "number of customers": lambda m: m.Customer.count(),
    "is a customer there": lambda m: m.Customer.filter(email="nobody@x.org").exists(),
    "first by name": lambda m: m.Customer.order_by("name").first().pk,
    "in bulk": lambda m: sorted(m.Customer.in_bulk(["c0", "c3"])),
    "in bulk by mail": lambda m: sorted(m.Customer.in_bulk(["ann0@y.com"], field_name="email")),
    "only names": lambda m: sorted((each.pk, each.name) for each in m.Customer.only("name")),
    "cities": lambda m: sorted(m.Customer.order_by().values_list("city", flat=True).distinct()),
    "customers by city": lambda m: sorted(
        m.Customer.order_by().values("city").annotate(n=Count("pk")).values_list("city", "n")
    ),
    "cities of several": lambda m: sorted(
        m.Customer.order_by().values("city").annotate(n=Count("pk")).filter(n__gt=1).values_list("city", "n")
    ),
    "labels": lambda m: sorted(
        m.Customer.annotate(label=Concat("name", Value(" "), "city")).values_list("label", flat=True)
    ),
    "a customer's orders": lambda m: pks(m.Customer.get(pk="c1").orders.all()),
    "a customer's orders of a time": lambda m: pks(
        m.Customer.get(pk="c1").orders.filter(placed__gte=T0, placed__lt=days(90))
    ),
    "a customer's last order": lambda m: m.Customer.get(pk="c1").orders.order_by("-placed").first().pk,
    "orders with names": lambda m: sorted(
        (each.pk, each.customer.name) for each in m.Order.select_related("customer").filter(status="open")
    ),
    "customers with orders along": lambda m: sorted(
        (each.pk, len(each.orders.all())) for each in m.Customer.prefetch_related("orders")
    ),
    "customers with open orders": lambda m: some(m.Customer.filter(orders__status="open").distinct()),
    "customers of open orders": lambda m: some(
        m.Customer.filter(pk__in=m.shop.all(m.shop.Order).filter(status="open").values("customer"))
    ),
    "customers without orders": lambda m: some(m.Customer.filter(orders__isnull=True)),
    "sleeping customers": lambda m: some(m.Customer.annotate(last=Max("orders__placed")).filter(last__lt=days(180))),
    "names of buyers": lambda m: sorted(m.Order.order_by().values_list("customer__name", flat=True).distinct()),
    "orders of a name": lambda m: some(m.Order.filter(customer__name="bob")),
    "orders of two customers": lambda m: some(m.Order.filter(customer__in=["c1", "c2"])),
    "orders of others": lambda m: some(m.Order.exclude(customer__in=["c1", "c2"])),
    "the orders": lambda m: pks(m.Order.all()),
    "orders of a status": lambda m: pks(m.Order.filter(status="open").order_by("-placed")),
    "orders of this month": lambda m: some(m.Order.filter(placed__year=2024, placed__month=2)),
    "orders of a day": lambda m: some(m.Order.filter(placed__date=T0.date())),
    "orders of March": lambda m: some(m.Order.filter(placed__month=3)),
    "large orders": lambda m: some(m.Order.filter(total__gte=100)),
    "dearest orders": lambda m: pks(m.Order.filter(total__range=(50, 250)).order_by("-total")[:3]),
    "orders without a note": lambda m: some(m.Order.filter(note__isnull=True)),
    "orders of another note": lambda m: some(m.Order.exclude(note="Gift")),
    "revenue": lambda m: m.Order.aggregate(s=Sum("total"))["s"],
    "mean, least and most": lambda m: sorted(m.Order.aggregate(a=Avg("total"), b=Min("total"), c=Max("total")).items()),
    "revenue by status": lambda m: sorted(
        m.Order.order_by().values("status").annotate(s=Sum("total"), n=Count("pk")).values_list("status", "s", "n")
    ),
    "revenue by month": lambda m: sorted(
        m.Order.order_by().annotate(month=TruncMonth("placed")).values_list("month").annotate(s=Sum("total"))
    ),
    "months with orders": lambda m: list(m.Order.dates("placed", "month")),
    "line totals": lambda m: m.Line.aggregate(s=Sum(F("qty") * F("unit_price")))["s"],
    "dear lines": lambda m: len(m.Line.alias(t=F("qty") * F("unit_price")).filter(t__gt=30)),
    "an order's lines": lambda m: sorted([each.number, each.qty] for each in m.Order.get(pk="o1").lines.all()),
    "lines with names": lambda m: sorted(m.Line.filter(order="o3").values_list("product__name", "qty")),
    "lines of a product": lambda m: m.Line.filter(product="p1").count(),
    "to reorder": lambda m: some(m.Product.filter(stock__lt=F("reorder_level"))),
    "out of stock": lambda m: some(m.Product.filter(stock=0)),
    "cheapest products": lambda m: pks(m.Product.order_by("price")[:2]),
    "products of a category": lambda m: pks(m.Product.filter(category="k0").order_by("name")),
    "products of a category's name": lambda m: some(m.Product.filter(category__name="Tea")),
    "products on sale": lambda m: some(m.Product.filter(tags__name="sale")),
    "products by tags": lambda m: [
        (each.pk, each.n) for each in m.Product.annotate(n=Count("tags")).order_by("-n", "pk")
    ],
    "a product's tags": lambda m: sorted(each.name for each in m.Product.get(pk="p2").tags.all()),
}

#: Queries that need ``allow_in_memory()``.
IN_MEMORY = {
    "products by tags",
    "sleeping customers",
    "names of buyers",
    "products on sale",
    "products of a category's name",
    "orders of a name",
    "customers without orders",
    "customers with open orders",
    "names by a part",
    "by mail domain",
    "names without case",
    "cities of several",
    "orders of March",
    "revenue by month",
    "line totals",
    "dear lines",
    "the last customers",
    "cities",
    "customers by city",
    "dearest orders",
    "revenue",
    "mean, least and most",
    "revenue by status",
    "months with orders",
    "cheapest products",
}
