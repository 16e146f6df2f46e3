"""An in-memory SQLite database next to the table, for comparisons with Django itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connections

#: The alias of the database.
ALIAS = "reference"


@contextmanager
def sqlite() -> Iterator[Any]:
    """Return this thread's connection, and delete the database afterwards."""
    connections.settings[ALIAS] = {
        **connections.settings["default"],
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": ":memory:",
        "OPTIONS": {},
    }
    try:
        yield connections[ALIAS]
    finally:
        if connections[ALIAS].connection is not None:
            connections[ALIAS].connection.close()  # the wrapper leaves a database in memory open
        del connections[ALIAS]
        del connections.settings[ALIAS]
