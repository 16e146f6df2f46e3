"""The limits of filters and results in a table with a shape of its own. The module does not depend on models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from dynamo_single.conf.shapes import IndexShape, KeyAttribute, Shape
from dynamo_single.table.names import ITEM_TYPE


class Reach(Struct, frozen=True):
    """The limits of a Query or Scan by one key.

    ``hidden`` are stored names of attributes that its filter cannot contain. ``projected`` are the table's names of
    the attributes that an index has; ``None`` for all. ``renames`` are the table's names.
    """

    hidden: frozenset[str] = frozenset()
    projected: frozenset[str] | None = None
    renames: Mapping[str, str] = MappingProxyType({})
    skips_foreign: bool = False

    def is_late(self, name: str) -> bool:
        """Return whether a condition on an attribute has to be evaluated after reading."""
        if name in self.hidden:
            return True
        return self.projected is not None and self.renames.get(name, name) not in self.projected


def reaches_of(shape: Shape, attributes: Mapping[str, Any]) -> Mapping[str | None, Reach]:
    """Return what each key of a table can filter and return, by its index; empty for a table of the app's own."""
    if shape.is_own or shape.by_prefix:
        return MappingProxyType({})
    stored = {each.attr_name for each in attributes.values()}
    key_only = {each.attr_name for each in attributes.values() if each.in_key_only}
    skips = shape.foreign == "skip"
    renames = dict(shape.renames)
    if shape.type_attribute is None:
        renames[ITEM_TYPE] = shape.partition.name  # each index has the primary key, which determines the type

    def reach(keys: Iterable[KeyAttribute], included: Iterable[str] | None) -> Reach:
        own = {key.name for key in keys}
        projected = None if included is None else frozenset({*own, *(key.name for key in shape.keys), *included})
        return Reach(frozenset(own & stored | key_only), projected, renames, skips)

    found: dict[str | None, Reach] = {None: reach(shape.keys, None)}
    for index in shape.indexes:
        found[index.name] = reach(index.keys, _included(index))
    return found


def _included(index: IndexShape) -> Iterable[str] | None:
    if isinstance(index.projection, tuple):
        return index.projection
    return None if index.projection == "ALL" else ()
