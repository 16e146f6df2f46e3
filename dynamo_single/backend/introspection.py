"""What Django finds when it looks for SQL tables: none, but for the one in which it records migrations."""

from __future__ import annotations

from typing import Any, NoReturn

from django.db.backends.base.introspection import BaseDatabaseIntrospection, TableInfo
from django.db.migrations.recorder import MigrationRecorder

from dynamo_single.backend.errors import command_refused


class DatabaseIntrospection(BaseDatabaseIntrospection):
    """An empty database whose record of migrations can be read."""

    def get_table_list(self, cursor: object) -> list[TableInfo]:
        """Return no tables: ``inspectdb`` finds nothing."""
        return []

    def table_names(self, cursor: object = None, include_views: bool = False) -> list[str]:
        """Return the table of Django's migration records, which ``compiler.py`` answers for."""
        return [MigrationRecorder.Migration._meta.db_table]

    def sequence_list(self) -> list[dict[str, Any]]:
        """Return no sequences."""
        return []

    def get_relations(self, cursor: object, table_name: str) -> dict[str, tuple[str, str]]:
        """Return no relations."""
        return {}

    def get_constraints(self, cursor: object, table_name: str) -> dict[str, Any]:
        """Return no constraints."""
        return {}

    def get_table_description(self, cursor: object, table_name: str) -> NoReturn:
        """Refuse: no SQL table has this name."""
        raise command_refused(
            f"describe the SQL table {table_name!r}", "DynamoDB stores no columns.", self.connection.alias
        )
