"""A migration adds each capability while things are written: before and after its end."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from dynamo_single.exceptions import FormNotApplied, KeyNotFilled
from dynamo_single.table import Table
from dynamo_single.testing import frozen_time
from tests.contract.pairs.lag import BEGINNING, lagging
from tests.contract.pairs.oracle import Act
from tests.contract.pairs.runner import History, Play
from tests.contract.pairs.table import CAPABILITIES, readers_of
from tests.contract.pairs.writers import WRITERS, Refused
from tests.deep import SEED, deep
from tests.histories.app import history

#: How many acts there are while the migration is open, and after it.
STEPS = 10
#: The things from before it.
EARLIER = ("a", "b")
#: Their owners, if they have one by then.
OWNER = "o11"
ADDED = [name for name, row in CAPABILITIES.items() if not row.unadded]


class OpenPlay(Play):
    """A history in which operations may fail while a migration is open."""

    is_open = True
    #: Until the end of the migration, every write is blocked.
    is_paused = False

    def step(self) -> None:
        """Run an operation; reads with an incomplete key are blocked."""
        if not self.is_open:
            super().step()
            return
        self.move(round(self.chance.uniform(0, 2), 1))
        self.settle()
        act: Act = self.chance.choice(self.choices())
        error = self.outcome(act)
        if isinstance(error, (KeyNotFilled, FormNotApplied)):
            return
        if self.is_paused and "Thing" in act.text:
            raise self.history.failed(f"{act.text} has to wait until the migration is finished.")
        if act.errors and not isinstance(error, (*act.errors, Refused)):
            raise self.history.failed(f"{act.text} has to end in one of {act.errors}, not in {error!r}.")
        if error is not None and not act.errors:
            raise self.history.failed(f"{act.text} has to be carried out: {error!r}") from error
        if error is None:
            act.effect(self.world)
        self.noted()


def stored(before: History, values: dict[str, Any]) -> None:
    """Create the objects before the migration."""
    if before.family.references:
        before.namespace["Owner"].objects.create(owner_id=OWNER, name="Ann")
        values["owner_id"] = OWNER
    model = before.namespace["Thing"]
    given = {name: value for name, value in values.items() if hasattr(model, name)}
    for thing_id in EARLIER:
        model.objects.create(thing_id=thing_id, note="one", **given)


@pytest.mark.parametrize("name", [pytest.param(name, marks=deep) for name in ADDED])
def test_capability_is_added_while_things_are_written(table: Table, tmp_path: Path, name: str) -> None:
    capability = CAPABILITIES[name]()
    # PynamoDB ignores migrations, and jobs need users, which this app does not have.
    ways = [way for way in WRITERS if way not in {"pynamodb", "jobs"}]
    values = {**capability.earlier}
    with history(tmp_path) as app:
        before = History(SEED, [capability], of_table=False, is_prior=True)
        assert before.declare("histories") == []
        app.make()
        app.migrate()
        app.finish()
        with frozen_time(BEGINNING - timedelta(days=1)):
            stored(before, values)
        for draft in before.family.drafts:
            app.forget(draft.name)
        after = History(SEED, [capability], of_table=False)
        assert after.declare("histories") == []
        after.family.begin = [text for text in after.family.begin if not text.startswith("divide(")]
        app.make("--noinput")
        app.migrate()
        with lagging(SEED) as time:
            play = OpenPlay(after, time, ways, readers_of((name,)))
            play.is_paused = bool(capability.paused)
            if before.family.references:
                play.world.owners[OWNER] = {"name": "Ann"}
            play.begin()
            for thing_id in EARLIER:
                row = {after.family.id_name: thing_id, "note": "one", **values}
                play.world.write(after.family.pk_of(row), row)
            for _ in range(STEPS):
                play.step()
            time.settle()
        app.finish()
        with lagging(SEED) as time:
            play.time, play.is_open = time, False
            play.history.namespace["time"] = time
            time.move(STEPS * 8)
            if capability.afterwards:
                play.history.do(capability.afterwards)
            play.noted()
            play.look()
            for _ in range(STEPS):
                play.step()
            play.look()
