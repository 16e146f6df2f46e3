"""Make Django's ``on_commit()`` wait for an ``atomic()`` block of ours; Celery's ``delay_on_commit()`` calls it.

Django stores the callback, and runs it after the commit of the SQL transaction around the call. The block reports when
its writes are in the table. The later of the two runs the callback.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper

from dynamo_single.orm.requests import atomic_block as pending
from dynamo_single.table.flow import call_sync


def install() -> None:
    """Replace ``on_commit()`` of all connections by a function that adds the callback to the current block; once per
    process.

    It replaces the connection's method because other code has already imported ``transaction.on_commit()``.
    """
    djangos: Any = BaseDatabaseWrapper.on_commit
    if getattr(djangos, "_of_dynamo_single", False):
        return

    def on_commit(self: Any, func: Callable[[], object], robust: bool = False) -> None:
        block = pending.current()
        if block is None or block.ended or not callable(func):
            djangos(self, func, robust)
            return
        held = PendingCallback(self, func, robust, djangos)
        djangos(self, held.by_django, robust)
        block.callbacks.append(held)

    on_commit._of_dynamo_single = True  # type: ignore[attr-defined]  # a mark of ours on a function
    BaseDatabaseWrapper.on_commit = on_commit  # type: ignore[method-assign]  # no hook


class PendingCallback:
    """A callback that waits for the SQL transaction and for its block."""

    def __init__(
        self, connection: Any, function: Callable[[], object], robust: bool, register: Callable[..., None]
    ) -> None:
        self._sql_connection, self._callback, self._robust, self._register = connection, function, robust, register
        self._committed = self._written = False

        def by_django() -> None:
            self._committed = True
            if self._written:
                function()

        #: The function that Django stores, and names in its log if it fails.
        self.by_django = update_wrapper(by_django, function)

    async def __call__(self) -> None:
        """Record the write of the block; register the callback with Django if the SQL commit came first."""
        self._written = True
        if self._committed:
            await call_sync(self._hand_over)

    def _hand_over(self) -> None:
        self._register(self._sql_connection, self._callback, self._robust)

    def drop(self) -> None:
        """Remove the callback, since the block has failed; ``captureOnCommitCallbacks()`` does not list it either."""
        waiting = self._sql_connection.run_on_commit
        self._sql_connection.run_on_commit = [each for each in waiting if each[1] is not self.by_django]
