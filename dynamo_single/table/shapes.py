"""The types that members of an answer have, as values: what fits them, and how binary values in them are decoded.

A type looks as far as the code that reads the answer relies on: that an item is an object, and not at each of its
values. This module must not know operations.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field


class Shape:
    """The type of a member."""

    __slots__ = ()

    def fits(self, value: object) -> bool:
        """Whether a value that JSON gave is of this type."""
        raise NotImplementedError

    def decoded(self, value: object) -> object:
        """A value that fits, with its binary values as bytes; ``ValueError`` or ``TypeError`` where they are none."""
        return value


class Scalar(Struct, Shape, frozen=True):
    """A text, or a number that is not negative."""

    types: tuple[type, ...]

    def fits(self, value: Any) -> bool:
        return type(value) in self.types and (type(value) is str or value >= 0)


class Item(Struct, Shape, frozen=True):
    """An item, or a key: a map from names to typed values."""

    def fits(self, value: object) -> bool:
        return type(value) is dict

    def decoded(self, value: Any) -> Any:
        return {name: _decoded(each) for name, each in value.items()}


class ListOf(Struct, Shape, frozen=True):
    """A list of values of one type."""

    each: Shape

    def fits(self, value: object) -> bool:
        return type(value) is list and all(map(self.each.fits, value))

    def decoded(self, value: Any) -> Any:
        return list(map(self.each.decoded, value))


class MapOf(Struct, Shape, frozen=True):
    """A map from any names to values of one type."""

    each: Shape

    def fits(self, value: object) -> bool:
        return type(value) is dict and all(map(self.each.fits, value.values()))

    def decoded(self, value: Any) -> Any:
        return {name: self.each.decoded(each) for name, each in value.items()}


class Record(Struct, Shape, frozen=True):
    """A map with members of known names, and perhaps more, which are left as they are."""

    required: Mapping[str, Shape] = field(default_factory=dict)
    optional: Mapping[str, Shape] = field(default_factory=dict)

    def fits(self, value: object) -> bool:
        return (
            type(value) is dict
            and all(name in value and shape.fits(value[name]) for name, shape in self.required.items())
            and all(name not in value or shape.fits(value[name]) for name, shape in self.optional.items())
        )

    def decoded(self, value: Any) -> Any:
        members = {**self.required, **self.optional}
        return {name: members[name].decoded(each) if name in members else each for name, each in value.items()}


def _decoded(value: Any) -> Any:
    """A typed value of DynamoDB with its bytes (AWS API reference, AttributeValue)."""
    ((kind, content),) = value.items()
    if kind == "B":
        return {kind: b64decode(content, validate=True)}
    if kind == "BS":
        return {kind: [b64decode(each, validate=True) for each in content]}
    if kind == "L":
        return {kind: list(map(_decoded, content))}
    if kind == "M":
        return {kind: {name: _decoded(each) for name, each in content.items()}}
    return value


TEXT = Scalar((str,))
COUNT = Scalar((int,))
NUMBER = Scalar((int, float))
ITEM = Item()
RECORD = Record()
#: What a request consumed (AWS API reference, ConsumedCapacity).
CAPACITY = Record({"CapacityUnits": NUMBER})
