"""Identify the run that a test table belongs to, and detect whether that run has ended.

The table's name contains the identifier of its run. Each run holds a lock on a separate file until its process ends,
which also detects a run that was killed. This module must not depend on tables.
"""

from __future__ import annotations

import os
import re
import secrets
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Final

from django.core.files import locks

#: Seconds after which a table is left over if this machine has no lock file of its run, such as a container's run.
LEFT_OVER_AFTER: Final = 24 * 3600.0

_NAME: Final = re.compile(r"\Atest_.*_run([0-9a-f]{8})(?:_\w+)?\Z")


class _Run:
    """The run of this process."""

    def __init__(self) -> None:
        self.identifier = ""
        self.lock: IO[str] | None = None


_run: Final = _Run()


def run_suffix(suffix: str) -> str:
    """Return the suffix of the names of this run's test tables, after the worker's; the first call starts the run."""
    if _run.lock is None:
        _run.identifier = secrets.token_hex(4)
        _run.lock = _lock_file(_run.identifier).open("w")
        locks.lock(_run.lock, locks.LOCK_EX | locks.LOCK_NB)
    return "_".join(filter(None, (suffix, f"run{_run.identifier}")))


def end() -> None:
    """End the run of this process after its test tables were removed or kept."""
    if _run.lock is not None:
        _lock_file(_run.identifier).unlink(missing_ok=True)
        _run.lock.close()
        _run.lock = None


def is_left_over(table: str, created: Callable[[], float]) -> bool:
    """Return whether a table of this name is a test table of a run that has ended.

    ``created`` returns when the table was created, in seconds since 1970. It is called if there is no lock file.
    """
    found = _NAME.match(table)
    if found is None or found[1] == _run.identifier:
        return False
    path = _lock_file(found[1])
    try:
        with path.open("r+") as file:
            if not locks.lock(file, locks.LOCK_EX | locks.LOCK_NB):
                return False
        path.unlink(missing_ok=True)
    except FileNotFoundError:
        return created() < time.time() - LEFT_OVER_AFTER
    except OSError:
        return False
    return True


def _lock_file(identifier: str) -> Path:
    user = getattr(os, "getuid", int)()
    folder = Path(tempfile.gettempdir(), f"dynamo_single-tests-{user}")
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder / f"{identifier}.lock"
