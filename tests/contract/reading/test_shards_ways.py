"""All other queries and bulk writes of a sharded model have the same results as for any model."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.db.models import Count, Max, Q
from django.db.models.signals import post_init

from dynamo_single import clock as clock_module
from dynamo_single.exceptions import InvalidValue, NotSupported
from dynamo_single.orm.rollout import knowledge, shard_record
from dynamo_single.orm.schema import registry
from dynamo_single.table import Request, Table
from dynamo_single.testing import assert_requests, frozen_time
from tests.catalog.service import Visit
from tests.contract.tables import assert_consistent

BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
LAYOUT = registry.layout_of(Visit)
#: The creation time of the second half, over four shards.
GROWN = BEGINNING + timedelta(hours=1)


def moment(number: int) -> datetime:
    """When a visit was."""
    return (BEGINNING if number < 20 else GROWN) + timedelta(seconds=number)


@pytest.fixture
def forty(table: Table) -> Iterator[Any]:
    """Forty visits: half of them in one shard, half in four."""
    with frozen_time(BEGINNING + timedelta(minutes=1)) as clock:
        Visit.objects.bulk_create([Visit(visit_id=f"v{n:02}", at=moment(n), page=f"/{n % 3}") for n in range(20)])
        shard_record.grow(table, LAYOUT, 4, GROWN)
        clock.move(timedelta(hours=2))
        Visit.objects.bulk_create([Visit(visit_id=f"v{n:02}", at=moment(n), page=f"/{n % 3}") for n in range(20, 40)])
        yield clock
    assert_consistent()


def ids(found: Any) -> list[str]:
    """The identities, in order."""
    return [visit.pk for visit in found]


ALL = [f"v{number:02}" for number in range(40)]


@pytest.mark.usefixtures("forty")
def test_parts_of_objects_are_read_and_written() -> None:
    """only(), defer(), values() and values_list()."""
    assert [visit.page for visit in Visit.objects.only("page").order_by("at")][:3] == ["/0", "/1", "/2"]
    visit = Visit.objects.only("page").get(pk="v30")
    visit.page = "/only"
    visit.save()
    assert Visit.objects.get(pk="v30").at == moment(30)
    assert list(Visit.objects.order_by("at").values_list("visit_id", flat=True)) == ALL
    assert list(Visit.objects.filter(page="/only").values("visit_id", "at")) == [{"visit_id": "v30", "at": moment(30)}]


@pytest.mark.usefixtures("forty")
def test_long_condition_is_compared_over_all_shards() -> None:
    """Python compares conditions that do not fit into a filter, in the order of the key."""
    pages = ["/1", *(f"/{number}" for number in range(3, 900))]
    # With a key per page, each of the 898 pages would be read in every shard.
    found = Visit.objects.using_index("by_time").allow_in_memory(40).filter(page__in=pages)
    assert ids(found.order_by("-at")) == ALL[::-1][2::3]
    assert ids(found.order_by("at")[1:3]) == ["v04", "v07"]
    assert found.count() == len(ALL[1::3])
    assert "matched   in memory: page__in" in found.explain()
    assert "4 shards" in found.explain()


@pytest.mark.usefixtures("forty")
def test_ends_slices_and_steps() -> None:
    """first(), last(), latest(), earliest(), exists(), slices, reverse() and iterator()."""
    found = Visit.objects.order_by("at")
    first, last = found.first(), found.last()
    assert first is not None
    assert last is not None
    assert (first.pk, last.pk) == ("v00", "v39")
    assert (Visit.objects.latest("at").pk, Visit.objects.earliest("at").pk) == ("v39", "v00")
    assert ids(found[15:25]) == ALL[15:25]
    assert ids(found.reverse()) == ALL[::-1]
    assert ids(found.iterator(chunk_size=7)) == ALL
    assert Visit.objects.filter(at__gt=moment(38)).exists()
    assert not Visit.objects.filter(at__gt=moment(39)).exists()
    assert Visit.objects.order_by("at")[10:35].count() == 25


@pytest.mark.usefixtures("forty")
def test_what_is_worked_out_in_memory() -> None:
    """Aggregates, groups, and an order that no key has."""
    assert Visit.objects.allow_in_memory().aggregate(Max("at"))["at__max"] == moment(39)
    groups = Visit.objects.allow_in_memory().values("page").annotate(number=Count("pk")).order_by("page")
    assert [each["number"] for each in groups] == [14, 13, 13]
    by_page = Visit.objects.allow_in_memory().order_by("page", "-visit_id")
    assert ids(by_page)[:2] == ["v39", "v36"]


@pytest.mark.usefixtures("forty")
def test_alternatives_give_each_object_once() -> None:
    """By keys, by times and by partitions, in an order and without."""
    either = Q(pk__in=["v05", "v35"]) | Q(page="/1", at__lt=GROWN)
    expected = sorted({"v05", "v35", *(f"v{n:02}" for n in range(20) if n % 3 == 1)})
    assert sorted(ids(Visit.objects.filter(either))) == expected
    assert ids(Visit.objects.filter(either).order_by("at")) == expected
    assert sorted(ids(Visit.objects.filter(at__in=[moment(3), moment(33)]))) == ["v03", "v33"]
    assert ids(Visit.objects.filter(at__date=BEGINNING.date()).order_by("-at")) == ALL[::-1]


@pytest.mark.usefixtures("forty")
def test_many_are_written_together() -> None:
    """update(), bulk_update(), in_transactions(), and delete() of a queryset."""
    assert Visit.objects.filter(page="/2").update(page="/two") == 13
    some = list(Visit.objects.filter(page="/two"))
    for visit in some:
        visit.ticket = f"t{visit.pk}"
    assert Visit.objects.bulk_update(some, ["ticket"]) == 13
    assert Visit.objects.get(ticket="tv38").pk == "v38"
    made = [Visit(visit_id=f"w{n}", at=clock_module.instant()) for n in range(12)]
    assert len(Visit.objects.in_transactions().bulk_create(made)) == 12
    assert Visit.objects.in_transactions().filter(page="/two").delete()[0] == 13
    assert Visit.objects.count() == 39
    assert Visit.deleted_objects.count() == 13
    assert sorted(ids(Visit.all_objects.all())) == sorted([*ALL, *(f"w{n}" for n in range(12))])
    assert Visit.deleted_objects.all().hard_delete()[0] == 13


@pytest.mark.usefixtures("forty")
def test_fixtures_come_back_to_their_shards(table: Table, tmp_path: Any) -> None:
    """By their own time, whether or not the objects are there."""
    fixture = tmp_path / "visits.json"
    out = io.StringIO()
    call_command("dumpdata", "catalog.Visit", stdout=out)
    fixture.write_text(out.getvalue())
    before = {visit.pk: visit._stored["pk"] for visit in Visit.objects.all()}
    Visit.objects.filter(at__gte=GROWN).hard_delete()
    call_command("loaddata", str(fixture), verbosity=0)
    assert {visit.pk: visit._stored["pk"] for visit in Visit.objects.all()} == before


@pytest.mark.usefixtures("forty")
def test_an_event_loop_does_the_same() -> None:
    """Lists, pages, counts, single objects and writes."""
    knowledge.forget()

    async def work() -> None:
        assert [visit.pk async for visit in Visit.objects.order_by("at")] == ALL
        page = await Visit.objects.order_by("at").apage(size=25)
        rest = await Visit.objects.order_by("at").apage(size=25, cursor=page.next_cursor)
        assert ids([*page, *rest]) == ALL
        assert await Visit.objects.acount() == 40
        visit = await Visit.objects.aget(pk="v33")
        visit.page = "/loop"
        await visit.asave()
        await visit.adelete()
        assert [each.pk async for each in Visit.deleted_objects.all()] == ["v33"]
        await visit.arestore()
        assert (await Visit.objects.aget(pk="v33", at=moment(33))).page == "/loop"

    asyncio.run(work())


SEVERAL = [
    Q(visit_id="none") | Q(page="/1"),
    Q(visit_id="v07") | Q(page="/1"),
    Q(at__lt=moment(5)) | Q(at__gt=moment(30)),
    Q(at__in=[moment(3), moment(30), moment(31), moment(32)]),
    Q(page="/1", at__lt=moment(5)) | Q(page="/1", at__gte=moment(5)),
]


@pytest.mark.usefixtures("forty")
@pytest.mark.parametrize("asked", SEVERAL)
def test_pages_of_several_reads_need_an_order(asked: Q) -> None:
    """Without an order, they raise an error before any request; with the order in the message, they work."""
    visits = Visit.objects.filter(asked)
    wanted = ids(visits)
    first = visits.first()
    with assert_requests([]):
        with pytest.raises(NotSupported, match=r'order_by\("at"\)'):
            visits.page(2)
        with pytest.raises(NotSupported, match="cursor_for"):
            visits.cursor_for(first)
    assert visits.count() == len(wanted) == len(set(wanted))
    ordered = visits.order_by("at")
    page = ordered.page(2)
    found = ids(page)
    while page.next_cursor:
        page = ordered.page(2, page.next_cursor)
        found += ids(page)
    assert found == sorted(wanted)


@pytest.mark.usefixtures("forty")
def test_who_is_told_of_each_object_hears_of_them_in_their_order() -> None:
    """Objects are then created one by one, in their order."""
    heard: list[str] = []

    def hear(sender: Any, instance: Any, **named: Any) -> None:
        heard.append(instance.pk)

    post_init.connect(hear, sender=Visit)
    try:
        found = ids(Visit.objects.order_by("-at")[:25])
    finally:
        post_init.disconnect(hear, sender=Visit)
    assert found == heard == ALL[::-1][:25]


@pytest.mark.usefixtures("forty")
def test_an_item_that_is_not_as_usual_is_an_error_after_those_before_it(table: Table) -> None:
    """The query yields the objects before the unreadable item, and then raises an error."""
    wrong = Visit.objects.get(pk="v30")
    key = {name: wrong._stored[name] for name in ("pk", "sk")}

    def stored(value: dict[str, str]) -> None:
        change = {"UpdateExpression": "SET page = :page", "ExpressionAttributeValues": {":page": value}}
        table.send(Request("UpdateItem", {"Key": key, **change}))

    stored({"N": "1"})
    found = iter(Visit.objects.order_by("at").iterator())
    assert [next(found).pk for _ in range(30)] == ALL[:30]
    with pytest.raises(InvalidValue):
        next(found)
    stored({"S": wrong.page})
