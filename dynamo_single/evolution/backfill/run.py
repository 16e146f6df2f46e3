"""Run work: threads over the segments of a table, a lease that is renewed, and a clean stop.

Each thread reads one segment of a parallel Scan page by page (AWS developer guide, "Scanning tables", parallel scan),
and stores a checkpoint after all writes of a page have a response. A process can be killed at any point. This module
does not depend on how items are changed.
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
from dynamo_single.evolution.backfill.items import Sender, process_item, scanning
from dynamo_single.evolution.backfill.report import Tally, estimate
from dynamo_single.evolution.backfill.work import Options, Others, Report, Task, Work
from dynamo_single.exceptions import DynamoSingleError, MigrationRunning, MigrationStopped, NotSupported
from dynamo_single.orm.conditions.matching import matches
from dynamo_single.orm.requests import atomic_block
from dynamo_single.orm.requests.actions import Item, ItemKey, key_of
from dynamo_single.orm.requests.compiler import ExpressionBuilder, compile_batches, compile_condition, item_key
from dynamo_single.table.batches import Pace, get_batch
from dynamo_single.table.flow import run
from dynamo_single.table.request import Request, Response
from dynamo_single.table.table import Table, patience


@dataclass(frozen=True, slots=True)
class Walk:
    """The state that the walks of all segments share. ``stopping`` returns whether to end after the current item."""

    work: Work
    sender: Sender
    checkpoints: Checkpoints
    page: int
    stopping: Callable[[], bool]
    report: Callable[[Segment], object]

    def segment(self, segment: Segment) -> Segment:
        """Process a segment from its checkpoint to its end, or until it is time to stop."""
        if not self.stopping():
            segment = self._failures_again(segment)
        while not segment.done and not self.stopping():
            request = scan(self.work.task, segment, self.checkpoints.run.segments, self.page)
            answer = scanning(self.sender, self.work.task).send(request)
            if self._is_lost(segment, answer):
                segment = replace(segment, position=None)
                continue
            segment = self._page(segment, answer)
            self.checkpoints.save(segment)
            self.report(segment)
        return segment

    def _is_lost(self, segment: Segment, answer: dict[str, object]) -> bool:
        """Return whether a local engine ended a segment early because the item at its position was deleted.

        Dynoxide 1.2.1 does so in a parallel Scan. The segment starts again, which does not change any item twice.
        """
        ended = answer["ScannedCount"] == 0 and "LastEvaluatedKey" not in answer
        parallel = self.checkpoints.run.segments > 1 and self.sender.table.settings.is_local
        if segment.position is None or not ended or not parallel:
            return False
        return not scanning(self.sender, self.work.task).at_once([segment.position])

    def _page(self, segment: Segment, answer: Response) -> Segment:
        items: list[Item] = answer["Items"]
        others = read_others(self.sender, self.work.task, items)
        for number, item in enumerate(items):
            if self.stopping():
                return replace(segment, scanned=segment.scanned + number)
            segment = self._settled(segment, item, others, key_of(item))
        scanned = segment.scanned + answer["ScannedCount"]
        end = answer.get("LastEvaluatedKey")
        position = segment.position if end is None else key_of(end)
        return replace(segment, scanned=scanned, position=position, done=end is None)

    def _settled(self, segment: Segment, item: Item, others: Others, position: ItemKey | None) -> Segment:
        outcome = process_item(self.sender, self.work, item, others)
        changed = segment.changed + (outcome == "changed")
        segment = replace(segment, position=position, matched=segment.matched + 1, changed=changed)
        return segment.failing(outcome) if isinstance(outcome, Failure) else segment

    def _failures_again(self, segment: Segment) -> Segment:
        """Retry the failures of a completed segment, or the complete segment if not all failures are stored."""
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
            others = read_others(self.sender, self.work.task, [item])
            left = self._settled(replace(left, matched=left.matched - 1), item, others, left.position)
        self.checkpoints.save(left)
        self.report(left)
        return left


def read_others(sender: Sender, task: Task, items: Sequence[Item]) -> dict[ItemKey, Item]:
    """Return the other items that a page depends on, by key: a BatchGetItem for each hundred."""
    task.prepare(items, sender.write)
    return read(sender, {key for item in items for key in task.keys_wanted(item)})


def read(sender: Sender, keys: Collection[ItemKey]) -> dict[ItemKey, Item]:
    """Return the stored items with some keys, by key: a BatchGetItem for each hundred."""
    found: dict[ItemKey, Item] = {}
    for request in compile_batches(sorted(keys), sender.table.name):
        sender.pace.before(request.operation)
        found |= {key_of(item): item for item in run(get_batch(sender.table, request))}
    return found


def scan(task: Task, segment: Segment, segments: int, page: int) -> Request:
    """Return the request for a segment's next page, strongly consistent so that it includes the latest writes."""
    builder = ExpressionBuilder()
    params: dict[str, Any] = {"ConsistentRead": True, "Limit": page}
    if segments > 1:
        params |= {"Segment": segment.number, "TotalSegments": segments}
    if segment.position is not None:
        params["ExclusiveStartKey"] = item_key(segment.position)
    text = compile_condition(task.items, None, builder)
    return Request("Scan", {**params, **({"FilterExpression": text} if text else {}), **builder.params()})


#: A message of a thread: a segment with new progress, or the end of the thread with its error or ``None``.
_Message = Segment | BaseException | None


def run_work(work: Work, table: Table, options: Options | None = None) -> Report:
    """Bring every item of some work up to date, and resume it if an earlier run has started it.

    Sends a DescribeTable, then a GetItem and a TransactWriteItems for the checkpoints. Each page takes a Scan, a
    BatchGetItem for each hundred other items, a write for each changed item, and a PutItem for the checkpoint. Work
    that is done sends one GetItem.

    Raises ``MigrationRunning`` while another operator runs the work, ``MigrationStopped`` if SIGINT, SIGTERM or an
    error of the table ended it early, and ``MigrationIncomplete`` if items could not be changed.
    """
    if atomic_block.current() is not None:
        raise NotSupported(
            "Cannot work on items inside an atomic() block: the work cannot be rolled back. Call it outside."
        )
    options = options or Options()
    checkpoints = Checkpoints.taken(table, work, options)
    if checkpoints.run.done:
        return Report(work.label, before=True)
    stop = threading.Event()
    pace = Pace(reads=options.max_rcu, writes=options.max_wcu, wait=stop.wait)
    tally = Tally(work, options, pace)
    with _release_at_end(checkpoints), patience(), pace.counting(), _signals(stop):
        tally.expected = estimate((table.companion if work.task.of_claims else None) or table).items
        tally.begin(checkpoints.segments())
        news: SimpleQueue[_Message] = SimpleQueue()
        walk = Walk(work, Sender(table, pace, options.lease_now), checkpoints, options.page, stop.is_set, news.put)
        _walk_all(walk, tally, stop, news, most=table.settings.max_pool_connections)
        if not tally.done:
            raise MigrationStopped(
                f"{work.label}: stopped after {tally.sum('scanned'):,} of about {tally.expected:,} items. The work so "
                "far is kept. Repeat the command to resume."
            )
        checkpoints.finish(tally.sum("failed"))
    if tally.sum("failed"):
        raise tally.incomplete()
    return tally.report()


def _walk_all(walk: Walk, tally: Tally, stop: threading.Event, news: SimpleQueue[_Message], *, most: int) -> None:
    """Process all segments in threads, at most ``most`` in parallel. The first error stops them all."""
    waiting: Sequence[Segment] = tuple(tally.segments.values())
    error: BaseException | None = None

    def in_thread(segment: Segment) -> None:
        try:
            walk.segment(segment)
            news.put(None)
        except BaseException as failure:  # raised again below; the queue waits for a report of every thread
            news.put(failure)
        finally:
            connections.close_all()  # a project's function may have read from a SQL database

    with ThreadPoolExecutor(min(len(waiting), most), "dynamo_single_work") as threads:
        try:
            for segment in waiting:
                # A context can be entered only once at a time, so that each call gets a copy.
                threads.submit(copy_context().run, in_thread, segment)
            left = len(waiting)
            renewed = time.monotonic()
            while left:
                with suppress(Empty):
                    told = news.get(timeout=walk.checkpoints.lease / 3)
                    if isinstance(told, Segment):
                        tally.update(told)
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
    """Release the lease if the block fails, and add to the error how to resume."""
    try:
        yield
    except MigrationRunning:
        raise
    except Exception as error:  # a project's functions run inside the block; every error is raised again
        with suppress(DynamoSingleError):
            checkpoints.release()
        if isinstance(error, MigrationStopped) or not isinstance(error, DynamoSingleError):
            raise
        raise MigrationStopped(
            f"{checkpoints.work.label}: {error} The work so far is kept. Repeat the command to resume."
        ) from error
    except KeyboardInterrupt:
        with suppress(DynamoSingleError):
            checkpoints.release()
        raise


@contextmanager
def _signals(stop: threading.Event) -> Iterator[None]:
    """Stop after the current items on the first SIGINT or SIGTERM; a second signal reaches the previous handler.

    Only the main thread of a process can handle signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def put_back() -> None:
        for number, handler in before.items():
            # Python cannot restore a handler that it did not set.
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
