"""Divide the items of a sample into kinds, one for each model: by their type, or by the constants in their keys."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from dynamo_single.contrib.inspection import words
from dynamo_single.contrib.inspection.keys import OWN_NAMES, KeyAttribute, Part, split, text_of
from dynamo_single.orm.schema.keys.template import SEPARATOR
from dynamo_single.table.request import Item

#: Attributes in which libraries and projects store the type of an item.
TYPE_NAMES: Final = (
    "itemType", "__edb_e__", "_type", "__type", "__typename", "_et", "et", "entity", "entityType", "entity_type",
    "itemtype", "item_type", "recordType", "record_type", "objectType", "object_type", "model", "cls", "_t",
)  # fmt: skip
#: Names that a type may have, and any other attribute too.
WEAK_TYPE_NAMES: Final = ("type", "kind")
#: The most types of one table.
MAX_TYPES: Final = 60
_TYPE: Final = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[ _.:-][A-Za-z0-9]+){0,4}")

#: The share of the items that need not have a model.
_FEW: Final = 0.05

#: The parts of an item's primary key: constants as strings, and ``None`` for a value.
Signature = tuple[tuple[str | None, ...], ...]


_Parts = tuple[tuple[Part, bool], ...]


class Kind(Struct):
    """The items of one model. ``type`` is their value of the type attribute, if the table has one."""

    type: str | None
    signature: Signature
    items: list[Item]


class Layout(Struct, frozen=True):
    """The facts about a table that divide its items: keys, indexes, type and expiry."""

    table_name: str
    keys: tuple[KeyAttribute, ...]
    indexes: tuple[tuple[KeyAttribute, ...], ...]
    ttl: str | None = None
    type_attribute: str | None = None

    @property
    def key_names(self) -> frozenset[str]:
        """The names of all key attributes."""
        return frozenset(key.name for keys in (self.keys, *self.indexes) for key in keys)

    @property
    def composed(self) -> frozenset[str]:
        """The names of the key attributes that are built from others."""
        return frozenset(key.name for keys in (self.keys, *self.indexes) for key in keys if key.is_composed)

    def values(self, item: Item) -> dict[str, frozenset[str]]:
        """Return the attributes of an item that a key can repeat, by their values as strings."""
        found: defaultdict[str, set[str]] = defaultdict(set)
        hidden = {*self.composed, *OWN_NAMES, self.type_attribute}
        for name, value in item.items():
            if name not in hidden and (text := text_of(value)):
                found[text].add(name)
        return {text: frozenset(each) for text, each in found.items()}


def few(items: Sequence[Item]) -> int:
    """Return how many items of a sample may be left without a model: items of other kinds, and mistakes."""
    return int(len(items) * _FEW)


def type_attribute(items: Sequence[Item], keys: frozenset[str]) -> str | None:
    """Return the attribute that contains the type of each item, if there is one: a string, which is not a key."""
    for name in (*TYPE_NAMES, *WEAK_TYPE_NAMES):
        found = Counter(str(item[name]["S"]) for item in items if "S" in item.get(name, ()))
        if not items or name in keys or len(items) - found.total() > few(items):
            continue
        if len(found) <= min(MAX_TYPES, max(1, len(items) // 2)) and all(map(_TYPE.fullmatch, found)):
            return name
    return None


class Reader:
    """Reads the constants in the keys of a whole sample."""

    def __init__(self, layout: Layout, items: Sequence[Item]) -> None:
        """Collect the evidence for every word in a key."""
        self.layout = layout
        schema = Counter(name for item in items for name in item)
        typed = layout.type_attribute
        types = {text_of(item.get(typed)) or "" for item in items} if typed else set()
        known = [
            layout.table_name,
            *types,
            *(name for name, _ in schema.most_common(500) if name not in layout.key_names),
        ]
        self._vocabulary = vocabulary = words.Vocabulary(items, known, keys=layout.composed, typed=typed)
        self._constants = words.Constants(vocabulary)
        self.composed = tuple(
            {key.name: key for keys in (layout.keys, *layout.indexes) for key in keys if key.is_composed}.values()
        )
        # The items of a sample are compared by their identity, since they are not hashable.
        self._parts = {id(item): self._split(item) for item in items}
        self._read: dict[tuple[int, str], _Parts] = {}
        for item in items:
            for word in self._words(item):
                own = tuple(text_of(item.get(key.name)) or "" for key in layout.keys)
                key = (text_of(item.get(word.place)) or "", *own) if word.place not in _names(layout.keys) else own
                self._constants.add(word, key, (name for name in item if name not in layout.key_names))

    def is_known(self, text: str) -> bool:
        """Return whether a string is a word of the table's design."""
        return words.could_be_constant(text) and self._vocabulary.is_known(text)

    def read(self, item: Item, key: KeyAttribute) -> _Parts:
        """Return the parts of one key attribute of an item, each with whether it is a constant."""
        known = id(item), key.name
        if known not in self._read:
            self._read[known] = tuple(self._with_constants(item, key))
        return self._read[known]

    def _with_constants(self, item: Item, key: KeyAttribute) -> Iterator[tuple[Part, bool]]:
        if not key.is_composed:
            yield Part(text_of(item.get(key.name)) or "", frozenset({key.name})), False
            return
        parts, context = self._parts[id(item)][key.name], self._context(item, key)
        for number, part in enumerate(parts):
            word = _word(key, parts, number, context)
            is_partition = key == self.layout.keys[0]
            yield part, not part.text or (word is not None and self._constants.has(word, is_partition=is_partition))

    def _split(self, item: Item) -> dict[str, tuple[Part, ...]]:
        values = self.layout.values(item)
        texts = {key.name: (text_of(item.get(key.name)), key.separator) for key in self.composed}
        return {name: split(text, by, values) for name, (text, by) in texts.items() if text is not None and by}

    def signature(self, item: Item) -> Signature:
        """Return the constants and the number of values in an item's primary key.

        A key is one value, ``()``, if a value inside contains a separator.
        """
        return tuple(self._signature(item, key) for key in self.layout.keys)

    def _signature(self, item: Item, key: KeyAttribute) -> tuple[str | None, ...]:
        parts = self.read(item, key)
        separators = {SEPARATOR, key.separator or SEPARATOR}
        if key.is_composed and len(parts) > 1 and any(each in part.text for part, _ in parts for each in separators):
            return ()
        return tuple(part.text if is_constant else None for part, is_constant in parts)

    def _words(self, item: Item) -> Iterable[words.Word]:
        for key in self.composed:
            if key.name in item:
                context = self._context(item, key)
                parts = self._parts[id(item)][key.name]
                for number in range(len(parts)):
                    if (word := _word(key, parts, number, context)) is not None:
                        yield word

    def _context(self, item: Item, own: KeyAttribute) -> dict[str, tuple[str | None, ...]]:
        """Return the possible constants of a key attribute of an item and of its primary key."""
        primary = _names(self.layout.keys)
        return {
            name: tuple(part.text if _is_candidate(part) else None for part in parts)
            for name, parts in self._parts[id(item)].items()
            if name in primary or name == own.name
        }


def _names(keys: Iterable[KeyAttribute]) -> frozenset[str]:
    return frozenset(key.name for key in keys)


def _is_candidate(part: Part) -> bool:
    return not part.attributes and words.could_be_constant(part.text)


def _word(
    key: KeyAttribute, parts: Sequence[Part], number: int, context: dict[str, tuple[str | None, ...]]
) -> words.Word | None:
    """Return a part of a key as a word that may be a constant; ``None`` if it cannot be one."""
    part = parts[number]
    if not _is_candidate(part):
        return None
    follows = number > 0 and bool(parts[number - 1].text) and _is_candidate(parts[number - 1])
    own = context.get(key.name, ())
    rest = {**context, key.name: (*own[:number], "?", *own[number + 1 :])}
    return words.Word(
        key.name, tuple((name, rest[name]) for name in sorted(rest)), part.text, number + 1 < len(parts), follows
    )


def kinds(reader: Reader, items: Iterable[Item]) -> list[Kind]:
    """Divide items by type and signature; the largest kinds come first."""
    layout = reader.layout
    found: dict[tuple[str | None, Signature], Kind] = {}
    for item in items:
        typed = None if layout.type_attribute is None else text_of(item.get(layout.type_attribute))
        signature = reader.signature(item)
        found.setdefault((typed, signature), Kind(typed, signature, [])).items.append(item)
    return sorted(found.values(), key=lambda kind: (-len(kind.items), repr(kind.signature)))


def merged(first: Signature, second: Signature) -> Signature:
    """Return the most specific signature of the keys of both; ``()`` for a key whose number of parts differs."""
    return tuple(
        tuple(a if a == b else None for a, b in zip(one, other, strict=True)) if len(one) == len(other) else ()
        for one, other in zip(first, second, strict=True)
    )
