"""The pace of requests: the pause before the next one, after earlier consumption."""

from __future__ import annotations

import pytest

from dynamo_single.table.batches import Pace, Rate, pause_for


@pytest.mark.parametrize(
    ("consumed", "seconds", "rate", "pause"),
    [(100, 1, None, 0), (100, 1, 50, 1), (100, 2, 50, 0), (100, 9, 50, 0), (5, 0, 10, 0.5)],
)
def test_the_pace(consumed: float, seconds: float, rate: float | None, pause: float) -> None:
    """After the consumption so far, this number of seconds must pass."""
    assert pause_for(consumed, seconds, rate) == pause


class Clock:
    """A time that a test sets."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def test_a_rate_waits_for_what_was_too_much() -> None:
    """A pause of three seconds, less the elapsed time, follows a request with three seconds' units."""
    clock = Clock()
    rate = Rate(10, now=clock)
    rate.count(30)
    clock.seconds += 1
    assert rate.pause() == pytest.approx(2)


def test_a_pause_is_followed_by_no_burst() -> None:
    """After an idle minute, only one second's units can be caught up."""
    clock = Clock()
    rate = Rate(10, now=clock)
    clock.seconds += 60
    assert rate.pause() == 0
    rate.count(30)
    assert rate.pause() == pytest.approx(2)


def test_no_rate_never_waits() -> None:
    """Without a number of units there is no pause, but consumption is counted."""
    rate = Rate(None, now=Clock())
    rate.count(1_000_000)
    assert (rate.pause(), rate.consumed) == (0, 1_000_000)


def test_reads_and_writes_have_rates_of_their_own() -> None:
    """A write that was too fast delays the next write, but no read."""
    waited: list[float] = []
    pace = Pace(reads=10, writes=10, wait=waited.append)
    pace.writes.count(1000)
    pace.before("Scan")
    assert waited == []
    pace.before("UpdateItem")
    assert waited == [pytest.approx(100, abs=5)]
