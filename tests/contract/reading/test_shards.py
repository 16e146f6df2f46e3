"""Lists over shards: the items and requests of each shard, and the contents of a cursor."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db.models import Q

from dynamo_single import clock as clock_module
from dynamo_single.costs import measure_requests
from dynamo_single.exceptions import InvalidCursor
from dynamo_single.orm.rollout import knowledge, shard_record
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.keys.shards import Entry, Schedule
from dynamo_single.orm.schema.keys.values import item_size
from dynamo_single.table import SentRequest, Table, capture_requests
from dynamo_single.testing import assert_requests, frozen_time, intercept
from tests.catalog.service import Visit

BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
LAYOUT = registry.layout_of(Visit)
#: Text that makes an item of 400 bytes, like a user with a few attributes.
PAGE = "/" + "p" * 120


@pytest.fixture
def clock(table: Table) -> Iterator[Any]:
    """A day after the beginning."""
    with frozen_time(BEGINNING + timedelta(days=1)) as clock:
        yield clock


def visits(table: Table, shards: int, number: int) -> None:
    """So many visits, one a second."""
    shard_record.record_first(table, LAYOUT, shards)
    Visit.objects.bulk_create(
        [Visit(visit_id=f"v{n:05}", at=BEGINNING + timedelta(seconds=n), page=PAGE) for n in range(number)],
        update_conflicts=True,
    )
    knowledge.schedule(LAYOUT)


def read(sent: list[SentRequest]) -> int:
    """Return the number of items that the requests have read."""
    return sum(int(each.response["ScannedCount"]) for each in sent)


def walk(queryset: Any, size: int) -> tuple[list[str], list[list[SentRequest]]]:
    """The ids on all pages, and the requests of each page."""
    ids: list[str] = []
    requests: list[list[SentRequest]] = []
    cursor = None
    while True:
        with capture_requests() as sent:
            page = queryset.page(size=size, cursor=cursor)
        ids += [visit.pk for visit in page]
        requests.append(sent)
        cursor = page.next_cursor
        if cursor is None:
            return ids, requests


def test_pages_of_a_hundred_over_eight_shards_read_less_than_twice_as_much(table: Table, clock: Any) -> None:
    """The number of items read for each result, in both orders."""
    visits(table, 8, 500)
    for order in ("at", "-at"):
        ids, requests = walk(Visit.objects.order_by(order), 100)
        assert ids == sorted(ids, reverse=order == "-at")
        assert len(ids) == 500
        assert read([each for sent in requests for each in sent]) <= 2 * 500
        assert all(read(sent) <= 2 * 100 for sent in requests)


def test_units_over_eight_shards_are_less_than_twice_those_of_one(table: Table, clock: Any) -> None:
    """Each request is rounded up to 4 KB, and items have 400 bytes."""
    visits(table, 8, 400)
    with measure_requests() as costs:
        _, requests = walk(Visit.objects.order_by("at"), 100)
    sizes = [item_size(item) for sent in requests for each in sent for item in each.response["Items"]]
    assert 350 < sum(sizes) / len(sizes) < 450
    of_one_partition = len(requests) * -(-sum(sizes) * 101 // len(sizes) // 4096) / 2
    assert costs.read_units <= 2 * of_one_partition


def test_a_page_asks_each_shard_once_as_a_rule(table: Table, clock: Any) -> None:
    """And one again that has given its share."""
    visits(table, 8, 400)
    _, requests = walk(Visit.objects.order_by("at"), 100)
    assert sum(map(len, requests)) <= 4 * 8 + 4


def test_a_finished_shard_is_not_asked_again(table: Table, clock: Any) -> None:
    """If the last visits are in one shard, the last pages read only that shard."""
    shard_record.record_first(table, LAYOUT, 4)
    sharding, schedule = LAYOUT.sharding, Schedule((Entry(0, 4),))
    assert sharding is not None
    places = {f"v{n:03}": sharding.place(schedule, f"v{n:03}", BEGINNING) for n in range(80)}
    last = [each for each, place in places.items() if place == 2]
    for number, visit_id in enumerate([*(each for each in places if each not in last), *last]):
        Visit.objects.create(visit_id=visit_id, at=BEGINNING + timedelta(seconds=number))
    ids, requests = walk(Visit.objects.order_by("at"), 10)
    assert len(ids) == 80
    asked = [{each.params["ExpressionAttributeValues"][":v0"]["S"] for each in sent} for sent in requests]
    assert asked[0] == {"visit!0", "visit!1", "visit!2", "visit!3"}
    assert asked[-1] == {"visit!1"}
    over = set()
    for shards in asked:
        assert not shards & over
        over |= asked[0] - shards


def test_no_shard_is_asked_after_its_end(table: Table, clock: Any) -> None:
    """Later pages do not read a shard whose visits are all returned."""
    visits(table, 8, 60)
    ids, requests = walk(Visit.objects.order_by("-at"), 7)
    ended: set[str] = set()
    for number, sent in enumerate(requests, 1):
        last = {each.params["ExpressionAttributeValues"][":v0"]["S"]: each.response for each in sent}
        assert not ended & last.keys()
        given = set(ids[: 7 * number])
        whole = {shard: answer for shard, answer in last.items() if "LastEvaluatedKey" not in answer}
        ended |= {shard for shard, it in whole.items() if {item["visit_id"]["S"] for item in it["Items"]} <= given}
    assert len(ended) == 8


def test_a_cursor_over_64_shards_has_at_most_2_kb(table: Table, clock: Any) -> None:
    """With the longest keys that identities of 40 characters make."""
    shard_record.record_first(table, LAYOUT, 64)
    for number in range(200):
        Visit.objects.create(visit_id=f"{number:040}", at=BEGINNING, page="/" * 60)
    page = Visit.objects.filter(page="/" * 60).order_by("at").page(size=150)
    assert page.next_cursor is not None
    assert len(page.next_cursor) <= 2048
    rest = Visit.objects.filter(page="/" * 60).order_by("at").page(size=150, cursor=page.next_cursor)
    assert len({visit.pk for visit in (*page, *rest)}) == 200


def test_equal_sort_keys_of_several_shards_keep_an_order(table: Table, clock: Any) -> None:
    """Forwards, backwards and page by page."""
    shard_record.record_first(table, LAYOUT, 5)
    for number in range(30):
        Visit.objects.create(visit_id=f"v{number}", at=BEGINNING + timedelta(seconds=number // 10))
    whole = [visit.pk for visit in Visit.objects.order_by("at")]
    assert [visit.pk for visit in Visit.objects.order_by("-at")] == whole[::-1]
    assert walk(Visit.objects.order_by("at"), 4)[0] == whole
    assert walk(Visit.objects.order_by("-at"), 4)[0] == whole[::-1]
    page = Visit.objects.order_by("at").page(size=12)
    assert page.next_cursor is not None
    second = Visit.objects.order_by("at").page(size=12, cursor=page.next_cursor)
    before = Visit.objects.order_by("at").page(size=12, cursor=second.previous_cursor)
    assert [visit.pk for visit in before] == [visit.pk for visit in page] == whole[:12]


def test_a_cursor_goes_on_when_the_number_changes(table: Table, clock: Any) -> None:
    """This includes existing objects, and new ones after the position in the new shards."""
    visits(table, 2, 20)
    page = Visit.objects.order_by("at").page(size=8)
    shard_record.grow(table, LAYOUT, 6, shard_record.earliest_start())
    clock.move(timedelta(hours=1))
    for number in range(6):
        Visit.objects.create(visit_id=f"w{number}", at=clock_module.instant())
    rest = Visit.objects.order_by("at").page(size=50, cursor=page.next_cursor)
    assert [visit.pk for visit in (*page, *rest)][:20] == [f"v{n:05}" for n in range(20)]
    assert {visit.pk for visit in rest[12:]} == {f"w{number}" for number in range(6)}


def test_a_cursor_of_one_shard_goes_on_with_several(table: Table, clock: Any) -> None:
    """The first plan had no merge."""
    visits(table, 1, 20)
    page = Visit.objects.order_by("-at").page(size=8)
    shard_record.grow(table, LAYOUT, 6, shard_record.earliest_start())
    clock.move(timedelta(hours=1))
    Visit.objects.create(visit_id="w", at=clock_module.instant())
    rest = Visit.objects.order_by("-at").page(size=50, cursor=page.next_cursor)
    assert [visit.pk for visit in (*page, *rest)] == [f"v{n:05}" for n in reversed(range(20))]


def test_a_cursor_of_alternatives_ends_when_the_number_changes(table: Table, clock: Any) -> None:
    """The numbers of its streams include all alternatives."""
    visits(table, 2, 20)
    asked = Visit.objects.filter(Q(page=PAGE, at__lt=BEGINNING + timedelta(seconds=9)) | Q(pk="v00015")).order_by("at")
    page = asked.page(size=5)
    again = asked.page(size=5, cursor=page.next_cursor)
    assert [visit.pk for visit in (*page, *again)] == [*(f"v{n:05}" for n in range(9)), "v00015"]
    shard_record.grow(table, LAYOUT, 6, shard_record.earliest_start())
    with pytest.raises(InvalidCursor):
        asked.page(size=5, cursor=page.next_cursor)


def test_slices_and_first_read_a_share_of_each_shard(table: Table, clock: Any) -> None:
    """And no more requests than shards."""
    visits(table, 8, 300)
    with capture_requests() as sent:
        assert Visit.objects.order_by("at").first().pk == "v00000"
    assert (len(sent), read(sent)) == (8, 8)
    with capture_requests() as sent:
        assert [visit.pk for visit in Visit.objects.order_by("-at")[:100]] == [f"v{n:05}" for n in range(299, 199, -1)]
    assert read(sent) <= 200
    with assert_requests(["Query"] * 8):
        assert len(Visit.objects.all()) == 300
    with assert_requests(["Query"] * 8):
        assert Visit.objects.count() == 300


def test_a_filter_over_shards_finds_all(table: Table, clock: Any) -> None:
    """Each shard is read on after a page without matches."""
    visits(table, 4, 100)
    Visit.objects.filter(pk__in=["v00042", "v00099"]).update(ticket=None, page="/x")
    found = Visit.objects.filter(page="/x").using_index("by_time").order_by("at")
    assert [visit.pk for visit in found[:1]] == ["v00042"]
    assert walk(found, 1)[0] == ["v00042", "v00099"]


def test_a_shard_with_an_item_left_is_read_on_by_one_request_though_a_filter_drops_its_answer(
    table: Table, clock: Any
) -> None:
    """A query that stops early must not pay for a whole shard: one has matches, and the other only one late match."""
    shard_record.record_first(table, LAYOUT, 2)
    sharding, schedule = LAYOUT.sharding, Schedule((Entry(0, 2),))
    assert sharding is not None
    places = {f"v{n:03}": sharding.place(schedule, f"v{n:03}", BEGINNING) for n in range(500)}
    many = [each for each, place in places.items() if place == 1]
    late = [each for each, place in places.items() if place == 2]
    wanted = {*many, late[0]}
    Visit.objects.bulk_create(
        [
            Visit(visit_id=each, at=BEGINNING + timedelta(seconds=n), page="/wanted" if each in wanted else PAGE)
            for n, each in enumerate([*many, *late])
        ]
    )
    knowledge.schedule(LAYOUT)
    with capture_requests() as sent:
        found = [visit.pk for visit in Visit.objects.filter(page="/wanted").using_index("by_time").order_by("at")[:20]]
    assert found == many[:20]
    assert len(sent) == 4


def test_several_partitions_are_merged_over_their_shards(table: Table, clock: Any) -> None:
    """By the order of the sort key."""
    shard_record.record_first(table, LAYOUT, 3)
    for number in range(12):
        at = BEGINNING + timedelta(seconds=number)
        Visit.objects.create(visit_id=f"v{number:02}", at=at, page="/a" if number % 2 else "/b")
    found = Visit.objects.filter(page__in=["/a", "/b"]).order_by("at")
    with assert_requests(["Query"] * 6):
        assert [visit.pk for visit in found] == [f"v{number:02}" for number in range(12)]
    assert walk(found, 5)[0] == [f"v{number:02}" for number in range(12)]
    by_page = [visit.pk for visit in Visit.objects.filter(page__in=["/a", "/b"]).order_by("page", "at")]
    assert by_page == [f"v{number:02}" for number in (*range(1, 12, 2), *range(0, 12, 2))]


@pytest.mark.parametrize("order", ["at", "-at"])
def test_slices_cost_what_pages_cost(table: Table, clock: Any, order: str) -> None:
    """Forty partitions with eight shards each have more first items than the slice, and few are read on."""
    shard_record.record_first(table, LAYOUT, 8)
    Visit.objects.bulk_create(
        [Visit(visit_id=f"v{n:05}", at=BEGINNING + timedelta(seconds=n), page=f"/{n % 40}") for n in range(800)],
        update_conflicts=True,
    )
    knowledge.schedule(LAYOUT)
    found = Visit.objects.filter(page__in=[f"/{n}" for n in range(40)]).order_by(order)
    with capture_requests() as page_requests:
        page = found.page(size=20)
    with capture_requests() as sent:
        assert list(found[:20]) == list(page)
    assert len(sent) <= len(page_requests)
    assert read(sent) <= read(page_requests)


def test_explain_says_which_shards_are_read(table: Table, clock: Any) -> None:
    """The explanation shows the shards and their total number."""
    shard_record.record_first(table, LAYOUT, 2)
    shard_record.grow(table, LAYOUT, 8, shard_record.earliest_start())
    old = Visit.objects.filter(at__lt=BEGINNING).order_by("at").explain()
    assert "visit!0, visit!1, read side by side and merged by the sort key; there are 2 shards, 8 shards from" in old
    assert (
        "each object is looked up in the shards that can contain it; there are 2 shards"
        in Visit.objects.filter(pk="a").explain()
    )


def test_max_requests_counts_the_shards(table: Table, clock: Any) -> None:
    """A page takes as many requests as there are shards, and records its end."""
    visits(table, 4, 60)
    ids: list[str] = []
    cursor = None
    while True:
        page = Visit.objects.order_by("at").page(size=50, cursor=cursor, max_requests=4)
        ids += [visit.pk for visit in page]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert ids == [f"v{n:05}" for n in range(60)]


@pytest.mark.parametrize(("reads", "in_other_threads"), [(1, 0), (4, 8)])
def test_a_setting_bounds_how_many_shards_are_read_at_once(
    table: Table, clock: Any, settings: Any, reads: int, in_other_threads: int
) -> None:
    """With one, the caller's own thread sends every request."""
    visits(table, 8, 40)
    declared = dict(settings.DYNAMO_SINGLE)
    settings.DYNAMO_SINGLE = {**declared, "default": {**declared["default"], "PARALLEL_READS": reads}}
    knowledge.schedule(LAYOUT)
    threads: list[str] = []
    with intercept(lambda operation, params: threads.append(threading.current_thread().name)):
        assert len(Visit.objects.order_by("at")) == 40
    assert sum(each.startswith("dynamo_single") for each in threads) == in_other_threads
    assert len(threads) == 8


def test_no_more_shards_are_read_at_once_than_the_setting_says(
    table: Table, clock: Any, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With four, the first request waits for four parallel ones, and there are never more."""
    visits(table, 8, 40)
    declared = dict(settings.DYNAMO_SINGLE)
    settings.DYNAMO_SINGLE = {**declared, "default": {**declared["default"], "PARALLEL_READS": 4}}
    knowledge.schedule(LAYOUT)
    original, four, lock = Table.ask, threading.Barrier(4), threading.Lock()
    under_way: set[int] = set()
    counts: list[int] = []

    async def ask(self: Table, request: Any, *arguments: Any) -> Any:
        with lock:
            under_way.add(threading.get_ident())
            counts.append(len(under_way))
        four.wait(timeout=30)
        try:
            return await original(self, request, *arguments)
        finally:
            with lock:
                under_way.discard(threading.get_ident())

    monkeypatch.setattr(Table, "ask", ask)
    assert len(Visit.objects.order_by("at")) == 40
    assert (len(counts), max(counts)) == (8, 4)
