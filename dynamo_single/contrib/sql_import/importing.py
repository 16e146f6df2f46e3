"""Import the tables of a plan: page by page, referenced models first, waiting rows last.

Memory holds one page of rows. A temporary file holds the primary keys of waiting rows. One conditional write creates
each object with its dependent items, so the process can end at any time: a repeated import writes the missing objects.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any

from django.core.serializers.json import DjangoJSONEncoder

from dynamo_single.contrib.sql_import.mapping import Import, Plan
from dynamo_single.contrib.sql_import.report import Report, Tally
from dynamo_single.contrib.sql_import.rows import Converter, Row
from dynamo_single.contrib.sql_import.tables import Values
from dynamo_single.contrib.sql_import.writing import Writer
from dynamo_single.table.batches import Pace


def _new_file() -> IO[str]:
    return tempfile.TemporaryFile("w+")


class Waiting:
    """The primary keys of rows of a table whose references are not stored yet, in a temporary file."""

    def __init__(self, each: Import) -> None:
        self._import = each
        self._file = _new_file()
        self.number = 0

    def add(self, row: Row) -> None:
        """Add a row."""
        self._file.write(f"{json.dumps(row.pk, cls=DjangoJSONEncoder)}\n")
        self.number += 1

    def pages(self, size: int) -> Iterator[list[Values]]:
        """Yield the current rows, ``size`` at a time, and remove them. The caller can add rows in the meantime."""
        source = self._import.source
        fields = [source.columns[name].field for name in source.pk]
        waiting, self._file, self.number = self._file, _new_file(), 0
        with waiting:
            waiting.seek(0)
            keys: list[list[Any]] = []
            for line in waiting:
                keys.append([field.to_python(value) for field, value in zip(fields, json.loads(line), strict=True)])
                if len(keys) == size:
                    yield [*source.rows_of(keys)]
                    keys = []
            if keys:
                yield [*source.rows_of(keys)]

    def close(self) -> None:
        """Delete the file."""
        self._file.close()


class Importer:
    """Imports the tables of a plan, or compares them if ``writes`` is ``False``.

    ``size`` is the number of rows in memory, ``pace`` the limit of write units a second. It calls ``progress`` after
    each page.
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
        progress: Callable[[Import, Tally], object] = lambda each, tally: None,
    ) -> None:
        self.plan = plan
        self.converter = converter
        self.report = report
        self.size = size
        self.writes = writes
        self.pace = pace or Pace()
        self.progress = progress

    def run(self) -> None:
        """Import all tables, then the rows that waited for later tables."""
        waiting = {id(each): Waiting(each) for each in self.plan.imports}
        with self.pace.counting():
            try:
                for each in self.plan.imports:
                    self._pass(each, each.source.pages(self.size), waiting[id(each)])
                    # Rows that refer to rows of their own table.
                    self._retry(each, waiting[id(each)])
                self._finish(waiting)
            finally:
                for held in waiting.values():
                    held.close()

    def _finish(self, waiting: dict[int, Waiting]) -> None:
        """Retry the waiting rows while this stores any of them, then refuse the others."""
        while (before := sum(held.number for held in waiting.values())) > 0:
            for each in self.plan.imports:
                self._retry(each, waiting[id(each)])
            if sum(held.number for held in waiting.values()) == before:
                break
        for each in self.plan.imports:
            held = waiting[id(each)]
            self._pass(each, held.pages(self.size), held, is_last=True)

    def _retry(self, each: Import, waiting: Waiting) -> None:
        before = 0
        while waiting.number not in (0, before):
            before = waiting.number
            self._pass(each, waiting.pages(self.size), waiting)

    def _pass(
        self, each: Import, pages: Iterator[Sequence[Values]], waiting: Waiting, *, is_last: bool = False
    ) -> None:
        """Import some pages of a table; rows without their references wait, or are refused if it ``is_last``."""
        writer = Writer(each.model, self.writes)
        for page in pages:
            self.pace.before("BatchWriteItem")
            rows = self.converter.rows(each, page)
            writer.write(rows)
            for row in rows:
                if row.outcome == "deferred" and not is_last:
                    waiting.add(row)
                    continue
                if row.outcome == "deferred":
                    row.settle("refused", row.reason)
                self.report.add(each, row)
            self.progress(each, self.report.of(each))
