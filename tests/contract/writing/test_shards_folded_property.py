"""Several processes write a model with a folded address, whose first shards hash spellings or folded values.

``SHARDS_EXAMPLES`` sets the number of histories (half of 20 in a normal run, and of 300 in a deep one).
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamo_single import clock
from dynamo_single.contrib.doctor import repair, verify
from dynamo_single.exceptions import AlreadyExists, InvalidValue
from dynamo_single.orm.rollout import knowledge, shard_record
from dynamo_single.orm.rollout.states import StoredShards
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.keys.shards import Entry
from dynamo_single.table import Table
from dynamo_single.testing import frozen_time
from tests.catalog.service import Mailbox
from tests.contract.tables import assert_consistent
from tests.contract.writing.test_shards_processes import AGO, BEGINNING, EXAMPLES, GROW, READ, SKEW, WAIT, WHO, Process
from tests.ready import table_ready

LAYOUT = registry.layout_of(Mailbox)
#: Some addresses, each in three spellings.
ADDRESSES = [spelling for n in range(6) for spelling in (f"Box{n}@x.org", f"box{n}@x.org", f"BOX{n}@X.ORG")]
CREATE = st.tuples(st.just("create"), WHO, st.sampled_from(ADDRESSES), AGO)
REPAIR = st.tuples(st.just("repair"), WHO)


class Life:
    """The history of the processes: the objects by spelling, and whether each address has only one object."""

    def __init__(self, table: Table, skews: list[int], time: Any, *, folds: bool) -> None:
        self.table, self.time, self.folds = table, time, folds
        self.processes = [Process(skew) for skew in skews]
        self.made: dict[str, datetime] = {}

    def alike(self, address: str) -> set[str]:
        """Return the created spellings of an address."""
        return {each for each in self.made if each.casefold() == address.casefold()}

    def create(self, who: int, address: str, ago: int) -> None:
        """Create a mailbox. It fails if the mailbox exists, unless old shards hide another spelling."""

        def work() -> datetime | None:
            at = clock.instant() - timedelta(seconds=ago)
            try:
                Mailbox.objects.create(address=address, at=at, ticket=address)
            except AlreadyExists:
                return None
            return at

        at = self.processes[who].do(work)
        assert at is None or address not in self.made
        assert at is not None or self.alike(address)
        assert at is None or not (self.folds and self.alike(address))
        if at is not None:
            self.made[address] = at

    def read(self, who: int) -> None:
        """Everything, by this process."""
        self.processes[who].do(self._read)

    def _read(self) -> None:
        assert sorted(each.address for each in Mailbox.objects.all()) == sorted(self.made)
        for address, at in self.made.items():
            several = len(self.alike(address)) > 1
            try:
                found = Mailbox.objects.get(pk=address)
            except Mailbox.MultipleObjectsReturned:
                assert several
                continue
            assert found.address in self.alike(address)
            assert several or found.at == at

    def repair(self, who: int) -> None:
        """Move all misplaced objects."""
        self.processes[who].do(lambda: [repair(finding) for finding in verify()])

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


@pytest.mark.parametrize("folds", [True, False], ids=["folded", "spelled"])
@settings(max_examples=EXAMPLES // 3)
@given(
    skews=st.lists(SKEW, min_size=3, max_size=3),
    steps=st.lists(st.one_of(CREATE, CREATE, CREATE, GROW, WAIT, WAIT, READ, REPAIR), min_size=10, max_size=30),
)
def test_an_address_has_one_object_in_every_spelling(
    table: Table, folds: bool, skews: list[int], steps: list[tuple[Any, ...]]
) -> None:
    """From the beginning if the shards fold; else once folded ones have begun and a repair has moved the others."""
    table_ready()
    recorded = StoredShards("address", "at", (Entry(0, 3),))
    with frozen_time(BEGINNING) as time:
        if folds:
            shard_record.record_first(table, LAYOUT, 3)
        else:
            knowledge.change(table, lambda state: knowledge.replace(state, shards={"Mailbox": recorded}))
        life = Life(table, skews, time, folds=folds)
        for name, *arguments in steps:
            getattr(life, name)(*arguments)
        knowledge.forget()
        last = knowledge.schedule(LAYOUT).entries[-1]
        shard_record.grow(
            table, LAYOUT, 5 if last.shards != 5 else 7, shard_record.earliest_start() + timedelta(hours=1)
        )
        time.move(timedelta(hours=2))
        for process in range(3):
            life.repair(process)
            life.read(process)
        knowledge.forget()
        for address in ADDRESSES:
            alike = life.alike(address)
            if len(alike) == 1:
                assert Mailbox.objects.get(pk=address).address in alike
            if alike:
                with pytest.raises(AlreadyExists):
                    Mailbox.objects.create(address=address, at=clock.instant(), ticket="new")
        if all(len(life.alike(address)) < 2 for address in life.made):
            assert_consistent()
    knowledge.forget()
