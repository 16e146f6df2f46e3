"""Split the keys of items into parts, and combine the parts of several keys into one template."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from dynamo_single.contrib.inspection import names
from dynamo_single.orm.schema.keys.template import SEPARATOR
from dynamo_single.table.names import ITEM_TYPE, PARTITION_KEY, SORT_KEY
from dynamo_single.table.request import Item, StoredValue

#: The app's own names, which no attribute can have.
OWN_NAMES: Final = frozenset({PARTITION_KEY, SORT_KEY, ITEM_TYPE})
#: Names that only a composed key has: ``PK``, ``GSI1SK``, ``hashKey``.
_GENERIC: Final = re.compile(
    r"(g|l)?si[-_]?\d*[-_]?(pk|sk)|(g|l)?s\d+[-_]?(pk|sk)|(pk|sk)\d*|(hash|range|partition|sort|primary)[-_]?key|hk|rk",
    re.IGNORECASE,
)
#: Separators in the order of preference; the last two also occur inside identifiers.
_SEPARATORS: Final = ("#", "|", "::", "~", "/", ":")
_WEAK: Final = ("_", "-")
_WORD: Final = re.compile(r"[A-Za-z]+")
#: The share of the keys that begin with a word and a separator in an attribute that is composed.
_MOST: Final = 0.9


def text_of(value: StoredValue | None) -> str | None:
    """Return a string or a number as keys contain it; ``None`` for another type."""
    if value is None:
        return None
    found = value.get("S", value.get("N"))
    return found if isinstance(found, str) else None


class KeyAttribute(Struct, frozen=True):
    """One key attribute of a table or an index.

    ``separator`` divides the parts of composed keys. If it is ``None``, the attribute is a value in itself.
    """

    name: str
    type: str
    separator: str | None

    @property
    def is_composed(self) -> bool:
        """Whether its text is built from other attributes."""
        return self.separator is not None


def key_attribute(name: str, type: str, items: Iterable[Item]) -> KeyAttribute:
    """Return a key attribute with the separator of its values in the items."""
    if type != "S":
        return KeyAttribute(name, type, None)
    texts = [text for item in items if (text := text_of(item.get(name)))]
    generic = _GENERIC.fullmatch(name) is not None
    heads = {each: _heads(texts, each) for each in (*_SEPARATORS, *_WEAK)}
    strong = max(_SEPARATORS, key=lambda each: heads[each].total())
    if generic:
        # A key without a separator is one part.
        weak = max(_WEAK, key=lambda each: heads[each].total())
        bare = sum(_WORD.fullmatch(text) is not None for text in texts)
        is_weak = not heads[strong] and heads[weak].total() > bare and heads[weak].total() + bare >= _MOST * len(texts)
        return KeyAttribute(name, type, weak if is_weak else strong if heads[strong] else "#")
    for each in (strong, *_WEAK):
        found = heads[each]
        few = len(found) <= max(2, len(texts) // 3)
        if texts and found.total() == len(texts) and few and (each not in _WEAK or len(found) > 1):
            return KeyAttribute(name, type, each)
    return KeyAttribute(name, type, None)


def _heads(texts: Iterable[str], separator: str) -> Counter[str]:
    """Count the first words of the keys, if a separator and another part follow."""
    pattern = re.compile(rf"#?([A-Za-z][A-Za-z0-9.]*(?:[_-][A-Za-z0-9.]+)*?){re.escape(separator)}(?=\S)")
    return Counter(found[1] for text in texts if (found := pattern.match(text)))


class Part(Struct, frozen=True):
    """One part of a key, and the attributes of the item with the same value."""

    text: str
    attributes: frozenset[str] = frozenset()


def split(text: str, separator: str, values: Mapping[str, frozenset[str]]) -> tuple[Part, ...]:
    """Split a key at its separators, except inside the value of an attribute. ``values`` maps strings to attributes."""
    if text in values:
        return (Part(text, values[text]),)
    pieces = text.split(separator)
    longer = {each for each in values if separator in each and each in text}
    found: list[Part] = []
    start = 0
    while start < len(pieces):
        end = len(pieces) if longer else start + 1
        while end > start + 1 and separator.join(pieces[start:end]) not in longer:
            end -= 1
        piece = separator.join(pieces[start:end])
        found.append(Part(piece, values.get(piece, frozenset())))
        start = end
    return tuple(found)


class Variable(Struct, frozen=True):
    """A variable of a template: an attribute, or a new name for a value that only the key contains."""

    name: str
    in_key_only: bool = False


#: A template: literals, and variables between them.
Template = tuple[str | Variable, ...]


def joined(parts: Sequence[str | Variable], separator: str) -> Template:
    """Return a template from the parts of a key; adjacent literals become one."""
    found: list[str | Variable] = []
    for number, part in enumerate(parts):
        pieces: list[str | Variable] = [part] if number == 0 else [separator, part]
        for each in pieces:
            if isinstance(each, str) and found and isinstance(found[-1], str):
                found[-1] += each
            else:
                found.append(each)
    return tuple(each for each in found if each != "")


def pattern_of(template: Template) -> re.Pattern[str]:
    """Return what matches the keys of a template, as the app reads keys with ``RAW_KEYS``.

    A value ends before the first character of the next literal, or before ``#``; a variable alone is the whole key.
    """
    text = ""
    for number, part in enumerate(template):
        following = template[number + 1] if number + 1 < len(template) else SEPARATOR
        if isinstance(part, str):
            text += re.escape(part)
        elif len(template) == 1:
            text += ".+"
        else:
            text += f"[^{re.escape(str(following)[0])}]+"
    return re.compile(text, re.DOTALL)


#: Words of an attribute that identifies an object, the best ones first.
_IDENTIFYING: Final = ("id", "uuid", "key", "slug", "code", "number", "no", "username", "email", "sku", "name")


def best(candidates: Iterable[str], label: str, order: Sequence[str]) -> str | None:
    """Return the most probable attribute: an attribute that the label names, or an identifier."""
    related = names.words([label])

    def rank(name: str) -> tuple[Any, ...]:
        own = names.words([name])
        identifying = next((number for number, word in enumerate(_IDENTIFYING) if word in own), len(_IDENTIFYING))
        return -len(own & related), identifying, order.index(name)

    return min(candidates, key=rank, default=None)
