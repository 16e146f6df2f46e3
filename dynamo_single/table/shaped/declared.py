"""What the models of an alias declare, for tables with names of their own; the mapping registers it.

This module is small because every process imports it. Only tables with names of their own import the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from dynamo_single.table.request import Item, StoredValue


class ModelNames(Struct, frozen=True, eq=False):
    """The declarations of an alias's models that a table needs.

    - ``declared``: the names of stored attributes.
    - ``key_only``: the names of attributes that only keys contain.
    - ``type_of``: the type of the item with a key, for tables without types; ``None`` for an item of no model.
    - ``values_of``: the attributes of an item that only its key contains.
    """

    declared: frozenset[str] = frozenset()
    key_only: frozenset[str] = frozenset()
    type_of: Callable[[str, str], str | None] = lambda partition, sort: None
    values_of: Callable[[Item], dict[str, StoredValue]] = lambda item: {}


NO_MODELS: Final = ModelNames()
#: An object that is replaced when the models change. Code that runs in every call compares it here directly.
generation: object = None
#: Return what the models of an alias declare.
_models: Callable[[str], ModelNames] = lambda alias: NO_MODELS  # noqa: E731
#: Return the prefixes of records' identifiers, the longest first, each with the sort key of its records.
_records: Callable[[], Sequence[tuple[str, str]]] = lambda: ()  # noqa: E731


def register(
    models: Callable[[str], ModelNames],
    records: Callable[[], Sequence[tuple[str, str]]],
) -> None:
    """Register the functions of the mapping. ``models`` returns one object until the models change."""
    global _models, _records
    _models, _records = models, records


def begin(begun: object) -> None:
    """Take the object that stands for the models from now on. They have changed before this call."""
    global generation
    generation = begun


def models_of(alias: str) -> ModelNames:
    """Return what the models of an alias declare, the same object until they change."""
    return _models(alias)


def record_sorts() -> Sequence[tuple[str, str]]:
    """Return the prefixes of records' identifiers, the longest first, each with the sort key of its records."""
    return _records()
