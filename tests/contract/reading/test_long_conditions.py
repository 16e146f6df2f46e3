"""A condition that exceeds DynamoDB's limit is compared in Python, for up to ``allow_in_memory()`` items."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import models as django_models
from django.db.models import Count, F, Max, Q, Sum

from dynamo_single import models
from dynamo_single.exceptions import NotSupported, TooManyMatches
from dynamo_single.orm.requests.expressions import ExpressionTooLong
from dynamo_single.testing import assert_requests
from project.directory.models import Company
from tests.catalog.models import Ticket
from tests.contract.sqlite import ALIAS, sqlite
from tests.deep import IS_DEEP
from tests.unit.declaring import declare, forgotten

pytestmark = pytest.mark.usefixtures("table")

#: More values than fit into a filter, some of which are stored.
CODES = [f"c{number}" for number in range(0, 1800, 2)]
TOTALS = list(range(0, 1800, 3))


class Side:
    """A buyer with purchases, here or on SQLite; ``ask`` returns the purchases, all of which may be in memory."""

    def __init__(self, buyer: Any, purchase: Any, ask: Callable[[], Any], bound: Callable[[int], Any]) -> None:
        self.Buyer, self.Purchase, self.ask, self.bound = buyer, purchase, ask, bound

    def fill(self) -> None:
        """Two buyers with six purchases each, some without a code or a friend."""
        self.Purchase.objects.using(self.using).all().delete()
        self.Buyer.objects.using(self.using).filter(pk__in=["b0", "b1"]).delete()
        for name in ("b0", "b1"):
            self.Buyer.objects.using(self.using).create(buyer_id=name, name=name.upper())
        for number in range(12):
            self.Purchase.objects.using(self.using).create(
                purchase_id=f"p{number:02}",
                buyer_id=f"b{number % 2}",
                friend_id=f"b{number % 3}" if number % 3 < 2 else None,
                code=None if number % 4 == 3 else f"c{number}",
                total=number,
                name=f"Name {number % 5}",
            )

    using: str | None = None


def on_sqlite() -> Side:
    class SqlBuyer(django_models.Model):
        buyer_id = django_models.CharField(max_length=10, primary_key=True)
        name = django_models.CharField(max_length=10)

        class Meta:
            app_label = "catalog"

        def __str__(self) -> str:
            return self.buyer_id

    class SqlPurchase(django_models.Model):
        purchase_id = django_models.CharField(max_length=10, primary_key=True)
        buyer = django_models.ForeignKey(SqlBuyer, django_models.DO_NOTHING, related_name="bought", db_constraint=False)
        friend = django_models.ForeignKey(
            SqlBuyer, django_models.DO_NOTHING, null=True, related_name="+", db_constraint=False
        )
        code = django_models.CharField(max_length=10, null=True)  # noqa: DJ001 - as ours
        total = django_models.IntegerField()
        name = django_models.CharField(max_length=10)

        class Meta:
            app_label = "catalog"

        def __str__(self) -> str:
            return self.purchase_id

    side = Side(
        SqlBuyer, SqlPurchase, lambda: SqlPurchase.objects.using(ALIAS), lambda _: SqlPurchase.objects.using(ALIAS)
    )
    side.using = ALIAS
    return side


def on_dynamodb() -> Side:
    buyer = declare(
        "LongBuyer",
        ("LONGBUYER#{buyer_id}", "#METADATA"),
        buyer_id=models.UnicodeAttribute(),
        name=models.UnicodeAttribute(),
    )
    purchase = declare(
        "LongPurchase",
        ("LONGPURCHASE#{purchase_id}", "#METADATA"),
        {
            "listed": models.IndexKey("gs1", "LONGPURCHASE", "{purchase_id}"),
            "by_buyer": models.IndexKey("gs2", "LONGOF#{buyer_id}", "{total}#{purchase_id}"),
            "by_name": models.IndexKey("gs3", "LONGNAME#{name:canonical}", "{purchase_id}"),
        },
        purchase_id=models.UnicodeAttribute(),
        buyer=models.ReferenceAttribute(buyer, on_delete=models.DO_NOTHING, related_name="bought"),
        friend=models.ReferenceAttribute(buyer, on_delete=models.DO_NOTHING, null=True, related_name="+"),
        code=models.UnicodeAttribute(null=True),
        total=models.IntegerAttribute(),
        name=models.UnicodeAttribute(),
    )
    return Side(buyer, purchase, lambda: purchase.objects.allow_in_memory(12), purchase.objects.allow_in_memory)


@pytest.fixture(scope="module")
def declared(django_db_blocker: Any) -> Iterator[tuple[Side, Side]]:
    with forgotten(), django_db_blocker.unblock(), sqlite() as connection:
        theirs = on_sqlite()
        with connection.schema_editor() as editor:
            for model in (theirs.Buyer, theirs.Purchase):
                editor.create_model(model)
        yield on_dynamodb(), theirs


@pytest.fixture
def sides(declared: tuple[Side, Side]) -> tuple[Side, Side]:
    """Ours and SQLite's, with the same data."""
    for side in declared:
        side.fill()
    return declared


def pks(found: Any) -> list[str]:
    return [each.pk for each in found]


CONDITIONS: dict[str, Callable[[Any], Any]] = {
    "either, by pk": lambda rows: rows.filter(Q(pk="p01") | Q(code__in=CODES), buyer__in=["b0", "b1"]),
    "listed": lambda rows: rows.filter(code__in=CODES),
    "a partition": lambda rows: rows.filter(buyer="b0", code__in=CODES),
    "numbers": lambda rows: rows.filter(buyer="b1", total__in=TOTALS),
    "partitions": lambda rows: rows.filter(buyer__in=["b0", "b1"], code__in=CODES),
    "beside a short condition": lambda rows: rows.filter(buyer="b0", code__in=CODES, name="Name 2"),
    "two lists": lambda rows: rows.filter(code__in=CODES, total__in=TOTALS),
    "excluded": lambda rows: rows.exclude(code__in=CODES),
    "negated": lambda rows: rows.filter(~Q(code__in=CODES) & Q(buyer="b1")),
    "either": lambda rows: rows.filter(Q(code__in=CODES) | Q(name="Name 1")),
    "keys of both": lambda rows: rows.filter(Q(buyer="b0") | Q(purchase_id="p01"), code__in=CODES),
    "overlapping keys": lambda rows: rows.filter(Q(buyer="b0") | Q(name__iexact="NAME 2"), total__in=TOTALS),
    "one side of both": lambda rows: rows.filter(Q(buyer="b0", code__in=CODES) | Q(buyer="b1", total=1)),
    "querysets joined": lambda rows: rows.filter(code__in=CODES) | rows.filter(total=1),
    "references": lambda rows: rows.filter(friend__in=[*(f"b{number}" for number in range(1, 800))]),
    "folded": lambda rows: rows.filter(name__iexact="NAME 2", code__in=CODES),
    "an attribute in the list": lambda rows: rows.filter(total__in=[*range(1000, 1800), F("total")]),
    "whole keys": lambda rows: rows.filter(pk__in=["p00", "p01", "p02"], code__in=CODES),
}

READS: dict[str, Callable[[Any], Any]] = {
    "objects": lambda rows: sorted(pks(rows)),
    "sorted": lambda rows: pks(rows.order_by("total")),
    "sorted by no key": lambda rows: pks(rows.order_by("name", "-total")),
    "reversed": lambda rows: pks(rows.order_by("total").reverse()),
    "sliced": lambda rows: pks(rows.order_by("total")[1:3]),
    "count": lambda rows: rows.count(),
    "count of a slice": lambda rows: rows[1:3].count(),
    "exists": lambda rows: rows.exists(),
    "first": lambda rows: getattr(rows.order_by("total").first(), "pk", None),
    "last": lambda rows: getattr(rows.order_by("total").last(), "pk", None),
    "values": lambda rows: list(rows.order_by("total").values("total", "code")),
    "only": lambda rows: sorted(each.total for each in rows.only("total")),
    "iterator": lambda rows: sorted(pks(rows.iterator(chunk_size=2))),
    "aggregates": lambda rows: rows.aggregate(Sum("total"), Max("total"), number=Count("pk")),
    "a count": lambda rows: rows.aggregate(number=Count("pk")),
    "the greatest": lambda rows: rows.aggregate(Max("total")),
    "a filtered count": lambda rows: rows.aggregate(number=Count("pk", filter=Q(code__in=CODES))),
    "groups": lambda rows: list(rows.values("name").annotate(number=Count("pk")).order_by("name")),
    "related": lambda rows: sorted(
        each.buyer.name for each in rows.filter(pk__in=["p00", "p05"]).select_related("buyer")
    ),
    "several by pk": lambda rows: sorted(rows.in_bulk(["p00", "p03"])),
}


@pytest.mark.parametrize("condition", CONDITIONS)
def test_long_condition_gives_djangos_objects(sides: tuple[Side, Side], condition: str) -> None:
    """Every kind of read has SQLite's results; a normal run tests each condition with a fifth of them."""
    reads = list(READS.items())[0 if IS_DEEP else list(CONDITIONS).index(condition) % 5 :: 1 if IS_DEEP else 5]
    found = [{name: read(CONDITIONS[condition](side.ask())) for name, read in reads} for side in sides]
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "condition", ["a partition", "excluded", "either", "either, by pk", "overlapping keys", "references"]
)
@pytest.mark.parametrize(
    "write",
    [
        lambda rows: rows.update(name="changed"),
        lambda rows: rows.update(code="c1"),
        lambda rows: rows.delete()[0],
    ],
)
def test_write_reaches_djangos_objects(sides: tuple[Side, Side], condition: str, write: Callable[[Any], Any]) -> None:
    counts = [write(CONDITIONS[condition](side.ask())) for side in sides]
    assert counts[0] == counts[1] > 0
    stored = [sorted(side.ask().values_list("pk", "name", "code")) for side in sides]
    assert stored[0] == stored[1]


def test_write_by_the_key_compares_in_python(sides: tuple[Side, Side]) -> None:
    """The condition does not fit into one request, so the object is read first."""
    rows = sides[0].Purchase.objects
    assert rows.filter(pk="p00", code__in=CODES).update(name="changed") == 1
    assert rows.filter(pk="p01", code__in=CODES).update(name="changed") == 0
    assert rows.get(pk="p00").name == "changed"


def test_write_leaves_alone_what_changed_since(sides: tuple[Side, Side], monkeypatch: pytest.MonkeyPatch) -> None:
    """The write requires the compared value."""
    model = sides[0].Purchase
    written = model._written_if

    async def late(obj: Any, *args: Any) -> Any:
        monkeypatch.undo()
        await model.objects.filter(pk=obj.pk).aupdate(code="other")
        return await written(obj, *args)

    monkeypatch.setattr(model, "_written_if", late)
    asked = model.objects.filter(buyer="b0", total=0, code__in=CODES).allow_in_memory(6)
    assert asked.update(name="changed") == 0
    assert (model.objects.get(pk="p00").code, model.objects.get(pk="p00").name) == ("other", "Name 0")


def test_greatest_of_whole_keys_is_of_all(sides: tuple[Side, Side]) -> None:
    """In the past, the result was the maximum of the first key."""
    found = [side.Purchase.objects.using(side.using).filter(pk__in=["p03", "p07", "p05"]) for side in sides]
    assert found[0].aggregate(Max("total")) == found[1].aggregate(Max("total")) == {"total__max": 7}


def test_items_past_the_limit_are_an_error(sides: tuple[Side, Side]) -> None:
    """The limit applies to the items that the key and the other conditions return, rather than to matches."""
    rows = sides[0]
    for read in (list, lambda each: each.count(), lambda each: each.exists(), lambda each: each[:1][0]):
        with pytest.raises(TooManyMatches, match="allow_in_memory") as raised:
            read(rows.bound(5).filter(buyer="b0", code__in=CODES))
        assert raised.value.limit == 5
    assert rows.bound(6).filter(buyer="b0", code__in=CODES).count() == 6
    assert rows.bound(1).filter(buyer="b0", code__in=CODES, total=2).count() == 1
    with pytest.raises(TooManyMatches):
        rows.bound(5).filter(buyer="b0", code__in=CODES).delete()
    assert rows.ask().count() == 12


def test_held_items_are_read_once(sides: tuple[Side, Side]) -> None:
    asked = sides[0].ask().filter(buyer="b0", code__in=CODES)
    for read in (list, lambda each: each.count(), lambda each: each.exists()):
        with assert_requests(["Query"]):
            read(asked.all())


def test_overlapping_parts_count_each_item_once(sides: tuple[Side, Side]) -> None:
    """Seven items are read, one of them with two keys."""
    condition = Q(buyer="b0") | Q(name__iexact="NAME 3")
    reached = sides[0].Purchase.objects.filter(condition).count()
    assert reached == 7
    assert len(pks(sides[0].bound(reached).filter(condition, total__in=TOTALS))) == 3


def test_list_that_fits_is_sent_to_dynamodb(sides: tuple[Side, Side]) -> None:
    """Some hundred values are several INs of one filter, and the limit counts matches alone."""
    asked = sides[0].bound(3).filter(buyer="b0", code__in=CODES[1:400:2])
    assert "matched" not in asked.explain()
    assert len(asked.order_by("name")) == 3


def test_explain_names_what_is_compared_in_memory(sides: tuple[Side, Side]) -> None:
    text = sides[0].bound(7).filter(buyer="b0", name="Name 2", code__in=CODES).order_by("code").explain()
    assert "matched   in memory: code__in=['c0', 'c2', 'c4', … 900 in all]" in text
    assert "at most 7 items" in text
    assert "filter    name='Name 2'" in text
    assert "sorted by code" in text
    assert "Limit: 8" in sides[0].bound(7).filter(buyer="b0", code__in=CODES).explain()


def test_refusal_names_the_method_that_works(sides: tuple[Side, Side]) -> None:
    asked = sides[0].Purchase.objects.filter(buyer="b0", code__in=CODES)
    with pytest.raises(ExpressionTooLong, match=r"allow_in_memory\(\)"):
        list(asked)
    assert len(asked.allow_in_memory(12)) == 6


def test_pages_are_refused(sides: tuple[Side, Side]) -> None:
    with pytest.raises(NotSupported, match="no pages to read"):
        sides[0].ask().filter(buyer="b0", code__in=CODES).page(2)


def test_scan_compares_in_memory_too(sides: tuple[Side, Side]) -> None:
    rows = sides[0].ask().using_index("primary").allow_scan().filter(code__in=CODES)
    assert sorted(pks(rows)) == sorted(pks(CONDITIONS["listed"](sides[1].ask())))
    with pytest.raises(NotSupported, match="a scan has no order"):
        rows.last()


def test_loop_reads_the_same(sides: tuple[Side, Side]) -> None:
    async def read() -> list[str]:
        return [each.pk async for each in sides[0].ask().filter(buyer="b0", code__in=CODES)]

    assert sorted(asyncio.run(read())) == sorted(pks(CONDITIONS["a partition"](sides[1].ask())))


@pytest.mark.parametrize(("visibility", "names"), [("live", ["c0"]), ("deleted", ["c2"]), ("all", ["c0", "c2"])])
def test_trash_is_told_apart(visibility: Any, names: list[str]) -> None:
    for name in ("c0", "c1", "c2"):
        Company.objects.create(company_id=name, name=name, stock=name)
    Company.objects.get(pk="c2").delete()
    rows = Company.objects.allow_in_memory(3).with_visibility(visibility).filter(stock__in=CODES)
    assert sorted(pks(rows)) == names
    assert rows.count() == len(names)


def test_restore_reaches_what_matches() -> None:
    for name in ("c1", "c2"):
        Company.objects.create(company_id=name, name=name, stock=name).delete()
    assert Company.objects.allow_in_memory(2).with_visibility("deleted").filter(stock__in=CODES).restore()[0] == 1
    assert pks(Company.objects.all()) == ["c2"]


def test_expired_items_are_left_out() -> None:
    past, future = datetime(2020, 1, 1, tzinfo=UTC), datetime(2999, 1, 1, tzinfo=UTC)
    for code, expires in (("a", past), ("b", future), ("c", None)):
        Ticket.objects.create(code=code, expires_at=expires)
    moments = [future, *(datetime(2990, 1, 1, 0, number // 60, number % 60, tzinfo=UTC) for number in range(700))]
    assert pks(Ticket.objects.allow_in_memory(2).filter(Q(expires_at__in=moments))) == ["b"]
    assert sorted(pks(Ticket.objects.allow_in_memory(2).exclude(expires_at__in=moments))) == ["c"]
