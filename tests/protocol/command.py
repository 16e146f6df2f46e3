"""The steps of the command and of time, each with its line of a history."""

from __future__ import annotations

from collections.abc import Iterator

from tests.protocol.machine import Command, Node, Plan, Process, Scenario, Write
from tests.protocol.stored import REWRITES, Data, changed, pass_of

#: The command's view of a process: without an item, up to date, silent, silent without the fence, or on the revision
#: with older requests.
ABSENT, ANSWERED, SILENT, UNFENCED, BUSY = 0, 1, 2, 3, 4
#: The number of ticks that an object's time may be in the future.
AHEAD = 1
#: A pass that found two items with one value: an operator has to decide.
NAMED = "named"


class CommandSteps:
    """The steps of the command of one scenario."""

    def __init__(self, scenario: Scenario, plan: Plan | None = None) -> None:
        self.scenario, self.rules = scenario, scenario.rules
        self.plan = plan or Plan(scenario.changes, scenario.turns, self.rules.turns_by_bump)
        self.meanings = [
            [scenario.meant(scenario.changes, vector, code) for code in (0, 1)] for vector in self.plan.vectors
        ]

    def command_later(self, command: Command) -> Command:
        """Return the command after a tick."""
        late = command.late and command.late._replace(lease=command.late.lease - 1)
        late = late if late is not None and late.lease > 0 else None
        return command._replace(timer=max(0, command.timer - 1), late=late)

    def status(self, process: Process, revision: int) -> int:
        """Return how the command sees a process."""
        if process.item is None:
            return ABSENT
        if process.item == revision and process.is_clear:
            return ANSWERED
        if process.fence == "no" and self.rules.waits_for_unfenced:
            return UNFENCED
        return BUSY if process.item == revision and self.rules.forgets_only_older else SILENT

    def forgotten(self, process: Process, revision: int) -> Process:
        """Return a process whose item the command has removed, if it is silent."""
        if self.status(process, revision) != SILENT:
            return process
        said = process.said if process.said == revision else -1  # its former reports never count again
        return process._replace(item=None, said=said, is_clear=False)

    def of_command(
        self, command: Command, data: Data, statuses: tuple[int, ...]
    ) -> Iterator[tuple[str, Command, Data, bool]]:
        """Yield the command's steps; the last value is whether it forgets silent processes."""
        node = self.plan.nodes[command.node]
        moved = command._replace(node=command.node + 1, at=0, seen=None)
        if node.kind == "wait":
            yield from self._wait(node, command, moved, data, statuses)
        elif node.kind == "bump":
            timer = self.scenario.lease + self.rules.margin
            to = self.plan.nodes[moved.node].revision
            if any(each.aspect == "schedule" for each in self.scenario.changes):
                data = data._replace(until=timer + AHEAD * self.rules.allows_for_the_future)
            yield f"the table says {to}", moved._replace(timer=timer, is_new=False), data, False
        elif node.kind == "pass" and command.seen != NAMED:
            for line, after, changed_data in self._pass(node, command, moved, data):
                yield line, after, changed_data, False
        if node.turn >= 0:
            turned = Command(node.turn, timer=command.timer, is_new=self._tells_new, late=command.late)
            yield "a new run goes the other way", turned, data, False
        is_resumed = node.kind == "wait" and node.work == "bump" and not command.is_new and self._tells_new
        if is_resumed:
            yield "the run is killed, and begun again", command._replace(is_new=True), data, False

        if self.scenario.commands:
            for line, after, stored in self._late(node, command, data):
                yield line, after, stored, False

    def _late(self, node: Node, command: Command, data: Data) -> Iterator[tuple[str, Command, Data]]:
        """Yield the steps of a stopped run with a running write, next to this one."""
        late = command.late
        if late is not None:
            over = command._replace(late=None)
            written = self._carried_out_late(late, data)
            yield f"the late write of {self.plan.nodes[late.node].work} {late.at} arrives", over, written
        elif node.kind == "pass" and command.seen != NAMED:
            is_rewrite = pass_of(self.scenario.changes[node.change], node.work) == "rewrite"
            if command.seen is not None if is_rewrite else bool(data.claims):
                lease = self.scenario.lease + self.rules.skew
                late = Write(command.node, command.at, command.seen, lease)
                yield "the run is stopped, and another one takes over", command._replace(seen=None, late=late), data

    def _carried_out_late(self, late: Write, data: Data) -> Data:
        """Return the data after a late write, which has the condition of its pass."""
        node = self.plan.nodes[late.node]
        if late.seen is None:
            kind = pass_of(self.scenario.changes[node.change], node.work)
            return _FOR_CLAIMS[kind](data, late.at) or data
        if data.items[late.at] != late.seen:
            return data
        return self._rewritten(node, late.at, data)

    @property
    def _tells_new(self) -> bool:
        """Return whether a new run matters: only if its first bump does not wait."""
        return not self.rules.waits_before_first_bump

    def _wait(
        self, node: Node, command: Command, moved: Command, data: Data, statuses: tuple[int, ...]
    ) -> Iterator[tuple[str, Command, Data, bool]]:
        rules = self.rules
        is_left_out = not (rules.waits_before_bump if node.work == "bump" else rules.waits_before_pass)
        if is_left_out or (command.is_new and node.work == "bump"):
            yield "nothing is waited for", moved, data, False
            return
        is_long = command.timer <= self.scenario.lease - self.scenario.short or not rules.waits_at_least
        is_alone = command.late is None or not rules.waits_for_commands
        if is_long and is_alone and all(each in (ABSENT, ANSWERED) for each in statuses):
            yield "all have answered", moved, data, False
        elif not command.timer and UNFENCED not in statuses and rules.forgets_silent:
            yield "all leases of before have ended", moved, data, True

    def _pass(self, node: Node, command: Command, moved: Command, data: Data) -> Iterator[tuple[str, Command, Data]]:
        change = self.scenario.changes[node.change]
        kind = pass_of(change, node.work)
        size = {"rewrite": len(data.items), "take": len(data.items), "count": 1}.get(kind, max(len(data.claims), 1))
        if kind == "needless" and not self.rules.drops_needless:
            size = 0
        if command.at >= size:
            yield f"the pass {node.work} has nothing to do", moved, data
            return
        steps = {"rewrite": self._rewrite, "count": self._count}.get(kind, self._over_claims)
        for line, after, stored in steps(node, command, data):
            yield line, moved if after.at >= size else after, stored

    def _over_claims(self, node: Node, command: Command, data: Data) -> Iterator[tuple[str, Command, Data]]:
        after = _FOR_CLAIMS[pass_of(self.scenario.changes[node.change], node.work)](data, command.at)
        if after is None:
            yield "two items have one value: named", command._replace(seen=NAMED), data
        else:
            yield f"{node.work} {command.at}", command._replace(at=command.at + 1), after

    def _rewrite(self, node: Node, command: Command, data: Data) -> Iterator[tuple[str, Command, Data]]:
        item = data.items[command.at]
        if command.seen is None:
            if item is None:
                yield f"nothing at {command.at}", command._replace(at=command.at + 1), data
            else:
                yield f"{node.work} reads {command.at}", command._replace(seen=item), data
            return
        if item is None or item != command.seen:
            yield f"{command.at} has changed: again", command._replace(seen=None), data
            return
        data = self._rewritten(node, command.at, data)
        yield f"{node.work} writes {command.at}", command._replace(at=command.at + 1, seen=None), data

    def _rewritten(self, node: Node, at: int, data: Data) -> Data:
        """Return the data after a pass has written an item."""
        item = data.items[at]
        assert item is not None
        changes, change = self.scenario.changes, self.scenario.changes[node.change]
        work = REWRITES[change.aspect, node.work]
        after = work(item, change, self.plan.vectors[node.revision], changes)
        data = data._replace(items=changed(data.items, at, after))
        if change.aspect == "nothing":  # such a pass is a writer as any other
            data = data._replace(truth=changed(data.truth, at, after.names[0]))
        if change.aspect == "value":
            data = data._replace(values=changed(data.values, at, after.value))
        return data

    def _count(self, node: Node, command: Command, data: Data) -> Iterator[tuple[str, Command, Data]]:
        """Mark the object, count what refers to it one by one, and write the number if the mark is there."""
        if command.seen is None:
            yield "marks the number", command._replace(seen=(0, 0)), data._replace(mark=True)
            return
        at, count = command.seen
        if at < len(data.items):
            count += data.items[at] is not None
            yield f"counts {at}", command._replace(seen=(at + 1, count)), data
        elif data.mark or not self.rules.counts_under_mark:
            yield f"writes {count}", command._replace(at=1, seen=None), data._replace(number=count, mark=False)
        else:
            yield "the mark is gone: again", command._replace(seen=None), data


def _take(data: Data, number: int) -> Data | None:
    """Take an item's claim, in a transaction that checks the item. ``None`` if another item has it."""
    item = data.items[number]
    value = None if item is None else item.names[0]
    if value is None:
        return data
    if data.claims[value] not in (None, number):
        return None
    return data._replace(claims=changed(data.claims, value, number))


def _drop_needless(data: Data, value: int) -> Data:
    """Delete a claim if its item does not have the value, in a transaction that checks the item."""
    owner = data.claims[value]
    item = None if owner is None else data.items[owner]
    if owner is None or (item is not None and item.names[0] == value):
        return data
    return data._replace(claims=changed(data.claims, value, None))


def _release(data: Data, value: int) -> Data:
    return data._replace(claims=changed(data.claims, value, None))


def _forget_number(data: Data, at: int) -> Data:
    return data._replace(number=None, mark=False)


_FOR_CLAIMS = {"take": _take, "needless": _drop_needless, "release": _release, "forget": _forget_number}
