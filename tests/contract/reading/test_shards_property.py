"""Sharded models against a plain list: random schedules, clocks, page sizes and writes, and growth between two pages.

``SHARDS_EXAMPLES`` sets the number of histories (30 in a normal run, 300 in a deep one).
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dynamo_single import clock as clock_module
from dynamo_single.clock import EPOCH
from dynamo_single.exceptions import AlreadyExists, InvalidValue
from dynamo_single.orm.rollout import knowledge, shard_record
from dynamo_single.orm.rollout.knowledge import LEAD
from dynamo_single.orm.schema import registry
from dynamo_single.table import Table
from dynamo_single.testing import frozen_time
from tests.catalog.service import Visit
from tests.deep import examples
from tests.ready import table_ready

EXAMPLES = examples(8, 300, "SHARDS_EXAMPLES")

BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
LAYOUT = registry.layout_of(Visit)
IDS = [f"v{number}" for number in range(24)]
#: A visit by its id: its time and subject.
Model = dict[str, tuple[datetime, str]]

PAST = st.one_of(st.integers(0, 60), st.integers(0, 4000))
CREATE = st.tuples(st.just("create"), st.sampled_from(IDS), PAST, st.sampled_from(["/", "/a"]))
DELETE = st.tuples(st.just("delete"), st.sampled_from(IDS))
TRASH = st.tuples(st.just("trash"), st.sampled_from(IDS))
CHANGE = st.tuples(st.just("change"), st.sampled_from(IDS), st.sampled_from(["/", "/a"]))
GROW = st.tuples(st.just("grow"), st.integers(1, 9))
WAIT = st.tuples(st.just("wait"), st.integers(0, 3000))
STEPS = st.lists(st.one_of(CREATE, CREATE, CREATE, DELETE, TRASH, CHANGE, GROW, WAIT), max_size=5)
HISTORY = st.fixed_dictionaries(
    {
        "first": st.one_of(st.none(), st.integers(1, 9)),
        "before": st.lists(st.one_of(CREATE, CREATE, CREATE, CREATE, GROW, WAIT), max_size=30),
        "bound": st.sampled_from([-300, -1, 0, 1, 30, 90, 600]),
        "descending": st.booleans(),
        "of_page": st.booleans(),
        "sizes": st.lists(st.integers(1, 5), min_size=1, max_size=4),
        "between": st.lists(STEPS, max_size=6),
    }
)


class History:
    """The changes of the table and of the list."""

    def __init__(self, table: Table, clock: Any) -> None:
        self.table, self.clock = table, clock
        self.live: Model = {}
        self.trashed: set[str] = set()
        self.touched: set[str] = set()

    def carry_out(self, step: tuple[Any, ...]) -> None:
        """Run one step."""
        getattr(self, step[0])(*step[1:])

    def create(self, visit_id: str, ago: int, page: str) -> None:
        """Create a visit in the past; an existing identity raises an error with any time."""
        at = clock_module.instant() - timedelta(seconds=ago)
        try:
            Visit.objects.create(visit_id=visit_id, at=at, page=page)
        except AlreadyExists:
            assert visit_id in self.live or visit_id in self.trashed
            return
        assert visit_id not in self.live
        assert visit_id not in self.trashed
        self.live[visit_id] = at, page
        self.touched.add(visit_id)

    def delete(self, visit_id: str) -> None:
        """Delete permanently."""
        found = Visit.all_objects.filter(pk=visit_id).first()
        assert (found is not None) == (visit_id in self.live or visit_id in self.trashed)
        if found is not None:
            found.hard_delete()
        self.live.pop(visit_id, None)
        self.trashed.discard(visit_id)
        self.touched.add(visit_id)

    def trash(self, visit_id: str) -> None:
        """Delete softly."""
        if visit_id in self.live:
            Visit.objects.get(pk=visit_id).delete()
            self.live.pop(visit_id)
            self.trashed.add(visit_id)
            self.touched.add(visit_id)

    def change(self, visit_id: str, page: str) -> None:
        """Change an attribute of the key."""
        changed = Visit.objects.filter(pk=visit_id).update(page=page)
        assert changed == (visit_id in self.live)
        if changed:
            self.live[visit_id] = self.live[visit_id][0], page
            self.touched.add(visit_id)

    def grow(self, shards: int) -> None:
        """Let the number change; it begins some time later."""
        try:
            shard_record.grow(self.table, LAYOUT, shards, shard_record.earliest_start())
        except InvalidValue:
            return  # it is that number already, or an entry begins then, or there are too many

    def wait(self, seconds: int) -> None:
        """Let time pass."""
        self.clock.move(timedelta(seconds=seconds))


@settings(max_examples=EXAMPLES)
@given(history=HISTORY)
def test_shards_are_like_one_list(table: Table, history: dict[str, Any]) -> None:
    """Pages are in order, without losses or duplicates, with one object per identity, during any changes."""
    table_ready()
    with frozen_time(BEGINNING) as clock:
        known = History(table, clock)
        if history["first"] is not None:
            shard_record.record_first(table, LAYOUT, history["first"])
        for step in history["before"]:
            known.carry_out(step)
        clock.move(timedelta(seconds=LEAD * 2))
        walked(known, history)
        everything(known)
        for entry in knowledge.schedule(LAYOUT).entries[1:3]:
            windows(known, EPOCH + timedelta(seconds=entry.since + history["bound"]))


def asked(history: dict[str, Any]) -> Any:
    """Return the query of the walk."""
    found = Visit.objects.filter(page="/") if history["of_page"] else Visit.objects.all()
    return found.order_by("-at" if history["descending"] else "at")


def walked(known: History, history: dict[str, Any]) -> None:
    """Page by page, with steps between two pages."""

    def wanted() -> Model:
        return {each: value for each, value in known.live.items() if not history["of_page"] or value[1] == "/"}

    at_first, known.touched = wanted(), set()
    ever = dict(at_first)
    given: list[tuple[datetime, str]] = []
    cursor, pages = None, 0
    while True:
        page = asked(history).page(size=history["sizes"][pages % len(history["sizes"])], cursor=cursor)
        given += [(visit.at, visit.visit_id) for visit in page]
        cursor = page.next_cursor
        if cursor is None:
            break
        for step in history["between"][pages] if pages < len(history["between"]) else ():
            known.carry_out(step)
        ever |= wanted()
        pages += 1
    times = [at for at, _ in given]
    assert times == sorted(times, reverse=history["descending"])
    ids = [each for _, each in given]
    assert {each for each in ids if ids.count(each) > 1} <= known.touched
    assert {each for each in at_first if each not in known.touched} <= set(ids) <= set(ever) | known.touched


def everything(known: History) -> None:
    """All at once: lists, counts, single objects and the trash."""
    for order, reverse in (("at", False), ("-at", True)):
        found = [(visit.at, visit.visit_id) for visit in Visit.objects.order_by(order)]
        assert [at for at, _ in found] == sorted((at for at, _ in known.live.values()), reverse=reverse)
        assert sorted(each for _, each in found) == sorted(known.live)
    assert Visit.objects.count() == len(known.live)
    assert Visit.objects.filter(page="/a").count() == sum(page == "/a" for _, page in known.live.values())
    assert {visit.visit_id for visit in Visit.deleted_objects.all()} == known.trashed
    assert Visit.objects.in_bulk(IDS).keys() == known.live.keys()


def windows(known: History, bound: datetime) -> None:
    """A query by time reads only the shards of that time, and finds every object."""
    until = bound + timedelta(seconds=LEAD)
    for lookup, value, meets in (
        ("at__lt", bound, lambda at: at < bound),
        ("at__lte", bound, lambda at: at <= bound),
        ("at__gt", bound, lambda at: at > bound),
        ("at__gte", bound, lambda at: at >= bound),
        ("at__range", (bound, until), lambda at: bound <= at <= until),
    ):
        expected = {each for each, (at, _) in known.live.items() if meets(at)}
        assert {visit.visit_id for visit in Visit.objects.filter(**{lookup: value})} == expected
    for visit_id, (at, _) in known.live.items():
        assert Visit.objects.get(visit_id=visit_id, at=at).pk == visit_id
