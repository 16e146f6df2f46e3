"""Each of Django's expressions has the same result in memory as on SQLite."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import django
import pytest
from django.db.models import (
    Avg,
    Case,
    CharField,
    Count,
    DateField,
    DecimalField,
    ExpressionWrapper,
    F,
    FloatField,
    Func,
    IntegerField,
    Max,
    Min,
    OuterRef,
    Q,
    RowRange,
    StdDev,
    Subquery,
    Sum,
    TextField,
    Value,
    Variance,
    When,
    Window,
)
from django.db.models import aggregates as django_aggregates
from django.db.models import functions as fn
from django.db.models.lookups import GreaterThan

from dynamo_single.exceptions import NotSupported, TooManyMatches
from dynamo_single.testing import assert_requests
from tests.contract.ways.asking import mem
from tests.contract.ways.shop import T0, Shop

#: Expressions by the model that they are of.
EXPRESSIONS: dict[str, dict[str, Any]] = {
    "Product": {
        "sum": F("stock") + F("reorder_level"),
        "difference": F("stock") - 7,
        "product": F("stock") * F("price"),
        "whole quotient": F("stock") / 3,
        "negative quotient": (F("stock") - 9) / 2,
        "division by zero": F("stock") / (F("stock") - F("stock")),
        "remainder": (F("stock") - 9) % 4,
        "bits": F("stock").bitand(4).bitor(1),
        "shift": F("stock").bitleftshift(2).bitrightshift(1),
        "wrapped": ExpressionWrapper(F("stock") * 1.5, output_field=FloatField()),
        "case": Case(When(stock__gt=4, then=Value("many")), When(stock=0, then=Value("none")), default=Value("few")),
        "case of conditions": Case(When(Q(stock__lt=F("reorder_level")) | Q(name="Bowl"), then=1), default=0),
        "condition": ExpressionWrapper(Q(stock__gt=4), output_field=IntegerField()),
        "lookup": GreaterThan(F("stock"), 4),
        "greatest": fn.Greatest("stock", "reorder_level"),
        "least": fn.Least("stock", "reorder_level"),
        "nullif": fn.NullIf("stock", Value(5)),
        "abs": fn.Abs(F("stock") - 6),
        "ceil": fn.Ceil("price"),
        "floor": fn.Floor("price"),
        "round": fn.Round(ExpressionWrapper(F("stock") / Value(8.0), output_field=FloatField()), precision=1),
        "sign": fn.Sign(F("stock") - 5),
        "mod": fn.Mod("stock", Value(3), output_field=FloatField()),
        "power": fn.Power("stock", Value(2), output_field=FloatField()),
        "sqrt": fn.Sqrt("stock", output_field=FloatField()),
        "ln": fn.Ln("reorder_level", output_field=FloatField()),
        "log": fn.Log(Value(2.0), "reorder_level", output_field=FloatField()),
        "exp": fn.Exp("reorder_level", output_field=FloatField()),
        "sin": fn.Sin("stock", output_field=FloatField()),
        "cos": fn.Cos("stock", output_field=FloatField()),
        "tan": fn.Tan("stock", output_field=FloatField()),
        "cot": fn.Cot("reorder_level", output_field=FloatField()),
        "asin": fn.ASin(F("reorder_level") / Value(10.0), output_field=FloatField()),
        "acos": fn.ACos(F("reorder_level") / Value(10.0), output_field=FloatField()),
        "atan": fn.ATan("stock", output_field=FloatField()),
        "atan2": fn.ATan2("stock", "reorder_level", output_field=FloatField()),
        "degrees": fn.Degrees("stock", output_field=FloatField()),
        "radians": fn.Radians("stock", output_field=FloatField()),
        "pi": fn.Pi(),
        "as text": fn.Cast("stock", CharField(max_length=10)),
        "as a float": fn.Cast("stock", FloatField()),
        "price as a number": fn.Cast("price", IntegerField()),
    },
    "Customer": {
        "lower": fn.Lower("name"),
        "upper": fn.Upper("name"),
        "length": fn.Length("name"),
        "left": fn.Left("name", 2),
        "right": fn.Right("name", 2),
        "substr": fn.Substr("name", 2, 2),
        "trim": fn.Trim(Value("  x ")),
        "ltrim": fn.LTrim(Value("  x ")),
        "rtrim": fn.RTrim(Value("  x ")),
        "lpad": fn.LPad("name", 8, Value("-+")),
        "rpad": fn.RPad("name", 8, Value("-+")),
        "lpad, cut": fn.LPad("name", 2),
        "repeat": fn.Repeat("name", 2),
        "replace": fn.Replace("name", Value("n"), Value("mm")),
        "reverse": fn.Reverse("name"),
        "strindex": fn.StrIndex("name", Value("n")),
        "ord": fn.Ord("name"),
        "chr": fn.Chr(Value(65)),
        "md5": fn.MD5("name"),
        "sha1": fn.SHA1("name"),
        "sha256": fn.SHA256("name"),
        "concat": fn.Concat("name", Value(" <"), "city", Value(">")),
        "named function": Func(F("name"), function="UPPER", output_field=TextField()),
        "a number in text": fn.Cast(fn.Substr("customer_id", 2), IntegerField()),
        "no number in text": fn.Cast("name", IntegerField()),
        "json": fn.JSONObject(name="name", city=fn.Upper("city"), vip=F("customer_id")),
    },
    "Order": {
        "coalesce": fn.Coalesce("note", Value("none")),
        "concat of nothing": fn.Concat("note", Value("!")),
        "missing": fn.Upper("note"),
        "missing in a sum": fn.Length("note") + 1,
        "greatest of nothing": fn.Greatest("note", "status"),
        **{
            name: getattr(fn, f"Extract{name}")("placed")
            for name in (
                *("Year", "IsoYear", "Quarter", "Month", "Week", "Day", "WeekDay", "IsoWeekDay"),
                *("Hour", "Minute", "Second"),
            )
        },
        **{
            f"trunc {name}": getattr(fn, f"Trunc{name}")("placed")
            for name in ("Year", "Quarter", "Month", "Week", "Day", "Hour", "Minute", "Second", "Date", "Time")
        },
        "trunc in a zone": fn.TruncDay("placed", tzinfo=dt.timezone(dt.timedelta(hours=13))),
        "trunc as a date": fn.Trunc("placed", "month", output_field=DateField()),
        "later": F("placed") + dt.timedelta(days=3),
        "time between": F("placed") - Value(T0),
    },
    "Note": {
        "day": fn.ExtractWeekDay("day"),
        "month of a day": fn.TruncMonth("day"),
        "place": F("data__price"),
        "place in a place": F("data__in__depth"),
        "place that is missing": F("data__nothing"),
        "text": fn.Lower("text"),
    },
}
AGGREGATES: dict[str, Any] = {
    "sum of a product": Sum(F("qty") * F("unit_price")),
    "filter": Sum(F("qty") + 1, filter=Q(qty__gt=2)),
    "distinct": Count(F("qty") % 2, distinct=True),
    "default": Sum(F("qty") + 1, filter=Q(qty__gt=99), default=0),
    "average": Avg(F("qty") * 2),
    "least": Min(F("qty") - F("number")),
    "most": Max(F("qty") - F("number")),
    "deviation": StdDev("qty"),
    "sample's deviation": StdDev("qty", sample=True),
    "variance": Variance("qty"),
    "of aggregates": Sum("qty") + Count("pk"),
    "type": Sum("qty", output_field=FloatField()),
}
#: Queries that are computed from all matches.
QUERIES: dict[str, Callable[[Shop], Any]] = {
    "filter by an annotation": lambda s: keys(mem(s.all(s.Product)).annotate(x=F("stock") * 2).filter(x__gt=9)),
    "exclude by an annotation": lambda s: keys(mem(s.all(s.Order)).annotate(x=fn.Upper("note")).exclude(x="GIFT")),
    "filter by an alias": lambda s: keys(
        mem(s.all(s.Product)).alias(x=F("stock") * 2).filter(Q(x=10) | Q(name="Bowl"))
    ),
    "range of an annotation": lambda s: keys(mem(s.all(s.Product)).annotate(x=F("stock") * 2).filter(x__range=(2, 10))),
    "members of an annotation": lambda s: keys(mem(s.all(s.Product)).annotate(x=F("stock") * 2).filter(x__in=[2, 24])),
    "dates after a computed condition": lambda s: list(
        mem(s.all(s.Customer)).filter(created__month__gte=2).dates("created", "month", order="DESC")
    ),
    "datetimes before a computed condition, in a slice": lambda s: list(
        mem(s.all(s.Customer)).datetimes("created", "day").exclude(created__week_day=9)[1:3]
    ),
    "number of dates after a computed condition": lambda s: (
        mem(s.all(s.Customer)).filter(created__month__gte=2).dates("created", "year").count()
    ),
    "endswith": lambda s: keys(mem(s.all(s.Customer)).filter(email__endswith="@x.org")),
    "regex": lambda s: keys(mem(s.all(s.Customer)).filter(name__regex="^[A-C]")),
    "iregex": lambda s: keys(mem(s.all(s.Customer)).filter(name__iregex="^[a-c]")),
    "icontains": lambda s: keys(mem(s.all(s.Customer)).filter(name__icontains="N")),
    "istartswith": lambda s: keys(mem(s.all(s.Customer)).filter(name__istartswith="B")),
    "iendswith": lambda s: keys(mem(s.all(s.Customer)).filter(name__iendswith="E")),
    "iexact": lambda s: keys(mem(s.all(s.Customer)).filter(name__iexact="BOB")),
    "month": lambda s: keys(mem(s.all(s.Order)).filter(placed__month=2)),
    "week day": lambda s: keys(mem(s.all(s.Order)).filter(placed__week_day__gte=4)),
    "hour": lambda s: keys(mem(s.all(s.Order)).filter(placed__hour=12)),
    "exclude a part": lambda s: keys(mem(s.all(s.Order)).exclude(note__endswith="t")),
    "exclusive or": lambda s: keys(mem(s.all(s.Customer)).filter(Q(city="Rome") ^ Q(is_vip=True))),
    "exclusive or beside what is unknown": lambda s: keys(
        mem(s.all(s.Order)).filter(Q(note="Gift") ^ Q(status="open"))
    ),
    "distinct rows of objects with aggregates": lambda s: sorted(
        mem(s.all(s.Order)).order_by().annotate(x=Max("total")).values_list("status").distinct()
    ),
    "distinct aggregates of groups": lambda s: sorted(
        mem(s.all(s.Line)).order_by().values("order").annotate(n=Count("pk")).distinct().values_list("n", flat=True)
    ),
    "aggregate of an aggregate of groups": lambda s: (
        mem(s.all(s.Order)).order_by().values("status").annotate(x=Sum("total")).distinct().aggregate(n=Max("x"))
    ),
    "distinct rows in the order of another column": lambda s: list(
        mem(s.all(s.Order)).alias(x=F("total") + 1).order_by("x").values_list("status").distinct()
    ),
    "groups that a later annotation divides": lambda s: sorted(
        mem(s.all(s.Order)).order_by().values("status").annotate(n=Count("pk")).annotate(x=F("total") + 1).values_list()
    ),
    "distinct values of a reference that is a part of the key": lambda s: sorted(
        mem(s.all(s.Line)).order_by().values_list("order__status", "number").distinct()
    ),
    "aggregate of groups that other columns divide": lambda s: (
        mem(s.all(s.Order))
        .order_by()
        .values("status")
        .annotate(x=Min("total"))
        .filter(x__gt=2)
        .aggregate(n=Max("total"))
    ),
    "computed condition": lambda s: keys(mem(s.all(s.Line)).filter(qty__gt=F("number") * 2)),
    "mixed conditions": lambda s: keys(mem(s.all(s.Customer)).filter(city="Rome", name__endswith="e")),
    "order by a function": lambda s: list(mem(s.all(s.Customer)).order_by(fn.Lower("name")).values_list("pk")),
    "aggregate of a slice in the order of an aggregate": lambda s: (
        mem(s.all(s.Product)).annotate(x=Min("stock")).order_by("-x", "pk")[1:3].aggregate(n=Max("reorder_level"))
    ),
    "order by an annotation": lambda s: list(
        mem(s.all(s.Product)).annotate(x=F("stock") % 5).order_by("-x", "pk").values_list("pk", "x")
    ),
    "order with missing values": lambda s: list(
        mem(s.all(s.Order)).order_by(fn.Upper("note").desc(nulls_last=True), "-pk").values_list("pk")
    ),
    "order turned round": lambda s: list(
        mem(s.all(s.Order)).order_by(fn.Upper("note"), "pk").reverse().values_list("pk")[1:4]
    ),
    "groups of expressions": lambda s: list(
        mem(s.all(s.Order)).order_by().values(month=fn.ExtractMonth("placed")).annotate(n=Count("pk")).order_by("month")
    ),
    "groups with conditions": lambda s: list(
        mem(s.all(s.Customer)).order_by().values("city").annotate(n=Count("pk")).filter(n__gt=1).order_by("city")
    ),
    "groups of an annotation": lambda s: list(
        mem(s.all(s.Order))
        .order_by()
        .annotate(m=fn.TruncMonth("placed"))
        .values("m")
        .annotate(t=Sum("total"))
        .order_by("m")
    ),
    "groups with computed values": lambda s: list(
        mem(s.all(s.Line)).order_by().values("number").annotate(t=Sum(F("qty") * F("unit_price"))).order_by("-t")
    ),
    "computed values of groups": lambda s: list(
        mem(s.all(s.Line)).order_by().values("number").annotate(t=Sum("qty") * 2, n=Count("pk")).order_by("number")
    ),
    "distinct computed values": lambda s: sorted(
        mem(s.all(s.Product)).annotate(x=F("stock") % 2).values_list("x", flat=True).distinct()
    ),
    "count": lambda s: mem(s.all(s.Product)).annotate(x=F("stock") * 2).filter(x__gt=9).count(),
    "exists": lambda s: mem(s.all(s.Product)).annotate(x=F("stock") * 2).filter(x__gt=99).exists(),
    "aggregate of annotations": lambda s: (
        mem(s.all(s.Product)).annotate(x=F("stock") * 2).aggregate(s=Sum("x"), m=Max("x"))
    ),
    "aggregate of groups": lambda s: (
        mem(s.all(s.Customer)).order_by().values("city").annotate(n=Count("pk")).aggregate(m=Max("n"))
    ),
    "aggregate of a slice": lambda s: (
        mem(s.all(s.Product)).annotate(x=F("stock") * 2).order_by("x")[:2].aggregate(s=Sum("x"))
    ),
    "named rows": lambda s: [
        each._asdict() for each in mem(s.all(s.Product)).order_by("pk").values_list("pk", fn.Lower("name"), named=True)
    ],
    **{
        f"window {name}": lambda s, window=window: list(
            mem(s.all(s.Line)).annotate(x=window).order_by("order_id", "number").values_list("order_id", "number", "x")
        )
        for name, window in {
            "rank": Window(fn.Rank(), order_by=F("unit_price").desc()),
            "dense rank": Window(fn.DenseRank(), order_by="unit_price"),
            "row number": Window(fn.RowNumber(), partition_by="number", order_by="order_id"),
            "percent rank": Window(fn.PercentRank(), order_by="unit_price"),
            "cume dist": Window(fn.CumeDist(), order_by="unit_price"),
            "ntile": Window(fn.Ntile(3), order_by=("order_id", "number")),
            "lag": Window(fn.Lag("qty", default=0), order_by=("order_id", "number")),
            "lead": Window(fn.Lead("qty", offset=2), order_by=("order_id", "number")),
            "first": Window(fn.FirstValue("qty"), partition_by="number", order_by="order_id"),
            "last": Window(fn.LastValue("qty"), partition_by="number", order_by="order_id"),
            "third": Window(fn.NthValue("qty", nth=3), partition_by="number", order_by="order_id"),
            "running sum": Window(Sum("qty"), order_by=("order_id", "number")),
            "sum of peers": Window(Sum("qty"), order_by="number"),
            "sum of all": Window(Sum("qty"), partition_by="number"),
            "mean of three": Window(Avg("qty"), order_by=("order_id", "number"), frame=RowRange(start=-1, end=1)),
        }.items()
    },
    "filter by a window": lambda s: keys(
        mem(s.all(s.Line)).annotate(x=Window(fn.RowNumber(), order_by=("-qty", "order_id", "number"))).filter(x__lte=3)
    ),
}


def keys(queryset: Any) -> list[str]:
    """The objects of a queryset, in any order."""
    return sorted(str((each.order_id, each.number)) if hasattr(each, "qty") else each.pk for each in queryset)


def told(value: Any) -> Any:
    """A value that both sides have alike: SQLite computes with floats."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, Decimal | float):
        return round(float(value), 9)
    if isinstance(value, dict):
        return {name: told(each) for name, each in value.items()}
    return [told(each) for each in value] if isinstance(value, list | tuple) else value


@pytest.mark.parametrize(
    ("model", "name"), [(model, name) for model, expressions in EXPRESSIONS.items() for name in expressions]
)
def test_expression_gives_djangos_result(shops: tuple[Shop, Shop], model: str, name: str) -> None:
    def computed(shop: Shop) -> Any:
        found = shop.all(getattr(shop, model)).annotate(x=EXPRESSIONS[model][name]).values_list("pk", "x")
        return sorted(told(list(found)), key=lambda row: row[0])

    ours, theirs = shops
    assert computed(ours) == computed(theirs)


@pytest.mark.parametrize("name", AGGREGATES)
def test_aggregate_gives_djangos_result(shops: tuple[Shop, Shop], name: str) -> None:
    ours, theirs = shops
    found, expected = (mem(shop.all(shop.Line)).aggregate(x=AGGREGATES[name])["x"] for shop in (ours, theirs))
    assert told(found) == told(expected)


@pytest.mark.parametrize("name", QUERIES)
def test_query_gives_djangos_result(shops: tuple[Shop, Shop], name: str) -> None:
    ours, theirs = shops
    assert told(QUERIES[name](ours)) == told(QUERIES[name](theirs))


def test_cast_to_a_decimal_rounds_to_its_places(shops: tuple[Shop, Shop]) -> None:
    """SQLite keeps all places, unlike the databases that have decimals."""
    ours, _ = shops
    cast = fn.Cast("price", DecimalField(max_digits=8, decimal_places=1))
    assert ours.Product.objects.annotate(x=cast).get(pk="p2").x == Decimal("4.3")


def test_annotations_are_attributes_of_objects(shops: tuple[Shop, Shop]) -> None:
    ours, _ = shops
    found = ours.Product.objects.annotate(x=fn.Upper("name")).get(pk="p0")
    assert (found.x, found.pk) == ("ASSAM", "p0")


def test_annotations_of_a_slice_need_no_limit(shops: tuple[Shop, Shop]) -> None:
    """Each object is computed separately, so one Query with a Limit is enough."""
    ours, _ = shops
    asked = ours.Product.objects.annotate(x=F("stock") + 1).order_by("name")[:2]
    with assert_requests(["Query"]):
        assert [each.x for each in asked] == [6, 1]


def test_computed_conditions_need_a_limit(shops: tuple[Shop, Shop]) -> None:
    ours, _ = shops
    asked = ours.Product.objects.annotate(x=F("stock") + 1).filter(x=1)
    with assert_requests([]), pytest.raises(NotSupported, match=r"Set a limit: \.allow_in_memory\(limit=1000\)"):
        list(asked)


def test_match_over_the_limit_is_an_error(shops: tuple[Shop, Shop]) -> None:
    """The limit counts the matches in memory, before the computed condition."""
    ours, _ = shops
    asked = ours.Product.objects.annotate(x=F("stock") + 1).filter(x=1)
    assert len(asked.allow_in_memory(4)) == 1
    with pytest.raises(TooManyMatches, match="more than 3 objects match"):
        list(asked.allow_in_memory(3))


def test_keys_still_serve_the_other_conditions(shops: tuple[Shop, Shop]) -> None:
    """A supported condition uses its key, and the other one is computed."""
    ours, _ = shops
    said = ours.Order.objects.allow_in_memory(10).filter(status="open", note__regex="i").explain()
    assert "by_status" in said.splitlines()[1]
    assert "filtered in memory, at most 10 matches" in said


@pytest.mark.parametrize(
    "asked",
    [
        lambda found: found.annotate(x=Func("name", function="SOUNDEX")),
        lambda found: found.annotate(x=Func("name", function="UPPER", template="%(function)s(%(expressions)s) || 'x'")),
        lambda found: found.annotate(x=fn.Collate("name", "nocase")),
        lambda found: found.annotate(x=Max(Window(fn.RowNumber()))),
        lambda found: found.alias(x=Subquery(found.filter(pk=OuterRef("pk")), template="ARRAY(%(subquery)s)")),
        lambda found: found.annotate(x=sum([F("name")] * 200, start=F("name"))),
    ],
)
def test_sql_is_refused_before_anything_is_read(shops: tuple[Shop, Shop], asked: Callable[[Any], Any]) -> None:
    ours, _ = shops
    with assert_requests([]), pytest.raises(NotSupported):
        list(asked(ours.Customer.objects.allow_in_memory()))


def test_annotated_objects_can_be_updated(shops: tuple[Shop, Shop]) -> None:
    """Both a condition that keys support and a computed one choose the objects."""
    ours, _ = shops
    annotated = ours.Product.objects.annotate(x=F("stock") + 1)
    assert annotated.filter(pk="p0").update(name="Assam") == 1
    assert annotated.allow_in_memory().filter(x=1).update(name="x") == 1
    assert ours.Product.objects.get(pk="p1").name == "x"


UPDATES: dict[str, Callable[[Any], Any]] = {
    "by an annotation": lambda found: found.annotate(x=fn.Upper("name")).update(name=F("x")),
    "by an alias and more": lambda found: found.alias(x=F("stock") * 2).update(stock=F("x") + 1),
    "where an aggregate of related objects is": lambda found: (
        found.annotate(x=Count("lines")).filter(x__gt=2).update(name="x")
    ),
    "where a related object's attribute of the same name is": lambda found: (
        found.annotate(x=fn.Lower("category__name")).filter(x="tea").update(name="x")
    ),
}


@pytest.mark.parametrize("name", UPDATES)
def test_update_of_annotated_objects_is_djangos(shops: tuple[Shop, Shop], name: str) -> None:
    found = []
    for shop in shops:
        number = UPDATES[name](mem(shop.all(shop.Product)))
        found.append((number, sorted(shop.all(shop.Product).values_list("pk", "name", "stock"))))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "asked",
    [
        lambda found: found.dates("placed", "month").aggregate(n=Count("status")),
        lambda found: found.datetimes("placed", "month").aggregate(n=Count("pk")),
        lambda found: found.values("status").distinct().aggregate(n=Count("pk")),
        lambda found: found.values("status").distinct().aggregate(n=Count("status")),
        lambda found: found.values("status").distinct().aggregate(n=Sum("total")),
        lambda found: found.annotate(x=F("total") * 2).values("x", "status").distinct().aggregate(n=Sum("x")),
    ],
)
def test_aggregate_of_distinct_rows_compares_its_columns_too(
    shops: tuple[Shop, Shop], asked: Callable[[Any], Any]
) -> None:
    """Django adds the columns of an aggregate to the rows before SQL compares these."""
    ours, theirs = (asked(mem(shop.all(shop.Order))) for shop in shops)
    assert ours == theirs


@pytest.mark.skipif(django.VERSION < (6, 1), reason="Django 6.1 has these aggregates.")
def test_aggregates_of_django_6_1(shops: tuple[Shop, Shop]) -> None:
    ours, _ = shops
    made: Any = django_aggregates
    cities = made.StringAgg("city", Value("|"), order_by="-name", filter=~Q(city=""), distinct=True)
    stocks = {"every": made.BitAnd("stock"), "some": made.BitOr("stock"), "odd": made.BitXor("stock")}
    assert mem(ours.Customer.objects.all()).aggregate(x=cities) == {"x": "Oslo|Rome"}
    assert mem(ours.Product.objects.all()).aggregate(**stocks) == {"every": 0, "some": 13, "odd": 8}
    assert mem(ours.Product.objects.filter(pk="p0")).aggregate(x=made.AnyValue("stock")) == {"x": 5}
    assert mem(ours.Product.objects.filter(pk="")).aggregate(x=made.BitOr("stock")) == {"x": None}
