"""The pauses between attempts: how long they are at most, and that a lower bound is one at once."""

from __future__ import annotations

import random

import pytest

from dynamo_single.table import flow, table


@pytest.fixture
def paused(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The longest that each pause could have been."""
    found: list[float] = []

    async def pause(seconds: float) -> None:
        found.append(seconds)

    monkeypatch.setattr(flow, "pause", pause)
    monkeypatch.setattr(random, "uniform", lambda least, most: most)
    return found


def test_a_pause_is_longer_after_each_attempt(paused: list[float]) -> None:
    """Up to a bound."""
    for attempt in range(8):
        flow.run(table.pause_after(attempt))
    assert paused == [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0]


def test_a_bound_that_is_lowered_holds_at_once(paused: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that let a table refuse everything would sleep for minutes."""
    monkeypatch.setattr(table, "LONGEST_PAUSE", 0.0)
    flow.run(table.pause_after(5))
    flow.run(table.pause_after(5, 0.4))
    assert paused == [0.0, 0.4]
