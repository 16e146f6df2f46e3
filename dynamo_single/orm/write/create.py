"""Create one object: its identifier, automatic values and copies, its item, and the effects of its model.

Only an expired item is overwritten.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from dynamo_single.exceptions import AlreadyExists, MissingReference
from dynamo_single.lazy_modules import LazyModule
from dynamo_single.orm.effects import recount, send
from dynamo_single.orm.effects.all_effects import effects_of
from dynamo_single.orm.effects.base import Filling, Subject, filled_values, values_of_each_write
from dynamo_single.orm.effects.compose import NewObject, compose_new, taken
from dynamo_single.orm.effects.trash_counts import has_trash_count
from dynamo_single.orm.items import decode
from dynamo_single.orm.items.encode import item_from, may_block, set_automatic
from dynamo_single.orm.items.encodings import NO_ITEM, Encodings
from dynamo_single.orm.items.form import form_of
from dynamo_single.orm.items.refresh import acomplete
from dynamo_single.orm.items.stored import object_values
from dynamo_single.orm.items.writer import item_writer
from dynamo_single.orm.requests.actions import ItemKey
from dynamo_single.orm.requests.atomic_block import Block
from dynamo_single.orm.schema import bindings, registry
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.orm.write import assignments
from dynamo_single.orm.write.direct import created_directly
from dynamo_single.orm.write.save import (
    SaveOptions,
    missing_parents,
    record_write,
    refuse_outdated,
    retry_source_changes,
    save,
)
from dynamo_single.table.flow import call_sync
from dynamo_single.table.table import get_table

if TYPE_CHECKING:
    from dynamo_single.orm.write import trash
else:
    trash = LazyModule("dynamo_single.orm.write.trash")


async def create(
    obj: DynamoModel,
    pending: Block | None,
    *,
    raw: bool = False,
    lenient: bool | None = None,
    new: NewObject | None = None,
) -> None:
    """Write a new object: PutItem, or one transaction with its claims and derived items; it never overwrites an item.

    ``raw`` (fixtures) keeps the given automatic times. ``lenient`` does not require referenced objects; it defaults to
    ``raw``. ``new`` is a result of ``new_object()``.
    """
    lenient = raw if lenient is None else lenient
    model = type(obj)
    if new is None and not raw:
        table = get_table(model._options.alias)
        known = None if pending is not None else bindings.binding_if_known(model, table)
        if await created_directly(table, known or await taken(model, pending), obj, pending):
            return
    prepared = [] if new is None else [new]

    async def attempt() -> None:
        # Composed again if a source has changed in the meantime.
        made = prepared.pop() if prepared else await new_object(obj, pending, raw=raw, lenient=lenient)
        await _send(made, pending, lenient=lenient)

    await retry_source_changes(attempt)


async def _send(new: NewObject, pending: Block | None, *, lenient: bool) -> None:
    effects = effects_of(new.binding)
    absent: frozenset[ItemKey] = frozenset()
    while True:
        write = await compose_new(new, effects, pending=pending, absent=absent, lenient=lenient)
        refuse_outdated(new.obj, new.binding)
        try:
            stored = await send.send_write(new.obj, write)
        except MissingReference as error:
            absent = missing_parents(write, effects, error)
        else:
            await record_write(new.obj, write, stored)
            return


async def new_object(
    obj: DynamoModel, pending: Block | None, *, raw: bool = False, lenient: bool | None = None
) -> NewObject:
    """Return an object to create with its item, after setting its identifier and automatic values.

    See ``create()`` for ``raw`` and ``lenient``.
    """
    lenient = raw if lenient is None else lenient
    model = type(obj)
    binding = await taken(model, pending)
    if obj._stored is not None:
        await acomplete(obj)
    _set_identity(obj)
    form, effects = form_of(binding), effects_of(binding)
    if form.asks(object_values(obj)):
        assignments.refuse_changes(obj, "A new object has no value for it: set one.")
    values = obj.__dict__
    if not raw:
        if may_block(model):
            await call_sync(partial(set_automatic, obj, add=True))
        else:
            set_automatic(obj, add=True)
        values.update(values_of_each_write(effects, None))
    if effects:
        filling = Filling(Subject(obj), values, pending=pending, lenient=lenient)
        values = {**values, **await filled_values(effects, filling)}
    writer, encodings = item_writer(binding), Encodings()
    with suppress(Exception):  # the full pass raises any error again, with its message
        if writer is not None:
            prepared, item, size = writer.whole(values, NO_ITEM, encodings)
            return NewObject(obj, binding, item, prepared, size)
    prepared = form.prepared(values, None, encodings=encodings)
    form.check_whole(prepared)
    item = item_from(binding, prepared, encodings.of_values(prepared))
    return NewObject(obj, binding, item, prepared, encodings.item_size(item) if encodings else 0)


def _set_identity(obj: Any) -> None:
    """Give a new identifier to a copied object whose ``pk`` is ``None``, as Django does."""
    for name in type(obj)._identity:
        field = obj._meta.get_field(name)
        if obj.__dict__.get(name) is None and field.has_default():
            setattr(obj, name, field.get_default())


async def replace(obj: DynamoModel, pending: Block | None) -> bool:
    """Write an object unmodified, whether or not it exists (fixtures); return ``True`` if it existed."""
    try:
        await create(obj, pending, raw=True)
        await recount.count_earlier_children(obj, pending)
        for effect in effects_of(type(obj)):
            await effect.update_dependents(obj, pending)
        if has_trash_count(type(obj)) and pending is None:
            await trash.set_loaded_count(obj)
    except AlreadyExists:
        stored = await decode.areload(obj)
        obj._stored = stored._stored
        # Fixtures already contain derived values.
        for kept in (*registry.counters_of(type(obj)), *registry.copied_of(type(obj))):
            obj.__dict__[kept.name] = stored.__dict__[kept.name]
        await save(obj, SaveOptions(raw=True), pending)
        return True
    return False
