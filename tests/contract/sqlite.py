"""An SQLite database in memory beside the table: what Django itself does is compared with, or waited for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connections

#: The alias of the database.
ALIAS = "reference"


@contextmanager
def sqlite() -> Iterator[Any]:
    """Give the connection of this thread; the database is gone afterwards."""
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
