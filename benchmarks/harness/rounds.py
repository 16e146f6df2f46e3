"""Cases measured against each other: interleaved, each round starting with another one, by the CPU of this process."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any

#: A control that differs from itself by more says that the machine was too busy to tell.
QUIET = (0.9, 1.1)


def rounds(
    cases: Mapping[str, Callable[[], Any]], *, count: int, repeat: int, clock: Callable[[], float] = time.process_time
) -> dict[str, list[float]]:
    """The seconds of one call of each case, for each round. Garbage is collected between cases, off the clock.

    The clock is the CPU of this process with all its threads; where waiting is the question, ``time.perf_counter``.
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


def asked(cases: Mapping[str, Callable[[], float]], *, count: int) -> dict[str, list[float]]:
    """The same for cases that measure themselves, as other processes do: each call returns its seconds or bytes."""
    names = list(cases)
    taken: dict[str, list[float]] = {name: [] for name in names}
    for number in range(count):
        start = number % len(names)
        for name in names[start:] + names[:start]:
            taken[name].append(cases[name]())
    return taken


def settle() -> None:
    """Take what was made up to now out of the collector's sight."""
    gc.collect()
    gc.freeze()


def median_ratio(these: list[float], those: list[float]) -> float:
    """The median of the ratios of each round."""
    return median(this / that for this, that in zip(these, those, strict=True))


def is_quiet(ratio: float) -> bool:
    """Whether a control came out near enough to 1."""
    return QUIET[0] <= ratio <= QUIET[1]
