"""Many small cases in one test: a failure names its case."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def case(*name: object) -> Iterator[None]:
    """Add the name of the case to any failure in the block, as a note that pytest prints."""
    try:
        yield
    except BaseException as error:  # a test's failure by pytest is no Exception
        error.add_note(f"The case is {', '.join(map(str, name))}.")
        raise
