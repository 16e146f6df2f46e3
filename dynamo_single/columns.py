"""What ``values()`` and ``values_list()`` make of each object.

Items are read whole; picking attributes is done here, in Python. This module must not know plans or requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models.query import BaseIterable

from dynamo_single.exceptions import NotSupported, UnknownField

Shape = Callable[[Sequence[str], tuple[Any, ...]], Any]


@dataclass(frozen=True, slots=True)
class Columns:
    """The attributes of each row, the names that they go by, and what a row is put into."""

    attributes: tuple[str, ...]
    names: tuple[str, ...]
    shape: Shape

    def of(self, obj: Any) -> Any:
        """The row of an object."""
        return self.shape(self.names, tuple(getattr(obj, name) for name in self.attributes))


class ColumnIterable(BaseIterable):  # type: ignore[type-arg]  # not generic at run time
    """Rows, read page by page."""

    def __iter__(self) -> Iterator[Any]:
        queryset: Any = self.queryset
        return map(queryset._columns.of, queryset._objects())


def columns(model: Any, fields: Sequence[Any], expressions: Any, shape: Shape) -> Columns:
    """The columns that were asked for: all of them by their stored form's names, if none is named."""
    if expressions or any(not isinstance(field, str) for field in fields):
        raise NotSupported("Expressions in values() are not supported: DynamoDB computes nothing while it reads.")
    meta = model._meta
    attributes = {"pk": "pk"}
    attributes |= {name: f.attname for f in meta.concrete_fields for name in (f.name, f.attname)}
    for field in fields:
        if field not in attributes:
            raise UnknownField(
                f"{meta.label} has no attribute {field!r} for values(). It has "
                f"{', '.join(f.name for f in meta.concrete_fields)}."
            )
    names = tuple(fields) or tuple(f.attname for f in meta.concrete_fields)
    return Columns(tuple(attributes[name] for name in names), names, shape)


def as_dict(names: Sequence[str], row: tuple[Any, ...]) -> dict[str, Any]:
    """A row of ``values()``."""
    return dict(zip(names, row, strict=True))


def as_tuple(names: Sequence[str], row: tuple[Any, ...]) -> tuple[Any, ...]:
    """A row of ``values_list()``."""
    return row


def as_value(names: Sequence[str], row: tuple[Any, ...]) -> Any:
    """A row of ``values_list(flat=True)``."""
    return row[0]
