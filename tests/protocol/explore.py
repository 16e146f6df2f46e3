"""Every state of a scenario, breadth first, with the shortest history of a violation.

A state is one integer: the numbers of the command, of the data and of each process. Each part's steps are computed once
for what they depend on, and are kept as differences of that integer.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from tests.protocol.machine import Command, Process, Scenario
from tests.protocol.steps import NAMED, UNFENCED, Steps
from tests.protocol.stored import Data, Violation, check_end, check_reads, first_data

#: Bits of a state for the number of each process, and for that of the data.
PROCESS, DATA = 18, 24


class Found(NamedTuple):
    """What an exploration found. ``stuck`` is how many states the command cannot end from."""

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
        self._alone: list[dict[int, tuple[int, ...]]] = [{} for _ in scenario.codes]
        self._with_data: list[dict[int, tuple[int, ...]]] = [{} for _ in scenario.codes]
        self._later: list[dict[int, int]] = [{} for _ in scenario.codes]
        self._command_later: dict[int, int] = {}
        self._data_later: dict[int, int] = {}
        self._of_command: dict[tuple[int, ...], tuple[tuple[int, bool], ...]] = {}
        self._status: list[dict[int, int]] = [{} for _ in scenario.codes]
        self._is_checked: set[int] = set()
        self._showing: dict[int, tuple[int, ...]] = {}

    def first(self) -> int:
        """Return the first state: nobody has registered, and nothing has begun."""
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
        mask = (1 << PROCESS) - 1
        data = state >> self.data_shift & ((1 << DATA) - 1)
        return state >> self.command_shift, data, [state >> shift & mask for shift in self.shifts]

    # Successors: first the command's, then a tick, then those of the processes.

    def successors(self, state: int) -> list[int]:
        """Return all states one step later; raises ``Violation``."""
        mask = (1 << PROCESS) - 1
        command = state >> self.command_shift
        data = state >> self.data_shift & ((1 << DATA) - 1)
        revision = self.plan.nodes[self.commands.values[command].node].revision
        found = self._quiet(state, command, data, revision)
        for n, shift in enumerate(self.shifts):
            process = state >> shift & mask
            key = process << 8 | revision
            steps = self._alone[n].get(key)
            if steps is None:
                steps = self._find_alone(n, process, revision, key)
            for step in steps:
                found.append(state + step)
            key = process << DATA | data
            steps = self._with_data[n].get(key)
            if steps is None:
                steps = self._find_with_data(n, process, data, key)
            for step in steps:
                found.append(state + step)
        if self.scenario.delayed:
            found.extend(state + step for step in self._show(data))
        return found

    def _quiet(self, state: int, command: int, data: int, revision: int) -> list[int]:
        """The steps of the command and of time."""
        mask = (1 << PROCESS) - 1
        statuses, tick = [], self._command_later.get(command)
        if tick is None:
            tick = self._find_command_later(command)
        if data not in self._data_later:
            self._find_data_later(data)
        tick += self._data_later[data]
        for n, shift in enumerate(self.shifts):
            process = state >> shift & mask
            status = self._status[n].get(process << 8 | revision)
            if status is None:
                status = self.steps.status(self.processes[n].values[process], revision)
                self._status[n][process << 8 | revision] = status
            statuses.append(status)
            later = self._later[n].get(process)
            if later is None:
                later = self._find_later(n, process)
            tick += later
        key = (command, data, *statuses)
        steps = self._of_command.get(key)
        if steps is None:
            steps = self._find_of_command(key)
        found = [state + step if not forgets else self._forget(state + step, revision) for step, forgets in steps]
        if tick:
            found.append(state + tick)
        return found

    def _find_alone(self, n: int, process: int, revision: int, key: int) -> tuple[int, ...]:
        numbers, shift = self.processes[n], self.shifts[n]
        steps = self.steps.alone(n, numbers.values[process], revision)
        found = self._alone[n][key] = tuple((numbers.of(after) - process) << shift for _, after in steps)
        return found

    def _find_with_data(self, n: int, process: int, data: int, key: int) -> tuple[int, ...]:
        numbers, shift = self.processes[n], self.shifts[n]
        steps = self.steps.with_data(n, numbers.values[process], self.data.values[data])
        found = self._with_data[n][key] = tuple(
            ((numbers.of(after) - process) << shift) + ((self.data.of(stored) - data) << self.data_shift)
            for _, after, stored in steps
        )
        return found

    def _find_later(self, n: int, process: int) -> int:
        after = self.steps.later(self.processes[n].values[process])
        found = self._later[n][process] = (self.processes[n].of(after) - process) << self.shifts[n]
        return found

    def _find_command_later(self, number: int) -> int:
        command = self.commands.values[number]
        after = command._replace(timer=max(0, command.timer - 1))
        found = self._command_later[number] = (self.commands.of(after) - number) << self.command_shift
        return found

    def _find_data_later(self, number: int) -> None:
        data: Data = self.data.values[number]
        after = data._replace(until=data.until and data.until - 1)
        self._data_later[number] = (self.data.of(after) - number) << self.data_shift

    def _find_of_command(self, key: tuple[int, ...]) -> tuple[tuple[int, bool], ...]:
        command, data, *statuses = key
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
        """Return the state after the items of silent processes are removed."""
        _, _, processes = self.parts(state)
        for n, process in enumerate(processes):
            numbers = self.processes[n]
            after = numbers.of(self.steps.forgotten(numbers.values[process], revision))
            state += (after - process) << self.shifts[n]
        return state

    def _show(self, number: int) -> tuple[int, ...]:
        found = self._showing.get(number)
        if found is None:
            data: Data = self.data.values[number]
            shown = [
                data._replace(shown=(*data.shown[:n], item, *data.shown[n + 1 :]))
                for n, item in enumerate(data.items)
                if data.shown[n] != item
            ]
            found = tuple((self.data.of(each) - number) << self.data_shift for each in shown)
            self._showing[number] = found
        return found

    # Checks.

    def is_end(self, command: int) -> bool:
        """Return whether the command has ended, or named two items of one value."""
        found = self.commands.values[command]
        return self.plan.nodes[found.node].kind == "end" or found.seen == NAMED

    def check(self, state: int) -> None:
        """Raise ``Violation`` if a read by any live binding is wrong, or something is left at the end."""
        mask = (1 << PROCESS) - 1
        command = state >> self.command_shift
        data = state >> self.data_shift & ((1 << DATA) - 1)
        for n, shift in enumerate(self.shifts):
            key = (data << PROCESS | state >> shift & mask) << 2 | n
            if key not in self._is_checked:
                self._check_process(n, state >> shift & mask, data)
                self._is_checked.add(key)
        if self.is_end(command):
            found = self.commands.values[command]
            if found.seen != NAMED:
                revision = self.plan.nodes[found.node].revision
                check_end(self.data.values[data], self.scenario.changes, self.plan.vectors[revision])

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
                    self.check(state)
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
                command, data, processes = self.parts(state)
                if self.is_end(command):
                    break
                revision = self.plan.nodes[self.commands.values[command].node].revision
                steps = self._quiet(state, command, data, revision)
                if not steps:
                    waits = any(self._status[n][p << 8 | revision] == UNFENCED for n, p in enumerate(processes))
                    stuck += not waits
                    break
                state = steps[0]
            good.update(path)
        return stuck

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
        statuses = tuple(self._status[n][p << 8 | revision] for n, p in enumerate(processes))
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

    def walk(self, choose: random.Random, longest: int = 200) -> Found:
        """Follow one random history to its end, or for so many steps."""
        state, path = self.first(), []
        try:
            for _ in range(longest):
                path.append(state)
                self.check(state)
                steps = self.successors(state)
                if not steps:
                    break
                state = choose.choice(steps)
        except Violation as error:
            lines = [self.line(a, b) for a, b in pairwise(path)]
            return Found(len(path), str(error), tuple(lines))
        return Found(len(path))
