"""The values that an object holds: they lie in its ``__dict__``, as those of Django's models do.

So ``vars(obj)`` shows them. An attribute that was not read, or was deleted from the object, has no entry there. This
module sends nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any

from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.kinds import DynamoModel


def values_held(obj: DynamoModel) -> dict[str, object]:
    """The object's values by attribute, as a new dict; what it does not have is left out."""
    found = obj.__dict__
    return {name: found[name] for name in registry.attributes_of(type(obj)) if name in found}


def hold_only(obj: DynamoModel, values: Mapping[str, object]) -> None:
    """Let an object hold these values of attributes, and no others."""
    for name in registry.attributes_of(type(obj)):
        obj.__dict__.pop(name, None)
    obj.__dict__.update(values)


class AttributeValues(MutableMapping[str, Any]):
    """PynamoDB's ``attribute_values``: an object's values by attribute. What is set here is set on the object."""

    __slots__ = ("_names", "_values")

    def __init__(self, obj: DynamoModel) -> None:
        self._values: dict[str, Any] = obj.__dict__
        self._names = registry.attributes_of(type(obj))

    def __getitem__(self, name: str) -> Any:
        if name not in self._names:
            raise KeyError(name)
        return self._values[name]

    def __setitem__(self, name: str, value: object) -> None:
        if name not in self._names:
            raise KeyError(name)
        self._values[name] = value

    def __delitem__(self, name: str) -> None:
        if name not in self._names:
            raise KeyError(name)
        del self._values[name]

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._names if name in self._values)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return repr(dict(self))
