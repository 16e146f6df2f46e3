"""The ratios of one report as an SVG chart, with a group of bars for each operation and a bar for each side.

The scale is logarithmic, and bars begin at the floor: bars to the right cost more, bars to the left cost less. Okabe
and Ito chose the colors so that color-blind readers can distinguish them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

COLOURS = ("#999999", "#56b4e9", "#e69f00", "#f0e442", "#009e73", "#cc79a7", "#0072b2")
OURS_COLOUR = "#d55e00"
#: Pixels: the labels at the left, the bars' greatest length, a bar, and the space between groups.
LEFT, WIDTH, BAR, GAP, TOP, RIGHT = 250, 560, 9, 12, 64, 70
LEAST = 0.25
TICKS = (0.25, 0.5, 1, 2, 5, 10, 20, 50, 100)


def chart(report: Mapping[str, Any], sides: Sequence[str], ours: str) -> str:
    """Return the chart of a report in its JSON layout, with these sides in this order."""
    most = max(row["ratios"][side][0] for row in report["rows"] for side in sides if side in row["ratios"])
    scale = WIDTH / math.log(most / LEAST)

    def place(ratio: float) -> float:
        return LEFT + scale * math.log(max(ratio, LEAST) / LEAST)

    colours = {side: OURS_COLOUR if side == ours else COLOURS[at % len(COLOURS)] for at, side in enumerate(sides)}
    parts, y = list(_legend(colours)), float(TOP)
    for row in report["rows"]:
        measured = [side for side in sides if side in row["ratios"]]
        middle = y + BAR * len(measured) / 2 + 4
        parts.append(f'<text x="{LEFT - 8}" y="{middle:.1f}" text-anchor="end">{escape(row["name"])}</text>')
        for side in measured:
            ratio = row["ratios"][side][0]
            begin, end = sorted((place(1), place(ratio)))
            place_and_size = f'x="{begin:.1f}" y="{y:.1f}" width="{end - begin:.1f}" height="{BAR - 1}"'
            parts.append(
                f'<rect {place_and_size} fill="{colours[side]}"/>'
                f'<text x="{end + 3:.1f}" y="{y + BAR - 1.5:.1f}" font-size="8">{ratio:.2f}</text>'
            )
            y += BAR
        y += GAP
    ticks = [tick for tick in TICKS if tick <= most]
    lines = [_tick(place(tick), y - GAP, tick) for tick in ticks]
    body = "\n".join([*lines, *parts])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + RIGHT} {y + GAP:.0f}" role="img" '
        f'font-family="sans-serif" font-size="12" fill="#24292f">\n<title>{escape(report["question"])}</title>\n'
        f'<rect width="100%" height="100%" fill="#ffffff"/>\n{body}\n</svg>\n'
    )


def _legend(colours: Mapping[str, str]) -> list[str]:
    parts, x = [], LEFT
    for side, colour in colours.items():
        parts.append(f'<rect x="{x}" y="12" width="10" height="10" fill="{colour}"/>')
        parts.append(f'<text x="{x + 14}" y="21">{escape(side)}</text>')
        x += 28 + 7 * len(side)
    return parts


def _tick(x: float, bottom: float, ratio: float) -> str:
    broad, label = (1.5, "1, the floor") if ratio == 1 else (0.5, f"{ratio:g}")
    line = f'<line x1="{x:.1f}" y1="{TOP - 8}" x2="{x:.1f}" y2="{bottom:.1f}" stroke="#888888" stroke-width="{broad}"/>'
    return f'{line}<text x="{x:.1f}" y="{TOP - 14}" text-anchor="middle" font-size="10">{label}</text>'
