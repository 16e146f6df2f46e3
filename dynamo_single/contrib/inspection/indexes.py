"""The indexes of a table as DynamoDB describes them, and key attributes as the settings name them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from msgspec import Struct

from dynamo_single.contrib.inspection import names
from dynamo_single.table import names as stored_names

#: The note on an index that does not contain whole items.
PROJECTED: Final = "projects {}: objects are read by a second request"


class Index(Struct, frozen=True):
    """An index; models use it by ``name``. ``projection`` is ``ALL``, ``KEYS_ONLY`` or the included attributes."""

    name: str
    index_name: str
    keys: tuple[tuple[str, str], ...]
    projection: str | list[str] = "ALL"
    is_local: bool = False

    @property
    def notes(self) -> list[str]:
        """The comments on the index for developers."""
        kind = self.projection if isinstance(self.projection, str) else "INCLUDE"
        return [] if kind == "ALL" else [PROJECTED.format(kind)]

    @property
    def settings(self) -> dict[str, Any]:
        """The entry in ``INDEXES``."""
        found: dict[str, Any] = {"name": self.index_name}
        found |= {word: key_setting(*key) for word, key in zip(("partition", "sort"), self.keys, strict=False)}
        if self.projection != "ALL":
            found["projection"] = self.projection
        return {**found, "local": True} if self.is_local else found


def indexes_of(description: Any, schema: Collection[str] = ()) -> list[Index]:
    """Return the indexes of a table's description, each with a name that models can use.

    The app calls the keys of ``gs1`` ``gs1pk`` and ``gs1sk``, so no attribute in ``schema`` has these names.
    """
    types, found = key_types(description), list[Index]()
    for kind, is_local in (("GlobalSecondaryIndexes", False), ("LocalSecondaryIndexes", True)):
        for each in description.get(kind) or ():
            name = names.index_name(each["IndexName"], [index.name for index in found])
            while {*stored_names.key_names(name)} & {*schema, *types}:
                name = f"index_{name}"
            keys = tuple((key, types[key]) for key in key_names(each))
            found.append(Index(name, str(each["IndexName"]), keys, _projection(each), is_local))
    return found


def _projection(described: Any) -> str | list[str]:
    projection = described.get("Projection", {})
    kind = str(projection.get("ProjectionType", "ALL"))
    return sorted(projection.get("NonKeyAttributes", ())) if kind == "INCLUDE" else kind


def key_types(description: Any) -> dict[str, str]:
    """Return the types of all key attributes of a table's description."""
    return {each["AttributeName"]: each["AttributeType"] for each in description["AttributeDefinitions"]}


def key_names(described: Any) -> list[str]:
    """Return the key attributes of a table or an index, the partition key first."""
    order = sorted(described["KeySchema"], key=lambda key: str(key["KeyType"]))  # HASH before RANGE
    return [str(key["AttributeName"]) for key in order]


def key_setting(name: str, type: str) -> str:
    """Return a key attribute as the settings name it: ``views:N``."""
    return name if type == "S" and name[-2:] not in (":S", ":N", ":B") else f"{name}:{type}"
