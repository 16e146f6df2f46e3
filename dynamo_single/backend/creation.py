"""What a test run asks of the engine: to make, copy and destroy a test database, of which there is none.

So tests use the table that ``DYNAMO_SINGLE`` names. Only one on this machine is allowed for that.
"""

from __future__ import annotations

from typing import Any, NoReturn

from django.db.backends.base.creation import BaseDatabaseCreation

from dynamo_single.backend.errors import command_refused
from dynamo_single.conf import aliases, table_settings


class DatabaseCreation(BaseDatabaseCreation):
    """Lets a test run pass without a test database; the table is neither made nor emptied."""

    def _get_database_display_str(self, verbosity: int, database_name: str) -> str:
        return f"'{self.connection.alias}' (no SQL: nothing to do; tests use the tables of DYNAMO_SINGLE as they are)"

    def _create_test_db(self, verbosity: int, autoclobber: bool, keepdb: bool = False) -> str:
        for alias in aliases():
            settings = table_settings(alias)
            if not settings.is_local:
                raise command_refused(
                    f"run tests on the table {settings.table_name!r} at {settings.place}",
                    "They would write into it, and nothing is rolled back. Point DYNAMO_SINGLE at a local engine for "
                    "tests; dynamo_single.testing.local_engine() gives one of its own.",
                    self.connection.alias,
                )
        return str(self.connection.settings_dict["NAME"])

    def _destroy_test_db(self, test_database_name: str, verbosity: int) -> None:
        pass

    def _clone_test_db(self, suffix: str, verbosity: int, keepdb: bool = False) -> NoReturn:
        raise command_refused(
            "copy the test database for parallel tests",
            "The processes would share one DynamoDB table. Run the tests without --parallel.",
            self.connection.alias,
        )

    def serialize_db_to_string(self) -> str:
        """Return an empty list of objects: no SQL model has any."""
        return "[]"

    def deserialize_db_from_string(self, data: Any) -> None:
        """Do nothing: no SQL model has any objects."""
