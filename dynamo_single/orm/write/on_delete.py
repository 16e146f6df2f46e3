"""What a deletion does to the objects that refer to what is deleted, where they do not go along: ``on_delete``.

``PROTECT`` refuses it before anything is written; ``SET_NULL`` and ``SET_DEFAULT`` write the referring objects with it.
This module must not know how the deletion itself is sent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Sequence
from contextlib import aclosing
from typing import Any

from django.db.models import CASCADE, PROTECT, SET_DEFAULT
from msgspec.structs import replace

from dynamo_single.exceptions import StaleObject, StillReferenced
from dynamo_single.orm.conditions.terms import join
from dynamo_single.orm.effects import send
from dynamo_single.orm.effects.all_effects import effects_of
from dynamo_single.orm.effects.base import Subject
from dynamo_single.orm.effects.compose import compose, draft_of
from dynamo_single.orm.effects.write import Write
from dynamo_single.orm.items import decode
from dynamo_single.orm.items.encode import Values
from dynamo_single.orm.requests.actions import Item, ItemKey, key_of
from dynamo_single.orm.requests.atomic_block import Block
from dynamo_single.orm.requests.updates import as_stored
from dynamo_single.orm.schema import registry, secrecy
from dynamo_single.orm.schema.references import Children, checked, count_name, protecting, references, resetting
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.orm.write.cascade import (
    PARENTS_AT_ONCE,
    ChildQueries,
    ChildQuery,
    Step,
    cascade_children,
    cascade_models,
)
from dynamo_single.orm.write.save import remember
from dynamo_single.table import names
from dynamo_single.table.flow import each_of, some_of

#: How many of the objects that keep another one from being deleted an error names.
MAX_NAMED = 100

_References = Callable[[type[DynamoModel]], tuple[Children, ...]]


def has_references(model: type[DynamoModel]) -> bool:
    """Whether a deletion of this model's objects has to look for objects that do not go along."""
    return bool(protecting(model) or resetting(model))


def involved_models(model: type[DynamoModel]) -> set[type[DynamoModel]]:
    """The models whose objects may be read where one of a model is deleted."""
    along = cascade_models(model)
    return {*along, *(children.model for each in along for children in (*protecting(each), *resetting(each)))}


def has_cascade(model: type[DynamoModel]) -> bool:
    """Whether references to this model's objects say ``CASCADE`` themselves."""
    return any(each.field.remote_field.on_delete is CASCADE for each in cascade_children(model))


async def refuse_protected(objects: Sequence[DynamoModel], listings_of: ChildQueries) -> None:
    """Raise ``StillReferenced`` where one that protects refers to an object: a Query for each such reference.

    What an index gives is looked up in the table. Raises ``PendingWrite`` where an ``atomic()`` block has written such
    an object.
    """
    kept = await _first_protecting(objects, listings_of)
    if kept is not None:
        children, found = kept
        raise StillReferenced(
            f"{Subject(objects[0]).name} cannot be deleted: {children.model._meta.label} objects refer to "
            f"{'it' if len(objects) == 1 else 'it, or to what goes along,'} by {children.field.name}, such as the one "
            f"with pk {Subject(found[0]).shown_pk}. Delete these first, or let them refer to another one; "
            "nothing was written.",
            set(found),
        )


async def report_protected(objects: Sequence[DynamoModel], listings_of: ChildQueries) -> None:
    """Raise ``StaleObject`` where one that protects came to refer to an object while that was deleted."""
    kept = await _first_protecting(objects, listings_of)
    if kept is not None:
        children, found = kept
        raise StaleObject(
            f"{Subject(objects[0]).name} is deleted, and meanwhile {Subject(found[0]).name} came to refer to "
            f"{'it' if len(objects) == 1 else 'it, or to what went along,'} by {children.field.name}, which protects. "
            "A reference with checked=True keeps that from happening; dynamo_verify reports what is left."
        )


def check_counts(
    counted: Sequence[tuple[Any, Item]], found: Sequence[DynamoModel], *, for_good: bool, last: bool = True
) -> bool:
    """Whether the keys show all live objects that refer to some by checked references, which count them.

    ``counted`` are the objects, each with its item as it was read before the search; ``found`` is what the search gave.
    ``False``, and an error if it is the ``last`` time, where an index is behind.
    """
    seen = Counter(
        (name, obj.__dict__[field.attname])
        for obj in found
        if names.DELETED_AT not in obj._stored
        for name, field in _checked_references(type(obj))
    )
    for obj, item in counted:
        for name, children in checked(type(obj)):
            number, shown = int(item.get(name, {"N": "0"})["N"]), seen[name, obj.pk]
            if number <= shown or not _is_searched(children, for_good=for_good):
                continue
            if not last:
                return False
            text = f"{Subject(obj).name} cannot be deleted: {number} {children.model._meta.label} objects refer to it"
            if children.field.remote_field.on_delete is PROTECT:
                raise StillReferenced(f"{text} by {children.field.name}; nothing was written.", set())
            raise StaleObject(
                f"{text} by {children.field.name}, and its key shows {shown} of them yet; nothing was written. Call it "
                "again. If it stays so, dynamo_verify tells what was counted wrongly."
            )
    return True


def _checked_references(model: type[DynamoModel]) -> list[tuple[str, Any]]:
    return [(count_name(field), field) for field in references(model) if field.attribute.checked]


def _is_searched(children: Children, *, for_good: bool) -> bool:
    """Whether a deletion looks for live objects with a reference."""
    on_delete = children.field.remote_field.on_delete
    return for_good or on_delete is PROTECT or (on_delete is CASCADE and registry.has_soft_delete(children.model))


async def protecting_objects(objects: Sequence[DynamoModel], listings_of: ChildQueries) -> list[DynamoModel]:
    """Up to ``MAX_NAMED`` for each reference of the objects that keep some others from being deleted."""
    return [each async for _, found in _protecting_groups(objects, listings_of) for each in found]


async def _first_protecting(
    objects: Sequence[DynamoModel], listings_of: ChildQueries
) -> tuple[Children, list[Any]] | None:
    async with aclosing(_protecting_groups(objects, listings_of)) as kept:
        return await anext(kept, None)


async def _protecting_groups(
    objects: Sequence[DynamoModel], listings_of: ChildQueries
) -> AsyncGenerator[tuple[Children, list[Any]], None]:
    for listing, pks in _child_queries(objects, protecting, listings_of):
        async with aclosing(_referrers(listing, pks, again=True)) as reading:
            found: list[Any] = await anext(reading, [])
        if found:
            yield listing.children, found


async def reset_steps(objects: Sequence[DynamoModel], listings_of: ChildQueries, *, again: bool) -> list[Step]:
    """What sets the references to objects that are deleted for good to nothing, or to their default.

    Each object is written once, however many of its references lead there. ``again``: what an index gives is looked up
    in the table. Raises ``StillReferenced`` where the default is an object that is deleted.
    """
    deleted = {key_of(obj._stored) for obj in objects}
    identities = {_identity(type(obj), obj.pk) for obj in objects}
    values: dict[ItemKey, tuple[Any, Values]] = {}
    for listing, pks in _child_queries(objects, resetting, listings_of):
        field = listing.children.field
        for obj in [each async for some in _referrers(listing, pks, again=again) for each in some]:
            key = key_of(obj._stored)
            if key not in deleted:
                values.setdefault(key, (obj, {}))[1][field.attname] = _reset_value(obj, field, identities)
    return [ResetStep(obj, given) for obj, given in values.values()]


def _identity(model: type[DynamoModel], pk: object) -> tuple[object, object]:
    return model._meta.concrete_model, pk


def _reset_value(obj: DynamoModel, field: Any, deleted: Collection[tuple[object, object]]) -> Any:
    if field.remote_field.on_delete is not SET_DEFAULT:
        return None
    default = field.attribute.prepare(field.get_default())
    if _identity(field.related_model, default) in deleted:
        raise StillReferenced(
            f"{secrecy.named(field.related_model, default)} cannot be deleted: it is the default of "
            f"{field.model._meta.label}.{field.name}, by which {Subject(obj).name} refers to it; nothing was written.",
            {obj},
        )
    return default


def _child_queries(
    objects: Sequence[DynamoModel], references: _References, listings_of: ChildQueries
) -> Iterator[tuple[ChildQuery, list[Any]]]:
    """Which objects to look for, and by which ``pk``s of what they refer to."""
    by_model: dict[type[DynamoModel], list[Any]] = {}
    for obj in objects:
        model: Any = obj._meta.concrete_model
        by_model.setdefault(model, []).append(obj.pk)
    for model, pks in by_model.items():
        for children in references(model):
            for start in range(0, len(pks), PARENTS_AT_ONCE):
                yield from ((listing, pks[start : start + PARENTS_AT_ONCE]) for listing in listings_of(children))


async def _referrers(
    listing: ChildQuery, pks: Sequence[object], *, again: bool
) -> AsyncGenerator[list[DynamoModel], None]:
    """The objects that refer to some others, a hundred at a time; each is one at least."""
    async with aclosing(each_of(listing.queryset(pks)._pages())) as reading:
        while some := await some_of(reading, MAX_NAMED):
            if again and not listing.children.is_by_table:
                some = [obj for obj in await listing.again(some, pks) if _is_in_query(listing, obj)]
            if some:
                yield some


def _is_in_query(listing: ChildQuery, obj: DynamoModel) -> bool:
    if listing.still is not None:
        return listing.still(obj)
    return listing.visibility == "all" or (listing.visibility == "deleted") == (names.DELETED_AT in obj._stored)


class ResetStep(Step):
    """Setting references of one object, on the condition that they are as they were read. Nobody is told of it."""

    is_reported = False

    def __init__(self, obj: DynamoModel, values: Values) -> None:
        super().__init__(obj)
        self.values = values

    async def send(self, pending: Block | None) -> bool:
        """Set them by themselves, or within a block."""
        write = await self.compose(pending)
        if write is None:
            return False
        await remember(self.obj, write, await send.send_write(self.obj, write))
        return True

    async def compose(self, pending: Block | None) -> Write | None:
        """The object's write, among those of the others."""
        model, before, effects = type(self.obj), self.obj._stored, effects_of(type(self.obj))
        values, given = self.values, {**decode.values_of(model, before), **self.values}
        for effect in effects:
            only = frozenset(self.values)
            values = {**values, **await effect.fill(Subject(self.obj), given, before, only, pending, lenient=False)}
        attributes = registry.attributes_of(model)
        as_read = [as_stored(before, attributes[name].attr_name) for name in self.values]
        draft = replace(draft_of(self.obj, values), computed=join(as_read))
        return await compose(self.obj, effects, draft, pending=pending, absent=self.absent)

    async def remember(self, write: Write, stored: Item) -> None:
        """The object has them now."""
        await remember(self.obj, write, stored)
