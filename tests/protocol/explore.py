"""Every state of a scenario, breadth first, with the shortest history of a violation.

A state is one integer: the numbers of the command, of the data and of each process. The steps of each part are computed
once per input, and cached as differences of that integer.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from tests.protocol.command import NAMED, UNFENCED
from tests.protocol.machine import Command, Process, Scenario
from tests.protocol.steps import Steps
from tests.protocol.stored import Data, Violation, check_end, check_reads, first_data

#: The bits of a state for each process's number, and for the data's.
PROCESS, DATA = 18, 24
PROCESS_MASK, DATA_MASK = (1 << PROCESS) - 1, (1 << DATA) - 1
#: The command's view of a process, the difference of a tick, and the differences of its own steps.
Alone = tuple[int, int, tuple[int, ...]]


class Found(NamedTuple):
    """The result of an exploration. ``stuck`` is the number of states from which the command cannot end."""

    states: int
    violation: str = ""
    history: tuple[str, ...] = ()
    stuck: int = 0
    is_complete: bool = True

    def __str__(self) -> str:
        return "\n".join([f"{self.states:,} states, {self.stuck} stuck {self.violation}", *self.history])


class Numbers:
    """A number for each value."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._numbers: dict[Any, int] = {}

    def of(self, value: Any) -> int:
        found = self._numbers.get(value)
        if found is None:
            found = self._numbers[value] = len(self.values)
            self.values.append(value)
        return found


class Explorer:
    """The states of one scenario."""

    def __init__(self, scenario: Scenario, steps: Steps | None = None) -> None:
        self.scenario = scenario
        self.steps = steps or Steps(scenario)
        self.plan = self.steps.plan
        self.commands, self.data = Numbers(), Numbers()
        self.count = len(scenario.codes)
        self.processes = [Numbers() for _ in scenario.codes]
        self.shifts = [PROCESS * n for n in range(self.count)]
        self.data_shift = PROCESS * self.count
        self.command_shift = self.data_shift + DATA
        self._alone: list[dict[int, Alone]] = [{} for _ in scenario.codes]
        self._with_data: list[dict[int, tuple[int, ...]]] = [{} for _ in scenario.codes]
        self._of_command: dict[tuple[int, ...], tuple[tuple[int, bool], ...]] = {}
        self._revisions: dict[int, tuple[int, int]] = {}
        self._of_data: dict[int, tuple[int, tuple[int, ...]]] = {}
        self._each = tuple(zip(range(self.count), self.shifts, self._alone, self._with_data, strict=True))

    def first(self) -> int:
        """Return the first state: no process is registered, and no change has started."""
        data = first_data(self.scenario.changes, self.plan.vectors[0], self.scenario.delayed)
        processes = [Process(budget=self.scenario.budget) for _ in self.scenario.codes]
        return self._state(
            self.commands.of(Command()),
            self.data.of(data),
            [n.of(p) for n, p in zip(self.processes, processes, strict=True)],
        )

    def _state(self, command: int, data: int, processes: list[int]) -> int:
        state = command << self.command_shift | data << self.data_shift
        for shift, number in zip(self.shifts, processes, strict=True):
            state |= number << shift
        return state

    def parts(self, state: int) -> tuple[int, int, list[int]]:
        """Return the numbers of the command, of the data and of the processes."""
        data = state >> self.data_shift & DATA_MASK
        return state >> self.command_shift, data, [state >> shift & PROCESS_MASK for shift in self.shifts]

    # Successors: the command's, a tick, and those of the processes.

    def successors(self, state: int) -> list[int]:
        """Return all states one step later. Raise ``Violation`` if this state or a step is wrong."""
        command, data = state >> self.command_shift, state >> self.data_shift & DATA_MASK
        revision, tick = self._revisions.get(command) or self._find_revision(command)
        later, found = self._of_data.get(data) or self._find_of_data(data)
        tick += later
        steps, statuses = [*found], []
        for n, shift, alone, with_data in self._each:
            process = state >> shift & PROCESS_MASK
            record = alone.get(process << 8 | revision) or self._find_alone(n, process, revision)
            written = with_data.get(process << DATA | data)
            if written is None:
                written = self._find_with_data(n, process, data)
            statuses.append(record[0])
            tick += record[1]
            steps += record[2]
            steps += written
        key = (command, data, *statuses)
        own = self._of_command.get(key)
        if own is None:
            own = self._find_of_command(key)
        first = [state + step if not forgets else self._forget(state + step, revision) for step, forgets in own]
        if tick:
            first.append(state + tick)
        first += [state + step for step in steps]
        return first

    def _find_revision(self, number: int) -> tuple[int, int]:
        """Return the revision of a command's state, and the difference of a tick."""
        command: Command = self.commands.values[number]
        after = self.commands.of(self.steps.command_later(command))
        found = self.plan.nodes[command.node].revision, (after - number) << self.command_shift
        self._revisions[number] = found
        return found

    def _find_of_data(self, number: int) -> tuple[int, tuple[int, ...]]:
        """Return the difference of a tick, and those of entries that an index shows."""
        data: Data = self.data.values[number]
        shown = [
            data._replace(shown=(*data.shown[:n], item, *data.shown[n + 1 :]))
            for n, item in enumerate(data.items if self.scenario.delayed else ())
            if data.shown[n] != item
        ]
        later = data._replace(until=data.until and data.until - 1)
        found = (
            (self.data.of(later) - number) << self.data_shift,
            tuple((self.data.of(each) - number) << self.data_shift for each in shown),
        )
        self._of_data[number] = found
        return found

    def _find_alone(self, n: int, process: int, revision: int) -> Alone:
        """Return the command's view of a process, the difference of a tick, and those of its own steps."""
        numbers, shift = self.processes[n], self.shifts[n]
        value: Process = numbers.values[process]
        steps = tuple((numbers.of(after) - process) << shift for _, after in self.steps.alone(n, value, revision))
        tick = (numbers.of(self.steps.later(value)) - process) << shift
        found = self._alone[n][process << 8 | revision] = (self.steps.status(value, revision), tick, steps)
        return found

    def _find_with_data(self, n: int, process: int, data: int) -> tuple[int, ...]:
        """Return the differences of a process' writes. Raise ``Violation`` if it reads a wrong value."""
        numbers, shift = self.processes[n], self.shifts[n]
        self._check_process(n, process, data)
        steps = self.steps.with_data(n, numbers.values[process], self.data.values[data])
        found = self._with_data[n][process << DATA | data] = tuple(
            ((numbers.of(after) - process) << shift) + ((self.data.of(stored) - data) << self.data_shift)
            for _, after, stored in steps
        )
        return found

    def _find_of_command(self, key: tuple[int, ...]) -> tuple[tuple[int, bool], ...]:
        """Return the differences of the command's steps. Raise ``Violation`` if anything remains at the end."""
        command, data, *statuses = key
        self._check_end(self.commands.values[command], data)
        steps = self.steps.of_command(self.commands.values[command], self.data.values[data], tuple(statuses))
        found = self._of_command[key] = tuple(
            (
                ((self.commands.of(after) - command) << self.command_shift)
                + ((self.data.of(stored) - data) << self.data_shift),
                forgets,
            )
            for _, after, stored, forgets in steps
        )
        return found

    def _forget(self, state: int, revision: int) -> int:
        """Return the state without the items of silent processes."""
        _, _, processes = self.parts(state)
        for n, process in enumerate(processes):
            numbers = self.processes[n]
            after = numbers.of(self.steps.forgotten(numbers.values[process], revision))
            state += (after - process) << self.shifts[n]
        return state

    # Checks.

    def is_end(self, command: int) -> bool:
        """Return whether the command has ended, or named two items of one value."""
        found = self.commands.values[command]
        return self.plan.nodes[found.node].kind == "end" or found.seen == NAMED

    def _check_end(self, command: Command, data: int) -> None:
        node = self.plan.nodes[command.node]
        if node.kind == "end":
            check_end(self.data.values[data], self.scenario.changes, self.plan.vectors[node.revision])

    def _check_process(self, n: int, process: int, data: int) -> None:
        for revision in self.steps.live(n, self.processes[n].values[process]):
            found = self.steps.meaning(n, revision)
            if found is not None:
                try:
                    check_reads(self.data.values[data], found, self.scenario.delayed)
                except Violation as error:
                    raise Violation(f"process {n} under {revision} {error}") from None

    # Explorations.

    def explore(self, most: int = 20_000_000) -> Found:
        """Visit every state."""
        first = self.first()
        seen, level = {first}, [first]
        while level:
            following = []
            for state in level:
                try:
                    for after in self.successors(state):
                        if after not in seen:
                            seen.add(after)
                            following.append(after)
                except Violation as error:
                    return Found(len(seen), str(error), tuple(self._history(state)))
            if len(seen) > most:
                return Found(len(seen), is_complete=False)
            level = following
        return Found(len(seen), stuck=self._stuck(seen))

    def _stuck(self, seen: set[int]) -> int:
        """Return from how many states the command does not end, though it and time alone take steps."""
        good: set[int] = set()
        stuck = 0
        for state in seen:
            path = []
            while state not in good:
                path.append(state)
                if self.is_end(state >> self.command_shift):
                    break
                after = self._quiet(state)
                if after == state:
                    stuck += 1
                    break
                state = after
            good.update(path)
        return stuck

    def _quiet(self, state: int) -> int:
        """Return the state after a step of the command or of time, and the end if it waits for an unfenced process."""
        command, data, processes = self.parts(state)
        revision, tick = self._revisions[command]
        records = [self._alone[n][process << 8 | revision] for n, process in enumerate(processes)]
        steps = self._of_command[(command, data, *(record[0] for record in records))]
        if steps:
            after, forgets = state + steps[0][0], steps[0][1]
            return self._forget(after, revision) if forgets else after
        tick += self._of_data[data][0] + sum(record[1] for record in records)
        if not tick and any(record[0] == UNFENCED for record in records):
            return self.commands.of(Command(len(self.plan.nodes) - 1)) << self.command_shift
        return state + tick

    def _history(self, last: int) -> Iterator[str]:
        """Yield the lines of a shortest history to a state."""
        first = self.first()
        before: dict[int, int] = {first: -1}
        level = [first]
        while last not in before:
            following = []
            for state in level:
                for after in self.successors(state):
                    if after not in before:
                        before[after] = state
                        following.append(after)
            level = following
        path = [last]
        while before[path[-1]] >= 0:
            path.append(before[path[-1]])
        for state, after in zip(path[:0:-1], path[-2::-1], strict=True):
            yield self.line(state, after)

    def line(self, state: int, after: int) -> str:
        """Return the line of a step."""
        command, data, processes = self.parts(state)
        revision = self.plan.nodes[self.commands.values[command].node].revision
        now, then = self.parts(after), self.commands.values[command]
        statuses = tuple(self._alone[n][p << 8 | revision][0] for n, p in enumerate(processes))
        for text, moved, stored, _ in self.steps.of_command(then, self.data.values[data], statuses):
            if now[:2] == (self.commands.of(moved), self.data.of(stored)):
                return text
        for n, process in enumerate(processes):
            value = self.processes[n].values[process]
            who = f"{('old', 'new')[self.scenario.codes[n]]}{n}"
            steps = [(text, moved, self.data.values[data]) for text, moved in self.steps.alone(n, value, revision)]
            for text, moved, stored in [*steps, *self._written(n, value, data)]:
                others = all(a == b for m, (a, b) in enumerate(zip(now[2], processes, strict=True)) if m != n)
                if others and now[2][n] == self.processes[n].of(moved) and now[:2] == (command, self.data.of(stored)):
                    return f"{who} {text}"
        return "the index shows an entry" if self.scenario.delayed and now[1] != data else "a tick"

    def _written(self, n: int, value: Process, data: int) -> list[tuple[str, Process, Data]]:
        try:
            return list(self.steps.with_data(n, value, self.data.values[data]))
        except Violation:
            return []

    def walk(self, choose: random.Random, longest: int = 100) -> Found:
        """Follow one random history until the command has ended without open requests, or up to a number of steps.

        The command takes a step more often than each of the others does, so that most histories end.
        """
        state, path = self.first(), []
        try:
            for _ in range(longest):
                path.append(state)
                steps = self.successors(state)
                if not steps:
                    break
                state = steps[0] if choose.random() < 0.2 else choose.choice(steps)
        except Violation as error:
            lines = [self.line(a, b) for a, b in pairwise(path)]
            return Found(len(path), str(error), tuple(lines))
        return Found(len(path), is_complete=self.is_end(state >> self.command_shift))
