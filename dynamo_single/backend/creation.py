"""What a test run asks of the engine: test tables in the place of those that ``DYNAMO_SINGLE`` names.

There is no test database. Its name says which tables are meant: ``test_``, and then what tells parallel runs apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.backends.base.creation import BaseDatabaseCreation

from dynamo_single.later import Later

if TYPE_CHECKING:
    from dynamo_single.isolation import tables
else:
    tables = Later("dynamo_single.isolation.tables")


class DatabaseCreation(BaseDatabaseCreation):
    """Makes, copies and removes the test tables, of all aliases of ``DYNAMO_SINGLE`` at once."""

    #: Whether this connection's test database stands for the test tables, and is to remove them.
    _owns_tables = False

    def _get_database_display_str(self, verbosity: int, database_name: str) -> str:
        return f"'{self.connection.alias}' (DynamoDB)"

    def _create_test_db(self, verbosity: int, autoclobber: bool, keepdb: bool = False) -> str:
        name: str = self._get_test_db_name()  # type: ignore[attr-defined]  # Django's, which the stubs leave out
        # An SQL database of the same run, or a second alias of this engine, may have made them.
        if not tables.are_in_use():
            tables.make(suffix=_suffix(name), keep=keepdb, verbosity=verbosity)
            self._owns_tables = True
        return name

    def _clone_test_db(self, suffix: str, verbosity: int, keepdb: bool = False) -> None:
        if self._owns_tables:
            tables.clone(suffix, keep=keepdb)

    def setup_worker_connection(self, *args: int) -> None:
        """Use the tables of this process of a parallel run, by its number."""
        super().setup_worker_connection(*args)
        tables.use_clone(str(args[0]))

    def destroy_test_db(
        self,
        old_database_name: str | None = None,
        verbosity: int = 1,
        keepdb: bool = False,
        suffix: str | None = None,
    ) -> None:
        """Delete the test tables unless they are to be kept, and use those of the settings again."""
        super().destroy_test_db(old_database_name, verbosity, keepdb, suffix)
        if not self._owns_tables:
            return
        if not keepdb:
            tables.remove(suffix or "")
        if suffix is None:
            tables.finish()
            self._owns_tables = False

    def _destroy_test_db(self, test_database_name: str, verbosity: int) -> None:
        """Do nothing: there is no database, and ``destroy_test_db()`` has the tables deleted."""

    def serialize_db_to_string(self) -> str:
        """All items of the test tables, as text; for ``serialized_rollback``."""
        return tables.as_text()

    def deserialize_db_from_string(self, data: str) -> None:
        """Make the test tables hold those items."""
        tables.from_text(data)


def _suffix(name: str) -> str:
    """What a name has besides the prefix: ``gw0`` of ``test__gw0``, which is pytest-django's for its first worker."""
    return name.removeprefix(tables.PREFIX).strip("_")
