"""Where a queryset would become SQL.

Every query is refused, with two exceptions: a query that is known to be empty needs no database, and Django's own
question which migrations are applied is answered with all that are on disk, so that ``migrate``, ``showmigrations`` and
``runserver`` have nothing left to do.

Private to Django: the five class names, ``execute_sql`` and its result types, ``setup_query`` and ``select``, and
``MigrationLoader.load_disk``. No other module of the app relies on them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.db.models.sql import compiler as django_compiler
from django.db.models.sql.constants import GET_ITERATOR_CHUNK_SIZE, MULTI, ROW_COUNT

from dynamo_single import clock
from dynamo_single.backend.errors import command_refused, condition_refused, query_refused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dynamo_single.exceptions import DynamoSingleError


class SQLCompiler(django_compiler.SQLCompiler):
    """Refuses to read, but for the record of migrations."""

    action: ClassVar[str] = "query"

    def as_sql(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse: there is no SQL to give."""
        raise self._refusal()

    def explain_query(self) -> NoReturn:
        """Refuse: there is no query plan to give."""
        raise self._refusal()

    def execute_sql(
        self,
        result_type: str | None = MULTI,
        chunked_fetch: bool = False,
        chunk_size: int = GET_ITERATOR_CHUNK_SIZE,
    ) -> Any:
        """Return nothing for an empty query and the migrations on disk for their record; refuse every other query."""
        if self.query.is_empty():
            return self._no_result(result_type)
        if result_type == MULTI and self._asks_for_applied_migrations():
            self.setup_query()
            return self._applied_migrations()
        raise self._refusal()

    def _no_result(self, result_type: str | None) -> Any:
        if result_type == MULTI:
            self.setup_query()  # whoever iterates reads the selected columns first
            return iter(())
        return 0 if result_type == ROW_COUNT else None

    def _refusal(self) -> DynamoSingleError:
        model = self.query.model
        if model is None:
            return condition_refused(self.connection.alias)
        if model is MigrationRecorder.Migration:
            return command_refused(
                f"{self.action} the record of migrations",
                "Every migration on disk counts as applied, and none of its operations runs.",
                self.connection.alias,
            )
        return query_refused(model, self.action, self.connection.alias)

    def _asks_for_applied_migrations(self) -> bool:
        query = self.query
        narrowed = query.where or query.annotations or query.distinct or query.combinator or query.is_sliced
        return query.model is MigrationRecorder.Migration and not (narrowed or query.order_by)

    def _applied_migrations(self) -> Iterator[list[tuple[Any, ...]]]:
        """Yield the rows in one chunk, each with the columns that the queryset selects."""
        names = [expression.target.name for expression, _, _ in self.select]
        applied = clock.now()
        rows = (
            {"id": number, "app": app, "name": name, "applied": applied}
            for number, (app, name) in enumerate(_migrations_on_disk(), start=1)
        )
        yield [tuple(row[name] for name in names) for row in rows]


class SQLInsertCompiler(SQLCompiler):
    """Refuses to insert."""

    action = "insert into"


class SQLDeleteCompiler(SQLCompiler):
    """Refuses to delete."""

    action = "delete from"


class SQLUpdateCompiler(SQLCompiler):
    """Refuses to update."""

    action = "update"

    def execute_returning_sql(self, returning_fields: Any) -> list[tuple[Any, ...]]:
        """Return nothing for an empty query and refuse every other; Django asks so since 6.0."""
        return [()] * int(self.execute_sql(ROW_COUNT))


class SQLAggregateCompiler(SQLCompiler):
    """Refuses to aggregate."""

    action = "aggregate over"


def _migrations_on_disk() -> list[tuple[str, str]]:
    """Every migration there is a file for, and those that a squashed migration replaces.

    A squashed migration counts as applied only if all that it replaces do, and their files may be gone.
    """
    loader = MigrationLoader(None, load=False)
    loader.load_disk()
    replaced = {key for migration in loader.disk_migrations.values() for key in migration.replaces}
    return sorted({*loader.disk_migrations, *replaced})
