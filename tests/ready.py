"""The tests' table, ready for the next one: how it is made is asked again only where somebody can have changed it.

Before each test that was two of four requests. A test changes the definition of a table by a request, which passes the
seam, or lets a process do so: both are counted. What the table holds is looked at each time.
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

#: The requests that change how a table is made.
DEFINING = frozenset({"CreateTable", "UpdateTable", "UpdateTimeToLive", "DeleteTable"})


class _Changes:
    """How often a definition may have been changed by this process."""

    counted = 0


#: At which count of changes a table was as its settings say.
_right: dict[TableSettings, int] = {}


def table_ready(alias: str = "default") -> Table:
    """What ``setup_table()`` gives, by two requests less where nobody can have changed how the table is made."""
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
