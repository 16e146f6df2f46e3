"""The compilers that Django would use to turn a queryset into SQL, and the report of writes that a rollback leaves.

Every query is refused, with two exceptions. A query that is known to be empty needs no database. Queries for content
types, permissions and Django's own record of migrations are executed by ``memory_queries``, over the rows of
``computed_models`` and ``migration_record``.

If a Django transaction rolls back, writes to DynamoDB within it stay, and ``Writes`` reports them. It sees the writes
of the transaction's own context, including those of the threads that the context waits for. It sends no requests.

The following names are private to Django, and no other module of the app relies on them: the five class names,
``execute_sql`` and its result types, ``setup_query``, ``objs`` of a query that inserts, and ``where`` of one that
deletes.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Never, NoReturn

from django.core.exceptions import EmptyResultSet
from django.db.models.sql import compiler as django_compiler
from django.db.models.sql.constants import GET_ITERATOR_CHUNK_SIZE, MULTI, ROW_COUNT, SINGLE

from dynamo_single.backend.errors import command_refused, computed_refused, condition_refused, query_refused
from dynamo_single.exceptions import ConfigurationError, NotRolledBack, NotRolledBackWarning
from dynamo_single.lazy_modules import LazyModule
from dynamo_single.table.redirects import SentRequest, listen, unlisten
from dynamo_single.table.request import WRITES

if TYPE_CHECKING:
    from collections.abc import Iterator

    import django.db.migrations.recorder as django_recorder

    from dynamo_single.backend import computed_models, memory_queries, migration_record
    from dynamo_single.exceptions import DynamoSingleError
else:
    computed_models = LazyModule("dynamo_single.backend.computed_models")
    memory_queries = LazyModule("dynamo_single.backend.memory_queries")
    migration_record = LazyModule("dynamo_single.backend.migration_record")
    django_recorder = LazyModule("django.db.migrations.recorder")


class SQLCompiler(django_compiler.SQLCompiler):
    """Refuses to read anything except the record of migrations."""

    action: ClassVar[str] = "query"

    def as_sql(self, *args: object, **kwargs: object) -> NoReturn:
        """Raise the error for this query: there is no SQL."""
        raise self._refusal()

    def explain_query(self) -> NoReturn:
        """Raise the error for this query: there is no query plan."""
        raise self._refusal()

    def execute_sql(
        self,
        result_type: str | None = MULTI,
        chunked_fetch: bool = False,
        chunk_size: int = GET_ITERATOR_CHUNK_SIZE,
    ) -> Any:
        """Return rows that are computed, or no rows for an empty query; refuse every other query."""
        if self.query.is_empty():
            return self._no_result(result_type)
        try:
            rows = memory_queries.rows_of(self, self._source())
        except EmptyResultSet:
            return self._no_result(result_type)
        except memory_queries.Unsupported:
            raise self._refusal() from None
        if result_type == SINGLE:
            return rows[0] if rows else None
        # One chunk, as a driver would fetch it.
        return iter([rows])

    def _source(self) -> memory_queries.Source:
        """Return the tables that are computed; raise the refusal for a query of another model."""
        record = django_recorder.MigrationRecorder.Migration._meta.db_table
        tables = {**computed_models.TABLES, record: migration_record.rows}
        if self.query.model is None or self.query.model._meta.db_table not in tables:
            raise self._refusal()
        return memory_queries.Source(self.connection, tables)

    def _refused(self, result_type: str | None) -> Any:
        """Return no rows for an empty query; refuse every other query."""
        if self.query.is_empty():
            return self._no_result(result_type)
        raise self._refusal()

    def _no_result(self, result_type: str | None) -> Iterator[Never] | int | None:
        if result_type == MULTI:
            self.setup_query()  # iterating reads the selected columns first
            return iter(())
        return 0 if result_type == ROW_COUNT else None

    def _refusal(self) -> DynamoSingleError:
        model = self.query.model
        if model is None:
            return condition_refused(self.connection.alias)
        if model is django_recorder.MigrationRecorder.Migration:
            return command_refused(
                f"{self.action} the record of migrations",
                "Each migration of an app without items to migrate counts as applied; none of its operations runs.",
                self.connection.alias,
            )
        if model._meta.db_table in computed_models.TABLES:
            return computed_refused(model, self.action)
        return query_refused(model, self.action, self.connection.alias)


class SQLInsertCompiler(SQLCompiler):
    """Refuses to insert anything except records of migrations."""

    action = "insert into"

    def execute_sql(self, *fields: object, **options: object) -> Any:
        """Record migrations, and return the fields that Django requests; refuse every other query."""
        query: Any = self.query
        if query.model is not django_recorder.MigrationRecorder.Migration:
            raise self._refusal()
        names = [(row.app, row.name) for row in query.objs]
        if not all(map(migration_record.is_kept, names)):
            raise self._refusal()
        for row, name in zip(query.objs, names, strict=True):
            migration_record.record(name, row.applied)
        # Django's own databases return only the identifier, which no code uses.
        return [(1,) for _ in names] if any((*fields, *options.values())) else []


class SQLDeleteCompiler(SQLCompiler):
    """Refuses to delete anything except records of migrations."""

    action = "delete from"

    def execute_sql(self, result_type: str | None = MULTI, **options: Any) -> Any:  # type: ignore[override]  # overloads
        """Delete records of migrations; refuse every other query that is not empty."""
        if self.query.is_empty() or self.query.model is not django_recorder.MigrationRecorder.Migration:
            return self._refused(result_type)
        try:
            joined = memory_queries.matching(self.query, self._source())
        except memory_queries.Unsupported:
            raise self._refusal() from None
        names = [(row["app"], row["name"]) for each in joined for row in each.values() if row is not None]
        if self.query.where and not all(map(migration_record.is_kept, names)):
            raise self._refusal()
        count = migration_record.forget(name for name in names if migration_record.is_kept(name))
        return count if result_type == ROW_COUNT else None


class SQLUpdateCompiler(SQLCompiler):
    """Refuses to update."""

    action = "update"

    def execute_sql(self, result_type: str | None = MULTI, **options: Any) -> Any:  # type: ignore[override]  # overloads
        """Refuse every query that is not empty."""
        return self._refused(result_type)

    def execute_returning_sql(self, returning_fields: object) -> list[tuple[object, ...]]:
        """Return no rows for an empty query, and refuse every other; Django 6.0 and later calls it."""
        return [()] * int(self.execute_sql(ROW_COUNT))


class SQLAggregateCompiler(SQLCompiler):
    """Counts computed rows, and refuses every other aggregate."""

    action = "aggregate over"


#: The option of ``DATABASES`` that sets whether a rollback after writes is a warning or an error.
OPTION = "rollback_after_writes"


class Writes:
    """The writes during a connection's transaction, and their number at each savepoint."""

    def __init__(self, alias: str, settings: Mapping[str, Any]) -> None:
        self._alias = alias
        self._settings = settings
        self._seen: list[str] = []
        self._marks: dict[str, int] = {}

    def check_options(self) -> None:
        """Raise ``ConfigurationError`` for an unknown option or an invalid value."""
        options = self._settings.get("OPTIONS") or {}
        if options.keys() - {OPTION} or options.get(OPTION, "warn") not in ("warn", "error"):
            raise ConfigurationError(
                f"DATABASES[{self._alias!r}]['OPTIONS'] is {options!r}: the engine dynamo_single.backend has the "
                f"option {OPTION!r}, which is 'warn' or 'error'."
            )

    def start(self) -> None:
        """Start counting."""
        self._seen.clear()
        self._marks.clear()
        listen(self._note)

    def stop(self) -> None:
        """Stop counting."""
        unlisten(self._note)

    def forget(self) -> None:
        """Discard the writes so far, because they were undone."""
        self._seen.clear()

    def mark(self, sid: str) -> None:
        """Record the number of writes at a savepoint."""
        self._marks[sid] = len(self._seen)

    def report(self, sid: str | None = None) -> None:
        """Warn about the writes since a savepoint or the beginning, or raise ``NotRolledBack``; report each once."""
        before = 0 if sid is None else self._marks.get(sid, 0)
        written = self._seen[before:]
        del self._seen[before:]
        if not written:
            return
        message = (
            f"transaction.atomic() has rolled back after {len(written)} writes to DynamoDB "
            f"({', '.join(written[:3])}{', ...' if len(written) > 3 else ''}). These writes are kept, because "
            "Django's transactions apply to SQL only. To write all changes or none of them, use "
            "dynamo_single.transactions.atomic()."
        )
        if (self._settings.get("OPTIONS") or {}).get(OPTION) == "error":
            raise NotRolledBack(message)
        warnings.warn(message, NotRolledBackWarning, stacklevel=4)

    def _note(self, sent: SentRequest) -> None:
        if sent.operation in WRITES and not sent.error:
            self._seen.append(sent.operation)
