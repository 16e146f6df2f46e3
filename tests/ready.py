"""Prepare the tests' table for the next test: its definition is read again only if it may have changed.

Before each test, that took two of four requests. A test changes a table's definition with a request on the request
path, or through a process: both are counted. The table's contents are checked every time.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from functools import wraps
from typing import Any

from dynamo_single.conf import TableSettings
from dynamo_single.table import Table, get_table, transport
from dynamo_single.test_tables import contents
from dynamo_single.testing import setup_table
from tests import children

#: Requests that change a table's definition.
DEFINING = frozenset({"CreateTable", "UpdateTable", "UpdateTimeToLive", "DeleteTable"})


class _Changes:
    """Count the possible changes of a definition by this process."""

    counted = 0


#: The count of changes at which a table matched its settings.
_right: dict[TableSettings, int] = {}


def table_ready(alias: str = "default") -> Table:
    """Return the result of ``setup_table()``, with two fewer requests if the definition cannot have changed."""
    table = get_table(alias)
    if _right.get(table.settings) == _changes() and contents.empty(table, most=100):
        return table
    setup_table(alias)
    _right[table.settings] = _changes()
    return table


def count_changes() -> None:
    """Begin to count, once in a process."""
    os.register_at_fork(before=_count)
    starts: Any = subprocess.Popen
    starts.__init__ = _counting(starts.__init__, lambda *_: True)
    transport.send = _counting(transport.send, _defines)


def _changes() -> int:
    return _Changes.counted + children.Child.started


def _count() -> None:
    _Changes.counted += 1


def _counting(call: Callable[..., Any], counts: Callable[..., bool]) -> Callable[..., Any]:
    @wraps(call)
    def counted(*arguments: Any, **named: Any) -> Any:
        if counts(*arguments):
            _count()
        return call(*arguments, **named)

    return counted


def _defines(_: TableSettings, operation: str, *__: object) -> bool:
    return operation in DEFINING
