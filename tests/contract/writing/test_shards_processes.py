"""Several processes that write one sharded model: clocks that are wrong, and schedules as known some time ago.

A schedule entry waits for the largest errors: five minutes of clock, and five minutes between two reads of the state.
``SHARDS_EXAMPLES`` sets the number of histories (20 in a normal run, 300 in a deep one).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dynamo_single import clock
from dynamo_single.exceptions import AlreadyExists, InvalidValue
from dynamo_single.orm.rollout import knowledge, shard_record
from dynamo_single.orm.schema import bindings, registry
from dynamo_single.table import Table, get_table
from dynamo_single.testing import frozen_time, moved_time
from tests.catalog.service import Visit
from tests.contract.tables import everything
from tests.deep import examples
from tests.ready import table_ready

EXAMPLES = examples(10, 300, "SHARDS_EXAMPLES")

BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
LAYOUT = registry.layout_of(Visit)
IDS = [f"v{number}" for number in range(40)]
SKEW = st.sampled_from([-300, 300, 0, -120, 7])

WHO = st.integers(0, 2)
AGO = st.sampled_from([-knowledge.AHEAD, 0, 1, 60, 1200, 4000])
CREATE = st.tuples(st.just("create"), WHO, st.sampled_from(IDS), AGO)
READ = st.tuples(st.just("read"), WHO)
GROW = st.tuples(st.just("grow"), WHO, st.integers(1, 9))
WAIT = st.tuples(st.just("wait"), st.sampled_from([1, 60, 120, 240, 299, 301, 600, 900, 1200, 1260]))


class Process:
    """A process with a wrong clock, and its knowledge of the table."""

    def __init__(self, skew: int) -> None:
        self.skew = timedelta(seconds=skew)
        self.known: dict[Table, Any] = {}
        self.generation: Any = None
        self.read_at: float | None = None

    def do(self, work: Callable[[], Any]) -> Any:
        """Do something as this process; what it knows is at most so old as it may be, by the time that is right."""
        now = clock.timestamp()
        knowledge._tables.clear()
        if self.read_at is None or now - self.read_at >= knowledge.LEASE:
            self.read_at = now
            bindings.forget_states()
        else:
            knowledge._tables.update(self.known)
            bindings.generation = self.generation
        with moved_time(self.skew):
            try:
                knowledge.schedule(LAYOUT)
                knowledge._tables[get_table()].ahead = -self.skew.total_seconds()
                return work()
            finally:
                if knowledge._tables[get_table()].renew_at < 0:  # it has changed the state of the table
                    self.read_at = None
                self.known, self.generation = dict(knowledge._tables), bindings.generation


class Life:
    """The history of the processes."""

    def __init__(self, table: Table, skews: list[int], time: Any) -> None:
        self.table, self.time = table, time
        self.processes = [Process(skew) for skew in skews]
        self.made: dict[str, datetime] = {}

    def create(self, who: int, visit_id: str, ago: int) -> None:
        """Create a visit. It fails if the identity exists."""

        def work() -> datetime | None:
            at = clock.instant() - timedelta(seconds=ago)
            try:
                Visit.objects.create(visit_id=visit_id, at=at)
            except AlreadyExists:
                return None
            return at

        at = self.processes[who].do(work)
        assert (at is None) == (visit_id in self.made)
        if at is not None:
            self.made[visit_id] = at

    def read(self, who: int) -> None:
        """Everything, by this process."""

        def work() -> None:
            assert sorted(visit.pk for visit in Visit.objects.all()) == sorted(self.made)
            for visit_id, at in self.made.items():
                assert Visit.objects.get(pk=visit_id).at == at

        self.processes[who].do(work)

    def grow(self, who: int, shards: int) -> None:
        """Add a number of shards, as early as the process may."""

        def work() -> None:
            try:
                shard_record.grow(self.table, LAYOUT, shards, shard_record.earliest_start())
            except InvalidValue:
                return  # it is that number already, or an entry begins then, or there are too many

        self.processes[who].do(work)

    def wait(self, seconds: int) -> None:
        """Let time pass."""
        self.time.move(timedelta(seconds=seconds))


@settings(max_examples=EXAMPLES)
@given(
    skews=st.lists(SKEW, min_size=3, max_size=3),
    steps=st.lists(st.one_of(CREATE, CREATE, CREATE, GROW, WAIT, WAIT, READ), min_size=10, max_size=40),
)
def test_an_identity_has_one_object_whichever_process_makes_it(
    table: Table, skews: list[int], steps: list[tuple[Any, ...]]
) -> None:
    """And everybody finds it: by its identity, by its time, and in the order of all."""
    table_ready()
    with frozen_time(BEGINNING) as time:
        life = Life(table, skews, time)
        for name, *arguments in steps:
            getattr(life, name)(*arguments)
        stored = [key[1] for key in everything(table) if key[1].startswith("visitId#")]
        assert sorted(stored) == sorted(f"visitId#{each}" for each in life.made)
        for process in range(3):
            life.read(process)
        knowledge.forget()
        assert [visit.at for visit in Visit.objects.order_by("at")] == sorted(life.made.values())
        for visit_id, at in life.made.items():
            assert [visit.pk for visit in Visit.objects.filter(at=at, visit_id=visit_id)] == [visit_id]
            assert visit_id in {visit.pk for visit in Visit.objects.filter(at__gte=at, at__lte=at)}
    knowledge.forget()
