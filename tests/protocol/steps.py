"""The steps of each process, each with its line of a history."""

from __future__ import annotations

from collections.abc import Iterator

from tests.protocol.command import AHEAD, CommandSteps
from tests.protocol.machine import Pending, Process
from tests.protocol.meaning import Meaning
from tests.protocol.stored import Data, Violation, carried_out, read


class Steps(CommandSteps):
    """All steps of one scenario. Each is pure and computed once: it depends only on its arguments."""

    def meaning(self, number: int, revision: int) -> Meaning | None:
        """Return the behavior of the process with this number under a revision, or ``None`` if it is blocked."""
        return self.meanings[revision][self.scenario.codes[number]]

    def live(self, number: int, process: Process) -> Iterator[int]:
        """Yield the revisions that a process may read with: a late read of an unfenced one succeeds."""
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
        pending = process.pending
        is_over = pending is None or pending.revision == process.item
        if process.item not in (None, -1) and not process.is_clear and is_over:
            yield "says that nothing older is under way", process._replace(is_clear=True)
        if self.scenario.expiring and process.item is not None and not process.lease and process.hand is None:
            expired = process._replace(item=None, is_clear=False)
            if self.rules.notices_expiry:
                expired = expired._replace(believes=False, said=-1)
            yield "is silent for days, and its presence item expires", expired

    def _ask(self, process: Process, revision: int) -> Iterator[tuple[str, Process]]:
        scenario, rules = self.scenario, self.rules
        longest = scenario.lease + rules.skew
        if not process.believes and process.hand is None and rules.registers_first:
            # Events between the two have no effect: a process without a binding only makes the command wait.
            registered = process._replace(believes=True, item=-1, said=-1, is_clear=False, hand=(revision, longest))
            yield f"registers, and asks: revision {revision}", registered
        if scenario.short and process.hand is None and process.fence == "yes":
            short = scenario.short + rules.skew
            if process.bound != revision or process.lease < short:
                gone = process._replace(bound=revision, lease=short)
                yield f"cannot write its presence item, and goes by {revision} for a short lease", gone
        if process.hand is not None or not (process.believes or not rules.registers_first):
            return
        if process.bound == revision or (process.said == revision and process.bound < 0):
            if process.said == revision and process.lease < longest:
                yield f"renews {revision}", process._replace(bound=revision, lease=longest)
        else:
            yield f"asks: revision {revision}", process._replace(hand=(revision, longest))

    def _act(self, process: Process, revision: int, lease: int) -> Iterator[tuple[str, Process]]:
        rules = self.rules
        if not rules.registers_first:
            gone = process._replace(
                believes=True, item=revision, said=revision, is_clear=True, bound=revision, lease=lease, hand=None
            )
            yield f"registers, and goes by {revision}", gone
        elif process.item is None:
            yield "finds itself forgotten", process._replace(believes=False, said=-1, hand=None)
        elif not rules.closes_older_first and process.item != revision and process.bound >= 0:
            yield (
                f"says that it goes by {revision}",
                process._replace(item=revision, is_clear=self._is_clear(process, revision)),
            )
        else:
            clear = process.is_clear if process.item == revision else self._is_clear(process, revision)
            gone = process._replace(
                item=revision, said=revision, is_clear=clear, bound=revision, lease=lease, hand=None
            )
            yield f"says that it goes by {revision}, and does", gone

    def _is_clear(self, process: Process, revision: int) -> bool:
        pending = process.pending
        is_over = pending is None or pending.revision == revision
        if pending is not None and pending.lost == 3 and not self.rules.waits_for_unanswered:
            is_over = True
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
        """Yield the steps of a process that depend on stored values."""
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
        if pending.lost == 3:
            after = carried_out(data, self.meanings[pending.revision][self.scenario.codes[number]], pending.operation)
            yield f"the attempt of {what} that was given up arrives", over, data if after is None else after
            return
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
            given_up = process._replace(pending=pending._replace(lost=3))
            if not self.rules.waits_for_unanswered:
                given_up = self.over(given_up)._replace(pending=given_up.pending)
            yield f"{what} is given up without an answer", given_up, data
            yield f"{what} is lost", process._replace(pending=pending._replace(lost=1)), data
            yield f"{what} is done, its response is lost", process._replace(pending=pending._replace(lost=2)), after

    def over(self, process: Process) -> Process:
        """Return a process after its request: its item reports as soon as possible that there are no older ones."""
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
        """The first attempt's error proves that nothing happened; a second one's proves nothing."""
        over = process._replace(pending=None)
        again = over._replace(budget=process.budget + 1)
        if not pending.lost:
            return again
        if pending.lost < 3 and not self.rules.keeps_its_date:
            # The same token again: the server executes a transaction once, though not necessarily in time.
            return process._replace(pending=pending._replace(lease=self.scenario.lease))
        if self.rules.unknown_stays_unknown:
            return over
        return again._replace(is_repeated=pending.lost == 2) if pending.lost < 3 else over
