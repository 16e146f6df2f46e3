"""Cells of CSV files that spreadsheet programs show as text."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Final

#: Spreadsheet programs take a cell with such a beginning for a formula, even in quotes (OWASP, "CSV Injection").
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def quoted(text: str) -> str:
    """Return a cell that no spreadsheet program takes for a formula: an apostrophe precedes its first character."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def as_csv(rows: Iterable[Sequence[str]]) -> str:
    """Return rows of cells as CSV; the cells are written unchanged."""
    out = io.StringIO()
    csv.writer(out).writerows(rows)
    return out.getvalue()
