"""A run of all tests draws the cases of a test that has many, and draws others on other days."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tests.deep import CASES, beyond_sample

ITEMS: list[Any] = [SimpleNamespace(nodeid=f"tests/test_a.py::test_b[{number}]") for number in range(3 * CASES)]


def drawn(seed: int) -> set[str]:
    """The cases that a run of this seed keeps."""
    return {each.nodeid for each in ITEMS} - {each.nodeid for each in beyond_sample(ITEMS, seed)}


def test_a_run_keeps_the_number_of_cases() -> None:
    assert len(drawn(1)) == CASES


def test_two_workers_draw_the_same_cases() -> None:
    assert drawn(1) == drawn(1)


def test_every_case_comes_within_a_month() -> None:
    assert len(set().union(*map(drawn, range(30)))) == len(ITEMS)


def test_a_test_with_few_cases_keeps_them_all() -> None:
    assert beyond_sample(ITEMS[:CASES], 1) == []
