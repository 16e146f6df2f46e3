"""Bounds on what a query reads: the limit of its next page, and the number of items that it may read and discard.

DynamoDB reads and charges items that a filter leaves out. A query that lists a whole model costs as much as a Scan,
although it looks cheap. Under ``DEBUG`` and in tests there is a limit without a setting, so that such a query is found
before production has the items that make it expensive. This module does not send requests; it reads settings, responses
and the stack.
"""

from __future__ import annotations

import logging
import sys
import threading
from types import FrameType
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.core.management.base import BaseCommand

from dynamo_single.conf import cost_settings
from dynamo_single.exceptions import TooManyReads
from dynamo_single.lazy_modules import LazyModule
from dynamo_single.orm.plan.plan import Plan
from dynamo_single.orm.requests.compiler import compile_plan
from dynamo_single.table.request import MAX_PAGE_ITEMS, Response
from dynamo_single.table.table import Table

if TYPE_CHECKING:
    from dynamo_single.orm.requests import explain
else:
    explain = LazyModule("dynamo_single.orm.requests.explain")

#: The growth of the limit from page to page if a filter may empty pages, so that a rare match costs few requests.
PAGE_GROWTH = 4


def next_limit(limit: int) -> int:
    """Return the limit of the next page after one with too few matches: at most what a page can hold."""
    return min(limit * PAGE_GROWTH, MAX_PAGE_ITEMS)


#: The most items that a query may read and discard under ``DEBUG`` and in tests.
MAX_DISCARDED: Final = 5000
#: Modules whose pages and jobs read more on purpose.
_ADMINS: Final = ("django.contrib.admin.", "dynamo_single.admin.")

#: The beginnings of the names of command modules that serve pages.
_SERVERS: Final = ("runserver", "testserver")


def default_limit() -> int | None:
    """Return ``MAX_DISCARDED`` under ``DEBUG`` and in tests, and ``None`` in production, in the admin and in commands.

    A thread is in a command if the main thread is. Commands that serve pages or run tests count as requests.
    """
    return MAX_DISCARDED if (settings.DEBUG or _is_tested()) and not _is_exempt() else None


def _is_tested() -> bool:
    # Every test runner calls ``setup_test_environment()``, which adds the outbox.
    return hasattr(sys.modules.get("django.core.mail"), "outbox")


def _is_exempt() -> bool:
    main = sys._current_frames().get(threading.main_thread().ident or 0)
    caller = _caller(sys._getframe())
    return (caller or _caller(main)) == "exempt"


def _caller(frame: FrameType | None) -> str | None:
    """Return ``exempt`` for the admin and for commands, ``served`` for servers and runners, by the nearest frame."""
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith(_ADMINS):
            return "exempt"
        if frame.f_code is BaseCommand.execute.__code__:
            name = type(frame.f_locals["self"]).__module__.rpartition(".")[2]
            return "served" if name == "test" or name.startswith(_SERVERS) else "exempt"
        frame = frame.f_back
    return None


logger = logging.getLogger("dynamo_single.reads")


class Allowance:
    """Counts the items that one evaluation of a query reads and discards, in any number of requests and threads.

    Above ``WARN_READS`` it logs one warning, with the query in words. Above ``MAX_READS``, or the number of
    ``allow_reads()``, it raises ``TooManyReads`` when the page arrives, before an item of it is returned. If
    ``MAX_READS`` is not set, ``default_limit()`` decides.
    """

    def __init__(self, table: Table, plan: Plan) -> None:
        settings = cost_settings()
        self._read_from, self._plan = table, plan
        self._allowed = plan.query.allow_reads
        self._most = self._allowed
        if self._most is None:
            self._most = settings.max_reads if settings.sets_max_reads else default_limit()
        self._is_set = settings.sets_max_reads
        self._warns_past = settings.warn_reads if self._allowed is None else None
        self._shows_keys = settings.show_keys
        self._lock = threading.Lock()
        self.read = 0
        self.for_nothing = 0

    def take(self, answer: Response) -> None:
        """Count one page of a Query."""
        returned = int(answer["Count"])
        # A response that a test makes may lack the number of items read.
        read = int(answer.get("ScannedCount", returned))
        with self._lock:
            self.read += read
            self.for_nothing += read - returned
            warns = self._warns_past is not None and self.for_nothing > self._warns_past
            if warns:
                self._warns_past = None
            too_many = self._most is not None and self.for_nothing > self._most
        if warns:
            self._warn()
        if too_many:
            raise self._error()

    def _warn(self) -> None:
        label = self._plan.layout.label
        # The conditions of a query contain parts of keys.
        text = (
            explain.describe(self._plan, compile_plan(self._plan, table_name=self._read_from.name))
            if self._shows_keys
            else ""
        )
        logger.warning(
            "%s: discarded %d of %d items read so far%s%s",
            label,
            self.for_nothing,
            self.read,
            f"; the query reads the whole of {label}" if explain.reads_whole_model(self._plan) else "",
            f"\n{text}" if text else "",
            extra={
                "model": label,
                "items_read": self.read,
                "items_for_nothing": self.for_nothing,
                "reads_whole_model": explain.reads_whole_model(self._plan),
                "explanation": text,
            },
        )

    def _error(self) -> TooManyReads:
        label, most = self._plan.layout.label, self._most or 0
        allowed = "allow_reads() allowed"
        if self._allowed is None:
            where = "" if self._is_set else ", which DEBUG and tests set automatically,"
            allowed = f"MAX_READS in DYNAMO_SINGLE_COSTS{where} allows"
        whole = f" It reads the whole of {label}." if explain.reads_whole_model(self._plan) else ""
        return TooManyReads(
            f"{label}: the query read and discarded more than {most} items, and {allowed} {most}.{whole} Add a "
            "key that supports the query, request fewer objects, or raise the limit for this queryset with "
            ".allow_reads(n). explain() shows the requests.",
            limit=most,
        )
