"""What a test run asks of the engine: to make, copy and destroy a test database, of which there is none."""

from __future__ import annotations

from typing import Any, NoReturn

from django.db.backends.base.creation import BaseDatabaseCreation

from dynamo_single.backend.errors import command_refused


class DatabaseCreation(BaseDatabaseCreation):
    """Lets a test run pass without a test database; DynamoDB's table is not touched."""

    def _get_database_display_str(self, verbosity: int, database_name: str) -> str:
        return f"'{self.connection.alias}' (no SQL: nothing to do; DynamoDB is not touched)"

    def _create_test_db(self, verbosity: int, autoclobber: bool, keepdb: bool = False) -> str:
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
