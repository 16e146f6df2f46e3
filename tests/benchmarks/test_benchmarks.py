"""Each benchmark runs at a size without useful numbers, so none is asserted."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from benchmarks.all import DRAWN, QUESTIONS, page
from benchmarks.harness.chart import chart
from benchmarks.harness.report import CONTROL, OURS, Report, Row, table
from tests import children
from tests.deep import IS_DEEP, deep

#: Benchmarks that are slow at any size: one counts Python's allocations, and the others start processes.
LONG = ("memory", "start", "changelist")


def known() -> dict[str, str]:
    """Return the environment without pytest's settings."""
    return {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the output of ``benchmarks.all``, in a separate process, since it freezes all objects."""
    folder = tmp_path_factory.mktemp("benchmarks")
    asked = [question for question in QUESTIONS if IS_DEEP or question not in LONG]
    ended = children.run(["-m", "benchmarks.all", "--size", "tiny", "--to", str(folder), "--only", *asked], env=known())
    assert ended.returncode == 0, ended.stderr
    return folder


@pytest.mark.parametrize("question", [pytest.param(each, marks=deep) if each in LONG else each for each in QUESTIONS])
def test_every_question_is_answered_for_ours_and_its_control(written: Path, question: str) -> None:
    """A report has a row for each case, with ours, the control and the baseline in it."""
    report = json.loads((written / "numbers.json").read_text())["questions"][question]
    assert report["rows"]
    for row in report["rows"]:
        assert {OURS, CONTROL, row["baseline"]} <= row["rounds"].keys()


def test_operations_are_compared_with_every_side_that_is_installed(written: Path) -> None:
    """Packages in the tests' own requirements are always included."""
    report = json.loads((written / "numbers.json").read_text())["questions"]["operations"]
    assert {"floor", "raw socket", "PynamoDB", "Django, SQLite", OURS} <= report["rows"][0]["ratios"].keys()


def test_tables_and_a_picture_are_written_beside_the_numbers(written: Path) -> None:
    """Made of the numbers."""
    assert (written / "tables.md").read_text() == page(json.loads((written / "numbers.json").read_text()))
    assert (written / "operations.svg").read_text().startswith("<svg")


def _report() -> Report:
    seconds = {"floor": [1.0, 2.0], "PynamoDB": [7.0, 8.0], OURS: [2.0, 4.0], CONTROL: [2.0, 5.0]}
    return Report("What does it cost?", "seconds", [Row("get", "floor", seconds)], {"pydynox": "which is not here."})


def test_a_table_has_ratios_to_the_baseline() -> None:
    """The table has the baseline's minimum, the others' medians, both ratios if they differ, and omitted cases."""
    assert table(_report().as_json()) == (
        "| What does it cost? | floor | PynamoDB | ours | control |\n"
        "|---|---|---|---|---|\n"
        "| get (inconclusive) | 1 (1 s) | 5.50 or 7.00 | 2.00 | 1.12 |\n\n"
        "Left out: pydynox, which is not here."
    )


def test_a_picture_has_a_bar_for_each_side() -> None:
    """Sides without a number have none."""
    picture = chart(_report().as_json(), [side for side in DRAWN if side in ("PynamoDB", OURS)], OURS)
    assert picture.count("<rect") == 5  # two in the legend, and the background
    assert ">5.50<" in picture


def test_waiting_for_shards_is_measured() -> None:
    """Each query has a row with the items read and returned, for the engine and for replayed responses."""
    ended = children.run(["-m", "benchmarks.shards.run", "120", "2"], env=known())
    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.splitlines()
    assert [line.rpartition(", ")[2] for line in lines[::6]] == ["answered by the engine", "answers replayed"]
    counted = [line.split() for line in (lines[5], lines[11])]
    assert [row[1:4] for row in counted] == [["2", "120", "120"]] * 2
    assert len(lines) == 12
