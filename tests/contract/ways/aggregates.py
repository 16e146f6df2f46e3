"""Refusals of aggregates and groups."""

from __future__ import annotations

from django.db.models import Count, F, Max, StdDev, Sum

from tests.contract.ways.asking import (
    EACH,
    LIMIT,
    SORT,
    all_of,
    counted,
    grouped,
    mem,
    named,
)
from tests.contract.ways.rows import Row

ROWS: dict[str, Row] = {
    # aggregates
    "sum of a product": Row(
        ask=all_of("Line", lambda queryset: queryset.aggregate(s=Sum(F("qty") * F("unit_price")))["s"]),
        says=LIMIT,
        of="Line",
        run="queryset{}.aggregate(s=Sum(F('qty') * F('unit_price')))['s']",
    ),
    "deviation": Row(
        ask=all_of("Line", lambda queryset: round(queryset.aggregate(s=StdDev("qty"))["s"], 9)),
        says=LIMIT,
        of="Line",
        run="round(queryset{}.aggregate(s=StdDev('qty'))['s'], 9)",
    ),
    "aggregate of another model": Row(
        ask=all_of("Order", lambda queryset: queryset.aggregate(s=Max("customer__name"))["s"]),
        says="[... for each in queryset.select_related('customer')]",
        dots=("each.customer.name",),
        of="Order",
        run="max({})",
    ),
    "aggregate of those that refer": Row(
        ask=all_of(
            "Customer",
            lambda queryset: dict(
                queryset.annotate(last=Max("orders__placed")).filter(last__isnull=False).values_list("pk", "last")
            ),
        ),
        says="ShopOrder.objects.allow_in_memory(limit=1000).order_by().values('customer_id')"
        ".annotate(last=Max('placed'))",
        run="dict({}.values_list('customer_id', 'last'))",
    ),
    "number of tags": Row(
        ask=all_of("Product", lambda queryset: {each.pk: each.n for each in queryset.annotate(n=Count("tags"))}),
        says=EACH,
        dots=("(each.pk, each.tags.count())",),
        of="Product",
        run="dict({})",
    ),
    "aggregate of annotations": Row(
        ask=all_of("Customer", lambda queryset: mem(queryset).annotate(n=counted(queryset)).aggregate(s=Max("n"))["s"]),
        says=EACH,
        dots=("each.n",),
        base=lambda shop: mem(shop.Customer.objects.all()).annotate(n=Count("bought")),
        run="max({})",
    ),
    "most of a pk": Row(
        ask=all_of("Line", lambda queryset: mem(queryset).aggregate(s=Max("pk"))["s"]),
        says="number",
        run="queryset.allow_in_memory().aggregate(s=Max('{}'))['s']",
        of="Line",
        theirs=all_of("Line", lambda queryset: queryset.aggregate(s=Max("number"))["s"]),
    ),
    "total of texts": Row(
        ask=all_of("Customer", lambda queryset: mem(queryset).aggregate(s=Sum("name"))["s"]),
        says=EACH,
        dots=("0",),
        run="sum({})",
    ),
    "most of documents": Row(
        ask=all_of("Note", lambda queryset: mem(queryset).aggregate(s=Max("data"))["s"]["price"]),
        says=EACH,
        dots=("each.data['price']",),
        of="Note",
        run="max({})",
    ),
    "number of matches": Row(
        ask=all_of("Order", lambda queryset: queryset.aggregate(s=Sum("total"))["s"]),
        says=LIMIT,
        of="Order",
        run="queryset{}.aggregate(s=Sum('total'))['s']",
    ),
    "number of matches, sliced": Row(
        ask=all_of("Order", lambda queryset: queryset.aggregate(s=Sum("total"))["s"]),
        says="queryset[:100]",
        of="Order",
        run="{}.aggregate(s=Sum('total'))['s']",
    ),
    "groups": Row(
        ask=all_of("Customer", lambda queryset: named(queryset.order_by().values("city").annotate(n=Count("pk")))),
        says=LIMIT,
        run="{{each['city']: each['n'] for each in queryset{}.order_by().values('city').annotate(n=Count('pk'))}}",
    ),
    "groups, ordered": Row(
        ask=all_of("Customer", lambda queryset: list(grouped(queryset).order_by("created"))),
        says=SORT,
        dots=("lambda each: each['city']",),
        base=lambda shop: grouped(shop.Customer.objects.all()),
        theirs=all_of("Customer", lambda queryset: list(grouped(queryset).order_by("city"))),
    ),
    "groups, another name": Row(
        ask=all_of("Customer", lambda queryset: list(grouped(queryset).values("name"))),
        says="city",
        base=lambda shop: grouped(shop.Customer.objects.all()),
        run="sorted(each['city'] for each in queryset.values('{}'))",
        theirs=all_of("Customer", lambda queryset: sorted(each["city"] for each in grouped(queryset))),
    ),
    "children, distinct": Row(
        ask=lambda shop: {
            each.pk: each.n for each in mem(shop.Customer.objects.all()).annotate(n=Count("bought", distinct=True))
        },
        says="Count('bought')",
        run="{{each.pk: each.n for each in queryset.allow_in_memory().annotate(n={})}}",
        theirs=all_of(
            "Customer",
            lambda queryset: {each.pk: each.n for each in queryset.annotate(n=Count("orders", distinct=True))},
        ),
    ),
    "children, measured": Row(
        ask=lambda shop: list(mem(shop.Customer.objects.all()).annotate(n=Max("bought"))),
        says="ShopOrder.objects.allow_in_memory(limit=1000).order_by().values('customer_id').annotate(...)",
        dots=("n=Max('total')",),
        run="{{each['customer_id']: each['n'] for each in {}}}",
        theirs=all_of(
            "Order",
            lambda queryset: {
                each["customer_id"]: each["n"]
                for each in queryset.order_by().values("customer_id").annotate(n=Max("total"))
            },
        ),
    ),
    "slice of groups": Row(
        ask=all_of(
            "Customer", lambda queryset: named(queryset.order_by("city").values("city")[:2].annotate(n=Count("pk")))
        ),
        says="queryset.annotate(...)[:100]",
        dots=("n=Count('pk')",),
        base=lambda shop: mem(shop.Customer.objects.all()).order_by("city").values("city"),
        run="{{each['city']: each['n'] for each in {}[:2]}}",
        theirs=all_of(
            "Customer", lambda queryset: named(queryset.order_by("city").values("city").annotate(n=Count("pk"))[:2])
        ),
    ),
}
