"""Encode a document in one pass, which also counts its bytes and compares it with the stored document.

Unchanged parts keep their stored form, as the same object: the difference of two documents does not need to look
inside. Python's own types take this pass; other types, and values that cannot be stored, take
``values.to_attribute_value``. Stored forms do not contain mutable parts of the value, so that a change of the value in
place does not affect them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from decimal import Decimal
from operator import is_
from typing import Any, Final

from msgspec import Struct

from dynamo_single.orm.schema.keys import values
from dynamo_single.table.request import MAX_DEPTH, MAX_DIGITS, AttributeValue, StoredValue


class Encoded(Struct, frozen=True):
    """A value, encoded.

    - ``stored`` is the AttributeValue; ``None`` if nothing is stored. It is the stored one that it was compared with if
      the two are equal to DynamoDB.
    - ``value`` is a copy in the types that reading gives; the given object itself if it is unchanged.
    - ``size`` is in bytes, without the name.
    """

    value: Any
    stored: StoredValue | None
    size: int


#: An AttributeValue that equals no other, instead of a missing one.
_NOTHING: Final[StoredValue] = {}
#: A decimal number as ``values.number_to_text()`` writes it.
_DECIMAL: Final = re.compile(r"-?(?:0|[1-9][0-9]*)\.[0-9]*[1-9]", re.ASCII)
#: The types that a set may contain for reading to give an equal set.
_MEMBERS: Final = ({str}, {bytes}, {int})
_MUTABLE: Final = frozenset((dict, list, set))
#: An AttributeValue, its size in bytes, and whether reading it gives the same value in the same types.
_Found = tuple[StoredValue, int, bool]


def encode(value: object, before: StoredValue | None, path: str) -> _Found:
    """Return the AttributeValue of a document, its size in bytes, and whether reading it gives an identical value.

    The AttributeValue is ``before`` if that is equal to DynamoDB, and contains equal parts of ``before``. ``path``
    names the document in errors. Raises ``InvalidValue`` as ``values.to_attribute_value()``.
    """
    with suppress(Exception):  # whatever it is, it is raised again below, where it is worded
        (stored,), size, is_as_read = _members((value,), (_NOTHING if before is None else before,), 0)
        return stored, size, is_as_read
    stored = like(values.to_attribute_value(value, path=path), before)
    return stored, values.value_size(stored), False


def copied(value: Any) -> Any:
    """Return a copy of a document of Python's own types, with maps, lists and sets of its own."""
    if type(value) is dict:
        return {name: copied(each) if type(each) in _MUTABLE else each for name, each in value.items()}
    return [copied(each) if type(each) in _MUTABLE else each for each in value] if type(value) is list else {*value}


def like(stored: AttributeValue, before: StoredValue | None) -> StoredValue:
    """Return ``before`` if an AttributeValue is equal to it in DynamoDB, else the AttributeValue."""
    if before is None or before is stored:
        return stored
    return before if stored == before or normalized_value(stored) == normalized_value(before) else stored


def normalized_value(value: StoredValue) -> tuple[str, object]:
    """Give a form in which two attribute values are equal exactly if they are so to DynamoDB; it can be hashed."""
    ((kind, content),) = value.items()
    if kind == "N":
        return kind, Decimal(content)
    if kind == "L":
        return kind, tuple(map(normalized_value, content))
    if kind == "M":
        return kind, frozenset((name, normalized_value(element)) for name, element in content.items())
    if kind in ("SS", "NS", "BS"):
        return kind, frozenset(normalized_value({kind[0]: element}) for element in content)
    return kind, content


def _members(given: Iterable[Any], before: Iterable[StoredValue], depth: int) -> tuple[list[StoredValue], int, bool]:
    """Encode the values of a map or list, each with the stored one; the size is their sum."""
    found: list[StoredValue] = []
    size, is_as_read = 0, True
    for value, old in zip(given, before, strict=True):
        kind, stored = type(value), old
        if kind is str:
            size += len(value) if value.isascii() else len(value.encode())
            if old.get("S") != value:
                stored = {"S": value}
        elif kind is int:
            text = str(value)
            size += (len(text.strip("-0")) + 1) // 2 + 1 + (value < 0)
            if old.get("N") != text:
                stored = like({"N": values.number_to_text(value)}, old or None)
        elif kind is bool:
            size += 1
            if old.get("BOOL") is not value:
                stored = {"BOOL": value}
        else:
            stored, more, is_same = _ENCODERS.get(kind, _other)(value, old, depth)
            size += more
            is_as_read = is_as_read and is_same
        found.append(stored)
    return found, size, is_as_read


def _other(value: Any, old: StoredValue, depth: int) -> _Found:
    if isinstance(value, dict):  # such as the object of a map class, which reading makes again
        stored, size, _ = _map(value, old, depth)
        return stored, size, False
    kind, stored = type(value), like(values.to_attribute_value(value, depth=depth), old or None)
    is_as_read = value is None or kind is bytes or (kind is set and {*map(type, value)} in _MEMBERS)
    return stored, values.value_size(stored), is_as_read


def _number(value: Decimal | float, old: StoredValue, depth: int) -> _Found:
    text = str(value)
    is_usual = len(text) <= MAX_DIGITS and _DECIMAL.fullmatch(text) is not None
    if not is_usual:
        stored = like({"N": values.number_to_text(value)}, old or None)
        return stored, values.value_size(stored), False
    size = (len(text.replace(".", "").strip("-0")) + 1) // 2 + 1 + (text[0] == "-")
    is_as_read = type(value) is Decimal
    if old.get("N") == text:
        return old, size, is_as_read
    return like({"N": text}, old or None), size, is_as_read


def _map(value: dict[Any, Any], old: StoredValue, depth: int) -> _Found:
    if depth == MAX_DEPTH or "" in value or (value and {*map(type, value)} != {str}):
        raise ValueError
    names, before = "".join(value), old.get("M", _NOTHING)
    olds = [before.get(name, _NOTHING) for name in value]
    found, size, is_as_read = _members(value.values(), olds, depth + 1)
    size += 3 + len(value) + (len(names) if names.isascii() else len(names.encode()))
    if "M" in old and len(before) == len(value) and all(map(is_, found, olds)):
        return old, size, is_as_read
    return {"M": dict(zip(value, found, strict=True))}, size, is_as_read


def _list(value: list[Any] | tuple[Any, ...], old: StoredValue, depth: int) -> _Found:
    if depth == MAX_DEPTH:
        raise ValueError
    before: Collection[StoredValue] = old.get("L", ())
    olds = [*before][: len(value)]
    olds += [_NOTHING] * (len(value) - len(olds))
    found, size, is_as_read = _members(value, olds, depth + 1)
    is_as_read = is_as_read and type(value) is list
    size += 3 + len(value)
    if "L" in old and len(before) == len(value) and all(map(is_, found, olds)):
        return old, size, is_as_read
    return {"L": found}, size, is_as_read


_ENCODERS: Final[dict[type, Callable[[Any, StoredValue, int], _Found]]] = {
    dict: _map,
    list: _list,
    tuple: _list,
    Decimal: _number,
    float: _number,
}
