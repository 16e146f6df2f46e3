"""The engine's connection: Django's bookkeeping of transactions, over nothing.

See the package's docstring for what the engine does and does not do.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Final, NoReturn

from django.db import Error, ProgrammingError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils.asyncio import async_unsafe

from dynamo_single.backend.client import DatabaseClient
from dynamo_single.backend.creation import DatabaseCreation
from dynamo_single.backend.errors import sql_refused
from dynamo_single.backend.features import DatabaseFeatures
from dynamo_single.backend.introspection import DatabaseIntrospection
from dynamo_single.backend.operations import DatabaseOperations
from dynamo_single.backend.router import install_router
from dynamo_single.backend.schema import SchemaEditor
from dynamo_single.backend.validation import DatabaseValidation
from dynamo_single.backend.writes import Writes

#: Django translates these errors of a driver into its own. There is no driver, so none of them is ever raised, and our
#: own errors pass through untranslated.
_DRIVER_ERRORS: Final = SimpleNamespace(
    **{
        name: type(name, (Exception,), {})
        for name in (
            "DataError",
            "OperationalError",
            "IntegrityError",
            "InternalError",
            "ProgrammingError",
            "NotSupportedError",
            "DatabaseError",
            "InterfaceError",
            "Error",
        )
    }
)


class Cursor:
    """A cursor that can be opened and closed, and executes nothing."""

    rowcount = -1
    description = None

    def __init__(self, alias: str) -> None:
        self._alias = alias

    def close(self) -> None:
        """Close the cursor, which holds nothing."""

    def execute(self, sql: str, params: object = None) -> NoReturn:
        """Refuse the statement."""
        raise sql_refused(str(sql), self._alias)

    def executemany(self, sql: str, param_list: object) -> NoReturn:
        """Refuse the statement."""
        raise sql_refused(str(sql), self._alias)

    def callproc(self, procname: str, params: object = None, kparams: object = None) -> NoReturn:
        """Refuse the procedure."""
        raise sql_refused(f"CALL {procname}", self._alias)

    def fetchone(self) -> NoReturn:
        """Refuse: nothing was executed."""
        raise Error("Nothing was executed on this cursor, so there is nothing to fetch.")

    def fetchmany(self, size: int = 1) -> NoReturn:
        """Refuse: nothing was executed."""
        self.fetchone()

    def fetchall(self) -> NoReturn:
        """Refuse: nothing was executed."""
        self.fetchone()


class Session:
    """What stands where a driver's connection would: something to commit, roll back and close."""

    def commit(self) -> None:
        """Do nothing: nothing is pending."""

    def rollback(self) -> None:
        """Do nothing: items that were written stay written."""

    def close(self) -> None:
        """Do nothing: nothing is open."""


class DatabaseWrapper(BaseDatabaseWrapper):
    """The connection of an alias whose ``ENGINE`` is ``dynamo_single.backend``. It never sends a request."""

    vendor = "dynamodb"
    display_name = "DynamoDB (no SQL)"
    Database = _DRIVER_ERRORS
    SchemaEditorClass = SchemaEditor  # type: ignore[assignment]  # only what Django calls when no model is left
    client_class = DatabaseClient
    creation_class = DatabaseCreation
    features_class = DatabaseFeatures
    introspection_class = DatabaseIntrospection
    ops_class = DatabaseOperations
    validation_class = DatabaseValidation

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        #: What is written to DynamoDB within a transaction of Django's.
        self.writes = Writes(self.alias, self.settings_dict)

    def get_connection_params(self) -> dict[str, object]:
        """Return nothing: there is nothing to connect to. An option that there is not is refused."""
        self.writes.check_options()
        return {}

    def get_new_connection(self, conn_params: dict[str, object] | None) -> Session:
        """Return a session, which opens nothing."""
        return Session()

    def create_cursor(self, name: str | None = None) -> Cursor:
        """Return a cursor that refuses every statement."""
        return Cursor(self.alias)

    @async_unsafe
    def ensure_connection(self) -> None:
        """Open the session if it is not open.

        Overridden because ``SimpleTestCase`` replaces ``connect`` to keep tests off the SQL database. There is none to
        keep off, and a view under test may well open ``transaction.atomic()``.
        """
        if self.connection is not None:
            return
        if self.in_atomic_block and self.closed_in_transaction:
            raise ProgrammingError("Cannot open a new connection in an atomic block.")
        type(self).connect(self)

    def is_usable(self) -> bool:
        """Return True: what is not there does not fail."""
        return True

    def prepare_database(self) -> None:
        """Make sure that ``migrate`` finds the router, also where settings were overridden since start-up."""
        install_router()

    def _set_autocommit(self, autocommit: bool) -> None:
        """Count the writes to DynamoDB from here on, or stop; Django itself keeps the flag."""
        self.writes.stop()
        if not autocommit:
            self.writes.start()

    @async_unsafe
    def rollback(self) -> None:
        """Do Django's bookkeeping, and report what was written since the transaction began: it stays written."""
        super().rollback()
        self.writes.report()

    @async_unsafe
    def savepoint_rollback(self, sid: str) -> None:
        """The same for an inner block."""
        super().savepoint_rollback(sid)
        self.writes.report(sid)

    # Django drops the on_commit callbacks of a failed inner block only if savepoints are supported, so they are.
    def _savepoint(self, sid: str) -> None:
        self.writes.mark(sid)

    def _savepoint_rollback(self, sid: str) -> None:
        pass

    def _savepoint_commit(self, sid: str) -> None:
        pass
