"""Run a history of two capabilities, and print a failed one so that you can repeat it."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from dynamo_single import clock
from dynamo_single.checks.keys import check_collisions
from dynamo_single.checks.models import check_model
from dynamo_single.contrib.doctor import verify
from dynamo_single.exceptions import AlreadyExists, MissingReference
from dynamo_single.orm.schema import registry
from tests.contract.pairs.drafts import IMPORTS, Family
from tests.contract.pairs.lag import MOST, Time, lagging
from tests.contract.pairs.oracle import (
    NO_ERRORS,
    NOTES,
    Act,
    ByIndex,
    Capability,
    Errors,
    Expected,
    Row,
    Snapshots,
    World,
    arguments,
)
from tests.contract.pairs.readers import READERS, Reader
from tests.contract.pairs.writers import WRITERS, Refused, Writer
from tests.unit.declaring import forgotten

#: The number of operations in a history, and the operations between checks of the whole table.
STEPS = 14
EVERY = 7


#: Owners that are there from the beginning.
FIRST = ("first", "other")


class HistoryFailed(AssertionError):
    """A failed history: its text contains the operations and the expectation."""


class History:
    """The operations so far, as Python."""

    def __init__(
        self, seed: int, capabilities: Sequence[Capability], of_table: bool, *, is_prior: bool = False
    ) -> None:
        self.seed, self.capabilities = seed, capabilities
        self.family = Family.plain()
        for capability in capabilities:
            (capability.prior if is_prior else capability.add)(self.family)
        self.of_table = of_table
        self.lines: list[str] = []
        self.namespace: dict[str, Any] = {"__name__": __name__}

    @property
    def text(self) -> str:
        """Return the whole history, to paste into a test with the fixture ``table``."""
        begin = f"with lagging({self.seed}, of_table={self.of_table}) as time:"
        constants = f"PKS = {self.pks!r}\nOWNERS = [*(f'o{{n}}' for n in range(12)), *{FIRST!r}]"
        lines = [f"    {line}" for line in self.lines]
        return "\n".join([IMPORTS, constants, "", self.models, "", begin, *lines])

    @property
    def pks(self) -> list[str]:
        """The identities of all things that there may be."""
        parts = {
            self.family.id_name: self.family.ids,
            "group": ("g", "h"),
            "owner_id": [*(f"o{n}" for n in range(12)), *FIRST, "nobody"],
        }
        found = [""]
        for number, name in enumerate(self.family.identity):
            found = [f"{pk}{'~~' if number else ''}{part}" for pk in found for part in parts[name]]
        return found

    def declare(self, app_label: str = "catalog") -> list[Any]:
        """Declare the models; return the messages of the checks."""
        for draft in self.family.drafts:
            draft.app_label = app_label
        self.models = self.family.text
        before = {*registry.all_models()}
        exec(IMPORTS, self.namespace)
        exec(self.models, self.namespace)
        self.namespace |= {"PKS": self.pks, "OWNERS": [*(f"o{n}" for n in range(12)), *FIRST]}
        made = [model for model in registry.all_models() if model not in before]
        return [*(message for model in made for message in check_model(model)), *check_collisions(made)]

    def do(self, text: str) -> None:
        """Do something, and remember it."""
        self.lines.append(text)
        exec(text, self.namespace)

    def value(self, text: str) -> Any:
        """The value of an expression."""
        return eval(text, self.namespace)

    def failed(self, what: str) -> HistoryFailed:
        """The error of a history that fails."""
        names = " and ".join(each.name for each in self.capabilities)
        return HistoryFailed(f"{names}, seed {self.seed}: {what}\n\n{self.text}")


class Play:
    """A history under construction."""

    def __init__(self, history: History, time: Time, writers: Sequence[str], readers: Sequence[str]) -> None:
        self.history, self.time = history, time
        self.chance = random.Random(history.seed)
        self.world = World(history.family, history.capabilities)
        self.writers = [WRITERS[name] for name in writers]
        self.readers = {name: READERS[name] for name in readers}
        self.snapshots = Snapshots(MOST)

    def run(self) -> None:
        """The whole history."""
        self.begin()
        for number in range(1, STEPS + 1):
            self.step()
            self.read(self.chance.choice([*self.readers]))
            if number % EVERY == 0:
                self.look()

    def begin(self) -> None:
        """Create the objects before the first operation."""
        self.history.namespace["time"] = self.time
        for text in self.history.family.begin:
            self.history.do(text)
        for owner in self.history.family.owners:
            self.history.do(f"Owner.objects.create(owner_id={owner!r}, name='Ann')")
            self.world.owners[owner] = {"name": "Ann"}
        if self.history.family.references:
            self.history.do("Owner.objects.create(owner_id='o0', name='Ann')")
            self.world.owners["o0"], self.world.more["owners"] = {"name": "Ann"}, 1
        self.noted()

    def noted(self) -> None:
        """Remember how the lists are from now on."""
        self.world.pass_to(clock.timestamp())
        self.snapshots.note(self.world)

    def step(self) -> None:
        """Run an operation after some time."""
        self.move(round(self.chance.uniform(0, 2), 1))
        act = self.chance.choice(self.choices())
        if act.settled or (act.by_index is not None and self.chance.random() < 0.5):
            self.settle()
            act = self.chance.choice(self.choices())  # an object may have expired since
        elif act.by_index is not None:
            self.hurry(act, act.by_index)
            return
        error = self.outcome(act)
        if act.errors and not isinstance(error, (*act.errors, Refused)):
            raise self.history.failed(f"{act.text} has to end in one of {act.errors}, not in {error!r}.") from error
        if error is not None and not act.errors:
            raise self.history.failed(f"{act.text} has to be carried out: {error!r}") from error
        self.world.pass_to(clock.timestamp())
        if error is None:
            act.effect(self.world)
        self.noted()

    def hurry(self, act: Act, late: ByIndex) -> None:
        """Run an operation with a late index: missed things are reported, and can be repaired."""
        recent = {pk for pk, kept in self.world.things.items() if kept.written > self.world.now - MOST}
        error = self.outcome(act)
        if error is not None:
            if not isinstance(error, (*act.errors, *late.errors)) or not (act.errors or recent):
                raise self.history.failed(f"{act.text} has to be carried out: {error!r}") from error
            self.noted()
            return
        self.settle()
        missed = self.value(late.missed)
        if not {*missed} <= recent:
            raise self.history.failed(f"{act.text} misses {missed}, of which {recent} were written just before.")
        if act.errors and not missed:
            raise self.history.failed(f"{act.text} has to end in one of {act.errors}.")
        act.effect(self.world)
        known = frozenset[str]().union(*(each.reports for each in self.history.capabilities))
        findings = [finding for finding in verify() if missed and finding.kind not in known]
        if bool(missed and late.kinds) != bool(findings) or not {finding.kind for finding in findings} <= late.kinds:
            raise self.history.failed(f"{act.text} misses {missed}, and dynamo_verify finds {findings}")
        if missed:
            self.history.do(f"missed = {missed!r}")
            self.history.do(late.repair)
        for pk in missed if "purge" in late.repair else ():
            self.world.things.pop(pk, None)
        self.noted()

    def outcome(self, act: Act) -> Exception | None:
        """Do it; the error that it ends in."""
        try:
            self.history.do(act.text)
        except Exception as error:
            self.history.lines[-1] += f"  # {type(error).__name__}"
            return error
        return None

    def choices(self) -> list[Act]:
        """Return the possible operations; plain writes are as frequent as all others."""
        plain = [*self.plain(), *self.plain()]
        special = [act for each in self.history.capabilities for act in each.acts(self.chance, self.world)]
        return plain + special

    def plain(self) -> Iterator[Act]:
        """Create, change and delete a thing, by the ways to write that the history has."""
        for way in ("create", "create", "change", "delete"):
            able = [writer for writer in self.writers if way in writer.ways()]
            if able:
                yield from getattr(self, way)(self.chance.choice(able))
        yield from self.change_many()

    def create(self, writer: type[Writer]) -> Iterator[Act]:
        """Create a new thing, or a copy of one."""
        values = self.world.new_values(self.chance)
        pk = self.history.family.pk_of(values)
        there = pk in self.world.things
        if there and writer.overwrites:
            return
        errors = self.world.refusals(pk, values, writer.__name__) | (NO_ERRORS if not there else {AlreadyExists})
        text = f"{writer.__name__}.create(Thing, {arguments(values)})"
        if not (writer.trusts and MissingReference in errors):
            errors = self.refused(writer, values) or errors
            yield Act(text, lambda world: world.write(pk, values), errors, settled=self.waits(writer))

    def change(self, writer: type[Writer]) -> Iterator[Act]:
        """Other values of one or several attributes."""
        if not self.world.live:
            return
        pk = self.chance.choice(sorted(self.world.live))
        values = {
            name: value
            for name, value in self.world.new_values(self.chance).items()
            if name not in self.history.family.identity
        }
        names = self.chance.sample(sorted(values), self.chance.randint(1, len(values)))
        changed = {name: values[name] for name in names if name not in self.history.family.identity}
        if not changed:
            return
        after = {**self.world.things[pk].values, **changed}
        text = f"{writer.__name__}.change(Thing, {pk!r}, {arguments(changed)})"
        errors = self.world.refusals(pk, after, writer.__name__)
        if not (writer.trusts and MissingReference in errors):
            errors = self.refused(writer, changed) or errors
            yield Act(text, lambda world: world.write(pk, after), errors, settled=self.waits(writer))

    def change_many(self) -> Iterator[Act]:
        """Change the note of all things that an index lists; skip them if one of them would fail."""
        before, note = self.chance.choice(NOTES), self.chance.choice(NOTES)
        after = {pk: {**row, "note": note} for pk, row in self.world.live.items() if row["note"] == before}
        if any(self.world.refusals(pk, row, "update") for pk, row in after.items()):
            return

        def write(world: World) -> None:
            for pk, row in after.items():
                world.write(pk, row)

        update = f"Thing.objects.filter(note={before!r}).update(note={note!r}) == {len(after)}"
        yield Act(f"assert {update}", write, settled=True)

    def waits(self, writer: type[Writer]) -> bool:
        """Return whether a way to write reads first, possibly late."""
        return writer.shows or (writer.dumps and "tags" in self.history.family.thing.attributes)

    def refused(self, writer: type[Writer], values: Row | None = None) -> Errors:
        """The errors by which a way to write refuses models with one of the capabilities, or what it does not show."""
        if writer.shows and any(self.world.hides(name, value) for name, value in (values or {}).items()):
            return frozenset({Refused})
        every = (each.refuses.get(writer.__name__) for each in self.history.capabilities)
        return frozenset(error for error in every if error is not None)

    def delete(self, writer: type[Writer]) -> Iterator[Act]:
        """Delete a thing, into its trash if there is one."""
        if not self.world.live:
            return
        pk = self.chance.choice(sorted(self.world.live))
        every = (each.keeps.get(writer.__name__) for each in self.history.capabilities)
        kept = frozenset(error for error in every if error is not None)
        errors = self.refused(writer) or kept or self.world.refusals(pk, None, writer.__name__)
        go = World.bin if self.history.family.soft and not writer.for_good else lambda world, pk: world.things.pop(pk)
        yield Act(f"{writer.__name__}.delete(Thing, {pk!r})", lambda world: go(world, pk), errors)

    def read(self, name: str) -> None:
        """Read all things in one way."""
        self.noted()
        reader: Reader = self.readers[name]
        text = f"{name}(Thing, {self.history.family.shown!r}, PKS)"
        found = self.value(text)
        if reader.consistent:
            listed = self.world.listed()
            wanted = {pk: row for pk, row in listed.items() if not reader.by or row[reader.by] is not None}
            self.compare(Expected(text, wanted, consistent=True), found)
        elif wrong := self.snapshots.may_show(self.world.now, found):
            raise self.history.failed(f"{text}: {wrong}")

    def value(self, text: str) -> Any:
        """The value of an expression, which cannot fail."""
        try:
            return self.history.value(text)
        except Exception as error:
            raise self.history.failed(f"{text} cannot be read: {error!r}") from error

    def compare(self, expected: Expected, found: Any) -> None:
        """Raise unless it is as expected."""
        if found != expected.value:
            raise self.history.failed(f"{expected.text}\n    is       {found!r}\n    expected {expected.value!r}")

    def look(self) -> None:
        """Everything that has to hold: at once what is consistent, and the rest when the indexes are up to date."""
        for consistent in (True, False):
            for capability in self.history.capabilities:
                for expected in capability.expected(self.world):
                    if expected.consistent or not consistent:
                        self.compare(expected, self.value(expected.text))
            if consistent:
                self.settle()
        for name in self.readers:
            self.read(name)
        known = frozenset[str]().union(*(each.reports for each in self.history.capabilities))
        findings = [str(finding) for finding in verify() if finding.kind not in known]
        if findings:
            raise self.history.failed(f"dynamo_verify finds {findings}")

    def settle(self) -> None:
        """Let the indexes come up with the table."""
        self.history.do("time.settle()")
        self.noted()

    def move(self, seconds: float) -> None:
        """Let some time pass."""
        self.history.do(f"time.move({seconds})")
        self.noted()


@contextmanager
def declared(seed: int, capabilities: Sequence[Capability]) -> Iterator[tuple[History, list[Any]]]:
    """Declare the models of a pair during the block, and return the messages of the checks."""
    with forgotten():
        history = History(seed, capabilities, of_table=bool(seed % 2))
        yield history, history.declare()


def run(seed: int, capabilities: Sequence[Capability], writers: Sequence[str], readers: Sequence[str]) -> None:
    """Run one history; the table has to be empty."""
    with declared(seed, capabilities) as (history, messages):
        assert messages == [], history.failed(f"the checks say {messages}")
        with lagging(seed, of_table=history.of_table) as time:
            Play(history, time, writers, readers).run()
