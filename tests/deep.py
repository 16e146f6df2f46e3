"""What `make test` leaves to `make test-deep`, which runs every test with the larger numbers (``TEST_DEEP=1``).

docs/reference/tests.md lists both; a test compares the page with what is marked and numbered.
"""

from __future__ import annotations

import os

import pytest

IS_DEEP = os.environ.get("TEST_DEEP", "") not in ("", "0")

#: A test, or a case of one, that only `make test-deep` runs: ``@deep``, or ``pytest.param(..., marks=deep)``.
deep = pytest.mark.deep

#: A test that does what `make check` does, for those who run the tests alone: `make test` runs both.
by_make_check = pytest.mark.skipif("TEST_BESIDE_CHECKS" in os.environ, reason="make check does this beside the tests")


def examples(normal: int, deep: int, name: str = "") -> int:
    """How many examples to try: in a normal run, in a deep one, or as an environment variable says."""
    return int(os.environ.get(name, 0)) or (deep if IS_DEEP else normal)
