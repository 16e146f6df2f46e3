"""How many items the next page of a query reads, where a filter left too few of the last one. It sends nothing."""

from __future__ import annotations

import logging
import sys
import threading
from types import FrameType
from typing import Final

from django.conf import settings
from django.core.management.base import BaseCommand

from dynamo_single.conf import cost_settings
from dynamo_single.exceptions import TooManyReads
from dynamo_single.orm.plan.plan import Plan
from dynamo_single.orm.requests.compiler import compile_plan
from dynamo_single.orm.requests.explain import describe, reads_whole_model
from dynamo_single.table.request import MAX_PAGE_ITEMS, Response
from dynamo_single.table.table import Table

#: A page that a filter may empty grows by this factor each time, so that a rare match costs few requests.
PAGE_GROWTH = 4


def next_limit(limit: int) -> int:
    """How many items the next page reads, where the last one held too few matches: at most what a page can hold."""
    return min(limit * PAGE_GROWTH, MAX_PAGE_ITEMS)


# The limit of items read for nothing where a project is developed and tested, and does not set one.
#
# There a query that lists a whole model is found before production has the items that make it expensive. This module
# reads settings and Python's stack, and sends nothing.

#: The most items that one query may read for nothing.
MOST: Final = 5000
#: Where pages and jobs look through more on purpose.
_ADMINS: Final = ("django.contrib.admin.", "dynamo_single.admin.")

#: How the modules of commands begin that serve pages.
_SERVERS: Final = ("runserver", "testserver")


def limit() -> int | None:
    """Return ``MOST`` under ``DEBUG`` and in tests, and ``None`` in production, in the admin and in commands.

    Of a command its main thread counts too, which waits for the others. Commands that serve or test are none.
    """
    return MOST if (settings.DEBUG or _is_tested()) and not _is_exempt() else None


def _is_tested() -> bool:
    # ``setup_test_environment()``, which every runner calls, puts it there and takes it away.
    return hasattr(sys.modules.get("django.core.mail"), "outbox")


def _is_exempt() -> bool:
    main = sys._current_frames().get(threading.main_thread().ident or 0)
    own = _asked_by(sys._getframe())
    return (own or _asked_by(main)) == "exempt"


def _asked_by(frame: FrameType | None) -> str | None:
    """Return the nearest of what asks: ``exempt`` for the admin and a command, ``served`` for a server or a runner."""
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith(_ADMINS):
            return "exempt"
        if frame.f_code is BaseCommand.execute.__code__:
            name = type(frame.f_locals["self"]).__module__.rpartition(".")[2]
            return "served" if name == "test" or name.startswith(_SERVERS) else "exempt"
        frame = frame.f_back
    return None


# What one query may read for nothing: items that its filter leaves out are read, and paid for, all the same.
#
# A query of a key that lists a whole model costs what a scan costs, and nothing about it looks like one. This module
# adds up what the answers say, and sends nothing.

logger = logging.getLogger("dynamo_single.reads")


class Allowance:
    """Counts what one evaluation of a query reads for nothing, in any number of requests and threads.

    Past ``WARN_READS`` one warning is logged, with the query in words; past ``MAX_READS``, or what ``allow_reads()``
    said for this query, ``TooManyReads`` is raised when the page arrives, before an item of it is given. Where
    ``MAX_READS`` is not set, ``development.limit()`` decides.
    """

    def __init__(self, table: Table, plan: Plan) -> None:
        settings = cost_settings()
        self._read_from, self._plan = table, plan
        self._allowed = plan.query.allow_reads
        self._most = self._allowed
        if self._most is None:
            self._most = settings.max_reads if settings.sets_max_reads else limit()
        self._is_set = settings.sets_max_reads
        self._warns_past = settings.warn_reads if self._allowed is None else None
        self._shows_keys = settings.show_keys
        self._lock = threading.Lock()
        self.read = 0
        self.for_nothing = 0

    def take(self, answer: Response) -> None:
        """Add one page of a Query."""
        given = int(answer["Count"])
        # What a test answers in DynamoDB's place may not say how many items were looked at.
        read = int(answer.get("ScannedCount", given))
        with self._lock:
            self.read += read
            self.for_nothing += read - given
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
        # The conditions of a query hold what is in keys.
        text = (
            describe(self._plan, compile_plan(self._plan, table_name=self._read_from.name)) if self._shows_keys else ""
        )
        logger.warning(
            "%s: %d items were read for nothing so far, of %d that were read%s%s",
            label,
            self.for_nothing,
            self.read,
            f"; the query reads the whole of {label}" if reads_whole_model(self._plan) else "",
            f"\n{text}" if text else "",
            extra={
                "model": label,
                "items_read": self.read,
                "items_for_nothing": self.for_nothing,
                "reads_whole_model": reads_whole_model(self._plan),
                "explanation": text,
            },
        )

    def _error(self) -> TooManyReads:
        label, most = self._plan.layout.label, self._most or 0
        allowed = "allow_reads() allowed"
        if self._allowed is None:
            where = "" if self._is_set else ", which under DEBUG and in tests is set by itself,"
            allowed = f"MAX_READS in DYNAMO_SINGLE_COSTS{where} allows"
        whole = f" It reads the whole of {label}." if reads_whole_model(self._plan) else ""
        return TooManyReads(
            f"{label}: more than {most} items were read for nothing, and {allowed} {most}.{whole} Add a key that "
            "answers the query, ask for fewer objects, or allow more for this queryset: .allow_reads(n). explain() "
            "says how it is read.",
            limit=most,
        )
