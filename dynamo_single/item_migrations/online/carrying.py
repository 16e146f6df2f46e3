"""Carrying work out: threads over the segments of a table, a sign of life now and then, and an end in good order.

What is done is kept in checkpoints, so that a process may be killed at any point. This module must not know what is
done to an item.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import copy_context
from queue import Empty, SimpleQueue
from types import FrameType

from django.db import connections

from dynamo_single.exceptions import DynamoSingleError, MigrationRunning, MigrationStopped, NotSupported
from dynamo_single.item_migrations.online.checkpoints import Checkpoints, Segment
from dynamo_single.item_migrations.online.items import Sender
from dynamo_single.item_migrations.online.report import Report, Tally, estimate
from dynamo_single.item_migrations.online.segments import Walk
from dynamo_single.item_migrations.online.work import Options, Work
from dynamo_single.orm.requests import block
from dynamo_single.table.pace import Pace
from dynamo_single.table.table import Table, patience

#: What threads tell: a segment that has come further, or that a thread has ended, with its error.
_News = Segment | BaseException | None


def carry_out(work: Work, table: Table, options: Options | None = None) -> Report:
    """Bring every item of some work up to date, online; resumes what was begun before.

    A DescribeTable, a GetItem and a TransactWriteItems for the checkpoints; then for each page a Scan, a
    BatchGetItem for each hundred other items that it has to do with, a write for each item that changes, and a PutItem
    for the checkpoint. Work that is done sends one GetItem.

    Raises ``MigrationRunning`` while another operator carries it out, ``MigrationStopped`` if it ended before it was
    done, by SIGINT, SIGTERM or a failure of the table, and ``MigrationIncomplete`` if items could not be changed.
    """
    if block.current() is not None:
        raise NotSupported("Work on items is not part of an atomic() block: it cannot be taken back. Call it outside.")
    options = options or Options()
    checkpoints = Checkpoints.taken(table, work, options)
    if checkpoints.run.done:
        return Report(work.label, before=True)
    stop = threading.Event()
    pace = Pace(reads=options.max_rcu, writes=options.max_wcu, wait=stop.wait)
    tally = Tally(work, options, pace)
    with _released(checkpoints), patience(), pace.counting(), _signals(stop):
        tally.expected = estimate(table).items
        tally.begin(checkpoints.segments())
        news: SimpleQueue[_News] = SimpleQueue()
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


def _walk_all(walk: Walk, tally: Tally, stop: threading.Event, news: SimpleQueue[_News], *, most: int) -> None:
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
def _released(checkpoints: Checkpoints) -> Iterator[None]:
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
