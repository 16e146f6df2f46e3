"""Read the tables of the SQL database, page by page.

A separate Django model without relations reads each table, instead of the project's models, managers and signals. This
module does not depend on DynamoDB.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from django.db import connections, models
from django.db.models import Q
from django.test.utils import isolate_apps
from msgspec import Struct
from msgspec.structs import replace

#: A row: its values by the names of the columns.
Values = dict[str, Any]

#: The maximum number of values in a condition. SQLite accepts 999 (Django, ``DatabaseFeatures.max_query_params``).
MAX_MEMBERS: Final = 500
#: The maximum number of rows that one query selects by a composite primary key.
_MAX_TUPLES: Final = 50


class Place(Struct, frozen=True):
    """The target of a foreign key, by the names in the database."""

    table: str
    column: str


class Column(Struct, frozen=True, eq=False):
    """A column.

    ``name`` is the attribute of the source model, or else the name in the database. ``names`` contains all names that
    an attribute can have. ``field`` is a Django field that converts the stored value.
    """

    name: str
    column: str
    field: Any
    refers: Place | None = None
    names: tuple[str, ...] = ()


class Link(Struct, frozen=True):
    """A many-to-many relation: its name, the table that stores it, and the two columns of this table."""

    name: str
    through: SourceTable
    near: str
    far: str


class SourceTable:
    """One table of the SQL database.

    - ``label`` is the source model's label, or the table's name. ``names`` contains the lower-case names that ``--map``
      takes.
    - ``pk`` contains the names of the columns of the primary key.
    - ``columns`` contains the columns by name, including the columns of ``parents``: the tables from which a model
      inherits, each with the column that refers to it.
    - ``links`` contains the many-to-many relations by name.
    - ``ends`` contains the two columns of a table that Django created for a many-to-many relation.
    """

    def __init__(
        self,
        label: str,
        table: str,
        *,
        using: str,
        pk: Sequence[str],
        columns: Iterable[Column],
        names: Iterable[str] = (),
        is_user: bool = False,
        ends: tuple[str, str] | None = None,
        parents: Iterable[tuple[str, SourceTable]] = (),
    ) -> None:
        self.label = label
        self.table = table
        self.using = using
        self.pk = tuple(pk)
        self.own = {column.name: column for column in columns}
        self.names = frozenset({label.lower(), table.lower(), *(name.lower() for name in names)})
        self.is_user = is_user
        self.ends = ends
        self.parents = tuple(parents)
        self.columns: dict[str, Column] = {
            **{n: c for _, parent in self.parents for n, c in parent.columns.items()},
            **self.own,
        }
        self.links: dict[str, Link] = {}

    def __repr__(self) -> str:
        return f"<SourceTable {self.label}>"

    def read_as(self, name: str, field: Any) -> Column:
        """Replace the field of a column, before the first query."""
        return self._set(replace(self.own[name], field=field))

    def refer(self, name: str, other: SourceTable) -> Column:
        """Let a column without a foreign key refer to the primary key of another table, unless that is composite."""
        column = self.columns[name]
        if column.refers is not None or name not in self.own or len(other.pk) != 1:
            return column
        return self._set(replace(column, refers=Place(other.table, other.columns[other.pk[0]].column)))

    def _set(self, column: Column) -> Column:
        self.own[column.name] = self.columns[column.name] = column
        return column

    def column_at(self, column: str) -> Column | None:
        """Return the column with a name in the database."""
        return next((each for each in self.own.values() if each.column == column), None)

    # Each method sends one query, and one more for each parent table.

    def count(self) -> int:
        """Return the number of rows."""
        number: int = self._rows().count()
        return number

    def pages(self, size: int) -> Iterator[list[Values]]:
        """Yield all rows by the primary key, ``size`` at a time; memory holds one page.

        Each page is a query for the rows after the last page, so no cursor or transaction stays open. It includes rows
        that another process inserts after the current page.
        """
        names = self.pk
        after = Q()
        while True:
            page = self._read(self._rows().filter(after).order_by(*(self._flat[name] for name in names))[:size])
            if page:
                yield page
            if len(page) < size:
                return
            after = self._after([page[-1][name] for name in names])

    def _after(self, last: Sequence[object]) -> Q:
        found = Q()
        for depth in range(len(self.pk)):
            equal = {self._flat[name]: value for name, value in zip(self.pk[:depth], last, strict=False)}
            found |= Q(**equal, **{f"{self._flat[self.pk[depth]]}__gt": last[depth]})
        return found

    def rows_with(self, name: str, values: Iterable[object]) -> Iterator[Values]:
        """Yield the rows with some values in a column."""
        wanted = [*values]
        for start in range(0, len(wanted), MAX_MEMBERS):
            some = wanted[start : start + MAX_MEMBERS]
            yield from self._read(self._rows().filter(**{f"{self._flat[name]}__in": some}))

    def rows_of(self, pks: Sequence[Sequence[object]]) -> Iterator[Values]:
        """Yield the rows with some primary keys."""
        if len(self.pk) == 1:
            yield from self.rows_with(self.pk[0], (pk[0] for pk in pks))
            return
        for start in range(0, len(pks), _MAX_TUPLES):
            found = Q()
            for pk in pks[start : start + _MAX_TUPLES]:
                found |= Q(**{self._flat[name]: value for name, value in zip(self.pk, pk, strict=True)})
            yield from self._read(self._rows().filter(found))

    def _read(self, queryset: Any) -> list[Values]:
        rows = [dict(zip(self.own, values, strict=True)) for values in queryset.values_list(*self._flat.values())]
        for name, parent in self.parents:
            inherited = {row[parent.pk[0]]: row for row in parent.rows_with(parent.pk[0], [row[name] for row in rows])}
            rows = [{**inherited.get(row[name], {}), **row} for row in rows]
        return rows

    def _rows(self) -> Any:
        return self._model._base_manager.using(self.using).all()

    @cached_property
    def _flat(self) -> Mapping[str, str]:
        """The names of the fields by column. Not every column name can be the name of a field."""
        return {name: f"c{number}" for number, name in enumerate(self.own)}

    @cached_property
    def _model(self) -> Any:
        fields = {}
        for column in self.own.values():
            field = plain_field(column.field)
            field.db_column = column.column
            # Django adds a column "id" to a model without a primary key.
            field.primary_key = column.name == self.pk[0]
            fields[self._flat[column.name]] = field
        meta = type("Meta", (), {"app_label": "sql_import", "db_table": self.table, "managed": False})
        with isolate_apps():
            return type("Row", (models.Model,), {**fields, "__module__": __name__, "Meta": meta})


def plain_field(field: Any) -> Any:
    """Return a new field that converts the values of a column in the same way."""
    if isinstance(field, models.AutoField):
        return models.BigIntegerField()
    generated = getattr(models, "GeneratedField", None)
    if generated is not None and isinstance(field, generated):
        return field.output_field.clone()
    return field.clone()


def related(link: Link, owners: Iterable[object]) -> dict[object, list[Any]]:
    """Return the values of a relation's far column for each value of its near column."""
    found: dict[object, list[Any]] = {}
    for row in link.through.rows_with(link.near, owners):
        found.setdefault(row[link.near], []).append(row[link.far])
    return found


def table_names(using: str) -> set[str]:
    """Return the names of the database's tables and views."""
    connection = connections[using]
    with connection.cursor() as cursor:
        return {*connection.introspection.table_names(cursor, include_views=True)}


def column_names(using: str, table: str) -> set[str]:
    """Return the names of a table's columns in the database."""
    connection = connections[using]
    with connection.cursor() as cursor:
        return {row.name for row in connection.introspection.get_table_description(cursor, table)}
