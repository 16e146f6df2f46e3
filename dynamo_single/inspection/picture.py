"""The access patterns as a picture: a box for the table and each index, a row for each key. SVG, for pages and print.

Colours are given as fills that a dark page can read too; texts take the page's colour.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from django.template.loader import render_to_string
from msgspec import Struct

from dynamo_single.inspection.colors import color_of
from dynamo_single.inspection.patterns import IndexPatterns, Pattern

_CHARACTER: Final = 7.4
_ROW: Final = 24
_PADDING: Final = 12
_GAP: Final = 28


class _Row(Struct, frozen=True):
    """A key with its place from above."""

    pattern: Pattern
    top: int
    middle: int
    color: str


class _Box(Struct, frozen=True):
    """The table or an index with its rows."""

    title: str
    top: int
    height: int
    rows: tuple[_Row, ...]


def picture(indexes: Sequence[IndexPatterns]) -> str:
    """The SVG text of some patterns, as wide as the longest keys need; no script, no style of the page's."""
    found = [pattern for each in indexes for pattern in each.patterns]
    widths = [
        max((len(text) for text in texts), default=0) * _CHARACTER + 2 * _PADDING
        for texts in (
            [f"{pattern.label} {pattern.name}" for pattern in found],
            [pattern.partition for pattern in found],
            [pattern.sort for pattern in found],
        )
    ]
    boxes = []
    top = _PADDING
    for each in indexes:
        first = top + _ROW
        rows = tuple(
            _Row(pattern, first + number * _ROW, first + number * _ROW + _ROW // 2 + 4, color_of(pattern.item_type))
            for number, pattern in enumerate(each.patterns)
        )
        boxes.append(_Box(each.index, top, _ROW * (len(rows) + 1), rows))
        top += _ROW * (len(rows) + 1) + _GAP
    columns = [_PADDING, _PADDING + widths[0], _PADDING + widths[0] + widths[1]]
    width = columns[2] + widths[2] + _PADDING
    context = {"boxes": boxes, "columns": columns, "width": round(width), "height": top, "inner": width - 2 * _PADDING}
    return render_to_string("dynamo_single/admin/table/patterns.svg", context)
