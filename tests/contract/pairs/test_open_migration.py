"""Each capability is added by a migration while things are written: before it is finished, and after it."""

from __future__ import annotations

from pathlib import Path

import pytest

from dynamo_single.exceptions import FormNotApplied, KeyNotFilled
from dynamo_single.table import Table
from tests.contract.pairs.lag import lagging
from tests.contract.pairs.oracle import Act
from tests.contract.pairs.runner import History, Play
from tests.contract.pairs.seeds import SEED
from tests.contract.pairs.table import ADDED, CAPABILITIES, readers_of
from tests.deep import deep
from tests.histories.app import history

#: How many acts there are while the migration is open, and after it.
STEPS = 10
#: What such a thing reads as.
BEFORE = {
    "code": None,
    "data": {},
    "steps": [],
    "facts": {},
    "words": None,
    "token": None,
    "owner_id": None,
    "seat_id": None,
}


class OpenPlay(Play):
    """A history in which an act may be refused as long as a migration is open."""

    is_open = True

    def step(self) -> None:
        """One act; reads that a key cannot serve yet are refused."""
        if not self.is_open:
            super().step()
            return
        self.move(round(self.chance.uniform(0, 2), 1))
        self.settle()
        act: Act = self.chance.choice(self.choices())
        error = self.outcome(act)
        if isinstance(error, (KeyNotFilled, FormNotApplied)):
            return
        if act.errors and not isinstance(error, tuple(act.errors)):
            raise self.history.failed(f"{act.text} has to end in one of {act.errors}, not in {error!r}.")
        if error is not None and not act.errors:
            raise self.history.failed(f"{act.text} has to be carried out: {error!r}") from error
        if error is None:
            act.effect(self.world)
        self.noted()


@pytest.mark.parametrize("name", [pytest.param(name, marks=deep) for name in ADDED])
def test_capability_is_added_while_things_are_written(table: Table, tmp_path: Path, name: str) -> None:
    ways = ["save", "update", "bulk", "atomic"]
    with history(tmp_path) as app:
        before = History(SEED, [], of_table=False)
        assert before.declare("histories") == []
        app.make()
        app.migrate()
        app.finish()
        for thing_id in ("a", "b"):
            before.namespace["Thing"].objects.create(thing_id=thing_id, note="one")
        app.forget("Thing")
        after = History(SEED, [CAPABILITIES[name]()], of_table=False)
        assert after.declare("histories") == []
        app.make()
        app.migrate()
        with lagging(SEED) as time:
            play = OpenPlay(after, time, ways, readers_of((name,)))
            play.begin()
            for thing_id in ("a", "b"):
                play.world.write(thing_id, {"thing_id": thing_id, "note": "one", **BEFORE})
            for _ in range(STEPS):
                play.step()
            time.settle()
        app.finish()
        with lagging(SEED) as time:
            play.time, play.is_open = time, False
            play.history.namespace["time"] = time
            time.move(STEPS * 8)
            play.noted()
            play.look()
            for _ in range(STEPS):
                play.step()
            play.look()
