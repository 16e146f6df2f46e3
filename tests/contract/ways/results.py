"""Refusals of orders and of the columns of rows."""

from __future__ import annotations

from django.db.models import Count
from django.db.models.functions import Lower

from tests.contract.ways.asking import (
    EACH,
    EXTRACTED,
    LIMIT,
    SORT,
    all_of,
    copied,
    extracted,
    keyed,
    mem,
    pks,
)
from tests.contract.ways.rows import Row

JOINED = all_of("Order", pks(lambda queryset: queryset.order_by("customer__name", "pk")))

BY_NAMES = all_of(
    "Order",
    lambda queryset: sorted(
        mem(queryset).order_by().values("customer__name").annotate(n=Count("pk")).values_list("customer__name", "n")
    ),
)

ROWS: dict[str, Row] = {
    # orders
    "order by a function": Row(
        ask=all_of("Customer", pks(lambda queryset: queryset.order_by(Lower("name")))),
        says=LIMIT,
        run="[each.pk for each in queryset{}.order_by(Lower('name'))]",
    ),
    "order of another model": Row(
        ask=JOINED,
        says=SORT,
        dots=("lambda each: (each.customer.name, each.pk)",),
        of="Order",
        run="[each.pk for each in {}]",
    ),
    "order of a reference": Row(
        ask=all_of("Product", pks(lambda queryset: queryset.order_by("category", "pk"))),
        says=SORT,
        dots=("lambda each: (each.category.name, each.pk)",),
        of="Product",
        run="[each.pk for each in {}]",
    ),
    "order of a place": Row(
        ask=all_of("Note", pks(lambda queryset: queryset.order_by("-data__price"))),
        says=LIMIT,
        of="Note",
        run="[each.pk for each in queryset{}.order_by('-data__price')]",
    ),
    "order of maps": Row(
        ask=all_of("Note", pks(lambda queryset: mem(queryset).order_by("-data__in"))),
        says=SORT,
        dots=("lambda each: -each.data['in']['depth']",),
        of="Note",
        run="[each.pk for each in {}]",
    ),
    "order of documents": Row(
        ask=all_of("Note", pks(lambda queryset: mem(queryset).order_by("-data"))),
        says=SORT,
        dots=("lambda each: -each.data['price']",),
        of="Note",
        run="[each.pk for each in {}]",
        theirs=all_of("Note", pks(lambda queryset: queryset.order_by("-data__price"))),
    ),
    "order without a key": Row(
        ask=all_of("Customer", pks(lambda queryset: queryset.order_by("city", "pk"))),
        says=LIMIT,
        run="[each.pk for each in queryset{}.order_by('city', 'pk')]",
    ),
    "order with a key": Row(
        ask=all_of("Customer", pks(lambda queryset: queryset.order_by("city"))),
        says='by_city = models.IndexKey("gs2", "SHOPCUSTOMER", "{city:last}#{customer_id}")',
        do=lambda shop, code: keyed(shop, code, lambda queryset: queryset.order_by("city")),
        theirs=all_of("Customer", pks(lambda queryset: queryset.order_by("city", "pk"))),
    ),
    "order left out": Row(
        ask=all_of("Customer", lambda queryset: list(queryset.order_by("city"))), says=".order_by()", run="queryset{}"
    ),
    "unknown order": Row(
        ask=all_of("Customer", pks(lambda queryset: queryset.order_by("named"))),
        says="name",
        run="[each.pk for each in queryset.order_by('{}')]",
        theirs=all_of("Customer", pks(lambda queryset: queryset.order_by("name"))),
    ),
    "unknown index": Row(
        ask=lambda shop: list(shop.Customer.objects.using_index("named")),
        says="listed",
        run="list(queryset.using_index('{}'))",
        theirs=all_of("Customer"),
    ),
    "backwards scan": Row(
        ask=lambda shop: pks(
            lambda queryset: queryset.allow_scan().filter(is_vip=False).using_index("primary").reverse()
        )(shop.Customer.objects.all()),
        says="allow_in_memory() and order_by()",
        do=lambda shop, code: pks(lambda queryset: queryset.allow_in_memory().filter(is_vip=False).order_by("-name"))(
            shop.Customer.objects.all()
        ),
        theirs=all_of("Customer", pks(lambda queryset: queryset.filter(is_vip=False).order_by("-name"))),
    ),
    # rows
    "groups of another model": Row(
        ask=BY_NAMES,
        says=EACH,
        dots=("each.customer.name",),
        of="Order",
        run="sorted(set((each, {0}.count(each)) for each in {0}))",
    ),
    "groups of a copy": Row(
        ask=BY_NAMES,
        says='models.CopiedAttribute("customer", "name")',
        do=copied,
        theirs=all_of("Order", lambda queryset: sorted(queryset.values_list("customer__name", flat=True))),
    ),
    "distinct rows in another order": Row(
        ask=all_of("Order", lambda queryset: list(mem(queryset).values("customer__name").distinct().order_by("total"))),
        says=".order_by()",
        base=lambda shop: (
            mem(shop.all(shop.Order)).order_by("total").values_list("customer__name", flat=True).distinct()
        ),
        run="sorted(queryset{})",
        theirs=all_of("Order", lambda q: sorted(q.order_by().values_list("customer__name", flat=True).distinct())),
    ),
    "distinct places": Row(
        ask=all_of("Note", lambda queryset: sorted(queryset.values_list("data__price", flat=True).distinct())),
        says=EACH,
        dots=("each.data['price']",),
        of="Note",
        run="sorted(set({}))",
    ),
    "distinct extracted": Row(
        ask=all_of("Note", lambda queryset: sorted(queryset.values_list("data__price", flat=True).distinct())),
        says=EXTRACTED,
        do=extracted("ShopDistinct", lambda queryset: sorted(mem(queryset).values_list("price", flat=True).distinct())),
    ),
    "part of an attribute": Row(
        ask=lambda shop: list(shop.all(shop.Customer).values_list("name__first", flat=True)),
        says=EACH,
        dots=("each.name",),
        run="sorted({})",
        theirs=all_of("Customer", lambda queryset: sorted(queryset.values_list("name", flat=True))),
    ),
    "unknown value": Row(
        ask=all_of("Customer", lambda queryset: list(queryset.values_list("named", flat=True))),
        says="name",
        run="sorted(queryset.values_list('{}', flat=True))",
        theirs=all_of("Customer", lambda queryset: sorted(queryset.values_list("name", flat=True))),
    ),
    "position in a list": Row(
        ask=all_of("Note", lambda queryset: list(queryset.values_list("steps__first", flat=True))),
        says="0",
        of="Note",
        run="sorted(queryset.values_list('steps__{}', flat=True))",
        theirs=all_of("Note", lambda queryset: sorted(queryset.values_list("steps__0", flat=True))),
    ),
    "distinct names": Row(
        ask=all_of("Customer", lambda queryset: list(queryset.distinct("city").values_list("city", flat=True))),
        says="allow_in_memory(limit=1000).values(...).distinct()",
        dots=("'city'",),
        run="sorted(each['city'] for each in queryset.{})",
        theirs=all_of("Customer", lambda queryset: sorted({each.city for each in queryset})),
    ),
    "only an unknown name": Row(
        ask=all_of("Customer", lambda queryset: list(queryset.only("named"))),
        says="name",
        run="list(queryset.only('{}'))",
        theirs=all_of("Customer"),
    ),
    "part deferred": Row(
        ask=all_of("Note", lambda queryset: list(queryset.defer("data__price"))),
        says="data",
        of="Note",
        run="list(queryset.defer('{}'))",
        theirs=all_of("Note"),
    ),
    "deferred and followed": Row(
        ask=all_of("Order", lambda queryset: list(queryset.only("status").select_related("customer"))),
        says="only()",
        of="Order",
        do=lambda shop, code: list(shop.Order.objects.only("status", "customer").select_related("customer")),
        theirs=all_of("Order"),
    ),
    "no reference": Row(
        ask=all_of("Customer", lambda queryset: list(queryset.select_related("orders"))),
        says="prefetch_related('orders')",
        run="[len(each.orders.all()) for each in queryset.{}.order_by('name')]",
        theirs=all_of("Customer", lambda queryset: [each.orders.count() for each in queryset.order_by("name")]),
    ),
}
