"""``dbshell``, which has no shell to open."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from django.db.backends.base.client import BaseDatabaseClient

from dynamo_single.backend.errors import command_refused

if TYPE_CHECKING:
    from collections.abc import Iterable


class DatabaseClient(BaseDatabaseClient):
    """Refuses to open a shell."""

    def runshell(self, parameters: Iterable[str]) -> NoReturn:
        """Refuse: there is no SQL database to open a shell on."""
        raise command_refused("open a database shell", "Use the models in `manage.py shell`.", self.connection.alias)
