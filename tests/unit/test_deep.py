"""A run of all tests draws the cases of a test that has many, and draws others on other days."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.internal.conjecture import engine

from tests.deep import CASES, drawn

ALL = range(3 * CASES)


def cases_of(seed: int) -> Sequence[int]:
    """The cases that a run of this seed makes."""
    return drawn("tests/test_a.py::test_b", ALL, seed)


def test_a_run_makes_the_number_of_cases() -> None:
    assert len(cases_of(1)) == CASES


def test_two_workers_draw_the_same_cases() -> None:
    assert cases_of(1) == cases_of(1)


def test_every_case_comes_within_a_month() -> None:
    assert {*ALL} == {each for seed in range(30) for each in cases_of(seed)}


def test_a_test_with_few_cases_keeps_them_all() -> None:
    assert drawn("tests/test_a.py::test_b", ALL[:CASES], 1) == ALL[:CASES]


def test_a_failure_is_reduced_within_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """tests/conftest.py sets the bound: Hypothesis' own is five minutes."""
    assert engine.MAX_SHRINKING_SECONDS == 30
    monkeypatch.setattr(engine, "MAX_SHRINKING_SECONDS", 0.1)
    tried: list[int] = []

    @given(st.lists(st.integers(0, 1000), min_size=30))
    def fails(numbers: list[int]) -> None:
        tried.append(len(numbers))
        time.sleep(0.01)
        assert len({*numbers}) < 10

    with pytest.raises(AssertionError):
        fails()
    assert len(tried) < 50
