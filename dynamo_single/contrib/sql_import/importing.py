"""Import the tables of a plan: page by page, referenced models first, waiting rows last.

Memory holds one page of rows. A temporary file holds the primary keys of waiting rows. One conditional write creates
each object with its dependent items, so the process can end at any time: a repeated import writes the missing objects.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from typing import IO, Any

from django.core.serializers.json import DjangoJSONEncoder

from dynamo_single.contrib.sql_import.mapping import Import, Plan
from dynamo_single.contrib.sql_import.report import Report
from dynamo_single.contrib.sql_import.rows import Converter, Row
from dynamo_single.contrib.sql_import.tables import Values
from dynamo_single.contrib.sql_import.writing import Writer
from dynamo_single.table.batches import Pace


class Waiting:
    """The primary keys of rows whose references are not stored yet, in a temporary file."""

    def __init__(self) -> None:
        self._file: IO[str] = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed with the import
        self.number = 0

    def add(self, row: Row) -> None:
        """Add a row."""
        self._file.write(f"{json.dumps(row.pk, cls=DjangoJSONEncoder)}\n")
        self.number += 1

    def pages(self, each: Import, size: int) -> Iterator[list[Values]]:
        """Yield the current rows, ``size`` at a time."""
        self._file.seek(0)
        fields = [each.source.columns[name].field for name in each.source.pk]
        keys: list[list[Any]] = []
        for line in self._file:
            keys.append([field.to_python(value) for field, value in zip(fields, json.loads(line), strict=True)])
            if len(keys) == size:
                yield [*each.source.rows_of(keys)]
                keys = []
        if keys:
            yield [*each.source.rows_of(keys)]

    def close(self) -> None:
        """Delete the file."""
        self._file.close()


class Importer:
    """Imports the tables of a plan, or compares them if ``writes`` is ``False``.

    ``size`` is the number of rows in memory, ``pace`` the limit of write units a second.
    """

    def __init__(
        self,
        plan: Plan,
        converter: Converter,
        report: Report,
        *,
        size: int,
        writes: bool = True,
        pace: Pace | None = None,
    ) -> None:
        self.plan = plan
        self.converter = converter
        self.report = report
        self.size = size
        self.writes = writes
        self.pace = pace or Pace()

    def run(self) -> None:
        """Import all tables, then the rows that waited for later tables."""
        waiting: dict[int, Waiting] = {}
        with self.pace.counting():
            try:
                for each in self.plan.imports:
                    waiting[id(each)] = self._pass(each, each.source.pages(self.size), Waiting())
                    # Rows that refer to rows of their own table.
                    waiting[id(each)] = self._again(each, waiting[id(each)])
                self._finish(waiting)
            finally:
                for each_waiting in waiting.values():
                    each_waiting.close()

    def _finish(self, waiting: dict[int, Waiting]) -> None:
        """Retry the waiting rows while this stores any of them, then refuse the others."""
        while (before := sum(each.number for each in waiting.values())) > 0:
            for each in self.plan.imports:
                waiting[id(each)] = self._again(each, waiting[id(each)])
            if sum(each.number for each in waiting.values()) == before:
                break
        for each in self.plan.imports:
            left = waiting[id(each)]
            if left.number:
                waiting[id(each)] = self._pass(each, left.pages(each, self.size), left, is_last=True)

    def _again(self, each: Import, left: Waiting) -> Waiting:
        while left.number:
            before = left.number
            following = self._pass(each, left.pages(each, self.size), Waiting())
            left.close()
            left = following
            if left.number == before:
                break
        return left

    def _pass(
        self, each: Import, pages: Iterator[Sequence[Values]], later: Waiting, *, is_last: bool = False
    ) -> Waiting:
        """Import some pages of a table; return the waiting rows."""
        writer = Writer(each.model, self.writes)
        for page in pages:
            self.pace.before("BatchWriteItem")
            rows = self.converter.rows(each, page)
            writer.write(rows)
            for row in rows:
                if row.outcome == "deferred" and not is_last:
                    later.add(row)
                    continue
                if row.outcome == "deferred":
                    row.settle("refused", row.reason)
                self.report.add(each, row)
        return later
