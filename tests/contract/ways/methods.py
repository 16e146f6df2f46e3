"""Refusals of dates, pages and other methods of querysets."""

from __future__ import annotations

from django.db.models import Count, F

from tests.contract.ways.asking import (
    EACH,
    LIMIT,
    all_of,
    grouped,
    mem,
    pks,
)
from tests.contract.ways.rows import Row

ROWS: dict[str, Row] = {
    # dates
    "dates, annotated": Row(
        ask=all_of("Customer", lambda queryset: list(queryset.dates("created", "month").annotate(n=Count("pk")))),
        says=EACH,
        dots=("each",),
        base=lambda shop: mem(shop.Customer.objects.all()).dates("created", "month"),
        theirs=all_of("Customer", lambda queryset: list(queryset.dates("created", "month"))),
    ),
    "dates, values": Row(
        ask=all_of("Customer", lambda queryset: list(queryset.dates("created", "month").values("created"))),
        says="queryset.values(...)",
        dots=("'created'",),
        run="list({})",
        theirs=all_of("Customer", lambda queryset: list(queryset.order_by("name").values("created"))),
    ),
    "dates of annotated objects": Row(
        ask=all_of("Customer", lambda queryset: list(queryset.annotate(n=Count("pk")).dates("created", "month"))),
        says="call them alone, before",
        do=lambda shop, code: list(mem(shop.Customer.objects.all()).dates("created", "month")),
    ),
    "dates of an unknown name": Row(
        ask=all_of("Customer", lambda queryset: list(queryset.dates("named", "month"))),
        says="created",
        run="list(queryset.allow_in_memory().dates('{}', 'month'))",
        theirs=all_of("Customer", lambda queryset: list(queryset.dates("created", "month"))),
    ),
    "dates, ordered": Row(
        ask=all_of("Customer", lambda queryset: list(mem(queryset).dates("created", "month").order_by("-created"))),
        says="order='DESC'",
        run="list(queryset.allow_in_memory().dates('created', 'month', {}))",
        theirs=all_of("Customer", lambda queryset: list(queryset.dates("created", "month", order="DESC"))),
    ),
    # several querysets
    "union of all": Row(
        ask=all_of(
            "Customer",
            lambda queryset: list(queryset.filter(city="Rome").union(queryset.filter(is_vip=True), all=True)),
        ),
        says=LIMIT,
        base=lambda shop: shop.all(shop.Customer).filter(city="Rome"),
        run="queryset{}.union(other, all=True)",
        names=lambda shop: {"other": shop.all(shop.Customer).filter(is_vip=True)},
    ),
    "union of two models": Row(
        ask=lambda shop: list(mem(shop.all(shop.Tag)).union(shop.all(shop.Category))),
        says=".values_list(...)",
        of="Tag",
        dots=("'name'",),
        run="sorted(queryset.allow_in_memory(){}.union(other.values_list('name')))",
        names=lambda shop: {"other": shop.all(shop.Category)},
        theirs=lambda shop: sorted(
            shop.all(shop.Tag)
            .order_by()
            .values_list("name")
            .union(shop.all(shop.Category).order_by().values_list("name"))
        ),
    ),
    "sliced union": Row(
        ask=all_of(
            "Customer",
            lambda queryset: list(
                queryset.order_by("name").values("name")[:1] | queryset.filter(is_vip=True).values("name")
            ),
        ),
        says="[*queryset, *other]",
        base=lambda shop: shop.all(shop.Customer).order_by("name").values("name")[:1],
        names=lambda shop: {"other": shop.all(shop.Customer).filter(is_vip=True).values("name")},
        theirs=lambda shop: [
            *shop.all(shop.Customer).order_by("name").values("name")[:1],
            *shop.all(shop.Customer).filter(is_vip=True).values("name"),
        ],
    ),
    "union of kinds": Row(
        ask=all_of("Customer", lambda queryset: list(mem(queryset).filter(city="Rome") | queryset.filter(is_vip=True))),
        says="[*queryset, *other]",
        run="set({})",
        base=lambda shop: mem(shop.all(shop.Customer)).filter(city="Rome"),
        names=lambda shop: {"other": shop.all(shop.Customer).filter(is_vip=True)},
        theirs=all_of("Customer", lambda queryset: list(queryset.filter(city="Rome") | queryset.filter(is_vip=True))),
    ),
    # methods
    "alias": Row(
        ask=all_of("Line", lambda queryset: list(queryset.alias(t=F("qty") * F("unit_price")).filter(t__gt=30))),
        says=LIMIT,
        of="Line",
        run="queryset{}.alias(t=F('qty') * F('unit_price')).filter(t__gt=30)",
    ),
    "extra": Row(
        ask=all_of("Customer", lambda queryset: list(queryset.extra(where=["name = 'bob'"]))),
        says="filter()",
        do=lambda shop, code: shop.Customer.objects.filter(name="bob"),
    ),
    "raw": Row(
        ask=lambda shop: list(shop.Customer.objects.raw("SELECT * FROM catalog_sqlcustomer WHERE name = 'bob'")),
        says="filter()",
        do=lambda shop, code: shop.Customer.objects.filter(name="bob"),
        theirs=lambda shop: list(shop.all(shop.Customer).raw("SELECT * FROM catalog_sqlcustomer WHERE name = 'bob'")),
    ),
    "database": Row(
        ask=lambda shop: list(shop.Customer.objects.using("nothing")),
        says="Omit using()",
        do=lambda shop, code: shop.Customer.objects.all(),
        theirs=all_of("Customer"),
    ),
    "explain": Row(
        ask=all_of("Customer", lambda queryset: bool(queryset.filter(pk="c1").explain(format="TEXT"))),
        says="explain()",
        run="bool(queryset.filter(pk='c1').{})",
        theirs=lambda shop: True,
    ),
    "too many in memory": Row(
        ask=lambda shop: pks(lambda queryset: queryset.allow_in_memory(2).order_by("city", "pk"))(
            shop.Customer.objects.all()
        ),
        says=".allow_in_memory(limit=...)",
        dots=("10",),
        run="[each.pk for each in queryset{}.order_by('city', 'pk')]",
        theirs=all_of("Customer", pks(lambda queryset: queryset.order_by("city", "pk"))),
    ),
    "too many inside": Row(
        ask=lambda shop: list(
            shop.Customer.objects.filter(pk__in=shop.Order.objects.allow_in_memory(2).values("customer"))
        ),
        says=".allow_in_memory(limit=...)",
        dots=("10",),
        run="queryset.filter(pk__in=ShopOrder.objects{}.values('customer'))",
        theirs=lambda shop: shop.all(shop.Customer).filter(pk__in=shop.all(shop.Order).values("customer")),
    ),
    # pages
    "pages in memory": Row(
        ask=lambda shop: mem(shop.Customer.objects.all()).order_by("city").page(2),
        says="queryset[:100]",
        base=lambda shop: mem(shop.Customer.objects.all()).order_by("city", "pk"),
        run="[each.pk for each in {}]",
        theirs=all_of("Customer", pks(lambda queryset: queryset.order_by("city", "pk")[:100])),
    ),
    "pages of results": Row(
        ask=lambda shop: mem(shop.Customer.objects.all()).annotate(n=Count("bought")).page(2),
        says="queryset[:100]",
        base=lambda shop: mem(shop.Customer.objects.all()).annotate(n=Count("bought")),
        run="{{each.pk: each.n for each in {}}}",
        theirs=all_of("Customer", lambda queryset: {each.pk: each.n for each in queryset.annotate(n=Count("orders"))}),
    ),
    "cursor of a part": Row(
        ask=lambda shop: shop.Customer.objects.cursor_for(shop.Customer.objects.only("city").get(pk="c1")),
        says="Read the object without only()",
        do=lambda shop, code: [
            each.pk
            for each in shop.Customer.objects.page(
                9, cursor=shop.Customer.objects.cursor_for(shop.Customer.objects.get(pk="c3"))
            )
        ],
        theirs=all_of("Customer", pks(lambda queryset: queryset.filter(name__gt="Joanne").order_by("name"))),
    ),
}

ROWS["rows written"] = Row(
    ask=all_of("Customer", lambda queryset: grouped(queryset).filter(city="Rome").update(is_vip=True)),
    says="objects",
    do=lambda shop, code: shop.Customer.objects.filter(city="Rome").update(is_vip=True),
    theirs=all_of("Customer", lambda queryset: queryset.filter(city="Rome").update(is_vip=True)),
)
