"""Where a queryset would become SQL.

Every query is refused, with two exceptions: a query that is known to be empty needs no database, and Django's own
record of migrations is kept by ``record``: it is asked which are applied, and told of one that is, or is no more.

Private to Django: the five class names, ``execute_sql`` and its result types, ``setup_query`` and ``select``, and what
a query to insert holds (``objs``) and one to delete (``where``). No other module of the app relies on them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Never, NoReturn

from django.db.migrations.recorder import MigrationRecorder
from django.db.models.sql import compiler as django_compiler
from django.db.models.sql.constants import GET_ITERATOR_CHUNK_SIZE, MULTI, ROW_COUNT
from django.db.models.sql.where import AND

from dynamo_single.backend import record
from dynamo_single.backend.errors import command_refused, condition_refused, query_refused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dynamo_single.exceptions import DynamoSingleError


class SQLCompiler(django_compiler.SQLCompiler):
    """Refuses to read, but for the record of migrations."""

    action: ClassVar[str] = "query"

    def as_sql(self, *args: object, **kwargs: object) -> NoReturn:
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
        """Return nothing for an empty query and what is applied for the record of migrations; refuse every other."""
        if self.query.is_empty():
            return self._no_result(result_type)
        if result_type == MULTI and self._is_about_migrations() and not self.query.order_by:
            self.setup_query()
            return self._applied_migrations()
        raise self._refusal()

    def _no_result(self, result_type: str | None) -> Iterator[Never] | int | None:
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
                "Each migration of an app without items to migrate counts as applied; none of its operations runs.",
                self.connection.alias,
            )
        return query_refused(model, self.action, self.connection.alias)

    def _is_about_migrations(self) -> bool:
        query = self.query
        if query.model is not MigrationRecorder.Migration:
            return False
        return not (query.annotations or query.distinct or query.combinator or query.is_sliced)

    def _rows(self) -> list[dict[str, Any]]:
        """The rows of the record that the query is about; refuses conditions that Django's recorder never has."""
        known = enumerate(sorted(record.applied().items()), start=1)
        rows = [{"id": number, "app": app, "name": name, "applied": since} for number, ((app, name), since) in known]
        where: Any = self.query.where
        if where.connector != AND or where.negated:
            raise self._refusal()
        for lookup in where.children:
            operator = getattr(lookup, "lookup_name", "")
            if operator not in ("exact", "in"):
                raise self._refusal()
            name = lookup.lhs.target.attname
            wanted = [lookup.rhs] if operator == "exact" else list(lookup.rhs)
            rows = [row for row in rows if row[name] in wanted]
        return rows

    def _applied_migrations(self) -> Iterator[list[tuple[object, ...]]]:
        """Yield the rows in one chunk, each with the columns that the queryset selects."""
        names = [expression.target.name for expression, _, _ in self.select]
        yield [tuple(row[name] for name in names) for row in self._rows()]


class SQLInsertCompiler(SQLCompiler):
    """Refuses to insert, but into the record of migrations."""

    action = "insert into"

    def execute_sql(self, *fields: object, **options: object) -> Any:
        """Record migrations, and give what Django asks of each; refuse every other query."""
        query: Any = self.query
        if query.model is not MigrationRecorder.Migration:
            raise self._refusal()
        names = [(row.app, row.name) for row in query.objs]
        if not all(map(record.is_kept, names)):
            raise self._refusal()
        for row, name in zip(query.objs, names, strict=True):
            record.record(name, row.applied)
        # The one field that Django's own databases give back is the identifier, which nobody looks at.
        return [(1,) for _ in names] if any((*fields, *options.values())) else []


class SQLDeleteCompiler(SQLCompiler):
    """Refuses to delete, but from the record of migrations."""

    action = "delete from"

    def execute_sql(self, result_type: str | None = MULTI, **options: Any) -> Any:  # type: ignore[override]  # overloads
        """Forget migrations; refuse every other query that is not empty."""
        if self.query.is_empty() or not self._is_about_migrations():
            return super().execute_sql(result_type, **options)
        names = [(row["app"], row["name"]) for row in self._rows()]
        if self.query.where and not all(map(record.is_kept, names)):
            raise self._refusal()
        count = record.forget(name for name in names if record.is_kept(name))
        return count if result_type == ROW_COUNT else None


class SQLUpdateCompiler(SQLCompiler):
    """Refuses to update."""

    action = "update"

    def execute_returning_sql(self, returning_fields: object) -> list[tuple[object, ...]]:
        """Return nothing for an empty query and refuse every other; Django asks so since 6.0."""
        return [()] * int(self.execute_sql(ROW_COUNT))


class SQLAggregateCompiler(SQLCompiler):
    """Refuses to aggregate."""

    action = "aggregate over"
