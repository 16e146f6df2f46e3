"""Run work: threads over the segments of a table, a periodic sign of life, and a clean stop.

Checkpoints store the progress, so that a process can be killed at any point. This module does not depend on what is
done to an item.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass, replace
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Any

from django.db import connections

from dynamo_single.evolution.backfill.checkpoints import Checkpoints, Failure, Segment
from dynamo_single.evolution.backfill.items import Sender, process_item
from dynamo_single.evolution.backfill.report import Report, Tally, estimate
from dynamo_single.evolution.backfill.work import Options, Others, Task, Work
from dynamo_single.exceptions import DynamoSingleError, MigrationRunning, MigrationStopped, NotSupported
from dynamo_single.orm.conditions.matching import matches
from dynamo_single.orm.requests import atomic_block
from dynamo_single.orm.requests.actions import Item, ItemKey, key_of
from dynamo_single.orm.requests.compiler import ExpressionBuilder, compile_batches, compile_condition, item_key
from dynamo_single.table.batches import Pace, get_batch
from dynamo_single.table.flow import run
from dynamo_single.table.request import Request, Response
from dynamo_single.table.table import Table, patience

# Walk one segment page by page, with a checkpoint after all writes of a page have a response.
#
# A parallel Scan reads its segments independently (AWS developer guide, "Scanning tables", parallel scan). This part
# does not depend on threads, or on what is done to an item.


@dataclass(frozen=True, slots=True)
class Walk:
    """What the walks of all segments share. ``stopping`` says whether to end after the item in hand."""

    work: Work
    sender: Sender
    checkpoints: Checkpoints
    page: int
    stopping: Callable[[], bool]
    report: Callable[[Segment], object]

    def segment(self, segment: Segment) -> Segment:
        """Go through a segment from where it is to its end, or until it is time to stop."""
        if not self.stopping():
            segment = self._failures_again(segment)
        while not segment.done and not self.stopping():
            answer = self.sender.send(scan(self.work.task, segment, self.checkpoints.run.segments, self.page))
            if self._is_lost(segment, answer):
                segment = replace(segment, position=None)
                continue
            segment = self._page(segment, answer)
            self.checkpoints.save(segment)
            self.report(segment)
        return segment

    def _is_lost(self, segment: Segment, answer: dict[str, object]) -> bool:
        """Whether a local engine ended a segment because the item that it was to go on after has been deleted.

        Dynoxide 1.2.1 does so in a parallel Scan. The segment is begun again, which changes nothing twice.
        """
        ended = answer["ScannedCount"] == 0 and "LastEvaluatedKey" not in answer
        parallel = self.checkpoints.run.segments > 1 and self.sender.table.settings.is_local
        if segment.position is None or not ended or not parallel:
            return False
        return not self.sender.at_once([segment.position])

    def _page(self, segment: Segment, answer: Response) -> Segment:
        items: list[Item] = answer["Items"]
        others = read_others(self.sender, self.work.task, items)
        for number, item in enumerate(items):
            if self.stopping():
                return replace(segment, scanned=segment.scanned + number)
            segment = replace(self._settled(segment, item, others), position=key_of(item))
        scanned = segment.scanned + answer["ScannedCount"]
        end = answer.get("LastEvaluatedKey")
        position = segment.position if end is None else key_of(end)
        return replace(segment, scanned=scanned, position=position, done=end is None)

    def _settled(self, segment: Segment, item: Item, others: Others) -> Segment:
        outcome = process_item(self.sender, self.work, item, others)
        segment = replace(segment, matched=segment.matched + 1)
        if isinstance(outcome, Failure):
            return segment.failing(outcome)
        return replace(segment, changed=segment.changed + 1) if outcome == "changed" else segment

    def _failures_again(self, segment: Segment) -> Segment:
        """A segment that was at its end: what failed is tried again; if not all of it is known, the whole segment."""
        if not segment.done or not segment.failed:
            return segment
        if segment.failed > len(segment.failures):
            return Segment(segment.number)
        left = replace(segment, failed=0, failures=())
        for failure in segment.failures:
            if self.stopping():
                left = left.failing(failure)
                continue
            item = self.sender.at_once([failure.key]).get(failure.key)
            if item is None or not matches(self.work.task.items, item):
                continue
            left = self._settled(
                replace(left, matched=left.matched - 1), item, read_others(self.sender, self.work.task, [item])
            )
        self.checkpoints.save(left)
        self.report(left)
        return left


def read_others(sender: Sender, task: Task, items: Sequence[Item]) -> dict[ItemKey, Item]:
    """What the items of a page have to do with, by key: a BatchGetItem for each hundred others."""
    task.ahead(items, sender.write)
    return read(sender, {key for item in items for key in task.wanted(item)})


def read(sender: Sender, keys: Collection[ItemKey]) -> dict[ItemKey, Item]:
    """The items under some keys, by key: a BatchGetItem for each hundred."""
    found: dict[ItemKey, Item] = {}
    for request in compile_batches(sorted(keys), sender.table.name):
        sender.pace.before(request.operation)
        found |= {key_of(item): item for item in run(get_batch(sender.table, request))}
    return found


def scan(task: Task, segment: Segment, segments: int, page: int) -> Request:
    """The request for the next page of a segment, strongly consistent: what was written just now is not passed by."""
    builder = ExpressionBuilder()
    params: dict[str, Any] = {"ConsistentRead": True, "Limit": page}
    if segments > 1:
        params |= {"Segment": segment.number, "TotalSegments": segments}
    if segment.position is not None:
        params["ExclusiveStartKey"] = item_key(segment.position)
    text = compile_condition(task.items, None, builder)
    return Request("Scan", {**params, **({"FilterExpression": text} if text else {}), **builder.params()})


#: What threads tell: a segment that has come further, or that a thread has ended, with its error.
_Message = Segment | BaseException | None


def run_work(work: Work, table: Table, options: Options | None = None) -> Report:
    """Bring every item of some work up to date, online; resumes what was begun before.

    A DescribeTable, a GetItem and a TransactWriteItems for the checkpoints; then for each page a Scan, a
    BatchGetItem for each hundred other items that it has to do with, a write for each item that changes, and a PutItem
    for the checkpoint. Work that is done sends one GetItem.

    Raises ``MigrationRunning`` while another operator carries it out, ``MigrationStopped`` if it ended before it was
    done, by SIGINT, SIGTERM or a failure of the table, and ``MigrationIncomplete`` if items could not be changed.
    """
    if atomic_block.current() is not None:
        raise NotSupported("Work on items is not part of an atomic() block: it cannot be taken back. Call it outside.")
    options = options or Options()
    checkpoints = Checkpoints.taken(table, work, options)
    if checkpoints.run.done:
        return Report(work.label, before=True)
    stop = threading.Event()
    pace = Pace(reads=options.max_rcu, writes=options.max_wcu, wait=stop.wait)
    tally = Tally(work, options, pace)
    with _release_at_end(checkpoints), patience(), pace.counting(), _signals(stop):
        tally.expected = estimate(table).items
        tally.begin(checkpoints.segments())
        news: SimpleQueue[_Message] = SimpleQueue()
        walk = Walk(work, Sender(table, pace), checkpoints, options.page, stop.is_set, news.put)
        _walk_all(walk, tally, stop, news, most=table.settings.max_pool_connections)
        if not tally.done:
            raise MigrationStopped(
                f"{work.label}: stopped after {tally.sum('scanned'):,} of about {tally.expected:,} items. What is done "
                "stays; run the same command again, and it goes on from here."
            )
        checkpoints.finish(tally.sum("failed"))
    if tally.sum("failed"):
        raise tally.incomplete()
    return tally.report()


def _walk_all(walk: Walk, tally: Tally, stop: threading.Event, news: SimpleQueue[_Message], *, most: int) -> None:
    """Walk all segments, each in a thread, as many at once as ``most`` allows; the first error ends them all."""
    waiting: Sequence[Segment] = tuple(tally.segments.values())
    error: BaseException | None = None

    def in_thread(segment: Segment) -> None:
        try:
            walk.segment(segment)
            news.put(None)
        except BaseException as failure:  # raised again below: a thread that ends without a word is waited for
            news.put(failure)
        finally:
            connections.close_all()  # a project's own function may have read from an SQL database

    with ThreadPoolExecutor(min(len(waiting), most), "dynamo_single_work") as threads:
        try:
            for segment in waiting:
                # A context can be entered once at a time: each call gets a copy of its own.
                threads.submit(copy_context().run, in_thread, segment)
            left = len(waiting)
            renewed = time.monotonic()
            while left:
                with suppress(Empty):
                    told = news.get(timeout=walk.checkpoints.lease / 3)
                    if isinstance(told, Segment):
                        tally.note(told)
                    else:
                        left -= 1
                        error = error or told
                        if told is not None:
                            stop.set()
                if left and time.monotonic() - renewed > walk.checkpoints.lease / 3:
                    walk.checkpoints.renew()
                    renewed = time.monotonic()
        finally:
            stop.set()
    if error is not None:
        raise error


@contextmanager
def _release_at_end(checkpoints: Checkpoints) -> Iterator[None]:
    """Whatever ends the block before its end, the next operator need not wait; failures say how to go on."""
    try:
        yield
    except MigrationRunning:
        raise
    except Exception as error:  # a project's functions are called in it; each is raised again
        with suppress(DynamoSingleError):
            checkpoints.release()
        if isinstance(error, MigrationStopped) or not isinstance(error, DynamoSingleError):
            raise
        raise MigrationStopped(
            f"{checkpoints.work.label}: {error} What is done stays; run the same command again, and it goes on from "
            "here."
        ) from error
    except KeyboardInterrupt:
        with suppress(DynamoSingleError):
            checkpoints.release()
        raise


@contextmanager
def _signals(stop: threading.Event) -> Iterator[None]:
    """The first SIGINT or SIGTERM lets the items in hand end, the second one does what it did before.

    Only a process's main thread can hear of them.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def put_back() -> None:
        for number, handler in before.items():
            # A handler that was not set by Python cannot be put back.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def end(number: int, frame: FrameType | None) -> None:
        stop.set()
        put_back()

    for number in before:
        signal.signal(number, end)
    try:
        yield
    finally:
        put_back()
