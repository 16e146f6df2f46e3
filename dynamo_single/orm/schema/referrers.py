"""The references to a model whose ``on_delete`` says what a deletion does to the objects that hold them.

Such a reference is followed as declared ``Children`` are. This module must not know how anything is read or written.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from django.db.models import CASCADE, DO_NOTHING, PROTECT, SET_DEFAULT, SET_NULL

from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.attributes.references import ReferenceAttribute
from dynamo_single.orm.schema.children import Children, declared
from dynamo_single.orm.schema.kinds import DynamoModel
from dynamo_single.table import names


class Referrers(Children):
    """The objects of a model that refer to an ``owner`` by one reference; no attribute of the owner gives them."""

    def __init__(self, owner: Any, field: Any) -> None:
        super().__init__(field.model, field=field.name)
        self.owner = owner
        self.name = f"{field.model._meta.label}.{field.name}"


def cascading(model: type[DynamoModel]) -> tuple[Children, ...]:
    """What goes along when an object is deleted: declared children first, then what ``CASCADE`` says besides."""
    return _cascading(model._meta.concrete_model, registry.generation)


@lru_cache(maxsize=1024)
def _cascading(model: type[DynamoModel], generation: int) -> tuple[Children, ...]:
    children = [each for each in declared(model) if each.problem() is None]
    fields = {each.field for each in children}
    return (
        *(each for each in children if each.cascades),
        *(each for each in referrers(model, CASCADE) if each.field not in fields),
    )


def taking_along(model: type[DynamoModel]) -> frozenset[str]:
    """The stored names of the references by which a model's objects go along, but for those that never change."""
    return _taking_along(model._meta.concrete_model, registry.generation)


@lru_cache(maxsize=1024)
def _taking_along(model: type[DynamoModel], generation: int) -> frozenset[str]:
    every = (each for parent in registry.all_models() for each in cascading(parent))
    fields = [each.field for each in every if each.model._meta.concrete_model is model]
    return frozenset(field.attribute.attr_name for field in fields if field.attname not in model._identity)


def protecting(model: type[DynamoModel]) -> tuple[Children, ...]:
    """The references of which one that leads to an object keeps it from being deleted."""
    return referrers(model, PROTECT)


def resetting(model: type[DynamoModel]) -> tuple[Children, ...]:
    """The references that are set to nothing, or to their default, when the object is deleted for good."""
    return (*referrers(model, SET_NULL), *referrers(model, SET_DEFAULT))


def referrers(model: type[DynamoModel], on_delete: object) -> tuple[Children, ...]:
    """The references to a model that say ``on_delete``, in the order in which the models are declared."""
    return _by_handler(model._meta.concrete_model, registry.generation).get(on_delete, ())


@lru_cache(maxsize=1024)
def _by_handler(model: type[DynamoModel], generation: int) -> dict[object, tuple[Children, ...]]:
    found: dict[object, tuple[Children, ...]] = {}
    for holder, field in _by_target(generation).get(model, ()):
        if holder._options.alias == model._options.alias:
            on_delete = field.remote_field.on_delete
            found[on_delete] = (*found.get(on_delete, ()), Referrers(model, field))
    return found


@lru_cache(maxsize=1)
def _by_target(generation: int) -> dict[type[DynamoModel], list[tuple[type[DynamoModel], Any]]]:
    """The references to each model, with the models that have them: looked for once, and not for each model again."""
    found: dict[type[DynamoModel], list[tuple[type[DynamoModel], Any]]] = {}
    for holder in registry.all_models():
        for field in references(holder):
            found.setdefault(field.related_model._meta.concrete_model, []).append((holder, field))
    return found


def references(holder: type[DynamoModel]) -> list[Any]:
    """A model's own references with an ``on_delete`` that a deletion of the other object has to follow."""
    if holder._meta.proxy:
        return []  # its objects are those of the other class
    fields: list[Any] = list(holder._meta.concrete_fields)
    return [
        field
        for field in fields
        if isinstance(getattr(field, "attribute", None), ReferenceAttribute)
        and field.remote_field.on_delete is not DO_NOTHING
        and not isinstance(field.related_model, str)
    ]


def checked(model: type[DynamoModel]) -> tuple[tuple[str, Children], ...]:
    """The references to a model that are checked, each with the physical name of the count that an object has of it."""
    return _checked(model._meta.concrete_model, registry.generation)


@lru_cache(maxsize=1024)
def _checked(model: type[DynamoModel], generation: int) -> tuple[tuple[str, Children], ...]:
    found = (each for some in _by_handler(model, generation).values() for each in some)
    return tuple((count_name(each.field), each) for each in found if each.field.attribute.checked)


def count_name(field: Any) -> str:
    """The physical name of the count of the objects that refer to one by a checked reference."""
    return name_of_count(field.model._options.item_type, field.attribute.attr_name)


def name_of_count(item_type: str, stored: str) -> str:
    """The same by the type of the items that refer, and by the reference's physical name."""
    return f"{names.REFERRED_PREFIX}{item_type}.{stored}"


def leading(holder: type[DynamoModel]) -> list[tuple[Any, Any]]:
    """The models of the same table that a model refers to with an ``on_delete``, each with the reference."""
    targets = ((field.related_model._meta.concrete_model, field) for field in references(holder))
    known = registry.all_models()
    return [each for each in targets if each[0] in known and each[0]._options.alias == holder._options.alias]
