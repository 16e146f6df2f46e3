"""The steps of each process, of the command and of time, each with its line of a history."""

from __future__ import annotations

from collections.abc import Iterator

from tests.protocol.machine import Command, Node, Pending, Plan, Process, Scenario, Write
from tests.protocol.meaning import Meaning
from tests.protocol.stored import REWRITES, Data, Violation, carried_out, changed, pass_of, read

#: How the command sees a process: without an item, answered, silent, or silent and without the fence.
ABSENT, ANSWERED, SILENT, UNFENCED = 0, 1, 2, 3
#: How many ticks an object's own time may lie in the future.
AHEAD = 1
#: What a pass has seen that found two items with one value: an operator has to decide.
NAMED = "named"


class Steps:
    """The steps of one scenario. Each is pure: it depends on its arguments only, so that it is computed once."""

    def __init__(self, scenario: Scenario, plan: Plan | None = None) -> None:
        self.scenario, self.rules = scenario, scenario.rules
        self.plan = plan or Plan(scenario.changes, scenario.turns)
        self.meanings = [
            [scenario.meant(scenario.changes, vector, code) for code in (0, 1)] for vector in self.plan.vectors
        ]

    def meaning(self, number: int, revision: int) -> Meaning | None:
        """Return what the process of this number does under a revision, or ``None`` if it is refused."""
        return self.meanings[revision][self.scenario.codes[number]]

    def live(self, number: int, process: Process) -> Iterator[int]:
        """Yield the revisions that a process may read by: a late read of an unfenced one is answered."""
        if process.fence == "ended":
            return
        always = process.fence != "yes" or not self.rules.fence
        if process.bound >= 0 and (always or process.lease):
            yield process.bound
        pending = process.pending
        if pending and pending.revision != process.bound and (always or pending.lease):
            yield pending.revision

    # A process by itself.

    def alone(self, number: int, process: Process, revision: int) -> Iterator[tuple[str, Process]]:
        """Yield the steps of a process that depend on the table's revision only."""
        if process.fence == "ended":
            return
        yield from self._ask(process, revision)
        if process.hand is not None:
            yield from self._act(process, *process.hand)
        yield from self._lose_the_fence(number, process)

    def _ask(self, process: Process, revision: int) -> Iterator[tuple[str, Process]]:
        scenario, rules = self.scenario, self.rules
        longest = scenario.lease + rules.skew
        if not process.believes and process.hand is None and rules.registers_first:
            # What happens between the two has no effect: a process without a binding only keeps the command waiting.
            registered = process._replace(believes=True, item=-1, is_clear=False, hand=(revision, longest))
            yield f"registers, and asks: revision {revision}", registered
        if scenario.short and process.hand is None and process.fence == "yes":
            short = scenario.short + rules.skew
            if process.bound != revision or process.lease < short:
                gone = process._replace(bound=revision, lease=short)
                yield f"cannot write its presence item, and goes by {revision} for a short lease", gone
        if process.hand is not None or not (process.believes or not rules.registers_first):
            return
        if process.bound == revision or (process.item == revision and process.bound < 0):
            if process.item == revision and process.lease < longest:
                yield f"renews {revision}", process._replace(bound=revision, lease=longest)
        else:
            yield f"asks: revision {revision}", process._replace(hand=(revision, longest))

    def _act(self, process: Process, revision: int, lease: int) -> Iterator[tuple[str, Process]]:
        rules = self.rules
        if not rules.registers_first:
            gone = process._replace(believes=True, item=revision, is_clear=True, bound=revision, lease=lease, hand=None)
            yield f"registers, and goes by {revision}", gone
        elif process.item is None:
            yield "finds itself forgotten", process._replace(believes=False, hand=None)
        elif not rules.closes_older_first and process.item != revision and process.bound >= 0:
            yield (
                f"says that it goes by {revision}",
                process._replace(item=revision, is_clear=self._is_clear(process, revision)),
            )
        else:
            clear = process.is_clear if process.item == revision else self._is_clear(process, revision)
            gone = process._replace(item=revision, is_clear=clear, bound=revision, lease=lease, hand=None)
            yield f"says that it goes by {revision}, and does", gone

    def _is_clear(self, process: Process, revision: int) -> bool:
        is_over = process.pending is None or process.pending.revision == revision
        return is_over or not self.rules.answers_when_older_ended

    def _lose_the_fence(self, number: int, process: Process) -> Iterator[tuple[str, Process]]:
        if number != self.scenario.unfenced:
            return
        if process.fence == "yes" and process.item is not None and process.bound >= 0:
            said = self.rules.says_unfenced
            yield "goes on without the fence", process._replace(fence="no" if said else "secret")
        if process.fence == "no" and process.pending is None:
            yield "ends, and removes its presence item", Process(fence="ended", budget=0)

    # A process and the data.

    def with_data(self, number: int, process: Process, data: Data) -> Iterator[tuple[str, Process, Data]]:
        """Yield the steps of a process that depend on what is stored."""
        if process.fence == "ended":
            return
        if process.pending is None:
            yield from self._prepare(number, process, data)
        else:
            yield from self._arrive(number, process, process.pending, data)

    def _prepare(self, number: int, process: Process, data: Data) -> Iterator[tuple[str, Process, Data]]:
        if not process.budget or process.bound < 0 or not process.lease:
            return
        meaning = self.meaning(number, process.bound)
        if meaning is None:
            return
        for each in self.scenario.operations:
            operation = each
            if each.kind == "save":
                item = data.items[each.item]
                if item is None:
                    continue
                operation = each._replace(seen=read(item, meaning))
            if data.until is not None:
                operation = each._replace(is_later=data.until <= AHEAD)
            if each.argument and not data.claims:
                operation = operation._replace(argument=each.argument + number)
            pending = Pending(operation, process.bound, process.lease)
            prepared = process._replace(pending=pending, budget=process.budget - 1)
            yield f"prepares {each.kind} {each.item} under {process.bound}", prepared, data

    def _arrive(
        self, number: int, process: Process, pending: Pending, data: Data
    ) -> Iterator[tuple[str, Process, Data]]:
        over = self.over(process)
        what = f"{pending.operation.kind} {pending.operation.item} of {pending.revision}"
        if pending.lost == 2:
            yield f"the second attempt of {what} is recognized", over, data
            return
        meaning = self.meaning(number, pending.revision)
        assert meaning is not None
        after = carried_out(data, meaning, pending.operation)
        if after is None:
            yield f"{what} is refused by its condition", over, data
            return
        if process.is_repeated:
            raise Violation(f"{what} is carried out twice")
        yield f"{what} is done", over, after
        if self.scenario.unanswered and not pending.lost:
            yield f"{what} is lost", process._replace(pending=pending._replace(lost=1)), data
            yield f"{what} is done, its response is lost", process._replace(pending=pending._replace(lost=2)), after

    def over(self, process: Process) -> Process:
        """Return a process whose request is over: its item says as soon as possible that nothing older is under way."""
        is_clear = process.is_clear or process.item not in (None, -1)
        return process._replace(pending=None, is_clear=is_clear)

    # Time.

    def later(self, process: Process) -> Process:
        """Return a process after a tick. The fence refuses what is too late, and the operation begins again."""
        lease = max(0, process.lease - 1)
        hand = process.hand and (process.hand[0], process.hand[1] - 1)
        process = process._replace(lease=lease, hand=hand if hand and hand[1] > 0 else None)
        is_fenced = process.fence == "yes" and self.rules.fence
        pending = process.pending
        if pending is not None:
            pending = pending._replace(lease=max(0, pending.lease - 1))
            process = process._replace(pending=pending)
            if not pending.lease and is_fenced and self.rules.dates_stay:
                process = self._refused(process, pending)
        if not lease and is_fenced:
            process = process._replace(bound=-1)
        return process

    def _refused(self, process: Process, pending: Pending) -> Process:
        """The first attempt's refusal proves that nothing happened; that of a second one proves nothing."""
        over = self.over(process)
        again = over._replace(budget=process.budget + 1)
        if not pending.lost:
            return again
        if self.scenario.tokens:
            return self._same_token(again, over, pending)
        if self.rules.unknown_stays_unknown:
            return over
        return again._replace(is_repeated=pending.lost == 2)

    def _same_token(self, again: Process, over: Process, pending: Pending) -> Process:
        """The server knows the token of a transaction that it has carried out, for ten minutes."""
        if pending.lost == 1:
            return again
        return over if self.rules.tokens_end else again._replace(is_repeated=True)

    def command_later(self, command: Command) -> Command:
        """Return the command after a tick."""
        late = command.late and command.late._replace(lease=command.late.lease - 1)
        late = late if late is not None and late.lease > 0 else None
        return command._replace(timer=max(0, command.timer - 1), late=late)

    # The command.

    def status(self, process: Process, revision: int) -> int:
        """Return how the command sees a process."""
        if process.item is None:
            return ABSENT
        if process.item == revision and process.is_clear:
            return ANSWERED
        return UNFENCED if process.fence == "no" and self.rules.waits_for_unfenced else SILENT

    def forgotten(self, process: Process, revision: int) -> Process:
        """Return a process whose item the command has removed, if it is silent."""
        if self.status(process, revision) != SILENT:
            return process
        return process._replace(item=None, is_clear=False)

    def of_command(
        self, command: Command, data: Data, statuses: tuple[int, ...]
    ) -> Iterator[tuple[str, Command, Data, bool]]:
        """Yield the command's steps; the last value says whether it forgets who is silent."""
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
        """Yield the steps of a run that is stopped with a write under way, while this one goes on."""
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
        """Whether it matters that a run is new: only if its first bump does not wait."""
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
