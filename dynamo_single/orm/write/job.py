"""Writing many objects, each by itself: several at once, with progress, and a report of what is not written.

The first is written alone, so that where nothing can be written nothing else is begun. After a failure nothing more is
begun; what is under way is waited for. What sends is a coroutine, and one that is cancelled is as a process that was
killed: what it has written stays. This module must not know how an object is written.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing
from functools import partial
from operator import attrgetter
from typing import Any

from django.db import IntegrityError
from msgspec import Struct, field

from dynamo_single.exceptions import BulkError, BulkIntegrityError, DynamoSingleError
from dynamo_single.orm.requests.block import Block
from dynamo_single.orm.schema import secrecy
from dynamo_single.orm.schema.kinds import DynamoModel
from dynamo_single.orm.write.grouping import Outcome, Write, Writing, chunks
from dynamo_single.table import threads
from dynamo_single.table.flow import Flow, in_order, local, streamed
from dynamo_single.table.table import get_table, patience

#: Told after each object how many are done, and of how many if that is known.
Progress = Callable[[int, int | None], object]

#: How many of the failures a message tells.
TOLD = 3


class Job(Struct):
    """One operation on many objects, and what came of it so far.

    ``total`` is ``None`` while the objects are still being read. Without ``several`` one object is written after the
    other, in synchronous code in the caller's own thread. ``together`` is how many objects are put into one transaction
    at most; ``None`` for each by itself. ``pending`` is the ``atomic()`` block that everything joins.
    """

    verb: str
    model: Any
    pending: Block | None
    total: int | None = None
    progress: Progress | None = None
    several: bool = True
    together: int | None = None
    counts: dict[str, int] = field(default_factory=dict)
    written: list[Any] = field(default_factory=list)
    failed: dict[Any, DynamoSingleError] = field(default_factory=dict)
    not_read: DynamoSingleError | None = None
    held_back: list[Any] = field(default_factory=list)
    done: int = 0

    async def write_each(
        self, objects: Iterable[object] | AsyncGenerator[object, None], write: Write
    ) -> dict[str, int]:
        """Write each object by itself, or several in one transaction; see ``carry_out``."""
        return await self.carry_out(objects, Writing(write, attrgetter("pk")))

    async def carry_out(
        self, units: Iterable[object] | AsyncGenerator[object, None], writing: Writing
    ) -> dict[str, int]:
        """Write each unit's object; how many were written, by model. Raises ``BulkError``, or a lone error.

        Within an ``atomic()`` block everything joins that.
        """
        stream = units if isinstance(units, AsyncGenerator) else streamed(units)
        async with aclosing(stream):
            if self.together is None or self.pending is not None:
                return await self.run(stream, partial(self._alone, writing), lambda unit: [writing.pk(unit)])
            async with aclosing(chunks(stream, writing, self.together)) as groups:
                return await self.run(groups, writing.together, lambda group: [*map(writing.pk, group)])

    async def _alone(self, writing: Writing, unit: object) -> Sequence[Outcome]:
        return [await writing.alone(unit, self.pending)]

    async def run(
        self,
        rest: AsyncGenerator[Any, None],
        work: Callable[[Any], Flow[Sequence[Outcome]]],
        pks: Callable[[Any], Iterable[Any]],
    ) -> dict[str, int]:
        """Do some work on each unit of one or more objects; ``pks`` gives those of a unit that was not begun."""
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
                # Nothing is written yet, and nothing of a half will be.
                block.discard(begun[0])
                block.drop_callbacks(begun[1])
                raise self._errors()[0]
            # Of what is still being read nothing more is asked for.
            not_begun = [] if self.total is None else [pk async for unit in rest for pk in pks(unit)]
            raise self._error((*self.held_back, *not_begun))
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
        """How many are written at the same time."""
        if not self.several or not self.done or self.pending is not None:
            return 1
        return min(threads.MAX_THREADS, get_table(self.model._options.alias).settings.max_pool_connections)

    async def _note(self, outcome: Outcome) -> None:
        if not outcome.tried:
            self.held_back.append(outcome.pk)
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
            await local(partial(self.progress, self.done, self.total))

    def _cancelled(self) -> str:
        return (
            f"{self.verb}() was cancelled: it has written {len(self.written)} {self.model._meta.label} objects, which "
            f"stay, and of up to {threads.MAX_THREADS} more units of its work nobody knows whether they are written. "
            "As after a process that was killed, call it again for the rest."
        )

    def _errors(self) -> list[DynamoSingleError]:
        return [*self.failed.values(), *([] if self.not_read is None else [self.not_read])]

    def _error(self, not_tried: tuple[object, ...]) -> Exception:
        errors = self._errors()
        if len(errors) == 1 and not self.written:
            return errors[0]
        told = [f"pk {secrecy.shown(self.model, pk)}: {error}" for pk, error in list(self.failed.items())[:TOLD]]
        told += [f"{len(self.failed) - TOLD} more"] if len(self.failed) > TOLD else []
        told += [] if self.not_read is None else [f"the rest could not be read: {self.not_read}"]
        kind = BulkIntegrityError if all(isinstance(error, IntegrityError) for error in errors) else BulkError
        number = str(len(self.written)) if self.total is None else f"{len(self.written)} of {self.total}"
        untried = f" {len(not_tried)} were not tried." if not_tried else ""
        error = kind(
            f"{self.verb}() has written {number} {self.model._meta.label} objects and then failed at "
            f"{'; '.join(told)} What is written stays.{untried}",
            written=tuple(self.written),
            failed=self.failed,
            not_tried=not_tried,
        )
        error.__cause__ = errors[0]
        return error


async def each_once(
    found: AsyncGenerator[Iterable[DynamoModel], None], pending: Block | None
) -> AsyncGenerator[DynamoModel, None]:
    """The objects that match, page by page while they are written, and each only once.

    An update may move an object within the index that is being read, to where it is met again. Within a block
    everything is read first: what is pending cannot be read.
    """
    seen: set[Any] = set()
    async with aclosing(found):
        pages = found if pending is None else streamed([[obj async for page in found for obj in page]])
        async for page in pages:
            for obj in page:
                if obj.pk not in seen:
                    seen.add(obj.pk)
                    yield obj
