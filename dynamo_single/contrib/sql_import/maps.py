"""Parse the arguments of ``--map``: a model for a table, attributes for a column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from dynamo_single.contrib.sql_import.tables import SourceTable
from dynamo_single.exceptions import ConfigurationError


class Maps(Struct, frozen=True):
    """The arguments of ``--map`` by their left side: a table, or a column of a table."""

    models: Mapping[SourceTable, str]
    columns: Mapping[tuple[SourceTable, str], Sequence[str]]

    @classmethod
    def of(cls, texts: Iterable[str], tables: Sequence[SourceTable]) -> Maps:
        """Return the maps; raise ``ConfigurationError`` if a name is unknown."""
        models: dict[SourceTable, str] = {}
        columns: dict[tuple[SourceTable, str], list[str]] = {}
        for text in texts:
            left, sign, right = text.partition("=")
            if not sign:
                raise ConfigurationError(f"--map {text}: write old.Model=app.Model or Model.field=attribute.")
            table = _named(tables, left)
            if table is not None:
                models[table] = right
                continue
            label, _, name = left.rpartition(".")
            table = _named(tables, label)
            found = None if table is None else _column_named(table, name)
            if table is None or found is None:
                raise ConfigurationError(
                    f"--map {text}: {left!r} is not the name of a model, table, field or column to import."
                )
            columns.setdefault((table, found), []).extend([right] if right else [])
        return cls(models, columns)


def _named(tables: Sequence[SourceTable], name: str) -> SourceTable | None:
    found = [table for table in tables if name.lower() in table.names]
    if len(found) > 1:
        labels = ", ".join(table.label for table in found)
        raise ConfigurationError(f"--map {name}: several models have this name: {labels}. Write the label.")
    return found[0] if found else None


def _column_named(table: SourceTable, name: str) -> str | None:
    if name in table.links:
        return name
    return next((each.name for each in table.columns.values() if name == each.name or name in each.names), None)
