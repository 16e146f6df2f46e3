"""Pictures of a sample as SVG: the table as on a whiteboard, the sizes of items, and the share of types and partitions.

They contain no script and no style, have the color of the page's text, and give each type a color of its own. This
module sends no requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from colorsys import hls_to_rgb
from math import log10
from typing import Any, Final

from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from msgspec import Struct

from dynamo_single.contrib.table_admin.pictures.sampling import SIZES

#: Returns a key as the user may see it.
ShownKey = Callable[[str, str], tuple[str, str]]

_CHARACTER: Final = 6.7
_LEFT: Final = 250
_BOX: Final = 168
_HEIGHT: Final = 40
_GAP: Final = 22
_ROW: Final = 26


def colors_of(types: Iterable[str]) -> dict[str, str]:
    """Return a color for each type, no two of them equal: hues at equal distances, in three shades."""
    found = sorted({*types})
    shades = (0.46, 0.58, 0.4)
    return {name: _color(number / max(len(found), 1), shades[number % 3]) for number, name in enumerate(found)}


def _color(hue: float, lightness: float) -> str:
    return "#" + "".join(f"{round(part * 255):02x}" for part in hls_to_rgb(hue, lightness, 0.6))


class _Box(Struct, frozen=True):
    x: int
    y: int
    item_type: str
    label: str
    text: str
    color: str


class _Arrow(Struct, frozen=True):
    path: str
    dash: str
    title: str


#: The dashes of the arrows, by relation.
_DASHES: Final[Mapping[str, str]] = {"reference": "none", "owner": "6 3", "source": "2 3", "counter": "8 3 2 3"}


def relation_labels() -> dict[str, str]:
    """Return the words for the arrows in the user's language."""
    return {"reference": _("Reference"), "owner": _("Claim of"), "source": _("Copied from"), "counter": _("Counted by")}


def whiteboard(drawn: Sequence[Any], arrows: Iterable[Any], shown: ShownKey, colors: Mapping[str, str]) -> SafeString:
    """Return the table as on a whiteboard: a row for each partition, with its items by sort key, and arrows."""
    rows: dict[str, list[int]] = {}
    for place, (partition, _sort, _type) in enumerate(drawn):
        rows.setdefault(partition, []).append(place)
    boxes: dict[int, _Box] = {}
    titles = []
    for row, places in enumerate(rows.values()):
        top = 40 + row * (_HEIGHT + _GAP)
        titles.append((top, _short(shown(drawn[places[0]][0], drawn[places[0]][1])[0], _LEFT - 24)))
        for column, place in enumerate(places):
            partition, sort, item_type = drawn[place]
            text = shown(partition, sort)[1]
            color = colors.get(item_type, "#888888")
            boxes[place] = _Box(
                _LEFT + column * (_BOX + _GAP),
                top,
                item_type,
                _short(item_type or "?", _BOX - 16),
                _short(text, _BOX - 16),
                color,
            )
    most = max((len(places) for places in rows.values()), default=1)
    labels = relation_labels()
    lines = [
        _Arrow(_path(boxes[start], boxes[end]), _DASHES[relation], labels[relation])
        for start, end, relation in arrows
        if start in boxes and end in boxes and relation in _DASHES
    ]
    used = [name for name in _DASHES if any(each[2] == name for each in arrows)]
    height = 40 + len(rows) * (_HEIGHT + _GAP)
    context = {
        "titles": titles,
        "boxes": [*boxes.values()],
        "arrows": lines,
        "legend": [(_LEFT + 90 + number * 130, _DASHES[name], labels[name]) for number, name in enumerate(used)],
        "left": _LEFT,
        "width": _LEFT + most * (_BOX + _GAP) + 10,
        "height": height,
        "box": (_BOX, _HEIGHT),
    }
    return render_to_string("dynamo_single/admin/table/whiteboard.svg", context)


def _path(start: _Box, end: _Box) -> str:
    """Return a curve between the edges of two boxes."""
    x, to = start.x + _BOX // 2, end.x + _BOX // 2
    if start.y == end.y:
        y, side = start.y + _HEIGHT, 16
        return f"M{x} {y} C{x} {y + side} {to} {y + side} {to} {y + 2}"
    down = end.y > start.y
    y, last = (start.y + _HEIGHT, end.y - 2) if down else (start.y, end.y + _HEIGHT + 2)
    middle = (y + last) // 2
    return f"M{x} {y} C{x} {middle} {to} {middle} {to} {last}"


def sizes(types: Sequence[Any], colors: Mapping[str, str]) -> SafeString:
    """Return the numbers of items by type and size, with the steps of 1 KB, a write unit, and 4 KB, a read unit."""
    width = 52
    rows = []
    for number, (name, _total, counts) in enumerate(types):
        top = 46 + number * _ROW
        most = max(counts) or 1
        cells = [
            (_LEFT + column * width, round(0.12 + 0.38 * log10(1 + 9 * count / most), 2), count)
            for column, count in enumerate(counts)
            if count
        ]
        rows.append((top, _short(name or "?", _LEFT - 24), colors.get(name, "#888888"), cells))
    steps = [
        (_LEFT + (SIZES.index(1024) + 1) * width, _("1 KB: another write unit"), "end", -6),
        (_LEFT + (SIZES.index(4096) + 1) * width, _("4 KB: another read unit"), "start", 6),
    ]
    context = {
        "rows": rows,
        "columns": [(_LEFT + column * width, _bytes(limit)) for column, limit in enumerate(SIZES)],
        "steps": steps,
        "cell": width,
        "bottom": 46 + len(rows) * _ROW,
        "width": _LEFT + len(SIZES) * width + 20,
        "height": 56 + len(rows) * _ROW,
    }
    return render_to_string("dynamo_single/admin/table/sizes.svg", context)


def shares(named: Iterable[tuple[str, int, int, str]], label: str) -> SafeString:
    """Return two bars for each name: its items and its bytes. Each tuple is a name, the numbers and a color."""
    found = [*named]
    most = max((items for _name, items, _size, _color in found), default=1) or 1
    largest = max((size for _name, _items, size, _color in found), default=1) or 1
    length = 220
    rows = [
        (
            30 + number * _ROW,
            _short(name or "?", _LEFT - 24),
            color,
            max(round(length * items / most), 1),
            items,
            max(round(length * size / largest), 1),
            size,
        )
        for number, (name, items, size, color) in enumerate(found)
    ]
    context = {
        "rows": rows,
        "label": label,
        "left": _LEFT,
        "right": _LEFT + length + 90,
        "width": _LEFT + 2 * (length + 90),
        "height": 40 + len(rows) * _ROW,
    }
    return render_to_string("dynamo_single/admin/table/shares.svg", context)


def _short(text: str, width: int) -> str:
    most = int(width / _CHARACTER)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _bytes(limit: int) -> str:
    return f"{limit} B" if limit < 1024 else f"{limit // 1024} KB"
