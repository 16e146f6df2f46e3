"""Report writes to DynamoDB within a transaction of an SQL database: they stay if the transaction is rolled back.

The logger ``dynamo_single.sql`` reports each such line of a project once. If ``DYNAMO_SINGLE_SQL_TRANSACTIONS`` is
``"error"``, the write raises ``NotRolledBack`` before its request is sent. The exceptions are this app's admin,
commands, sessions and cache, writes by Django and other packages themselves, and a ``TestCase``, which rolls everything
back on purpose. Writes outside SQL transactions are not checked. This module sends no requests.
"""

from __future__ import annotations

import logging
import sys
import sysconfig
from collections.abc import Iterator
from functools import partial
from threading import get_ident
from types import FrameType
from typing import Any, Final

from django.db.backends.base.base import BaseDatabaseWrapper

from dynamo_single.conf import sql_transactions
from dynamo_single.exceptions import NotRolledBack
from dynamo_single.table.redirects import INTERCEPTORS
from dynamo_single.table.request import WRITES, Parameters

logger = logging.getLogger("dynamo_single.sql")

#: Modules that write on purpose, for any caller.
_OWN: Final = (
    *("dynamo_single.admin.", "dynamo_single.management.", "dynamo_single.evolution.", "django.contrib.admin."),
    *("dynamo_single.sessions", "dynamo_single.cached_sessions", "dynamo_single.cache."),
)
#: The directories that contain no line of a project.
_INSTALLED: Final = tuple({sysconfig.get_paths()[each] for each in ("stdlib", "purelib", "platlib")})
#: The most lines that are remembered. After that the set is cleared, and lines are logged again.
_MOST: Final = 1000
_logged: set[tuple[str, int]] = set()


def install() -> None:
    """Observe each SQL connection during its transactions. Installs itself once per process."""
    djangos: Any = BaseDatabaseWrapper.set_autocommit
    if getattr(djangos, "_of_dynamo_single", False):
        return

    def set_autocommit(self: Any, autocommit: bool, *args: object, **options: object) -> None:
        if self.vendor != "dynamodb":
            # Before Django calls the on_commit callbacks, which may write.
            _watch(self, begins=not autocommit)
        djangos(self, autocommit, *args, **options)

    set_autocommit._of_dynamo_single = True  # type: ignore[attr-defined]  # our marker on a function
    BaseDatabaseWrapper.set_autocommit = set_autocommit  # type: ignore[method-assign]  # no hook


def _watch(connection: Any, *, begins: bool) -> None:
    watching = connection.__dict__.get("_dynamodb_watch")
    INTERCEPTORS.set(tuple(each for each in INTERCEPTORS.get() if each is not watching))
    if begins:
        connection._dynamodb_watch = partial(_note, connection, get_ident())
        INTERCEPTORS.set((*INTERCEPTORS.get(), connection._dynamodb_watch))


def _note(connection: Any, thread: int, operation: str, params: Parameters) -> None:
    """Report one request if it writes and a line of the project caused it."""
    if operation not in WRITES or any(each._from_testcase for each in connection.atomic_blocks):
        return
    line = _line(_frames(thread))
    if line is None:
        return
    message = (
        f"{line[0]}:{line[1]}: {operation} within a transaction of the SQL database {connection.alias!r}. A rollback "
        "takes it back there, and the items stay. Write the items after the commit, by transaction.on_commit(), or "
        "last in the block."
    )
    if sql_transactions() == "error":
        raise NotRolledBack(f"{message} Nothing was written.")
    if line not in _logged:
        if len(_logged) >= _MOST:
            _logged.clear()
        _logged.add(line)
        logger.warning(message)


def _frames(thread: int) -> Iterator[FrameType]:
    """Yield the frames of this thread, innermost first, then those of the transaction's thread if it is another.

    A thread that writes for a call does not have the stack of its caller, which waits for it.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back
    frame = None if thread == get_ident() else sys._current_frames().get(thread)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _line(frames: Iterator[FrameType]) -> tuple[str, int] | None:
    """Return the innermost line of the project, or ``None`` if there is none or an exempt module comes first."""
    for frame in frames:
        name, path = frame.f_globals.get("__name__", ""), frame.f_code.co_filename
        if name.startswith(_OWN):
            return None
        if name.partition(".")[0] != "dynamo_single" and not path.startswith((*_INSTALLED, "<")):
            return path, frame.f_lineno
    return None
