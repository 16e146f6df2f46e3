"""Compare cases by the CPU of this process. Runs are interleaved, and each round starts with another case."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any

#: If a control's ratio is outside these limits, the machine was too busy for a result.
QUIET = (0.9, 1.1)


def rounds(
    cases: Mapping[str, Callable[[], Any]], *, count: int, repeat: int, clock: Callable[[], float] = time.process_time
) -> dict[str, list[float]]:
    """Return the seconds of one call of each case, for each round. Collect garbage between cases, unmeasured.

    The clock is the CPU of this process with all its threads. To measure waiting, pass ``time.perf_counter``.
    """
    names = list(cases)
    taken: dict[str, list[float]] = {name: [] for name in names}
    for number in range(count):
        start = number % len(names)
        for name in names[start:] + names[:start]:
            case = cases[name]
            gc.collect()
            started = clock()
            for _ in range(repeat):
                case()
            taken[name].append((clock() - started) / repeat)
    return taken


def single_calls(cases: Mapping[str, Callable[[], Any]], *, count: int) -> dict[str, list[float]]:
    """Return the seconds of single calls of each case, one in each round, by the CPU of this thread.

    Use it if the difference of the cases is smaller than the noise of ``rounds()``. The calls of a round are so close
    together that the load of the machine is the same for all, and the median of their differences removes the rest.
    """
    names = list(cases)
    taken: dict[str, list[float]] = {name: [] for name in names}
    gc.collect()
    gc.disable()
    try:
        for number in range(count):
            # Other neighbors too: a case runs faster after one that shares its data.
            step = 1 + number // len(names) % (len(names) - 1)
            for place in range(len(names)):
                name = names[(number + place * step) % len(names)]
                case = cases[name]
                started = time.thread_time_ns()
                case()
                taken[name].append((time.thread_time_ns() - started) / 1e9)
    finally:
        gc.enable()
    return taken


def asked(cases: Mapping[str, Callable[[], float]], *, count: int) -> dict[str, list[float]]:
    """Return the results of cases that measure themselves, like other processes. Each call returns seconds or bytes."""
    names = list(cases)
    taken: dict[str, list[float]] = {name: [] for name in names}
    for number in range(count):
        start = number % len(names)
        for name in names[start:] + names[:start]:
            taken[name].append(cases[name]())
    return taken


def settle() -> None:
    """Exclude all existing objects from garbage collection."""
    gc.collect()
    gc.freeze()


def median_ratio(these: list[float], those: list[float]) -> float:
    """Return the median of the ratios of each round."""
    return median(this / that for this, that in zip(these, those, strict=True))


def median_difference(these: list[float], those: list[float]) -> float:
    """Return the median of the differences of each round."""
    return median(this - that for this, that in zip(these, those, strict=True))


def is_quiet(ratio: float) -> bool:
    """Return whether the ratio of a control is near enough to 1."""
    return QUIET[0] <= ratio <= QUIET[1]
