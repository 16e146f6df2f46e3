"""Count the outcomes of an import, and list refused rows without their values."""

from __future__ import annotations

import json
from collections import Counter
from typing import IO, Final

from msgspec import Struct, field

from dynamo_single.contrib.sql_import.mapping import Import
from dynamo_single.contrib.sql_import.rows import Row

#: The maximum numbers of rows and reasons in the output, for each table.
SHOWN: Final = 10
MAX_REASONS: Final = 100


class Tally(Struct):
    """The outcomes of one table's rows. ``examples`` contains the first refused or different rows.

    ``announced`` is the number of rows in the last message about progress.
    """

    announced: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)

    @property
    def rows(self) -> int:
        """The number of rows that have an outcome."""
        return sum(self.outcomes.values())

    @property
    def problems(self) -> int:
        """The number of refused or different rows."""
        return self.outcomes["refused"] + self.outcomes["different"]

    def add(self, row: Row) -> None:
        """Count a row."""
        outcome = row.outcome or "refused"
        self.outcomes[outcome] += 1
        if outcome not in ("refused", "different"):
            return
        reason = row.reason if row.reason in self.reasons or len(self.reasons) < MAX_REASONS else "other reasons"
        self.reasons[reason] += 1
        if len(self.examples) < SHOWN:
            self.examples.append(f"{outcome}: {row.shown_pk}: {row.reason}")


class Report:
    """Counts rows, and writes refused or different rows to a file as JSON lines."""

    def __init__(self, rejects: IO[str] | None = None) -> None:
        self.tallies: dict[str, Tally] = {}
        self._rejects = rejects

    def of(self, each: Import) -> Tally:
        """Return the numbers of a table."""
        return self.tallies.setdefault(f"{each.source.label} -> {each.model._meta.label}", Tally())

    def add(self, each: Import, row: Row) -> None:
        """Count a row."""
        self.of(each).add(row)
        if self._rejects is not None and row.outcome in ("refused", "different"):
            line = {
                "table": each.source.table,
                "model": each.model._meta.label,
                "pk": row.shown_pk,
                "outcome": row.outcome,
                "reason": row.reason,
            }
            self._rejects.write(f"{json.dumps(line)}\n")

    @property
    def problems(self) -> int:
        """The number of refused or different rows of all tables."""
        return sum(tally.problems for tally in self.tallies.values())
