"""The results of a benchmark as a value, a table of ratios and JSON, and the command line of all benchmarks."""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.harness.rounds import is_quiet, median_ratio

#: The control measures ours a second time, to show the noise of the machine.
OURS, CONTROL = "ours", "control"
PACKAGES = ("django", "botocore", "boto3", "pynamodb", "aiodynamo", "aiohttp", "pydynox", "orjson", "httptools")
#: If the median of the ratios and the ratio of the minima differ by more, both are printed.
AGREE = 1.25


@dataclass(frozen=True, slots=True)
class Size:
    """The amount of measuring. ``scale`` multiplies the numbers of calls."""

    name: str
    rounds: int
    scale: float

    def times(self, number: int) -> int:
        """Return a number of calls or objects at this size, at least one."""
        return max(1, round(number * self.scale))


SIZES = {size.name: size for size in (Size("tiny", 1, 0.01), Size("short", 9, 0.25), Size("full", 21, 1))}


@dataclass(frozen=True, slots=True)
class Row:
    """One operation: seconds or bytes of each side and round, and the baseline for the ratios."""

    name: str
    baseline: str
    taken: Mapping[str, list[float]]

    def ratio(self, side: str) -> tuple[float, float]:
        """Return the ratio of a side to the baseline: the median over the rounds, and the ratio of the minima."""
        these, those = self.taken[side], self.taken[self.baseline]
        return median_ratio(these, those), min(these) / min(those)

    @property
    def control(self) -> float | None:
        """The ratio of the two measurements of ours; ``None`` without a control."""
        return median_ratio(self.taken[CONTROL], self.taken[OURS]) if CONTROL in self.taken else None

    def as_json(self) -> dict[str, Any]:
        """Return the ratios, followed by every round."""
        ratios = {side: [round(each, 3) for each in self.ratio(side)] for side in self.taken}
        quiet = self.control is None or is_quiet(self.control)
        rounds = {side: [float(f"{each:.5g}") for each in found] for side, found in self.taken.items()}
        return {"name": self.name, "baseline": self.baseline, "conclusive": quiet, "ratios": ratios, "rounds": rounds}


@dataclass(frozen=True, slots=True)
class Report:
    """All rows of one benchmark. ``unit`` is the unit of the values; ``notes`` are sentences to print below."""

    question: str
    unit: str
    rows: list[Row]
    left_out: Mapping[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Return the whole report."""
        rows = [row.as_json() for row in self.rows]
        return {
            "question": self.question,
            "unit": self.unit,
            "rows": rows,
            "left_out": dict(self.left_out),
            "notes": self.notes,
        }


def versions() -> dict[str, str]:
    """Return the machine and the versions that were measured."""
    found = {"python": platform.python_version(), "machine": f"{platform.machine()}, {os.cpu_count()} cores"}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def as_text(numbers: Mapping[str, Any]) -> str:
    """Return JSON to keep: a line for each list of numbers, so that a new run changes few lines."""
    indented = json.dumps(numbers, indent=1, ensure_ascii=False)
    return re.sub(r"\[[-+.e\d,\s]*\]", lambda found: " ".join(found[0].split()), indented) + "\n"


def table(report: Mapping[str, Any]) -> str:
    """Return a report in its JSON layout as a Markdown table: ratios to the baseline, with its least value."""
    sides = list(dict.fromkeys(side for row in report["rows"] for side in row["ratios"]))
    lines = [f"| {report['question']} | {' | '.join(sides)} |", f"|---|{'---|' * len(sides)}"]
    for row in report["rows"]:
        cells = [_cell(row, side, report["unit"]) for side in sides]
        lines.append(f"| {row['name']}{'' if row['conclusive'] else ' (inconclusive)'} | {' | '.join(cells)} |")
    for side, reason in report["left_out"].items():
        lines.append(f"\nLeft out: {side}, {reason}")
    lines.extend(f"\n{note}" for note in report["notes"])
    return "\n".join(lines)


def _cell(row: Mapping[str, Any], side: str, unit: str) -> str:
    if side not in row["ratios"]:
        return ""
    if side == row["baseline"]:
        return f"1 ({_amount(min(row['rounds'][side]), unit)})"
    middle, least = row["ratios"][side]
    if side == CONTROL:
        middle, least = (part / whole for part, whole in zip(row["ratios"][side], row["ratios"][OURS], strict=True))
    agree = 1 / AGREE <= middle / least <= AGREE
    return f"{middle:.2f}" if agree else f"{middle:.2f} or {least:.2f}"


def _amount(value: float, unit: str) -> str:
    if unit == "bytes":
        return f"{value:,.0f} bytes"
    for factor, name in ((1, "s"), (1e3, "ms"), (1e6, "µs")):
        if value * factor >= 1:
            return f"{value * factor:,.3g} {name}"
    return f"{value:.3g} s"


def main(explanation: str | None, measure: Callable[[Size], Report]) -> None:
    """Measure at the size that the command line names, and print a table, or write JSON to a file."""
    parser = argparse.ArgumentParser(description=explanation)
    parser.add_argument("--size", choices=SIZES, default="short", help="how much is measured")
    parser.add_argument("--json", type=Path, help="a file that the numbers are written to")
    options = parser.parse_args()
    found = measure(SIZES[options.size]).as_json()
    if options.json:
        options.json.write_text(as_text({"versions": versions(), **found}))
    print(f"{', '.join(f'{name} {each}' for name, each in versions().items())}\n\n{table(found)}")
