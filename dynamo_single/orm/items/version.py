"""The version of a stored object: the value that a write sets, and the condition of no change.

This module does not send requests or depend on the writing of items.
"""

from __future__ import annotations

from dynamo_single.orm.conditions.terms import Stored
from dynamo_single.orm.requests.actions import Item
from dynamo_single.orm.requests.updates import as_stored
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.attributes import VersionAttribute
from dynamo_single.orm.schema.bindings import Subject, binding_of
from dynamo_single.orm.schema.types import DynamoModel


def version_attribute(model: type[DynamoModel]) -> VersionAttribute | None:
    """The model's ``VersionAttribute``."""
    return next((each for each in registry.attributes_of(model).values() if isinstance(each, VersionAttribute)), None)


def version_stored(model: Subject) -> str:
    """Return the physical name of the version; ``""`` for a model without one."""
    binding = binding_of(model)
    attribute = version_attribute(binding.model)
    return "" if attribute is None else binding.layout.attributes[attribute.name].stored


def version_of(model: type[DynamoModel], item: Item | None) -> int | None:
    """Return the version of an item; ``None`` without one, or if the model has no versions."""
    attribute = version_attribute(model)
    found = None if attribute is None or item is None else item.get(version_stored(model))
    return None if attribute is None or found is None else attribute.from_attribute_value(dict(found))


def next_values(model: type[DynamoModel], before: Item | None) -> dict[str, int]:
    """The version to write, by attribute: nothing for a model without."""
    attribute = version_attribute(model)
    return {} if attribute is None else {attribute.name: attribute.next_after(version_of(model, before))}


def version_conditions(model: type[DynamoModel], before: Item) -> tuple[Stored, ...]:
    """Return the condition that the item still has the same version."""
    stored = version_stored(model)
    return (as_stored(before, stored),) if stored else ()


def is_outdated(model: type[DynamoModel], before: Item | None, found: Item | None) -> bool:
    """Return whether another process has written the item since then, by its version."""
    return version_of(model, before) != version_of(model, found)
