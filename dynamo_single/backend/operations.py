"""The few operations that Django asks of an engine apart from SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.backends.base.operations import BaseDatabaseOperations

from dynamo_single.backend.router import install_router
from dynamo_single.later import Later

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dynamo_single.isolation import tables as test_tables
else:
    test_tables = Later("dynamo_single.isolation.tables")


class DatabaseOperations(BaseDatabaseOperations):
    """Names the compilers that refuse SQL, and answers what forms and ``flush`` ask."""

    compiler_module = "dynamo_single.backend.compiler"

    def quote_name(self, name: str) -> str:
        """Return the name as it is: a queryset asks for it before it is refused."""
        return name

    def integer_field_range(  # type: ignore[override]  # IntegerField.validators takes None as no limit
        self, internal_type: str
    ) -> tuple[int | None, int | None]:
        """Return no limits but the sign: DynamoDB's numbers are not 32 or 64 bits wide."""
        return (0 if internal_type.startswith("Positive") else None), None

    def sql_flush(
        self, style: object, tables: Iterable[str], *, reset_sequences: bool = False, allow_cascade: bool = False
    ) -> list[str]:
        """Name what ``execute_sql_flush()`` empties: the test tables, and nothing outside of tests.

        Whoever runs ``flush`` by hand is told so. The end of each test runs it too, and then Django's handlers fill in
        content types, which they ask the router about: a test that overrides ``DATABASE_ROUTERS`` takes it away.
        """
        install_router()
        if test_tables.are_in_use():
            return ["Scan and BatchWriteItem: what the test tables hold"]
        self.connection.creation.log(
            "There is no SQL database to flush. Items in DynamoDB are not touched; delete the table to remove them."
        )
        return []

    def execute_sql_flush(self, sql_list: Iterable[str]) -> None:
        """Delete what the test tables hold, if ``sql_flush()`` has named them."""
        if list(sql_list):
            test_tables.restore({})
