"""Run all benchmarks; write one JSON file, one page of tables and a picture of the operations.

``python -m benchmarks.all [--size tiny|short|full] [--to FOLDER] [--only QUESTION ...]`` writes ``numbers.json``,
``tables.md`` and ``operations.svg``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.harness.chart import chart
from benchmarks.harness.report import CONTROL, OURS, SIZES, as_text, table, versions

ROOT = Path(__file__).resolve().parents[1]
QUESTIONS = ("operations", "memory", "start", "threads", "concurrency", "waiting", "changelist", "login")
#: The sides in the picture: the alternatives for a project.
DRAWN = ("boto3 resource", "PynamoDB", "aiodynamo", "pydynox", "Django, SQLite", OURS)


def ask(question: str, size: str, folder: Path) -> dict[str, Any]:
    """Run one benchmark in a separate process, and return its results."""
    if size == "tiny":  # the numbers do not matter, so all benchmarks may share this process
        return import_module(f"benchmarks.{question}.run").measure(SIZES[size]).as_json()
    written = folder / f"{question}.json"
    command = (sys.executable, "-m", f"benchmarks.{question}.run", "--size", size, "--json", str(written))
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    found: dict[str, Any] = json.loads(written.read_text())
    written.unlink()
    return {name: value for name, value in found.items() if name != "versions"}


def page(found: dict[str, Any]) -> str:
    """Return all tables, with the versions that were measured."""
    taken = ", ".join(f"{name} {each}" for name, each in found["versions"].items())
    tables = "\n\n".join(table(report) for report in found["questions"].values())
    return (
        f"# Benchmarks, {found['size']}, {found['date']}\n\n{taken}.\n\n"
        "Each number is a multiple of the column with 1, with its least amount in brackets: the median over the "
        "rounds, and the ratio of the minima where it is another. The control is ours a second time, by ours.\n\n"
        f"{tables}\n"
    )


def main() -> None:
    """Run all benchmarks and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", choices=SIZES, default="short", help="how much is measured")
    parser.add_argument("--to", type=Path, default=ROOT / "var" / "benchmarks", help="the folder that is written to")
    parser.add_argument("--only", nargs="+", choices=QUESTIONS, default=QUESTIONS, help="not all questions")
    options = parser.parse_args()
    options.to.mkdir(parents=True, exist_ok=True)
    questions = {}
    for question in options.only:
        questions[question] = ask(question, options.size, options.to)
        print(table(questions[question]), end="\n\n", flush=True)
    taken = {"date": f"{datetime.now(UTC):%Y-%m-%d}", "size": options.size, "versions": versions()}
    found = {**taken, "questions": questions}
    (options.to / "numbers.json").write_text(as_text(found))
    (options.to / "tables.md").write_text(page(found))
    if operations := questions.get("operations"):
        measured = {side for row in operations["rows"] for side in row["ratios"]} - {CONTROL}
        drawn = [side for side in DRAWN if side in measured]
        (options.to / "operations.svg").write_text(chart(operations, drawn, OURS))
    print(f"Written to {options.to}.")


if __name__ == "__main__":
    main()
