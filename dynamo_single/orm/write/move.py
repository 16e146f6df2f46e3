"""Moving an object to another primary key: the new item, the old one's deletion and all that follows, at once.

What sends is a coroutine. Objects that refer to the moved one are not moved along: where there are
any, it refuses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from asgiref.sync import sync_to_async
from django.db import router
from django.db.models import DO_NOTHING
from django.db.models.signals import post_save, pre_save

from dynamo_single.exceptions import MissingReference, NoAccessPattern, NotSupported
from dynamo_single.orm.effects import sending
from dynamo_single.orm.effects.compose import compose_move
from dynamo_single.orm.effects.effect import Effects, Subject
from dynamo_single.orm.effects.together import effects_of
from dynamo_single.orm.filled import knowledge
from dynamo_single.orm.items import hydration
from dynamo_single.orm.items.form import form_of
from dynamo_single.orm.items.held import hold_only, values_held
from dynamo_single.orm.items.native import makes_objects, notify
from dynamo_single.orm.items.partial import completed
from dynamo_single.orm.items.serialization import Values, computed_key, twinned
from dynamo_single.orm.plan.plan import Visibility
from dynamo_single.orm.plan.projection import PartialItem
from dynamo_single.orm.requests.actions import ItemKey, key_of
from dynamo_single.orm.requests.block import Block, current
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.children import declared
from dynamo_single.orm.schema.fields.columns import relations_from_sql
from dynamo_single.orm.schema.kinds import DynamoModel
from dynamo_single.orm.schema.owners import are_plain
from dynamo_single.orm.write import assignments
from dynamo_single.orm.write.intentions import SAVE
from dynamo_single.orm.write.save import begun_anew, remember, save, without
from dynamo_single.table import names
from dynamo_single.table.flow import local, run

#: What an object's attributes and its related objects are.
_State = tuple[dict[str, Any], dict[str, Any]]
_VISIBILITIES: tuple[Visibility, ...] = ("all", "live", "deleted")


class Movable:
    """The methods of a model."""

    def move(self, **changes: Any) -> None:
        """Set attributes and store the object under the primary key that they give, in one transaction with its claims.

        What else was set goes along. ``AlreadyExists`` if there is an item, ``StaleObject`` if another writer changed
        this one, ``NotSupported`` if objects that a key finds refer to it: one Query for each such reference before.
        """
        run(move(self, changes, current()))

    async def amove(self: Any, **changes: Any) -> None:
        """``move()``, awaited unless a project's class has one of its own."""
        if are_plain(self.__class__, ("move",)) and makes_objects(type(self)):
            await move(self, changes, current())
        else:
            await sync_to_async(self.move)(**changes)

    move.alters_data = amove.alters_data = True  # type: ignore[attr-defined]  # templates call neither


async def move(obj: Any, changes: Mapping[str, object], pending: Block | None) -> None:
    """Set attributes and store the object under the key that they give: one transaction; a save if that is its own.

    Nothing is overwritten, and the old item has to be as it was read. If it fails, the object is as it was.
    """
    model = type(obj)
    if obj._stored is None:
        raise ValueError(f"{model._meta.object_name} object can't be moved because it is not stored.")
    unknown = sorted(changes.keys() - model._settable())
    if unknown:
        raise TypeError(f"{model._meta.object_name}.move() got an unexpected keyword argument {unknown[0]!r}.")
    if isinstance(obj._stored, PartialItem):
        await completed(obj)
    before = _state(obj)
    try:
        for name, value in changes.items():
            setattr(obj, name, value)
        announced = {"instance": obj, "raw": False, "using": None, "update_fields": None}
        await notify(pre_save, model, **announced)
        assignments.refuse_changes(obj, "move() puts a new item, for which it is not computed: save() it before.")
        sharding = registry.layout_of(model).primary.sharding
        decides = model._identity if sharding is None else (*model._identity, sharding.at)
        identity = form_of(model).prepared(obj.__dict__, obj._stored, decides)
        if computed_key(model, identity) == key_of(obj._stored):
            await save(obj, SAVE, pending)
        else:
            await begun_anew(partial(_move, obj, _state(obj), before, pending))
    except BaseException:
        _set_state(obj, before)
        raise
    await notify(post_save, model, created=False, **announced)


def _state(obj: DynamoModel) -> _State:
    return values_held(obj), dict(obj._state.fields_cache)


def _set_state(obj: DynamoModel, state: _State) -> None:
    hold_only(obj, state[0])
    obj._state.fields_cache = dict(state[1])


async def _move(obj: DynamoModel, wanted: _State, as_it_was: _State, pending: Block | None) -> None:
    """Send the move to what ``wanted`` says; it changes nothing of the object before it is sent."""
    model, effects = type(obj), effects_of(type(obj))
    _set_state(obj, wanted)
    values, item = await _new_item(obj, effects, pending)
    target = hydration.instance(model, item)
    # What is reported of the old item has its ``pk``, and a block that is discarded leaves the object as it was.
    _set_state(obj, as_it_was)
    await _refuse_orphans(obj)
    if relations_from_sql(model):
        await local(partial(_refuse_rows, obj))
    absent: frozenset[ItemKey] = frozenset()
    while True:
        write = await compose_move(obj, effects, target, values, pending=pending, absent=absent)
        try:
            stored = await sending.deliver(obj, write)
        except MissingReference as error:
            absent = without(write, effects, error)
        else:
            break
    _set_state(obj, wanted)
    obj._prefetched_objects_cache = {}
    await remember(obj, write, stored)


async def _new_item(obj: DynamoModel, effects: Effects, pending: Block | None) -> tuple[Values, hydration.Item]:
    """What the object will hold, and its item; what the model does not know of the old item goes along."""
    await knowledge.ask(registry.layout_of(type(obj)))
    form, before = form_of(type(obj)), obj._stored
    given = values_held(obj)
    for effect in effects:
        given = {**given, **await effect.fill(Subject(obj), given, before, None, pending, lenient=False)}
    base = form.upgraded(before)
    held = hydration.values_of(type(obj), before)
    changed = form.difference(form.prepared(given, base), held, base, named=False)
    form.check_whole(changed)
    form.refuse_fixed(changed)
    form.refuse_immutable((), changed, held)
    changed |= form.automatic_values(obj)
    for effect in effects:
        changed |= effect.stamp(before)
    values = {**held, **changed}
    partition, sort = computed_key(form.model, values)
    key = {names.PARTITION_KEY: {"S": partition}, names.SORT_KEY: {"S": sort}}
    foreign = {name: dict(value) for name, value in base.items() if name not in form.known}
    item = {**foreign, **form.after({**base, **key}, held, changed)}
    return values, twinned(item, form.twins) if form.twins else item


async def _refuse_orphans(obj: DynamoModel) -> None:
    """Refuse to move an object that others refer to by its ``pk``: one Query for one item for each reference.

    What follows from an object follows it; where a model has other objects too, all that refer to it are read.
    """
    for field, always in _references(type(obj)):
        # Planning asks for it.
        await field.model._base_manager.all()._know()
        for queryset in _found_by(field, obj.pk, always=always):
            follows = field.model.derived_by in (field.name, field.attname)
            if follows:
                found = any(not each.is_derived() for each in await queryset._read())
            else:
                found = await queryset._exists()
            if found:
                label = obj._meta.label
                raise NotSupported(
                    f"{label} with pk {obj.pk!r} cannot move: {field.model._meta.label} objects refer to it by "
                    f"{field.name}, and would refer to nothing. Move or delete these first, or create another "
                    f"{label} for them; nothing was written."
                )


def _refuse_rows(obj: DynamoModel) -> None:
    """The same for the rows of SQL models: a query for each."""
    for related in relations_from_sql(type(obj)):
        rows = related.related_model._base_manager.using(router.db_for_write(related.related_model))
        if rows.filter(**{related.field.attname: obj.pk}).exists():
            label = obj._meta.label
            raise NotSupported(
                f"{label} with pk {obj.pk!r} cannot move: rows of {related.related_model._meta.label} refer to it by "
                f"{related.field.name}, and would refer to nothing. Create another {label}, and let them refer to "
                "that; nothing was written."
            )


def _references(model: type[DynamoModel]) -> Iterator[tuple[Any, bool]]:
    """The references to a model, and whether a key has to find them: those of ``Children``, and with an ``on_delete``;
    what follows from an object follows it."""
    owned = {children.field for children in declared(model)}
    for other in registry.all_models():
        fields: list[Any] = list(other._meta.concrete_fields)
        for field in fields:
            follows = other.derived_by in (field.name, field.attname) and not _has_others(other)
            related: Any = field.related_model
            if field.is_relation and issubclass(model, related) and not follows:
                yield field, field in owned or field.remote_field.on_delete is not DO_NOTHING


def _has_others(model: type[DynamoModel]) -> bool:
    """Whether a model says for itself which of its objects follow from others."""
    return sum("is_derived" in vars(each) for each in model.__mro__) > 1


def _found_by(field: Any, pk: object, *, always: bool) -> Iterator[Any]:
    """Querysets of the objects with a reference, where a key has it; ``always`` for those that any key lists."""
    # Without Meta.ordering, which no key may have.
    found = field.model._base_manager.order_by().filter(**{field.attname: pk})
    for visibility in _VISIBILITIES if registry.layout_of(field.model).soft_delete else _VISIBILITIES[1:2]:
        queryset = found.with_visibility(visibility)
        try:
            plan = queryset._plan()
        except NoAccessPattern:
            continue
        if always or plan.key is None or field.attname in plan.key.variables:
            yield queryset
            if visibility == "all":
                return
