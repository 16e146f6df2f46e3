"""The shape of a table: the names and types of its keys, its indexes, the attributes of the type and of the expiry.

The app knows items by its own names, which are the defaults here. A ``Shape`` is the part of ``TableSettings`` that
says how they are stored instead. The module does not depend on settings, tables or models, and does not send requests.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, Literal, cast

from msgspec import Struct

from dynamo_single.exceptions import ConfigurationError
from dynamo_single.setting_values import BOOLEAN, Reader

#: The app's own names; ``table.names`` exports them.
PARTITION_KEY: Final = "pk"
SORT_KEY: Final = "sk"
ITEM_TYPE: Final = "itemType"
EXPIRES_AT: Final = "expiresAt"
#: The key of a table whose ``KEY`` is ``"id"``.
ID: Final = "id"
#: The sort key that the app uses for items of a table or an index without one.
NO_SORT_KEY: Final = "-"

DEFAULT_INDEXES: Final = ("gs1", "gs2")
#: The default quotas of indexes per table:
#: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html
MAX_INDEXES: Final = 20
MAX_LOCAL_INDEXES: Final = 5
#: The most attributes that the indexes of a table may project by INCLUDE in all (the same page).
MAX_INCLUDED: Final = 100
#: The longest name of a key attribute in bytes (the page of the naming rules).
MAX_NAME: Final = 255

#: A table's key: ``pk`` with the sort key ``sk``, or only ``id``.
KeyForm = Literal["pk", "id"]
#: The type of a key attribute: text, number or binary.
KeyType = Literal["S", "N", "B"]
#: Whether reading an item that is no model's raises ``UnexpectedItem``, or leaves the item out.
Foreign = Literal["refuse", "skip"]

_INDEX_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{2,252}")
_DYNAMODB_INDEX_NAME = re.compile(r"[A-Za-z0-9_.-]{3,255}")
_KEY_ATTRIBUTE = re.compile(r"(?s:(.+?))(?::([SNB]))?")
#: The words of an index in ``INDEXES``.
_OF_INDEX = ("name", "partition", "sort", "projection", "local")


class KeyAttribute(Struct, frozen=True):
    """An attribute that is a key, with its type."""

    name: str
    type: KeyType = "S"

    def __str__(self) -> str:
        return self.name if self.type == "S" else f"{self.name}:{self.type}"


class IndexShape(Struct, frozen=True):
    """One index. Models use ``name``; DynamoDB's name is ``index_name``. ``sort`` is ``None`` without a sort key.

    ``projection`` is ``"ALL"``, ``"KEYS_ONLY"``, or the attributes of INCLUDE in the order of their names.
    """

    name: str
    index_name: str
    partition: KeyAttribute
    sort: KeyAttribute | None
    projection: Literal["ALL", "KEYS_ONLY"] | tuple[str, ...] = "ALL"
    is_local: bool = False

    @property
    def keys(self) -> tuple[KeyAttribute, ...]:
        """The index's key attributes, the partition key first."""
        return (self.partition,) if self.sort is None else (self.partition, self.sort)


def own_index(name: str) -> IndexShape:
    """Return an index of a table of the app's own: the keys of ``gs1`` are ``gs1pk`` and ``gs1sk``."""
    return IndexShape(name, name, KeyAttribute(f"{name}pk"), KeyAttribute(f"{name}sk"))


class Shape(Struct, frozen=True, dict=True):
    """How the app's items are stored in one table. Two shapes with the same fields are equal.

    - ``sort`` is ``None`` for a table with a partition key alone.
    - ``type_attribute`` is ``None`` if items have no type; the templates of the keys then determine it.
    - ``raw_keys``: keys contain values as they are stored, rather than escaped.
    - ``by_prefix``: ``KEY`` is ``"id"``, so the prefix of an identifier determines the sort key.
    """

    partition: KeyAttribute = KeyAttribute(PARTITION_KEY)
    sort: KeyAttribute | None = KeyAttribute(SORT_KEY)
    indexes: tuple[IndexShape, ...] = tuple(map(own_index, DEFAULT_INDEXES))
    type_attribute: str | None = ITEM_TYPE
    ttl_attribute: str = EXPIRES_AT
    raw_keys: bool = False
    by_prefix: bool = False
    foreign: Foreign = "refuse"

    @cached_property
    def is_own(self) -> bool:
        """Whether the table uses the app's own names for everything, so that nothing has to be translated."""
        own = Shape(indexes=tuple(own_index(each.name) for each in self.indexes))
        return self == own

    @cached_property
    def index_names(self) -> tuple[str, ...]:
        """The names of the indexes by which models use them."""
        return tuple(each.name for each in self.indexes)

    @property
    def keys(self) -> tuple[KeyAttribute, ...]:
        """The table's key attributes, the partition key first."""
        return (self.partition,) if self.sort is None else (self.partition, self.sort)

    @cached_property
    def key_types(self) -> dict[str, KeyType]:
        """The type of each key attribute of the table and its indexes, by the table's names."""
        return {key.name: key.type for key in (*self.keys, *(key for each in self.indexes for key in each.keys))}

    @cached_property
    def pairs(self) -> tuple[tuple[str, KeyAttribute], ...]:
        """Each key attribute with the app's own name for it; one attribute may be part of several keys."""
        return tuple(self._pairs())

    def _pairs(self) -> Iterator[tuple[str, KeyAttribute]]:
        yield from zip((PARTITION_KEY, SORT_KEY), self.keys, strict=False)
        for each in self.indexes:
            yield from zip((f"{each.name}pk", f"{each.name}sk"), each.keys, strict=False)

    @cached_property
    def renames(self) -> dict[str, str]:
        """The table's names of keys, type and expiry, by the app's own names, if they differ."""
        found = {own: key.name for own, key in self.pairs}
        if self.type_attribute is not None:
            found[ITEM_TYPE] = self.type_attribute
        found[EXPIRES_AT] = self.ttl_attribute
        return {own: name for own, name in found.items() if own != name}

    def name_of(self, own: str) -> str:
        """Return the table's name of an attribute."""
        return self.renames.get(own, own)

    def index(self, name: str) -> IndexShape | None:
        """Return the index that models call ``name``; ``None`` if the table has none."""
        return next((each for each in self.indexes if each.name == name), None)


#: The shape of a table that the app creates by default, and of one whose ``KEY`` is ``"id"``.
OWN: Final = Shape()
BY_ID: Final = Shape(partition=KeyAttribute(ID), sort=None, by_prefix=True)


def shape_of(values: dict[str, Any], called: Any) -> Shape:
    """Take the settings of the shape out of the read ``values`` and return the shape.

    Raise ``ConfigurationError`` if they contradict each other; ``called`` returns the name of a setting in a message.
    """
    by_id = values.pop("key", "pk") == "id"
    names = {"partition_key": "partition", "sort_key": "sort"}
    own = ("partition_key", "sort_key", "type_attribute", "ttl_attribute", "raw_keys", "foreign", "indexes")
    given = {names.get(name, name): values.pop(name) for name in own if name in values}
    if by_id and (against := sorted({"partition", "sort", "raw_keys"} & given.keys())):
        setting = next((long for long, short in names.items() if short == against[0]), against[0]).upper()
        raise ConfigurationError(
            f"{called(setting)} contradicts {called('KEY')}, which is 'id': KEY is the short form of a table of "
            "records whose only key is 'id'. Leave one of them out."
        )
    start = BY_ID if by_id else OWN
    found = Shape(**{**{name: getattr(start, name) for name in start.__struct_fields__}, **given})
    _check(found, called)
    return found


def _check(found: Shape, called: Any) -> None:
    types: dict[str, str] = {}
    for own, key in found.pairs:
        setting = called({PARTITION_KEY: "PARTITION_KEY", SORT_KEY: "SORT_KEY"}.get(own, "INDEXES"))
        if types.setdefault(key.name, key.type) != key.type:
            raise ConfigurationError(
                f"{setting} gives {key.name!r} the type {key.type}, and another key the type {types[key.name]}: a key "
                "attribute has one type."
            )
    for setting, name in (("TYPE_ATTRIBUTE", found.type_attribute), ("TTL_ATTRIBUTE", found.ttl_attribute)):
        if name in {key.name for key in found.keys}:
            raise ConfigurationError(f"{called(setting)} is {name!r}, which is a key of the table: name another one.")
    if found.sort is not None and found.sort.name == found.partition.name:
        raise ConfigurationError(f"{called('SORT_KEY')} is the partition key: name another attribute, or None.")
    if found.type_attribute == found.ttl_attribute:
        raise ConfigurationError(f"{called('TTL_ATTRIBUTE')} is the TYPE_ATTRIBUTE, too: name another attribute.")
    _check_indexes(found, called)


def _check_indexes(found: Shape, called: Any) -> None:
    for index in found.indexes:
        if index.sort is not None and index.sort.name == index.partition.name:
            raise ConfigurationError(f"The index {index.name!r} of {called('INDEXES')} has one attribute as both keys.")
        if index.is_local and (found.sort is None or index.sort is None or index.partition != found.partition):
            raise ConfigurationError(
                f"The index {index.name!r} of {called('INDEXES')} is local, but DynamoDB's local indexes have the "
                "table's partition key and a sort key, in a table that has a sort key."
            )
    if len({each.index_name for each in found.indexes}) < len(found.indexes):
        raise ConfigurationError(f"{called('INDEXES')} names one index twice.")
    included = sum(len(each.projection) for each in found.indexes if isinstance(each.projection, tuple))
    if included > MAX_INCLUDED:
        raise ConfigurationError(
            f"{called('INDEXES')} projects {included} attributes; DynamoDB's limit is {MAX_INCLUDED} in all."
        )


def _attribute(value: object) -> str:
    if not isinstance(value, str) or not value or len(value.encode("utf-8", "surrogatepass")) > MAX_NAME:
        raise ValueError
    return value


def _key_attribute(value: object) -> KeyAttribute:
    """Read ``"views"`` or ``"views:N"``."""
    found = _KEY_ATTRIBUTE.fullmatch(_attribute(value))
    if found is None:
        raise ValueError
    return KeyAttribute(found[1], cast(KeyType, found[2] or "S"))


def _key_attribute_or_none(value: object) -> KeyAttribute | None:
    # A URL cannot contain None.
    return None if value is None or value == "" else _key_attribute(value)


def _attribute_or_none(value: object) -> str | None:
    return None if value is None or value == "" else _attribute(value)


def _foreign(value: object) -> str:
    if value not in ("refuse", "skip"):
        raise ValueError
    return str(value)


def _indexes(value: object) -> tuple[IndexShape, ...]:
    if isinstance(value, Mapping):
        found = tuple(_index(name, given) for name, given in value.items())
    elif isinstance(value, (list, tuple)):
        found = tuple(own_index(_index_name(name)) for name in value)
    else:
        raise ValueError
    counts = sum(not each.is_local for each in found), sum(each.is_local for each in found)
    if counts[0] > MAX_INDEXES or counts[1] > MAX_LOCAL_INDEXES or len({each.name for each in found}) < len(found):
        raise ValueError
    return found


def _index_name(value: object) -> str:
    if not isinstance(value, str) or not _INDEX_NAME.fullmatch(value):
        raise ValueError
    return value


def _index(name: object, given: object) -> IndexShape:
    own = own_index(_index_name(name))
    if not isinstance(given, Mapping) or any(key not in _OF_INDEX for key in given):
        raise ValueError
    index_name, is_local = given.get("name", own.name), given.get("local", False)
    if not isinstance(index_name, str) or not _DYNAMODB_INDEX_NAME.fullmatch(index_name) or type(is_local) is not bool:
        raise ValueError
    if "partition" not in given:
        partition, sort = own.partition, _key_attribute_or_none(given.get("sort", own.sort and own.sort.name))
    else:
        partition, sort = _key_attribute(given["partition"]), _key_attribute_or_none(given.get("sort"))
    return IndexShape(own.name, index_name, partition, sort, _projection(given.get("projection", "ALL")), is_local)


def _projection(value: object) -> Literal["ALL", "KEYS_ONLY"] | tuple[str, ...]:
    if value in ("ALL", "KEYS_ONLY"):
        return value
    if not isinstance(value, Sequence) or isinstance(value, str) or not value:
        raise ValueError
    return tuple(sorted({_attribute(each) for each in value}))


_KEY_TEXT: Final = "the name of an attribute, with ':N' or ':B' after it if it is a number or binary"
#: The readers of the settings that ``shape_of()`` takes.
READERS: Final[dict[str, Reader]] = {
    "FOREIGN": (_foreign, "'refuse' or 'skip'"),
    "INDEXES": (
        _indexes,
        f"a list of at most {MAX_INDEXES} different names, each a letter and then at least two letters, digits or "
        f"'_'; or a dict from such a name to a dict with {', '.join(map(repr, _OF_INDEX))}",
    ),
    "PARTITION_KEY": (_key_attribute, _KEY_TEXT),
    "RAW_KEYS": BOOLEAN,
    "SORT_KEY": (_key_attribute_or_none, f"{_KEY_TEXT}, or None"),
    "TTL_ATTRIBUTE": (_attribute, "the name of an attribute"),
    "TYPE_ATTRIBUTE": (_attribute_or_none, "the name of an attribute, or None"),
}


def declared(shape: Shape) -> dict[str, object]:
    """Return the settings that ``shape_of()`` reads as the shape, in the form of a dict, without defaults."""
    start = BY_ID if shape.by_prefix else OWN
    found: dict[str, object] = {
        "PARTITION_KEY": str(shape.partition),
        "SORT_KEY": None if shape.sort is None else str(shape.sort),
        "TYPE_ATTRIBUTE": shape.type_attribute,
        "TTL_ATTRIBUTE": shape.ttl_attribute,
        "RAW_KEYS": shape.raw_keys,
        "FOREIGN": shape.foreign,
    }
    defaults = (start.partition, start.sort, start.type_attribute, start.ttl_attribute, False, "refuse")
    values = (shape.partition, shape.sort, shape.type_attribute, shape.ttl_attribute, shape.raw_keys, shape.foreign)
    for name, value, default in zip([*found], values, defaults, strict=True):
        if value == default:
            del found[name]
    if shape.by_prefix:
        found["KEY"] = "id"
    if all(each == own_index(each.name) for each in shape.indexes):
        return {**found, "INDEXES": list(shape.index_names)}
    return {**found, "INDEXES": {each.name: _declared_index(each) for each in shape.indexes}}


def _declared_index(index: IndexShape) -> dict[str, object]:
    sort = None if index.sort is None else str(index.sort)
    return {
        "name": index.index_name,
        "partition": str(index.partition),
        "sort": sort,
        "projection": index.projection,
        "local": index.is_local,
    }
