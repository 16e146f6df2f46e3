"""Write many objects: each by itself, several in parallel, or packed into transactions.

The same function writes an object by itself or adds it to a transaction. The app sends the first write alone, so the
operation does not start other writes if writing is impossible. After a failure it does not start new writes, and
completes the writes in progress. A cancelled operation keeps finished writes. This module does not depend on how to
write an object.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Mapping, Sequence, Set
from contextlib import AbstractContextManager, aclosing, nullcontext
from functools import partial
from operator import attrgetter
from typing import Any

from django.db import IntegrityError
from msgspec import Struct, field

from dynamo_single.exceptions import (
    BeginAgain,
    BulkError,
    BulkIntegrityError,
    ConditionFailed,
    DynamoSingleError,
    MissingReference,
    SourceChanged,
    StaleObject,
    TransactionCancelled,
)
from dynamo_single.orm.effects import send
from dynamo_single.orm.requests import atomic_block as pending
from dynamo_single.orm.requests.actions import Check, Delete, ItemKey, key_of
from dynamo_single.orm.requests.atomic_block import Block, Entry
from dynamo_single.orm.requests.compiler import compile_action
from dynamo_single.orm.rollout import knowledge
from dynamo_single.orm.schema import secrecy
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.table import batches, flow
from dynamo_single.table.batches import Write
from dynamo_single.table.flow import Flow, as_stream, call_sync, in_order
from dynamo_single.table.lease import Lease
from dynamo_single.table.request import MAX_ACTIONS, MAX_TRANSACTION_SIZE
from dynamo_single.table.table import get_table, patience

#: Writes one object, or adds it to a block; returns the number of written objects by model.
ObjectWrite = Callable[[Any, Block | None], Flow[Mapping[str, int]]]

#: Errors that another process causes: the separate write of an object handles them.
_RETRIED_ERRORS = (StaleObject, SourceChanged, MissingReference)


class Outcome(Struct, frozen=True):
    """The result of writing one object: the number of written objects by model, or the error.

    If an object was not ``was_tried``, another object of its transaction failed.
    """

    pk: Any
    counts: Mapping[str, int]
    error: DynamoSingleError | None = None
    was_tried: bool = True


class ObjectWriter(Struct):
    """How to write objects.

    - ``write`` sends the write of one object or adds it to a block.
    - ``is_skipped`` returns whether the others continue without an object, given the error of its refused action.
    - ``estimated_size`` is the number of objects that probably fit into one transaction, estimated from the last one.
    - ``shares_items`` is true if the objects of one transaction write or check the same item, such as their parent's
      counter. DynamoDB would reject such transactions in parallel (AWS developer guide, "Transaction conflict handling
      in DynamoDB").
    """

    write: ObjectWrite
    pk: Callable[[Any], Any]
    is_skipped: Callable[[Any, DynamoSingleError], bool] = lambda unit, error: False
    estimated_size: int = MAX_ACTIONS
    shares_items: bool = False

    async def write_alone(self, unit: object, block: Block | None = None) -> Outcome:
        """Write one object by itself, or add it to a block."""
        try:
            return Outcome(self.pk(unit), await self.write(unit, block))
        except DynamoSingleError as error:
            return Outcome(self.pk(unit), {}, error)

    async def write_together(self, units: Sequence[object]) -> list[Outcome]:
        """Write objects in as few transactions as possible, sequentially, until one fails.

        A write that depends on unsent writes begins another transaction. It separately sends a write that cannot join
        any transaction, and an object that another process has changed.
        """
        rest, outcomes = deque(units), list[Outcome]()
        while rest and all(outcome.error is None for outcome in outcomes):
            group = await self._group(rest)
            if len(group.joined) > 1:
                self.estimated_size = self.estimated_size if outcomes else group.room
                self.shares_items = self.shares_items or group.shares_items
            if group.joined:
                outcomes += await self._sent(group, rest)
            else:
                outcomes.append(await self.write_alone(rest.popleft()))
        return [*outcomes, *(Outcome(self.pk(unit), {}, was_tried=False) for unit in rest)]

    async def _group(self, rest: deque[object]) -> _Transaction:
        """Remove the first objects that one transaction can write, and return them."""
        group = _Transaction()
        while rest:
            try:
                if not await group.join(rest[0], self.write):
                    break
            except DynamoSingleError:
                # If other writes are pending, they may be the cause.
                break
            rest.popleft()
        return group

    async def _sent(self, group: _Transaction, rest: deque[Any]) -> list[Outcome]:
        """Record the outcome of a transaction's objects; put back those that can be retried separately."""
        try:
            await group.send()
        except DynamoSingleError as error:
            refused, gone = group.refused(error), group.gone(error)
            group.block.discard()
            return await self._refused(group, refused, gone, error, rest)
        return [Outcome(self.pk(each.unit), each.counts, await each.finish()) for each in group.joined]

    async def _refused(
        self,
        group: _Transaction,
        refused: Mapping[int, DynamoSingleError],
        gone: Set[int],
        error: DynamoSingleError,
        rest: deque[object],
    ) -> list[Outcome]:
        if not refused:
            # The error concerns all of them, and their outcome may be unknown.
            return [Outcome(self.pk(each.unit), {}, error) for each in group.joined]
        others = [each.unit for each in group.joined if id(each) not in refused]
        outcomes: list[Outcome] = []
        again: list[Any] = []
        for each in group.joined:
            found = refused.get(id(each))
            if found is None:
                continue
            if id(each) in gone:
                outcomes.append(Outcome(self.pk(each.unit), {}))
            elif isinstance(found, _RETRIED_ERRORS):
                again.append(each.unit)
            elif self.is_skipped(each.unit, found):
                outcomes.append(Outcome(self.pk(each.unit), {}))
            else:
                outcomes.append(Outcome(self.pk(each.unit), {}, found))
        while again and all(outcome.error is None for outcome in outcomes):
            outcomes.append(await self.write_alone(again.pop(0)))
        rest.extendleft(reversed([*again, *others]))
        return outcomes


class _Member(Struct, frozen=True, eq=False):
    """An object in a transaction: its entries, and the callbacks to run after the request."""

    unit: Any
    counts: Mapping[str, int]
    entries: Sequence[Entry]
    callbacks: Sequence[Callable[[], Coroutine[Any, Any, None]]]

    async def finish(self) -> DynamoSingleError | None:
        """Run the callbacks; return the error if one fails."""
        try:
            for callback in self.callbacks:
                await callback()
        except DynamoSingleError as error:
            return error
        return None


class _Transaction(Struct, eq=False):
    """The objects of one transaction."""

    block: Block = field(default_factory=partial(Block, limit=MAX_ACTIONS))
    joined: list[_Member] = field(default_factory=list)

    async def join(self, unit: object, write: ObjectWrite) -> bool:
        """Add an object's write; return ``False`` if there is no room. It adds nothing if it fails."""
        block, before, called = self.block, len(self.block.entries), len(self.block.callbacks)
        # Reads in between see the pending writes.
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
            self.joined.append(_Member(unit, counts, block.entries[before:], block.callbacks[called:]))
        return fits

    @property
    def room(self) -> int:
        """How many objects of this kind fit into one transaction."""
        count, actions, size = len(self.joined), len(self.block.actions()), self.block.size
        return max(1, min(count * MAX_ACTIONS // max(actions, 1), count * MAX_TRANSACTION_SIZE // max(size, 1)))

    @property
    def shares_items(self) -> bool:
        """Whether several of the objects write or check one item."""
        return sum(len(entry.actions) for entry in self.block.entries) > len(self.block.actions())

    async def send(self) -> None:
        """Send everything as one request; do not send an empty transaction."""
        await send.send_block(self.block)

    def gone(self, error: DynamoSingleError) -> set[int]:
        """Return the objects, by ``id()``, that another process had deleted before their deletion."""
        owners = {id(entry): each for each in self.joined for entry in each.entries}
        reasons = error.__cause__.reasons if isinstance(error.__cause__, TransactionCancelled) else ()
        return {
            id(owners[id(entry)])
            for (action, entry), reason in zip(self.block.actions(), reasons, strict=False)
            if reason is not None and reason.get("Code") == "ConditionalCheckFailed" and not reason.get("Item")
            if isinstance(action, Delete) and entry.is_of(action.key)
        }

    def refused(self, error: DynamoSingleError) -> dict[int, DynamoSingleError]:
        """Return the objects, by ``id()``, whose actions failed, each with its error."""
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


async def write_batch(
    model: type[DynamoModel], units: Sequence[Any], writes: Sequence[Write], lease: Lease | None, alone: ObjectWriter
) -> list[Outcome]:
    """Write units as one BatchWriteItem without conditions, one of ``writes`` for each.

    If the lease is over, which the operation may outlast, write ``alone`` those that are left: by the present state.
    """
    rest = await batches.write_batch(get_table(model._options.alias), writes, patient=True, lease=lease)
    left = set() if rest is None else {*map(_key_of_write, rest.writes)}
    is_over = rest is not None and isinstance(rest.error, BeginAgain)
    if is_over:
        knowledge.stale()
    outcomes = []
    for unit, each in zip(units, writes, strict=True):
        if rest is None or _key_of_write(each) not in left:
            outcomes.append(Outcome(alone.pk(unit), {model._meta.label: 1}))
        elif is_over:
            outcomes.append(await alone.write_alone(unit))
        else:
            outcomes.append(Outcome(alone.pk(unit), {}, rest.error))
    return outcomes


def _key_of_write(write: Write) -> ItemKey:
    put = write.get("PutRequest")
    return key_of(write["DeleteRequest"]["Key"] if put is None else put["Item"])


async def transaction_chunks(
    units: AsyncGenerator[object, None], writing: ObjectWriter, most: int
) -> AsyncGenerator[list[object], None]:
    """Yield as many objects as fit into a transaction, at most ``most``. Before it raises an error, yield the objects
    so far.
    """
    while True:
        size = min(writing.estimated_size, most)
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


# The operation on many objects: parallel writes, progress, and the report of failures.

#: The function to call after each object, with the number of finished objects and the total, if known.
Progress = Callable[[int, int | None], object]

#: The maximum number of failures in an error message.
MAX_REPORTED = 3


class BulkWrite(Struct):
    """An operation on many objects, and its results so far.

    ``total`` is ``None`` while the app is still reading objects. Unless ``is_parallel`` is set, objects are written
    sequentially, in synchronous code in the thread of the caller. ``transaction_size`` is the maximum number of objects
    in one transaction; ``None`` writes each by itself. ``pending`` is the ``atomic()`` block that all writes join.
    """

    verb: str
    model: Any
    pending: Block | None
    total: int | None = None
    progress: Progress | None = None
    is_parallel: bool = True
    transaction_size: int | None = None
    counts: dict[str, int] = field(default_factory=dict)
    written: list[Any] = field(default_factory=list)
    failed: dict[Any, DynamoSingleError] = field(default_factory=dict)
    not_read: DynamoSingleError | None = None
    untried_pks: list[Any] = field(default_factory=list)
    done: int = 0

    async def write_each(
        self, objects: Iterable[object] | AsyncGenerator[object, None], write: ObjectWrite
    ) -> dict[str, int]:
        """Write each object by itself, or several in one transaction; see ``write_units``."""
        return await self.write_units(objects, ObjectWriter(write, attrgetter("pk")))

    async def write_units(
        self, units: Iterable[object] | AsyncGenerator[object, None], writing: ObjectWriter
    ) -> dict[str, int]:
        """Write the objects of units; return the number written by model. Raises ``BulkError``, or a single error.

        Within an ``atomic()`` block all writes join the block.
        """
        stream = units if isinstance(units, AsyncGenerator) else as_stream(units)
        async with aclosing(stream):
            if self.transaction_size is None or self.pending is not None:
                return await self.run(stream, partial(self._alone, writing), lambda unit: [writing.pk(unit)])
            async with aclosing(transaction_chunks(stream, writing, self.transaction_size)) as groups:
                return await self.run(groups, partial(self._together, writing), lambda group: [*map(writing.pk, group)])

    async def _alone(self, writing: ObjectWriter, unit: object) -> Sequence[Outcome]:
        return [await writing.write_alone(unit, self.pending)]

    async def _together(self, writing: ObjectWriter, units: Sequence[object]) -> Sequence[Outcome]:
        outcomes = await writing.write_together(units)
        self.is_parallel = self.is_parallel and not writing.shares_items
        return outcomes

    async def run(
        self,
        rest: AsyncGenerator[Any, None],
        work: Callable[[Any], Flow[Sequence[Outcome]]],
        pks: Callable[[Any], Iterable[Any]],
    ) -> dict[str, int]:
        """Run ``work`` on each unit of objects; ``pks`` returns the objects of a unit that was not started."""
        block = self.pending
        begun = (0, 0) if block is None else (len(block.entries), len(block.callbacks))
        try:
            with patience():
                await self._run(rest, work)
        except CancelledError as error:
            error.add_note(self._cancelled())
            raise
        if self.failed or self.not_read is not None:
            if block is not None:
                # The app has not sent a write yet, so none is incomplete.
                block.discard(begun[0])
                block.drop_callbacks(begun[1])
                raise self._errors()[0]
            # Requests for further objects stop.
            not_begun = [] if self.total is None else [pk async for unit in rest for pk in pks(unit)]
            raise self._error((*self.untried_pks, *not_begun))
        return self.counts

    async def _run(self, rest: AsyncGenerator[object, None], work: Callable[[object], Flow[Sequence[Outcome]]]) -> None:
        done = in_order(work, self._while_well(rest), at_once=self._at_once, finishes=True)
        async with aclosing(done):
            async for outcomes in done:
                for outcome in outcomes:
                    await self._note(outcome)

    async def _while_well(self, rest: AsyncGenerator[object, None]) -> AsyncGenerator[object, None]:
        while not self.failed:
            try:
                unit = await anext(rest)
            except StopAsyncIteration:
                return
            except DynamoSingleError as error:
                self.not_read = error
                return
            yield unit

    def _at_once(self) -> int:
        """Return how many units to write in parallel."""
        if not self.is_parallel or not self.done or self.pending is not None:
            return 1
        return min(flow.MAX_THREADS, get_table(self.model._options.alias).settings.max_pool_connections)

    async def _note(self, outcome: Outcome) -> None:
        if not outcome.was_tried:
            self.untried_pks.append(outcome.pk)
            return
        self.done += 1
        if outcome.error is not None:
            self.failed[outcome.pk] = outcome.error
        counts = {label: count for label, count in outcome.counts.items() if count}
        for label, count in counts.items():
            self.counts[label] = self.counts.get(label, 0) + count
        if counts:
            self.written.append(outcome.pk)
        if self.progress is not None:
            await call_sync(partial(self.progress, self.done, self.total))

    def _cancelled(self) -> str:
        return (
            f"{self.verb}() was cancelled after it had written {len(self.written)} {self.model._meta.label} "
            f"objects, which stay. The outcome of up to {flow.MAX_THREADS} more units of its work is unknown. "
            "Call it again for the rest, as after a killed process."
        )

    def _errors(self) -> list[DynamoSingleError]:
        return [*self.failed.values(), *([] if self.not_read is None else [self.not_read])]

    def _error(self, not_tried: tuple[object, ...]) -> Exception:
        errors = self._errors()
        if len(errors) == 1 and not self.written:
            return errors[0]
        told = [
            f"pk {secrecy.shown(self.model, pk)}: {error}" for pk, error in list(self.failed.items())[:MAX_REPORTED]
        ]
        told += [f"{len(self.failed) - MAX_REPORTED} more"] if len(self.failed) > MAX_REPORTED else []
        told += [] if self.not_read is None else [f"the app could not read the rest: {self.not_read}"]
        kind = BulkIntegrityError if all(isinstance(error, IntegrityError) for error in errors) else BulkError
        number = str(len(self.written)) if self.total is None else f"{len(self.written)} of {self.total}"
        untried = f" It did not try {len(not_tried)} objects." if not_tried else ""
        error = kind(
            f"{self.verb}() wrote {number} {self.model._meta.label} objects, then failed at {'; '.join(told)} "
            f"Written objects are kept.{untried}",
            written=tuple(self.written),
            failed=self.failed,
            not_tried=not_tried,
        )
        error.__cause__ = errors[0]
        return error


async def distinct_objects(
    found: AsyncGenerator[Iterable[DynamoModel], None], pending: Block | None
) -> AsyncGenerator[DynamoModel, None]:
    """Yield each matching object once, page by page during the writes.

    An update may move an object within the index, so that the query returns it again. In a block, read later pages like
    the first page: without these writes.
    """
    seen: set[Any] = set()
    async with aclosing(found):
        async for page in found if pending is None else _pages_before_writes(found):
            for obj in page:
                if obj.pk not in seen:
                    seen.add(obj.pk)
                    yield obj


async def _pages_before_writes(found: AsyncGenerator[Iterable[Any], None]) -> AsyncGenerator[list[Any], None]:
    """Yield pages. Only the first may lack the writes of a block, because the app read it before the others."""
    reading: AbstractContextManager[None] = nullcontext()
    while True:
        with reading:
            try:
                page = [*await anext(found)]
            except StopAsyncIteration:
                return
        yield page
        reading = pending.outside_block()
