"""Apply ``on_delete`` to the remaining objects that refer to deleted objects.

``PROTECT`` prevents the deletion before the first write. ``SET_NULL`` and ``SET_DEFAULT`` write the referring objects
together with the deletion. This module does not depend on how the app sends the deletion.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import aclosing
from typing import Any

from django.db.models import CASCADE, PROTECT, SET_DEFAULT
from msgspec.structs import replace

from dynamo_single.exceptions import StaleObject, StillReferenced
from dynamo_single.orm.effects.base import Subject
from dynamo_single.orm.items.encode import Values
from dynamo_single.orm.requests.actions import Item, ItemKey, key_of
from dynamo_single.orm.requests.atomic_block import Block
from dynamo_single.orm.schema import registry, secrecy
from dynamo_single.orm.schema.references import (
    Children,
    cascading_to_trash,
    checked_references,
    count_name,
    protecting_references,
    references,
    resetting_references,
)
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.orm.write.cascade import DELETION, Operation, ReferenceStep, Step, cascade_models, parents_of
from dynamo_single.table import names
from dynamo_single.table.flow import flatten


def has_references(model: type[DynamoModel]) -> bool:
    """Return whether a deletion of a model's objects has to find objects that remain."""
    return bool(protecting_references(model) or resetting_references(model))


def involved_models(model: type[DynamoModel]) -> set[type[DynamoModel]]:
    """Return the models whose objects the deletion of an object of a model may read."""
    along = cascade_models(model)
    return {
        *along,
        *(children.model for each in along for children in (*protecting_references(each), *resetting_references(each))),
    }


def has_cascade(model: type[DynamoModel]) -> bool:
    """Return whether references to a model's objects declare ``CASCADE`` themselves, and their objects have a trash."""
    relations = (each.field.remote_field for each in cascading_to_trash(model))
    # A generic relation does not have an on_delete, and always cascades.
    return any(each is None or each.on_delete is CASCADE for each in relations)


async def refuse_protected(objects: Sequence[DynamoModel], operation: Operation) -> None:
    """Raise ``StillReferenced`` if a protected reference leads to an object: a Query for each such reference.

    It reads objects that an index returns from the table. Raises ``PendingWrite`` if an ``atomic()`` block has written
    such an object.
    """
    async with aclosing(_protecting(objects, operation)) as groups:
        async for children, found in groups:
            raise StillReferenced(
                f"Cannot delete {Subject(objects[0]).name}: {children.model._meta.label} objects refer to "
                f"{'it' if len(objects) == 1 else 'it, or to objects deleted with it,'} by "
                f"{children.field.name}, for example pk {Subject(found[0]).shown_pk}. Nothing was "
                "written. Delete these objects or change their references first.",
                set(found),
            )


async def report_protected(objects: Sequence[DynamoModel], operation: Operation) -> None:
    """Raise ``StaleObject`` if an object began to refer to a deleted one during the deletion, and protects it."""
    async with aclosing(_protecting(objects, operation)) as groups:
        async for children, found in groups:
            raise StaleObject(
                f"{Subject(objects[0]).name} is deleted, but during the deletion {Subject(found[0]).name} "
                f"began to refer to {'it' if len(objects) == 1 else 'it, or to objects deleted with it,'} by "
                f"{children.field.name}, which protects. A reference with checked=True prevents this; "
                "manage.py dynamo_verify reports the rest."
            )


def check_counts(
    counted: Sequence[tuple[Any, Item]], found: Sequence[DynamoModel], operation: Operation, *, last: bool = True
) -> bool:
    """Return whether an operation has ``found`` all live objects with checked references, which their target counts.

    ``counted`` contains the targets, each with its item as it was read before the search. If an index is behind, it
    returns ``False``, and raises an error the ``last`` time.
    """
    seen = Counter(
        (name, obj.__dict__[field.attname])
        for obj in found
        if names.DELETED_AT not in obj._stored
        for name, field in _checked_references(type(obj))
    )
    for obj, item in counted:
        for name, children in checked_references(type(obj)):
            number, shown = int(item.get(name, {"N": "0"})["N"]), seen[name, obj.pk]
            if number <= shown or not _is_searched(children, operation):
                continue
            if not last:
                return False
            text = f"Cannot delete {Subject(obj).name}: {number} {children.model._meta.label} objects refer to it"
            if children.field.remote_field.on_delete is PROTECT:
                raise StillReferenced(f"{text} by {children.field.name}. Nothing was written.", set())
            raise StaleObject(
                f"{text} by {children.field.name}, but its key shows only {shown} of them so far. Nothing was "
                "written. Call it again. If the error persists, run manage.py dynamo_verify to find the "
                "wrong count."
            )
    return True


def _checked_references(model: type[DynamoModel]) -> list[tuple[str, Any]]:
    return [(count_name(field), field) for field in references(model) if field.attribute.checked]


def _is_searched(children: Children, operation: Operation) -> bool:
    """Return whether an operation reads live objects with a reference."""
    on_delete = children.field.remote_field.on_delete
    is_along = on_delete is CASCADE and registry.has_soft_delete(children.model)
    return operation is DELETION or on_delete is PROTECT or is_along


async def protecting_objects(objects: Sequence[DynamoModel], operation: Operation) -> list[DynamoModel]:
    """Return up to a hundred objects for each protected reference that keep some others from being deleted."""
    return [obj async for _, found in _protecting(objects, operation) for obj in found]


async def _protecting(
    objects: Sequence[DynamoModel], operation: Operation
) -> AsyncGenerator[tuple[Children, list[Any]], None]:
    for model, pks in parents_of(objects):
        for children in protecting_references(model):
            for query in operation.queries(children):
                async with aclosing(replace(query, still=operation.protects).pages(pks, again=True)) as pages:
                    async for found in pages:
                        yield children, found
                        break


async def reset_steps(objects: Sequence[DynamoModel], *, again: bool, block: Block | None = None) -> list[Step]:
    """Return the writes that set references to permanently deleted objects to ``None``, or to their default.

    It writes each object once, even if several of its references lead to deleted objects. ``again`` reads objects that
    an index returns from the table. Raises ``StillReferenced`` if the default is a deleted object, and ``NotSupported``
    for more objects than a ``block`` has room for: no further page is read.
    """
    deleted = {key_of(obj._stored) for obj in objects}
    identities = {_identity(type(obj), obj.pk) for obj in objects}
    values: dict[ItemKey, tuple[Any, Values]] = {}
    for model, pks in parents_of(objects):
        for query in (query for children in resetting_references(model) for query in DELETION.queries(children)):
            field = query.children.field
            async with aclosing(flatten(query.pages(pks, again=again))) as referring:
                async for obj in referring:
                    key = key_of(obj._stored)
                    if key not in deleted:
                        values.setdefault(key, (obj, {}))[1][field.attname] = _reset_value(obj, field, identities)
                        if block is not None:
                            block.check_room({*deleted, *values}, Subject(objects[0]).name)
    return [ReferenceStep(obj, given) for obj, given in values.values()]


def _identity(model: type[DynamoModel], pk: object) -> tuple[object, object]:
    return model._meta.concrete_model, pk


def _reset_value(obj: DynamoModel, field: Any, deleted: Collection[tuple[object, object]]) -> Any:
    if field.remote_field.on_delete is not SET_DEFAULT:
        return None
    default = field.attribute.prepare(field.get_default())
    if _identity(field.related_model, default) in deleted:
        raise StillReferenced(
            f"Cannot delete {secrecy.named(field.related_model, default)}: it is the default of "
            f"{field.model._meta.label}.{field.name}, by which {Subject(obj).name} refers to it. Nothing was "
            "written.",
            {obj},
        )
    return default
