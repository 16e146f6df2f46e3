"""Many small cases in one test: what fails says of which one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def case(*name: object) -> Iterator[None]:
    """Whatever fails in the block has the name of its case as a note, which pytest prints with it."""
    try:
        yield
    except BaseException as error:  # a test's failure by pytest is no Exception
        error.add_note(f"The case is {', '.join(map(str, name))}.")
        raise
