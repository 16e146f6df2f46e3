"""The objects of map classes: dicts whose declared keys are also Python attributes.

``class Address(MapAttribute)`` declares the attributes of a map, as in PynamoDB. Its values are dicts of stored values,
so that all code for documents can handle them. Their Python attributes convert these values. This module does not
depend on models or requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, ClassVar, Final, Self, SupportsIndex

from dynamo_single.exceptions import InvalidValue
from dynamo_single.orm.schema.attributes.base import NOT_PROVIDED, Attribute
from dynamo_single.orm.schema.keys import values

#: The parts of a class that describe the class itself.
_OF_CLASSES: Final = frozenset(("__module__", "__qualname__", "__dict__", "__weakref__", "__classcell__", "__init__"))


class MapObject(dict[str, Any]):
    """A map with the attributes of its ``map_class``; ``members`` contains them by Python name.

    If the key is missing, an attribute is its default or ``None``. Setting it to ``None`` removes the key. A value of
    another kind stays as it is, and the write that contains it raises ``InvalidValue`` with its path.
    """

    __slots__ = ()

    map_class: ClassVar[Any]
    members: ClassVar[Mapping[str, Attribute]] = {}

    def copy(self) -> Self:
        """Return a shallow copy with the same attributes."""
        return type(self)(self)

    __copy__ = copy

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[object, ...]:
        return _revived, (self.map_class, dict(self))

    def as_dict(self) -> dict[str, object]:
        """Return a plain dict with plain dicts and lists inside, as PynamoDB's method."""
        return {name: _plain(value) for name, value in self.items()}


def _plain(value: object) -> Any:
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return [*map(_plain, value)] if isinstance(value, list) else value


def _revived(map_class: Any, stored: dict[str, Any]) -> MapObject:
    found: MapObject = map_class.object_class(stored)
    return found


class _Place:
    """The Python attribute of one declared key."""

    def __init__(self, member: Attribute) -> None:
        self.member, self.stored = member, member.attr_name

    def __get__(self, instance: MapObject | None, owner: object) -> Any:
        if instance is None:
            return self.member
        held = instance.get(self.stored)
        if held is None:
            default = self.member.field_options["default"]
            return None if default is NOT_PROVIDED or callable(default) else default
        if self.member.document and self.member.attr_type in ("M", "L"):
            if type(held) is dict and getattr(self.member, "has_objects", False):
                held = instance[self.stored] = stored_value(self.member, held)
            return held
        return self.member.from_attribute_value(dict(values.to_attribute_value(held, path=self.member.name)))

    def __set__(self, instance: MapObject, value: object) -> None:
        if value is None:
            instance.pop(self.stored, None)
        else:
            instance[self.stored] = stored_value(self.member, value)

    def __delete__(self, instance: MapObject) -> None:
        instance.pop(self.stored, None)


def object_class(map_class: type, namespace: Mapping[str, object], members: Mapping[str, Attribute]) -> type[MapObject]:
    """Return the class of a map class's objects, with its methods.

    An attribute whose name a dict has, such as ``items``, is available as a key only.
    """
    bases = tuple(known for each in map_class.__bases__ if (known := getattr(each, "object_class", None)) is not None)
    own = {name: each for name, each in namespace.items() if name not in _OF_CLASSES and not hasattr(Attribute, name)}
    places = {name: _Place(each) for name, each in members.items() if not hasattr(dict, name)}
    named = {"__module__": map_class.__module__, "__qualname__": map_class.__qualname__, "__slots__": ()}
    return type(map_class.__name__, bases or (MapObject,), {
        **own, **places, **named, "map_class": map_class, "members": members,
    })  # fmt: skip


def new_object(map_class: type, given: Mapping[str, object]) -> MapObject:
    """Return a new object with the values of some attributes by Python name, and the defaults of the others."""
    made: type[MapObject] = getattr(map_class, "object_class", MapObject)
    found = made()
    for name, member in found.members.items():
        value = given.get(name)
        if value is None and name not in given and member.field_options["default"] is not NOT_PROVIDED:
            value = member.field.get_default()
        if value is not None:
            found[member.attr_name] = stored_value(member, value)
    return found


def stored_value(member: Attribute, value: object) -> object:
    """Return a Python value of a declared key as a document stores it, or a value of another kind as it is."""
    if member.shape is not None:
        found: object = member.shape.placed(value)
        return found
    try:
        prepared = member.prepare(value)
    except InvalidValue:
        return value
    if prepared is None or isinstance(prepared, Decimal):
        return prepared
    stored: object = values.from_attribute_value({member.attr_type: member.encode(prepared)})
    return stored
