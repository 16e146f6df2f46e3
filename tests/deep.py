"""Tests that `make test` leaves to `make test-deep`, which runs every test with the larger numbers (``TEST_DEEP=1``).

docs/reference/tests.md lists both; a test compares the page with the marks and numbers.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final, TypeVar

import pytest

T = TypeVar("T")

IS_DEEP = os.environ.get("TEST_DEEP", "") not in ("", "0")

#: A test, or a case of one, that only `make test-deep` runs: ``@deep``, or ``pytest.param(..., marks=deep)``.
deep = pytest.mark.deep

#: A test with a part of `make check`, for runs of only the tests: `make test` runs both.
by_make_check = pytest.mark.skipif("TEST_BESIDE_CHECKS" in os.environ, reason="make check does this beside the tests")


def examples(normal: int, deep: int, name: str = "") -> int:
    """Return the number of examples for a normal run, a deep run, or an environment variable."""
    return int(os.environ.get(name, 0)) or (deep if IS_DEEP else normal)


#: The number of the day, which selects today's cases. Child processes inherit it.
SEED: Final = int(os.environ.setdefault("TEST_SEED", str(datetime.now(UTC).toordinal())))
#: How many cases of one parametrized test `make test` runs.
CASES: Final = 3


def drawn(test: str, cases: Sequence[T], seed: int) -> Sequence[T]:
    """Return the cases of a test that a normal run of all tests makes: ``CASES``, or all if there are no more.

    A run of named files and a deep run make all of them.
    """
    if len(cases) <= CASES:
        return cases
    places = {*random.Random(f"{seed} {test}").sample(range(len(cases)), CASES)}
    return [case for place, case in enumerate(cases) if place in places]
