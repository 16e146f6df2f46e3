"""Writing many objects in transactions: as many together as one takes, and each of these wholly or not at all.

An object joins a transaction by the same function that writes it by itself. This module must not know what is written.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from dynamo_single.exceptions import (
    ConditionFailed,
    DynamoSingleError,
    MissingReference,
    SourceChanged,
    StaleObject,
    TransactionCancelled,
)
from dynamo_single.orm.effects import sending
from dynamo_single.orm.requests import block as pending
from dynamo_single.orm.requests.actions import Check
from dynamo_single.orm.requests.block import Block, Entry
from dynamo_single.orm.requests.compiler import compile_action
from dynamo_single.table.flow import Flow
from dynamo_single.table.limits import MAX_ACTIONS, MAX_TRANSACTION_SIZE

#: Writes one object, or leaves it to a block; tells how many objects of which model were written.
Write = Callable[[Any, Block | None], Flow[Mapping[str, int]]]

#: Refusals by what another writer did meanwhile: by itself, an object knows how to go on.
_AGAIN = (StaleObject, SourceChanged, MissingReference)


class Outcome(Struct, frozen=True):
    """What became of one object: how many were written of which model, or the error.

    One that was not ``tried`` was to be written together with another one that could not be.
    """

    pk: Any
    counts: Mapping[str, int]
    error: DynamoSingleError | None = None
    tried: bool = True


class Writing(Struct):
    """How objects are written: by ``write``, which sends one's write or leaves it to the block that it is given.

    ``leaves_out`` tells of an object, and the error of its refused action, whether the others go on without it.
    ``room`` is how many probably fit into one transaction, by the last one that was put together.
    """

    write: Write
    pk: Callable[[Any], Any]
    leaves_out: Callable[[Any, DynamoSingleError], bool] = lambda unit, error: False
    room: int = MAX_ACTIONS

    async def alone(self, unit: object, block: Block | None = None) -> Outcome:
        """Write one object by itself, or leave it to a block."""
        try:
            return Outcome(self.pk(unit), await self.write(unit, block))
        except DynamoSingleError as error:
            return Outcome(self.pk(unit), {}, error)

    async def together(self, units: Sequence[object]) -> list[Outcome]:
        """Write objects in as few transactions as they fit into, one after the other; after a failure no more.

        What cannot join others, since it depends on what is not sent yet, begins another transaction; what cannot join
        any is written by itself, and so is an object that another writer has changed meanwhile.
        """
        rest, outcomes = deque(units), list[Outcome]()
        while rest and all(outcome.error is None for outcome in outcomes):
            group = await self._group(rest)
            if not outcomes and len(group.joined) > 1:
                self.room = group.room
            if group.joined:
                outcomes += await self._sent(group, rest)
            else:
                outcomes.append(await self.alone(rest.popleft()))
        return [*outcomes, *(Outcome(self.pk(unit), {}, tried=False) for unit in rest)]

    async def _group(self, rest: deque[object]) -> _Group:
        """The first of some objects that can be written together: they are taken off."""
        group = _Group()
        while rest:
            try:
                if not await group.join(rest[0], self.write):
                    break
            except DynamoSingleError:
                # Where others are pending it may be because of them.
                break
            rest.popleft()
        return group

    async def _sent(self, group: _Group, rest: deque[Any]) -> list[Outcome]:
        """What became of a transaction's objects; those that can be tried again without others are put back."""
        try:
            await group.send()
        except DynamoSingleError as error:
            refused = group.refused(error)
            group.block.discard()
            return await self._refused(group, refused, error, rest)
        return [Outcome(self.pk(each.unit), each.counts, await each.finish()) for each in group.joined]

    async def _refused(
        self,
        group: _Group,
        refused: Mapping[int, DynamoSingleError],
        error: DynamoSingleError,
        rest: deque[object],
    ) -> list[Outcome]:
        if not refused:
            # It is about all of them, and nobody may know whether they are written.
            return [Outcome(self.pk(each.unit), {}, error) for each in group.joined]
        others = [each.unit for each in group.joined if id(each) not in refused]
        outcomes: list[Outcome] = []
        again: list[Any] = []
        for each in group.joined:
            found = refused.get(id(each))
            if found is None:
                continue
            if isinstance(found, _AGAIN):
                again.append(each.unit)
            elif self.leaves_out(each.unit, found):
                outcomes.append(Outcome(self.pk(each.unit), {}))
            else:
                outcomes.append(Outcome(self.pk(each.unit), {}, found))
        while again and all(outcome.error is None for outcome in outcomes):
            outcomes.append(await self.alone(again.pop(0)))
        rest.extendleft(reversed([*again, *others]))
        return outcomes


class _Joined(Struct, frozen=True, eq=False):
    """An object of a transaction: what it added to it, and what is to be done when that is sent."""

    unit: Any
    counts: Mapping[str, int]
    entries: Sequence[Entry]
    callbacks: Sequence[Callable[[], Coroutine[Any, Any, None]]]

    async def finish(self) -> DynamoSingleError | None:
        """Do what follows its write; what went wrong with that."""
        try:
            for callback in self.callbacks:
                await callback()
        except DynamoSingleError as error:
            return error
        return None


class _Group(Struct, eq=False):
    """The objects of one transaction."""

    block: Block = field(default_factory=Block)
    joined: list[_Joined] = field(default_factory=list)

    async def join(self, unit: object, write: Write) -> bool:
        """Let an object's write join; ``False`` if there is no room. Unless it is ``True``, nothing has joined."""
        block, before, called = self.block, len(self.block.entries), len(self.block.callbacks)
        # What is read meanwhile meets what is pending.
        token = pending.enter(block)
        fits = False
        try:
            counts = await write(unit, block)
            fits = len(block.actions()) <= MAX_ACTIONS and not block.is_too_large
        finally:
            pending.leave(token)
            if not fits:
                block.discard(before)
                block.drop_callbacks(called)
        if fits:
            self.joined.append(_Joined(unit, counts, block.entries[before:], block.callbacks[called:]))
        return fits

    @property
    def room(self) -> int:
        """How many objects such as these fit into one transaction."""
        count, actions, size = len(self.joined), len(self.block.actions()), self.block.size
        return max(1, min(count * MAX_ACTIONS // max(actions, 1), count * MAX_TRANSACTION_SIZE // max(size, 1)))

    async def send(self) -> None:
        """Send what has joined, as one request; nothing if there is nothing to write."""
        await sending.commit(self.block)

    def refused(self, error: DynamoSingleError) -> dict[int, DynamoSingleError]:
        """The objects, by their ``id()``, whose actions were refused, or could not be sent, each with its error."""
        owners = {id(entry): each for each in self.joined for entry in each.entries}
        cause, actions = error.__cause__, self.block.actions()
        if isinstance(cause, ConditionFailed):
            ((_, entry),) = actions
            return {id(owners[id(entry)]): error}
        found: dict[int, DynamoSingleError] = {}
        if isinstance(cause, TransactionCancelled):
            for (action, entry), reason in zip(actions, cause.reasons, strict=False):
                if reason is not None and reason.get("Code") == "ConditionalCheckFailed":
                    explained = entry.explain(action, reason.get("Item"))
                    explained.__cause__ = cause
                    if isinstance(explained, DynamoSingleError):
                        found.setdefault(id(owners[id(entry)]), explained)
            return found
        for action, entry in actions if cause is None else ():
            if isinstance(action, Check):
                continue
            try:
                compile_action(action)
            except DynamoSingleError as own:
                return {id(owners[id(entry)]): own}
        return found


async def chunks(
    units: AsyncGenerator[object, None], writing: Writing, most: int
) -> AsyncGenerator[list[object], None]:
    """As many at a time as there is room for, and ``most`` at most; those before an error come before it."""
    while True:
        size = min(writing.room, most)
        found: list[Any] = []
        try:
            while len(found) < size:
                found.append(await anext(units))
        except StopAsyncIteration:
            pass
        except DynamoSingleError:
            if found:
                yield found
            raise
        if found:
            yield found
        if len(found) < size:
            return
