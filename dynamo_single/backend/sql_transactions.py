"""Report writes to DynamoDB within a transaction of an SQL database: they stay if it is rolled back.

Each line of a project that writes so is logged once by the logger ``dynamo_single.sql``, or raises ``NotRolledBack``
before the request is sent, as ``DYNAMO_SINGLE_SQL_TRANSACTIONS`` says. Exempt are this app's admin, commands, sessions
and cache, what Django and other packages write by themselves, and a ``TestCase``, which rolls everything back on
purpose. Outside of SQL transactions nothing is checked. This module sends nothing.
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

from dynamo_single.backend.compiler import WRITES
from dynamo_single.conf import sql_transactions
from dynamo_single.exceptions import NotRolledBack
from dynamo_single.table.redirects import INTERCEPTING
from dynamo_single.table.request import Parameters

logger = logging.getLogger("dynamo_single.sql")

#: What writes on purpose, whoever called it.
_OWN: Final = (
    *("dynamo_single.admin.", "dynamo_single.management.", "dynamo_single.evolution.", "django.contrib.admin."),
    *("dynamo_single.sessions", "dynamo_single.cached_sessions", "dynamo_single.cache."),
)
#: Where no line of a project is.
_INSTALLED: Final = tuple({sysconfig.get_paths()[each] for each in ("stdlib", "purelib", "platlib")})
_PACKAGES: Final = ("dynamo_single", "accounts")
#: How many lines are remembered; past that they are logged again.
_MOST: Final = 1000
_logged: set[tuple[str, int]] = set()


def install() -> None:
    """Watch each SQL connection from the beginning of its transactions to their end; once a process."""
    djangos: Any = BaseDatabaseWrapper.set_autocommit
    if getattr(djangos, "_of_dynamo_single", False):
        return

    def set_autocommit(self: Any, autocommit: bool, *args: object, **options: object) -> None:
        if self.vendor != "dynamodb":
            # Before Django calls what waits for the commit, which may write.
            _watch(self, begins=not autocommit)
        djangos(self, autocommit, *args, **options)

    set_autocommit._of_dynamo_single = True  # type: ignore[attr-defined]  # a mark of ours on a function
    BaseDatabaseWrapper.set_autocommit = set_autocommit  # type: ignore[method-assign]  # no hook


def _watch(connection: Any, *, begins: bool) -> None:
    watching = connection.__dict__.get("_dynamodb_watch")
    INTERCEPTING.set(tuple(each for each in INTERCEPTING.get() if each is not watching))
    if begins:
        connection._dynamodb_watch = partial(_note, connection, get_ident())
        INTERCEPTING.set((*INTERCEPTING.get(), connection._dynamodb_watch))


def _note(connection: Any, thread: int, operation: str, params: Parameters) -> None:
    """Report one request, if it writes and a line of the project has asked for it."""
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
    """Yield the frames of this thread, innermost first; then those of the transaction's thread, if it is another.

    A thread that writes for a call does not have its stack, and the caller waits for it.
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
    """Return the innermost line of the project; ``None`` if there is none, or if an exempt module comes before it."""
    for frame in frames:
        name, path = frame.f_globals.get("__name__", ""), frame.f_code.co_filename
        if name.startswith(_OWN):
            return None
        if name.partition(".")[0] not in _PACKAGES and not path.startswith((*_INSTALLED, "<")):
            return path, frame.f_lineno
    return None
