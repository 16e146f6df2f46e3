"""What one query may read for nothing: items that its filter leaves out are read, and paid for, all the same.

A query of a key that lists a whole model costs what a scan costs, and nothing about it looks like one. This module adds
up what the answers say, and sends nothing.
"""

from __future__ import annotations

import logging
import threading

from dynamo_single.conf import cost_settings
from dynamo_single.exceptions import TooManyReads
from dynamo_single.orm.conditions.terms import EVERYTHING
from dynamo_single.orm.plan.plan import Plan
from dynamo_single.orm.reading import development
from dynamo_single.orm.requests.compiler import compile_plan
from dynamo_single.orm.requests.description import describe, reads_whole_model
from dynamo_single.table.items import Response
from dynamo_single.table.table import Table

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
            self._most = settings.max_reads if settings.sets_max_reads else development.limit()
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


def allowance_of(table: Table, plan: Plan) -> Allowance | None:
    """What counts for a plan; ``None`` where nothing is read for nothing, or ``allow_scan()`` allowed everything."""
    if plan.kind == "union":
        counts = any(part.kind == "query" and part.filter != EVERYTHING for part in plan.parts)
    else:
        counts = plan.kind == "query" and plan.filter != EVERYTHING
    return Allowance(table, plan) if counts else None
