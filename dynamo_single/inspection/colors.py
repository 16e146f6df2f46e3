"""A colour for each type of items, the same on every page and in every picture."""

from __future__ import annotations

from typing import Final
from zlib import crc32

#: Twelve colours that differ for most people, on light and on dark; ``table.css`` has them by their numbers.
COLORS: Final = (
    "#4e79a7",
    "#f28e2b",
    "#e15759",
    "#76b7b2",
    "#59a14f",
    "#edc948",
    "#b07aa1",
    "#ff9da7",
    "#9c755f",
    "#86bcb6",
    "#8cd17d",
    "#d37295",
)


def number_of(name: str) -> int:
    """The number of a type's colour."""
    return crc32(name.encode()) % len(COLORS)


def color_of(name: str) -> str:
    """A type's colour."""
    return COLORS[number_of(name)]
