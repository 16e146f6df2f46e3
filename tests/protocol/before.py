"""The former protocol with its three holes, which calibrates the checker.

There were no leases and no presence items. Processes read the state every few seconds, an operator declared that old
code had stopped, and the command waited for a grace period. Old code never followed the state.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from dynamo_single.evolution.phases import KINDS, WRITTEN, Phase, Phases
from tests.protocol.machine import Command, Node, Plan, Process, Rules, Scenario
from tests.protocol.meaning import AFTER, BEFORE, Change, Meaning
from tests.protocol.steps import Steps
from tests.protocol.stored import Data, Operation


class Case(NamedTuple):
    """The assumptions: whether old code has stopped when the operator says so, and whether a request may be late."""

    name: str
    has_stopped: bool
    is_late: bool


CASES = (
    Case("one old process is forgotten", False, True),
    Case("old code has stopped", True, True),
    Case("old code has stopped, and nobody is late", True, False),
)


class Program(NamedTuple):
    """A change as it was: what code does under each revision, and the command's steps between them."""

    phases: Phases
    meanings: tuple[tuple[Meaning, Meaning], ...]
    steps: tuple[str, ...]


OLD_KEY, NEW_KEY = ((0, "old"),), ((0, "new"),)
BOTH = Meaning(reads=(0,), writes=(0, 1))
SWITCHED = Meaning(reads=(1,), writes=(0, 1))
GOING = Meaning(reads=(0, 1), writes=(1,), removes=(0,), fallback=True)
OLD_LISTS = Meaning(keys=OLD_KEY, lists=OLD_KEY)
NEW_LISTS = Meaning(keys=NEW_KEY, lists=NEW_KEY)

PROGRAMS: dict[str, Program] = {
    "AddKey": Program(
        (Phase({"new key": WRITTEN}),) * 2,
        ((Meaning(), Meaning(keys=NEW_KEY)), (Meaning(), NEW_LISTS)),
        ("fill", "assert", "fill", "bump"),
    ),
    "AlterKey": Program(
        (KINDS["ALTER_KEY"][0], *KINDS["ALTER_KEY"][2:]),
        ((OLD_LISTS, Meaning(keys=OLD_KEY)), (OLD_LISTS, Meaning(keys=NEW_KEY)), (OLD_LISTS, NEW_LISTS)),
        ("assert", "bump", "grace", "fill", "bump"),
    ),
    "RenameAttribute": Program(
        KINDS["RENAME"],
        ((Meaning(), BOTH), (Meaning(), SWITCHED), (Meaning(), GOING), (Meaning(), GOING)),
        ("copy", "assert", "copy", "bump", "grace", "bump", "grace", "drop old", "bump"),
    ),
    "AddUnique": Program(
        KINDS["ADD_UNIQUE"][:2],
        ((Meaning(), Meaning(claims=True)), (Meaning(), Meaning(claims=True, looks_up=True))),
        ("fill", "assert", "drop", "fill", "bump"),
    ),
}


class BeforePlan(Plan):
    """The nodes of one run, which could not be reverted."""

    def __init__(self, change: Change, steps: tuple[str, ...]) -> None:
        self.changes = (change,)
        self.nodes, self.vectors, revision = [], [(0,)], 0
        for step in steps:
            kind = step if step in {"assert", "grace", "bump"} else "pass"
            self.nodes.append(Node(kind, revision, work=step))
            if kind == "bump":
                revision += 1
                self.vectors.append((revision,))
        self.nodes.append(Node("end", revision))


class BeforeSteps(Steps):
    """The steps of processes and of the command as they were."""

    def __init__(self, scenario: Scenario, plan: Plan, case: Case) -> None:
        super().__init__(scenario, plan)
        self.case = case

    def alone(self, number: int, process: Process, revision: int) -> Iterator[tuple[str, Process]]:
        """Yield the steps: read the state and use it later, unless it is old code that never reads again."""
        if process.fence == "ended":
            return
        is_old = self.scenario.codes[number] == BEFORE
        if is_old and self.case.has_stopped:
            yield "ends", Process(fence="ended", budget=0)
        if process.hand is not None:
            yield (
                f"goes by {process.hand[0]}",
                process._replace(bound=process.hand[0], lease=process.hand[1], hand=None),
            )
        elif (process.bound != revision or not process.lease) and not (is_old and process.bound >= 0):
            yield f"asks: revision {revision}", process._replace(hand=(revision, 1))

    def later(self, process: Process) -> Process:
        """Return a process after a tick. Code that never reads has no lease."""
        after = super().later(process)
        if self.case.is_late:
            hand = process.hand and (process.hand[0], max(0, process.hand[1] - 1))
            after = after._replace(hand=hand)
        return after

    def with_data(self, number: int, process: Process, data: Data) -> Iterator[tuple[str, Process, Data]]:
        """Yield the steps of writes: old code does not need a lease."""
        if process.bound >= 0 and self.scenario.codes[number] == BEFORE and self.case.is_late:
            process = process._replace(lease=1)
        yield from super().with_data(number, process, data)

    def of_command(
        self, command: Command, data: Data, statuses: tuple[int, ...]
    ) -> Iterator[tuple[str, Command, Data, bool]]:
        """Yield the command's steps: it waits for the operator, and for the time of grace."""
        node = self.plan.nodes[command.node]
        moved = command._replace(node=command.node + 1, at=0, seen=None)
        if node.kind == "assert":
            runs = any(each and code == BEFORE for each, code in zip(statuses, self.scenario.codes, strict=True))
            if not self.case.has_stopped or not runs:
                yield "the operator says that old code has stopped", moved, data, False
        elif node.kind == "grace":
            if not command.timer:
                yield "the time of grace is over", moved, data, False
        else:
            yield from super().of_command(command, data, statuses)

    def status(self, process: Process, revision: int) -> int:
        """Return whether a process runs, as the operator sees it."""
        return 0 if process.fence == "ended" else 1


def steps_of(name: str, case: Case, operations: tuple[Operation, ...]) -> BeforeSteps:
    """Return the steps of a change as it was."""
    program = PROGRAMS[name]
    change = Change(program.phases)
    # A rename by stopped old code concerned two new processes, one of them late.
    codes = (AFTER, AFTER) if name == "RenameAttribute" and case.has_stopped else (BEFORE, AFTER)
    scenario = Scenario(
        f"{name}, {case.name}",
        (change,),
        operations,
        codes=codes,
        rules=Rules(fence=not case.is_late),
        meant=lambda changes, vector, code: program.meanings[vector[0]][code],
    )
    return BeforeSteps(scenario, BeforePlan(change, program.steps), case)
