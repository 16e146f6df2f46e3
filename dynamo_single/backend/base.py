"""The engine's connection: Django's bookkeeping of transactions without a database.

It consists of the classes that Django expects of an engine: client, features, introspection, schema editor, operations
and creation. There is no test database; its name identifies the test tables, ``test_`` and then the suffix of a
parallel run. The package's docstring describes the engine's features.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, NoReturn, Self

from django.apps import apps
from django.core import checks
from django.db import Error, ProgrammingError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.base.client import BaseDatabaseClient
from django.db.backends.base.creation import BaseDatabaseCreation
from django.db.backends.base.features import BaseDatabaseFeatures
from django.db.backends.base.introspection import BaseDatabaseIntrospection, TableInfo
from django.db.backends.base.operations import BaseDatabaseOperations
from django.db.backends.base.validation import BaseDatabaseValidation
from django.utils.asyncio import async_unsafe

from dynamo_single.backend.compiler import Writes
from dynamo_single.backend.errors import command_refused, sql_refused
from dynamo_single.backend.router import install_router
from dynamo_single.lazy_modules import LazyModule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import django.db.migrations.recorder as django_recorder

    from dynamo_single.test_tables import tables as test_tables_tables
else:
    django_recorder = LazyModule("django.db.migrations.recorder")
    test_tables_tables = LazyModule("dynamo_single.test_tables.tables")


class DatabaseClient(BaseDatabaseClient):
    """A client for ``dbshell`` that refuses to open a shell."""

    def runshell(self, parameters: Iterable[str]) -> NoReturn:
        """Raise ``CommandRefused``: there is no SQL database to open a shell on."""
        raise command_refused("open a database shell", "Use the models in `manage.py shell`.", self.connection.alias)


class DatabaseFeatures(BaseDatabaseFeatures):
    """The features of the engine: none that needs SQL or a rollback.

    ``supports_transactions`` is False because nothing is rolled back. It is True while ``test_tables.hooks`` undo the
    writes of tests: a ``TestCase`` then creates its data once per class.
    """

    supports_transactions = False
    atomic_transactions = False
    uses_savepoints = True
    can_rollback_ddl = False
    can_clone_databases = True
    can_introspect_foreign_keys = False
    supports_foreign_keys = False
    supports_table_check_constraints = False
    supports_sequence_reset = False
    has_bulk_insert = False
    has_select_for_update = False
    supports_paramstyle_pyformat = False


class DatabaseIntrospection(BaseDatabaseIntrospection):
    """An empty database, except for the table of Django's migration records."""

    def get_table_list(self, cursor: object) -> list[TableInfo]:
        """Return no tables: ``inspectdb`` finds nothing."""
        return []

    def table_names(self, cursor: object = None, include_views: bool = False) -> list[str]:
        """Return the table of Django's migration records, which ``compiler.py`` reads."""
        return [django_recorder.MigrationRecorder.Migration._meta.db_table]

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
        """Raise ``CommandRefused``: no SQL table has this name."""
        raise command_refused(
            f"describe the SQL table {table_name!r}", "DynamoDB stores no columns.", self.connection.alias
        )


class SchemaEditor:
    """A schema editor that can be opened and closed but refuses every change of a table.

    ``migrate --run-syncdb``, and therefore every test run, opens one even if there is no table to create.
    """

    atomic_migration = False

    def __init__(self, connection: BaseDatabaseWrapper, collect_sql: bool = False, atomic: bool = True) -> None:
        self.connection = connection
        self.deferred_sql: list[Any] = []
        #: Set by ``sqlmigrate``: operations on items append their requests to ``collected_sql`` instead of sending
        #: them.
        self.collect_sql = collect_sql
        self.collected_sql: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def __getattr__(self, name: str) -> Callable[..., NoReturn]:
        """Return a stand-in for an operation of Django's own editor that raises ``CommandRefused``."""
        if name.startswith("_"):
            raise AttributeError(name)

        def refuse(*args: object, **kwargs: object) -> NoReturn:
            raise command_refused(
                f"change the schema ({name})",
                "A model of dynamo_single.models needs no change of a table.",
                self.connection.alias,
            )

        return refuse


class DatabaseOperations(BaseDatabaseOperations):
    """The operations of the engine: the compilers that refuse SQL, and the values that forms and ``flush`` need."""

    compiler_module = "dynamo_single.backend.compiler"

    def quote_name(self, name: str) -> str:
        """Return the name unchanged: a queryset calls this before it is refused."""
        return name

    def integer_field_range(  # type: ignore[override]  # IntegerField.validators accepts None as no limit
        self, internal_type: str
    ) -> tuple[int | None, int | None]:
        """Return no limits except for the sign: DynamoDB's numbers are not 32 or 64 bits wide."""
        return (0 if internal_type.startswith("Positive") else None), None

    def sql_flush(
        self, style: object, tables: Iterable[str], *, reset_sequences: bool = False, allow_cascade: bool = False
    ) -> list[str]:
        """Return the description of the test tables, which ``execute_sql_flush()`` empties; nothing outside tests.

        A user of ``flush`` gets a message instead. Each test also ends with a flush, after which Django's handlers
        create content types and call the router. A test that overrides ``DATABASE_ROUTERS`` removes that router, so it
        is installed again.
        """
        install_router()
        if test_tables_tables.are_in_use():
            return ["Scan and BatchWriteItem: what the test tables hold"]
        self.connection.creation.log(
            "There is no SQL database to flush. Items in DynamoDB are not touched; delete the table to remove them."
        )
        return []

    def execute_sql_flush(self, sql_list: Iterable[str]) -> None:
        """Empty the test tables if ``sql_flush()`` has named them."""
        if list(sql_list):
            test_tables_tables.restore({})


class DatabaseCreation(BaseDatabaseCreation):
    """Creates, copies and removes the test tables of all aliases of ``DYNAMO_SINGLE``."""

    #: Whether this connection has created the test tables and must remove them.
    _owns_tables = False

    def _get_database_display_str(self, verbosity: int, database_name: str) -> str:
        return f"'{self.connection.alias}' (DynamoDB)"

    def _create_test_db(self, verbosity: int, autoclobber: bool, keepdb: bool = False) -> str:
        name: str = self._get_test_db_name()  # type: ignore[attr-defined]  # Django's, which the stubs leave out
        # An SQL database of the same run, or another alias of this engine, may already have created them.
        if not test_tables_tables.are_in_use():
            test_tables_tables.create_tables(suffix=_suffix(name), keep=keepdb, verbosity=verbosity)
            self._owns_tables = True
        return name

    def _clone_test_db(self, suffix: str, verbosity: int, keepdb: bool = False) -> None:
        if self._owns_tables:
            test_tables_tables.clone_tables(suffix, keep=keepdb)

    def setup_worker_connection(self, *args: int) -> None:
        """Use the test tables of this process of a parallel run, by its number."""
        super().setup_worker_connection(*args)
        test_tables_tables.use_clone(str(args[0]))

    def destroy_test_db(
        self,
        old_database_name: str | None = None,
        verbosity: int = 1,
        keepdb: bool = False,
        suffix: str | None = None,
    ) -> None:
        """Delete the test tables unless they are kept, and use the tables of the settings again."""
        super().destroy_test_db(old_database_name, verbosity, keepdb, suffix)
        if not self._owns_tables:
            return
        if not keepdb:
            test_tables_tables.remove_tables(suffix or "")
        if suffix is None:
            test_tables_tables.use_settings_tables()
            self._owns_tables = False

    def _destroy_test_db(self, test_database_name: str, verbosity: int) -> None:
        """Do nothing: ``destroy_test_db()`` deletes the tables."""

    def serialize_db_to_string(self) -> str:
        """Return all items of the test tables as text, for ``serialized_rollback``."""
        return test_tables_tables.as_text()

    def deserialize_db_from_string(self, data: str) -> None:
        """Restore the items of the test tables from a string."""
        test_tables_tables.from_text(data)


def _suffix(name: str) -> str:
    """Return a name without the prefix: ``gw0`` for ``test__gw0``, the name of pytest-xdist's first worker."""
    return name.removeprefix(test_tables_tables.PREFIX).strip("_")


#: Django translates these errors of a driver into its own. There is no driver, so that none of them is ever raised and
#: our own errors are not translated.
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


# Checks of the settings of an alias that uses the engine, for ``check --database`` and ``migrate``.


class DatabaseValidation(BaseDatabaseValidation):
    """Checks for settings that promise more than the engine does."""

    def check(self, **kwargs: object) -> list[checks.CheckMessage]:
        """E021: the app itself is not installed; W901: ``ATOMIC_REQUESTS``, although nothing is rolled back."""
        if not apps.is_installed("dynamo_single"):
            return [
                checks.Error(
                    f"DATABASES['{self.connection.alias}'] is dynamo_single.backend, but INSTALLED_APPS does not "
                    "contain 'dynamo_single': migrate would try to create SQL tables.",
                    hint="Add 'dynamo_single' to INSTALLED_APPS.",
                    id="dynamo_single.E021",
                )
            ]
        if not self.connection.settings_dict["ATOMIC_REQUESTS"]:
            return []
        return [
            checks.Warning(
                f"DATABASES['{self.connection.alias}']['ATOMIC_REQUESTS'] is on, but dynamo_single.backend rolls "
                "nothing back: items that a failing request has written stay written.",
                hint="Remove ATOMIC_REQUESTS.",
                id="dynamo_single.W901",
            )
        ]


class Cursor:
    """A cursor that can be opened and closed but does not execute anything."""

    rowcount = -1
    description = None

    def __init__(self, alias: str) -> None:
        self._alias = alias

    def close(self) -> None:
        """Do nothing: the cursor holds nothing."""

    def execute(self, sql: str, params: object = None) -> NoReturn:
        """Raise ``NotSupported``."""
        raise sql_refused(str(sql), self._alias)

    def executemany(self, sql: str, param_list: object) -> NoReturn:
        """Raise ``NotSupported``."""
        raise sql_refused(str(sql), self._alias)

    def callproc(self, procname: str, params: object = None, kparams: object = None) -> NoReturn:
        """Raise ``NotSupported``."""
        raise sql_refused(f"CALL {procname}", self._alias)

    def fetchone(self) -> NoReturn:
        """Raise an error: nothing was executed."""
        raise Error("Nothing was executed on this cursor, so there is nothing to fetch.")

    def fetchmany(self, size: int = 1) -> NoReturn:
        """Raise an error: nothing was executed."""
        self.fetchone()

    def fetchall(self) -> NoReturn:
        """Raise an error: nothing was executed."""
        self.fetchone()


class Session:
    """A stand-in for a driver's connection, to commit, roll back and close."""

    def commit(self) -> None:
        """Do nothing: there are no pending changes."""

    def rollback(self) -> None:
        """Do nothing: written items stay written."""

    def close(self) -> None:
        """Do nothing: nothing is open."""


class DatabaseWrapper(BaseDatabaseWrapper):
    """The connection of an alias whose ``ENGINE`` is ``dynamo_single.backend``. It never sends a request."""

    vendor = "dynamodb"
    display_name = "DynamoDB (no SQL)"
    Database = _DRIVER_ERRORS
    SchemaEditorClass = SchemaEditor  # type: ignore[assignment]  # only the members that Django uses without tables
    client_class = DatabaseClient
    creation_class = DatabaseCreation
    features_class = DatabaseFeatures
    introspection_class = DatabaseIntrospection
    ops_class = DatabaseOperations
    validation_class = DatabaseValidation

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        #: The writes to DynamoDB within a Django transaction.
        self.writes = Writes(self.alias, self.settings_dict)

    def get_connection_params(self) -> dict[str, object]:
        """Return no parameters; raise ``ConfigurationError`` for an unknown option."""
        self.writes.check_options()
        return {}

    def get_new_connection(self, conn_params: dict[str, object] | None) -> Session:
        """Return a session, which does not open anything."""
        return Session()

    def create_cursor(self, name: str | None = None) -> Cursor:
        """Return a cursor that refuses every statement."""
        return Cursor(self.alias)

    @async_unsafe
    def ensure_connection(self) -> None:
        """Open the session if it is not open.

        This is overridden because ``SimpleTestCase`` replaces ``connect`` to prevent access to the SQL database. Here
        is none, and a view under test may open ``transaction.atomic()``.
        """
        if self.connection is not None:
            return
        if self.in_atomic_block and self.closed_in_transaction:
            raise ProgrammingError("Cannot open a new connection in an atomic block.")
        type(self).connect(self)

    def is_usable(self) -> bool:
        """Return True: there is no connection that could fail."""
        return True

    def prepare_database(self) -> None:
        """Install the router for ``migrate``, in case settings were overridden since the start."""
        install_router()

    def _set_autocommit(self, autocommit: bool) -> None:
        """Start or stop counting the writes to DynamoDB; Django itself keeps the flag."""
        self.writes.stop()
        if not autocommit:
            self.writes.start()

    @async_unsafe
    def rollback(self) -> None:
        """Do Django's bookkeeping, and report the writes since the transaction began: they stay."""
        super().rollback()
        self.writes.report()

    @async_unsafe
    def savepoint_rollback(self, sid: str) -> None:
        """Do the same for an inner block."""
        super().savepoint_rollback(sid)
        self.writes.report(sid)

    # Django drops the on_commit callbacks of a failed inner block only if savepoints are supported, so they are.
    def _savepoint(self, sid: str) -> None:
        self.writes.mark(sid)

    def _savepoint_rollback(self, sid: str) -> None:
        pass

    def _savepoint_commit(self, sid: str) -> None:
        pass
