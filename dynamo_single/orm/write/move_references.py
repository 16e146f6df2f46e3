"""Update the objects that refer to a moved object, in one transaction or in several resumable transactions.

The object moves first. If the others need several transactions, its item names the former identity until the app has
updated all of them, so that any process can resume the move. This module does not depend on the move of the object
itself.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any

from django.db import router
from msgspec import Struct

from dynamo_single.exceptions import NotSupported, StaleObject
from dynamo_single.orm.conditions.terms import Stored
from dynamo_single.orm.effects import send, trash_counts
from dynamo_single.orm.effects.all_effects import effects_of
from dynamo_single.orm.effects.base import (
    Effects,
    Filling,
    Subject,
    Transition,
    WriteConditions,
    filled_values,
    values_of_each_write,
)
from dynamo_single.orm.effects.compose import compose_move
from dynamo_single.orm.effects.counters import own_counters
from dynamo_single.orm.effects.referrers import ReferrerQuery, queries_by_key
from dynamo_single.orm.effects.write import Write
from dynamo_single.orm.items import decode
from dynamo_single.orm.items.encode import Values, computed_key, is_key_of, key_of_pk, pk_of, with_twin_names
from dynamo_single.orm.items.encodings import Encodings
from dynamo_single.orm.items.form import form_of
from dynamo_single.orm.items.stored import object_values
from dynamo_single.orm.requests.actions import ITEM_EXISTS, ITEM_MISSING, Action, Check, Item, ItemKey, Update, key_of
from dynamo_single.orm.requests.atomic_block import Block, Entry
from dynamo_single.orm.rollout import knowledge
from dynamo_single.orm.schema import registry, secrecy
from dynamo_single.orm.schema.fields.base import IdentityField, relations_from_sql
from dynamo_single.orm.schema.keys.values import named
from dynamo_single.orm.schema.references import references_to
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.orm.write import cascade
from dynamo_single.orm.write.cascade import Cascade, ReferenceStep
from dynamo_single.table import names
from dynamo_single.table.flow import call_sync, flatten

#: How often to read objects again after another process changed or created them.
ATTEMPTS = 3


class IdentityChange(Struct, frozen=True, eq=False):
    """The change of an object's identity; ``marks`` maps the former values of ``deletedWith`` to the new ones."""

    model: Any
    old: Any
    new: Any
    marks: Mapping[str, str]

    @classmethod
    def of(cls, model: Any, old: object, new: object, marks: Mapping[str, str]) -> IdentityChange:
        """Return the change with the marks of its parents and its own."""
        item_type = model._options.item_type
        return cls(model._meta.concrete_model, old, new, {**marks, f"{item_type}#{old}": f"{item_type}#{new}"})

    @property
    def shown(self) -> str:
        """The former identity, for messages."""
        return secrecy.shown(self.model, self.old)


async def new_item(
    obj: DynamoModel, effects: Effects, pending: Block | None, *, follows: bool = False
) -> tuple[Values, decode.Item]:
    """Return an object's values and its item under its new key; it keeps unknown attributes of the old item.

    With ``follows`` references may change that a caller may not change.
    """
    await knowledge.ask(registry.layout_of(type(obj)))
    form, before = form_of(type(obj)), obj._stored
    given = object_values(obj)
    given |= await filled_values(effects, Filling(Subject(obj), given, before, pending=pending))
    held, encodings = decode.values_of(type(obj), before), Encodings()
    prepared = form.prepared(given, before, encodings=encodings)
    changed = form.difference(prepared, held, before, named=False, encodings=encodings)
    form.check_whole(changed)
    if not follows:
        form.refuse_fixed(changed)
        form.refuse_immutable((), changed, held, before)
        if names.DELETED_WITH in before:
            changed = trash_counts.values_with_new_parent(type(obj), changed)
    changed |= {**form.automatic_values(obj), **values_of_each_write(effects, before)}
    values = {**held, **changed}
    own = key_of(before)
    partition, sort = own if is_key_of(form.model, values, own) else computed_key(form.model, values)
    key = {names.PARTITION_KEY: {"S": partition}, names.SORT_KEY: {"S": sort}}
    foreign = {name: dict(value) for name, value in before.items() if name not in form.known}
    item = {**foreign, **form.after({**before, **key}, held, changed, encodings)}
    return values, with_twin_names(item, form.twins) if form.twins else item


def without_counts(model: type[DynamoModel], item: decode.Item) -> decode.Item:
    """Return an item with counts of 0: the update of each object that refers to it counts it again."""
    declared = {each.attr_name: {"N": "0"} for each in registry.counters_of(model) if each.attr_name in item}
    counts = {each.name for each in own_counters(model)}
    return {name: value for name, value in item.items() if name not in counts} | declared if counts else item


class ReferrerStep(ReferenceStep):
    """The update of one object that refers to a moved one; it moves too if the reference is in its primary key.

    ``missing_parents`` contains the keys of former items, which no longer count it.
    """

    def __init__(self, obj: Any, values: Values, absent: frozenset[ItemKey] = frozenset()) -> None:
        super().__init__(obj, values, absent)
        #: The identity before the write.
        self.old = obj.pk
        self._held = {name: obj.__dict__[name] for name in type(obj)._identity}

    @property
    def new(self) -> Any:
        """The new identity."""
        return pk_of(type(self.obj), {**self._held, **self.values})

    @property
    def moves(self) -> bool:
        """Whether its identity changes."""
        return bool(self.old != self.new)

    async def compose(self, pending: Block | None) -> Write | None:
        """Return the object's write, for a transaction with the others."""
        if not self.moves:
            return await super().compose(pending)
        obj, model = self.obj, type(self.obj)
        if relations_from_sql(model):
            await call_sync(partial(refuse_sql_references, obj))
        other = decode.instance(model, dict(obj._stored))
        other.__dict__.update(self.values)
        effects = effects_of(model)
        values, item = await new_item(other, effects, pending, follows=True)
        target = decode.instance(model, without_counts(model, item))
        return await compose_move(obj, effects, target, values, pending=pending, absent=self.missing_parents)


def referrer_steps(
    way: IdentityChange, query: ReferrerQuery, objects: Sequence[Any], *, left: bool
) -> list[ReferrerStep]:
    """Return the updates of objects with one reference; ``left`` if the object that they refer to has moved already."""
    absent = frozenset({key_of_pk(way.model, way.old)}) if left else frozenset[ItemKey]()
    found = []
    for obj in objects:
        values: Values = {query.children.field.attname: way.new}
        mark = obj.__dict__.get(registry.DELETED_WITH)
        if mark in way.marks:
            values[registry.DELETED_WITH] = way.marks[mark]
        found.append(ReferrerStep(obj, values, absent))
    return found


async def tree_steps(way: IdentityChange, most: int) -> list[ReferrerStep] | None:
    """Return the updates of all objects below, parents first; ``None`` if there are more than ``most``.

    It writes an object with several references once. Returns ``None`` too if this changes its identity and others refer
    to it.
    """
    steps: dict[ItemKey, ReferrerStep] = {}
    ways = [way]
    for each in ways:
        async with aclosing(_referrers(each)) as found:
            async for query, some in found:
                for step in referrer_steps(each, query, some, left=False):
                    known = steps.setdefault(key_of(step.obj._stored), step)
                    before = known.new
                    known.values |= step.values
                    is_new = known is step
                    if not is_new and known.new != before and references_to(type(step.obj)):
                        return None
                    if is_new and step.moves:
                        ways.append(IdentityChange.of(type(step.obj), step.old, step.new, each.marks))
                if len(steps) > most:
                    return None
    return [*steps.values()]


async def _referrers(
    way: IdentityChange, *, again: bool = False
) -> AsyncGenerator[tuple[ReferrerQuery, list[Any]], None]:
    """Yield the objects that refer to the former identity, a hundred at a time; ``again`` as in ``ReferrerQuery``."""
    async with aclosing(queries_by_key(way.model, way.old)) as queries:
        async for query in queries:
            async with aclosing(query.pages([way.old], again=again)) as pages:
                async for some in pages:
                    yield query, some


async def has_referrers(way: IdentityChange, steps: Sequence[ReferrerStep]) -> bool:
    """Return whether objects still refer to a former identity: an index lagged, or a process created them in the
    meantime.
    """
    moved = (step for step in steps if step.moves)
    for each in (way, *(IdentityChange.of(type(step.obj), step.old, step.new, {}) for step in moved)):
        async with aclosing(_referrers(each, again=True)) as found:
            async for _ in found:
                return True
    return False


async def set_mark(obj: Any, marked: Mapping[str, Any]) -> None:
    """Set the marker of a move on an object that has moved already: one UpdateItem."""
    before = obj._stored
    after = {**before, **marked}
    update = Update(key_of(before), set=dict(marked), condition=ITEM_EXISTS)
    transition = Transition(Subject(obj), before, after, frozenset(marked))
    await send.send_write(obj, Write(transition, type(obj)._options.alias, (update,), WriteConditions()))
    obj._stored = after


class TreeMove:
    """The resumable update of all objects that refer to a moved one, whose item has the marker with its former
    identity.

    Memory holds a hundred objects, and the identities of moved objects with descendants.
    """

    def __init__(self, obj: Any) -> None:
        self.obj = obj
        self.mark = obj._stored[names.MOVED_FROM]
        field = obj._meta.pk
        old = self.mark["S"] if isinstance(field, IdentityField) else field.attribute.from_attribute_value(self.mark)
        self.way = IdentityChange.of(type(obj), old, obj.pk, {})
        self.key = key_of(obj._stored)

    async def run(self, *, again: bool) -> None:
        """Update all objects that refer to the moved one, until there are none; ``again`` resumes an earlier run.

        Raises ``StaleObject`` if another process moves or deletes the object, or stores another object under its former
        identity.
        """
        ways = [self.way]
        if again:
            for way in ways:
                async for more in self._moved_before(way):
                    ways.append(more)
        for _ in range(ATTEMPTS):
            count = 0
            for way in ways:
                async with aclosing(_referrers(way)) as found:
                    async for query, some in found:
                        count += await self._follow(way, query, some, ways)
            if not count:
                await self._finish()
                return
        raise StaleObject(
            f"{Subject(self.obj).name} has moved, but another process is still creating objects that refer to "
            f"{self.way.shown}. Stop it, then call move_tree() again to continue."
        )

    async def _moved_before(self, way: IdentityChange) -> AsyncGenerator[IdentityChange, None]:
        """Yield the changes of objects that moved in an earlier run, and that others may still refer to."""
        async with aclosing(queries_by_key(way.model, way.new)) as queries:
            async for query in queries:
                model, name = query.children.model, query.children.field.attname
                if name not in model._identity or not references_to(model):
                    continue
                async with aclosing(flatten(query.pages([way.new]))) as found:
                    async for obj in found:
                        held = {each: obj.__dict__[each] for each in model._identity}
                        yield IdentityChange.of(model, pk_of(model, {**held, name: way.old}), obj.pk, way.marks)

    async def _follow(
        self, way: IdentityChange, query: ReferrerQuery, some: Sequence[Any], ways: list[IdentityChange]
    ) -> int:
        """Update objects and return their number. Read changed or outdated objects again."""
        for attempt in range(ATTEMPTS):
            if attempt:
                # An index may show objects that are already updated.
                some = await query.reread(some, [way.old])
            steps = referrer_steps(way, query, some, left=True)
            same_table = query.children.model._options.alias == self.way.model._options.alias
            try:
                await Cascade(steps, self._guards() if same_table else ()).send(None)
            except StaleObject as error:
                await self._check()
                if attempt == ATTEMPTS - 1:
                    # Also for a stale copy: the object itself has moved, so the caller must not retry the move.
                    raise StaleObject(
                        f"{error} {Subject(self.obj).name} has moved. Call move_tree() again to continue."
                    ) from error
            else:
                known = {(each.model, each.old) for each in ways}
                more = [
                    IdentityChange.of(type(step.obj), step.old, step.new, way.marks) for step in steps if step.moves
                ]
                ways += [each for each in more if (each.model, each.old) not in known and references_to(each.model)]
                return len(steps)
        return 0

    def _guards(self) -> list[Entry]:
        """Return checks that the object is under its new key with the same marker, and that no item is under the former
        one."""
        there = Check(self.key, Stored(names.MOVED_FROM, "=", (self.mark,)))
        gone = Check(key_of_pk(self.way.model, self.way.old), ITEM_MISSING)
        return [cascade.guard_entry(Subject(self.obj).name, check, self._explained) for check in (there, gone)]

    def _explained(self, action: Action, found: Item | None) -> Exception:
        name, old = Subject(self.obj).name, self.way.shown
        if action.key == self.key:
            return StaleObject(f"Another process moved or deleted {name}, or completed its move, during this move.")
        return StaleObject(
            f"{name} has moved, but another object exists under its old identity {old}, so the owner of the "
            "objects that refer to it is unknown. Move or delete that object, and call move_tree() again."
        )

    async def _check(self) -> None:
        """Raise the error of a failed guard before reading the others again."""
        block = Block(alias=self.way.model._options.alias, entries=self._guards())
        await send.send_block(block)

    async def _finish(self) -> None:
        """Remove the marker by one UpdateItem. It reads counts again, because other processes may have changed them."""
        obj, before = self.obj, self.obj._stored
        after = {name: value for name, value in before.items() if name != names.MOVED_FROM}
        conditions = WriteConditions(as_read=(Stored(names.MOVED_FROM, "=", (self.mark,)),))
        update = Update(self.key, remove=(names.MOVED_FROM,), condition=conditions.request_condition())
        transition = Transition(Subject(obj), before, after, frozenset({names.MOVED_FROM}))
        await send.send_write(obj, Write(transition, type(obj)._options.alias, (update,), conditions))
        obj._stored = after
        await reload_counts(obj)


async def reload_counts(obj: DynamoModel) -> None:
    """Read the counts of an object that has any: one GetItem."""
    if own_counters(type(obj)):
        fresh = await decode.areload(obj)
        decode.update_from(obj, fresh, ())


async def finish_move(obj: Any) -> None:
    """Resume an interrupted move of an object, if its item has the marker."""
    if obj._stored is not None and names.MOVED_FROM in obj._stored:
        await TreeMove(obj).run(again=True)


def mark_value(obj: DynamoModel) -> dict[str, object]:
    """Return the identity of an object as the value of a marker."""
    field: Any = obj._meta.pk
    if isinstance(field, IdentityField):
        return {"S": obj.pk}
    found: dict[str, Any] = field.attribute.to_attribute_value(field.attribute.prepare(obj.pk))
    return found


def refuse_sql_references(obj: DynamoModel) -> None:
    """Raise ``NotSupported`` if rows of SQL models refer to an object: one query for each such reference."""
    for related in relations_from_sql(type(obj)):
        rows = related.related_model._base_manager.using(router.db_for_write(related.related_model))
        if rows.filter(**{related.field.attname: obj.pk}).exists():
            label = obj._meta.label
            raise NotSupported(
                f"{named(obj)} cannot move: rows of {related.related_model._meta.label} refer to it by "
                f"{related.field.name}, and would refer to nothing. Create another {label}, and let them refer to "
                "that. Nothing was written."
            )
