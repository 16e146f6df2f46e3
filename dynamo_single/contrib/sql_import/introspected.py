"""Describe the tables of a database by Django's introspection, like ``inspectdb``."""

from __future__ import annotations

from typing import Any, Final

from django.db import connections, models

from dynamo_single.contrib.sql_import.tables import Column, Link, Place, SourceTable

#: Types whose values Django converts on some databases. Other columns keep the value of the database: ``inspectdb``
#: guesses the decimal places of SQLite, and Django would round to them.
CONVERTED: Final[dict[str, type[models.Field[Any, Any]]]] = {
    "BooleanField": models.BooleanField,
    "DateField": models.DateField,
    "DateTimeField": models.DateTimeField,
    "DurationField": models.DurationField,
    "JSONField": models.JSONField,
    "TimeField": models.TimeField,
    "UUIDField": models.UUIDField,
}


def tables_of(using: str) -> list[SourceTable]:
    """Return the tables that have a primary key; three queries a table."""
    connection = connections[using]
    found = []
    with connection.cursor() as cursor:
        for info in sorted(connection.introspection.get_table_list(cursor)):
            if info.type != "t":
                continue
            table = _table(connection, cursor, info.name)
            if table is not None:
                found.append(table)
    return found


def _table(connection: Any, cursor: Any, name: str) -> SourceTable | None:
    introspection = connection.introspection
    key = introspection.get_primary_key_columns(cursor, name)
    if not key:
        return None
    relations = introspection.get_relations(cursor, name) if connection.features.can_introspect_foreign_keys else {}
    columns = []
    for row in introspection.get_table_description(cursor, name):
        refers = Place(relations[row.name][1], relations[row.name][0]) if row.name in relations else None
        columns.append(Column(row.name, row.name, _field(introspection, row), refers, (row.name,)))
    ends = [column.name for column in columns if column.refers is not None]
    is_plain = len(ends) == 2 and len(columns) == 3
    return SourceTable(
        name,
        name,
        using=connection.alias,
        pk=key,
        columns=columns,
        ends=(ends[0], ends[1]) if is_plain else None,
    )


def _field(introspection: Any, row: Any) -> models.Field[Any, Any]:
    try:
        found = introspection.get_field_type(row.type_code, row)
    except KeyError:
        found = ""
    return field_of(found[0] if isinstance(found, tuple) else found)


def field_of(internal_type: str) -> models.Field[Any, Any]:
    """Return a field that reads a column of one of Django's types."""
    return CONVERTED.get(internal_type, models.Field)()


def link_of(owner: SourceTable, name: str, through: SourceTable, far: SourceTable | None) -> Link | None:
    """Return the many-to-many relation that ``through`` stores; ``None`` if it has other columns.

    Databases without foreign keys have the columns in the order in which Django creates them.
    """
    others = [each for each in through.columns if each not in through.pk]
    if len(others) != 2:
        return None
    through.refer(others[0], owner)
    if far is not None:
        through.refer(others[1], far)
    return Link(name, through, others[0], others[1])
