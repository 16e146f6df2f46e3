"""Move an object to another primary key: put the new item and delete the old one in one transaction.

``move()`` raises an error if other objects refer to the object; ``move_tree()`` updates them.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any

from django.db.models.signals import post_save, pre_save

from dynamo_single.exceptions import AlreadyExists, NotSupported, StaleObject
from dynamo_single.lazy_modules import LazyModule
from dynamo_single.orm.effects.all_effects import effects_of
from dynamo_single.orm.effects.base import Subject
from dynamo_single.orm.effects.compose import compose_move, taken
from dynamo_single.orm.effects.referrers import queries_by_key
from dynamo_single.orm.effects.write import Write
from dynamo_single.orm.items import decode
from dynamo_single.orm.items.async_safety import notify
from dynamo_single.orm.items.encode import Values, is_key_of
from dynamo_single.orm.items.form import form_of
from dynamo_single.orm.items.refresh import acomplete
from dynamo_single.orm.items.stored import object_values, set_object_values
from dynamo_single.orm.plan.plan import PartialItem
from dynamo_single.orm.reading import single
from dynamo_single.orm.requests.actions import Item, key_of
from dynamo_single.orm.requests.atomic_block import Block
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.bindings import ModelBinding
from dynamo_single.orm.schema.fields.base import relations_from_sql
from dynamo_single.orm.schema.keys.values import named
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.orm.write import assignments
from dynamo_single.orm.write.cascade import Cascade, Step
from dynamo_single.orm.write.save import DEFAULT_SAVE, record_write, refuse_outdated, retry_source_changes, save
from dynamo_single.table import names
from dynamo_single.table.flow import call_sync
from dynamo_single.table.request import MAX_ACTIONS
from dynamo_single.table.table import get_table

if TYPE_CHECKING:
    from dynamo_single.orm.write import move_references
else:
    move_references = LazyModule("dynamo_single.orm.write.move_references")

#: An object's attributes, and its cached related objects.
_ObjectState = tuple[dict[str, Any], dict[str, Any]]


async def move(obj: Any, changes: Mapping[str, object], pending: Block | None, *, tree: bool = False) -> None:
    """Set attributes and store the object under the key that they give: one transaction, or a save if the key is the
    same.

    It does not overwrite an item, and the old item must be unchanged since it was read. After an error the object is as
    it was. ``tree`` updates the objects that refer to it; it first completes an interrupted earlier move.
    """
    model = type(obj)
    if obj._stored is None:
        raise ValueError(f"{model._meta.object_name} object can't be moved because it is not stored.")
    unknown = sorted(changes.keys() - model._settable())
    if unknown:
        called = "move_tree" if tree else "move"
        raise TypeError(
            f"{model._meta.object_name}.{called}() got an unexpected keyword argument {unknown[0]!r}. It takes "
            f"{', '.join(each.name for each in model._meta.concrete_fields if hasattr(each, 'attribute'))}."
        )
    if isinstance(obj._stored, PartialItem):
        await acomplete(obj)
    if tree and pending is None:
        await move_references.finish_move(obj)
    before = _state(obj)
    try:
        for name, value in changes.items():
            setattr(obj, name, value)
        announced = {"instance": obj, "raw": False, "using": None, "update_fields": None}
        await notify(pre_save, model, **announced)
        assignments.refuse_changes(obj, "move() writes a new item and cannot compute the value: call save() first.")
        sharding = registry.layout_of(model).primary.sharding
        decides = model._identity if sharding is None else (*model._identity, sharding.at)
        identity = form_of(model).prepared(obj.__dict__, obj._stored, decides)
        if is_key_of(model, identity, key_of(obj._stored)):
            await save(obj, DEFAULT_SAVE, pending)
        else:
            await retry_source_changes(partial(_move_tree if tree else _move, obj, _state(obj), before, pending))
    except BaseException:
        if names.MOVED_FROM not in obj._stored:
            _set_state(obj, before)  # otherwise the object itself has moved
        raise
    await notify(post_save, model, created=False, **announced)


def _state(obj: DynamoModel) -> _ObjectState:
    return object_values(obj), dict(obj._state.fields_cache)


def _set_state(obj: DynamoModel, state: _ObjectState) -> None:
    set_object_values(obj, state[0])
    obj._state.fields_cache = dict(state[1])


async def _move(obj: DynamoModel, wanted: _ObjectState, as_it_was: _ObjectState, pending: Block | None) -> None:
    """Send the move to the ``wanted`` state; the object is unchanged until it is sent."""
    move = await _plan_move(obj, wanted, as_it_was, pending)
    await _refuse_orphans(obj)
    await move.send(pending)


async def _plan_move(
    obj: DynamoModel, wanted: _ObjectState, as_it_was: _ObjectState, pending: Block | None
) -> _MoveStep:
    model = type(obj)
    binding = await taken(model)
    _set_state(obj, wanted)
    values, item = await move_references.new_item(obj, effects_of(model), pending)
    # Errors name the old ``pk``, and a discarded block leaves the object unchanged.
    _set_state(obj, as_it_was)
    if relations_from_sql(model):
        await call_sync(partial(move_references.refuse_sql_references, obj))
    return _MoveStep(obj, binding, decode.instance(model, item), values, wanted)


class _MoveStep(Step):
    """The move of the object itself, as a ``target`` that was made by a ``binding``."""

    def __init__(self, obj: Any, binding: ModelBinding, target: Any, values: Values, wanted: _ObjectState) -> None:
        super().__init__(obj)
        self.binding = binding
        self.target = target
        self.values = values
        self.wanted = wanted

    def marked(self, mark: decode.Item) -> _MoveStep:
        """Return the move with a marker on the new item, and without its counts."""
        model = type(self.obj)
        target = decode.instance(model, {**move_references.without_counts(model, self.target._stored), **mark})
        return _MoveStep(self.obj, self.binding, target, self.values, self.wanted)

    async def compose(self, pending: Block | None) -> Write:
        """Return its write, for a transaction with the others."""
        effects = effects_of(type(self.obj))
        write = await compose_move(
            self.obj, effects, self.target, self.values, pending=pending, absent=self.missing_parents
        )
        refuse_outdated(self.obj, self.binding)
        return write

    async def record_write(self, write: Write, stored: Item) -> None:
        """Set the object's new state."""
        _set_state(self.obj, self.wanted)
        self.obj._prefetched_objects_cache = {}
        await record_write(self.obj, write, stored)


async def _move_tree(obj: DynamoModel, wanted: _ObjectState, as_it_was: _ObjectState, pending: Block | None) -> None:
    """Send the move and update all objects that refer to it: one transaction if they fit, else several."""
    move = await _plan_move(obj, wanted, as_it_was, pending)
    way = move_references.IdentityChange.of(type(obj), obj.pk, move.target.pk, {})
    below = await move_references.tree_steps(way, MAX_ACTIONS)
    if pending is not None:
        if below is None:
            raise NotSupported(
                f"Cannot move {Subject(obj).name} and the objects that refer to it in an atomic() block: they "
                f"need more than the {MAX_ACTIONS} actions of a transaction, or an object refers to several of "
                "them. Nothing was written. Call move_tree() outside the block."
            )
        await Cascade([move.marked({}), *below]).send(pending)
        return
    mark = {names.MOVED_FROM: move_references.mark_value(obj)}
    try:
        if below is not None and await Cascade([move.marked({}), *below]).send_at_once():
            if await move_references.has_referrers(way, below):
                await move_references.set_mark(obj, mark)
                await move_references.finish_move(obj)
            else:
                await move_references.reload_counts(obj)
            return
        await Cascade([move.marked(mark)]).send(None)
    except (AlreadyExists, StaleObject):
        if not await _is_moved_already(move, mark):
            raise
        await move_references.finish_move(obj)
    else:
        await move_references.TreeMove(obj).run(again=False)


async def _is_moved_already(move: _MoveStep, mark: Item) -> bool:
    """Return whether an earlier run moved the object without updating all others; if so, update the object."""
    obj, model = move.obj, type(move.obj)
    found = await single.stored_item(get_table(model._options.alias), key_of(move.target._stored))
    if found is None or found.get(names.ITEM_TYPE) != move.target._stored[names.ITEM_TYPE]:
        return False
    if any(found.get(name) != value for name, value in mark.items()):
        return False
    decode.update_from(obj, decode.instance(model, {name: dict(value) for name, value in found.items()}), ())
    return True


async def _refuse_orphans(obj: DynamoModel) -> None:
    """Raise ``NotSupported`` if other objects refer to the object: a Query of one item for each reference.

    It ignores derived objects. If their model also has other objects, it reads all that refer to the object.
    """
    async with aclosing(queries_by_key(type(obj), obj.pk)) as queries:
        async for query in queries:
            model, field = query.children.model, query.children.field
            queryset = query.queryset([obj.pk])
            if model.derived_by in (field.name, field.attname):
                found = any(not each.is_derived() for each in await queryset._read())
            else:
                found = await queryset._exists()
            if found:
                raise NotSupported(
                    f"{named(obj)} cannot move: {model._meta.label} objects refer to it by "
                    f"{field.name}, and their references would become invalid. "
                    "Nothing was written. Call move_tree(), which moves them too."
                )
