"""What refers to an object that moves to another primary key follows it: in one transaction, or resumably.

The object goes first. Where the rest takes several transactions, its item names the identity that it had until all of
it has followed: whoever finds that mark can go on. What sends is a coroutine. This module must not know how an object
itself is moved.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from dynamo_single.exceptions import StaleObject
from dynamo_single.orm.conditions.terms import Stored, join
from dynamo_single.orm.effects import send
from dynamo_single.orm.effects.all_effects import effects_of
from dynamo_single.orm.effects.base import Effects, Subject, Transition, WriteConditions
from dynamo_single.orm.effects.compose import compose, compose_move, draft_of
from dynamo_single.orm.effects.counters import own_counters
from dynamo_single.orm.effects.write import Write
from dynamo_single.orm.items import decode
from dynamo_single.orm.items.encode import Values, computed_key, is_key_of, key_of_pk, pk_of, twinned
from dynamo_single.orm.items.form import form_of
from dynamo_single.orm.items.stored import values_held
from dynamo_single.orm.requests.actions import ITEM_EXISTS, ITEM_MISSING, Action, Check, Item, ItemKey, Update, key_of
from dynamo_single.orm.requests.atomic_block import Block, Entry
from dynamo_single.orm.requests.updates import as_stored
from dynamo_single.orm.rollout import knowledge
from dynamo_single.orm.schema import registry, secrecy
from dynamo_single.orm.schema.fields.base import IdentityField, relations_from_sql
from dynamo_single.orm.schema.types import DynamoModel, ModelField
from dynamo_single.orm.write import cascade
from dynamo_single.orm.write.cascade import Cascade, Step
from dynamo_single.orm.write.referrers import found_by, references_to, refuse_rows
from dynamo_single.orm.write.save import remember
from dynamo_single.table import names
from dynamo_single.table.flow import each_of, local, some_of
from dynamo_single.table.request import MAX_ACTIONS

#: How often what another writer changes meanwhile is looked at again, and what is still being created is looked for.
ATTEMPTS = 3


class Way(Struct, frozen=True, eq=False):
    """An object's way from one identity to another; ``marks`` are what ``deletedWith`` says of it and what is above it,
    before and after."""

    model: Any
    old: Any
    new: Any
    marks: Mapping[str, str]

    @classmethod
    def of(cls, model: Any, old: object, new: object, marks: Mapping[str, str]) -> Way:
        """The way of an object below others."""
        item_type = model._options.item_type
        return cls(model._meta.concrete_model, old, new, {**marks, f"{item_type}#{old}": f"{item_type}#{new}"})

    @property
    def shown(self) -> str:
        """The identity of before, for messages."""
        return secrecy.shown(self.model, self.old)


# their writes


async def new_item(
    obj: DynamoModel, effects: Effects, pending: Block | None, *, follows: bool = False
) -> tuple[Values, decode.Item]:
    """What an object will hold, and its item under its new key; what the model does not know of the old one goes along.

    One that ``follows`` another one has references set that nobody else may change.
    """
    await knowledge.ask(registry.layout_of(type(obj)))
    form, before = form_of(type(obj)), obj._stored
    given = values_held(obj)
    for effect in effects:
        given = {**given, **await effect.fill(Subject(obj), given, before, None, pending, lenient=False)}
    base = form.upgraded(before)
    held = decode.values_of(type(obj), before)
    changed = form.difference(form.prepared(given, base), held, base, named=False)
    form.check_whole(changed)
    if not follows:
        form.refuse_fixed(changed)
        form.refuse_immutable((), changed, held)
    changed |= form.automatic_values(obj)
    for effect in effects:
        changed |= effect.stamp(before)
    values = {**held, **changed}
    own = key_of(before)
    partition, sort = own if is_key_of(form.model, values, own) else computed_key(form.model, values)
    key = {names.PARTITION_KEY: {"S": partition}, names.SORT_KEY: {"S": sort}}
    foreign = {name: dict(value) for name, value in base.items() if name not in form.known}
    item = {**foreign, **form.after({**base, **key}, held, changed)}
    return values, twinned(item, form.twins) if form.twins else item


def uncounted(model: type[DynamoModel], item: decode.Item) -> decode.Item:
    """An item whose counts begin at 0: each object that follows it counts itself again."""
    declared = {each.attr_name: {"N": "0"} for each in registry.counters_of(model) if each.attr_name in item}
    counts = {name for name, _, _ in own_counters(model)}
    return {name: value for name, value in item.items() if name not in counts} | declared if counts else item


class Follower(Step):
    """One object that refers to what moved: it refers to its new identity, and moves itself if that is in its key.

    Nobody is told of it. ``absent`` are the items of before, which do not count it any more.
    """

    is_told = False

    def __init__(self, obj: Any, values: Values, absent: frozenset[ItemKey] = frozenset()) -> None:
        super().__init__(obj)
        self.values = values
        self.absent = absent
        #: The identity that it had before it is written.
        self.old = obj.pk
        self._held = {name: obj.__dict__[name] for name in type(obj)._identity}

    @property
    def new(self) -> Any:
        """The identity that it gets."""
        return pk_of(type(self.obj), {**self._held, **self.values})

    @property
    def moves(self) -> bool:
        """Whether it gets another identity."""
        return bool(self.old != self.new)

    async def send(self, pending: Block | None) -> bool:
        """Write it by itself, or within a block."""
        write = await self.compose(pending)
        if write is None:
            return False
        await remember(self.obj, write, await send.send_write(self.obj, write))
        return True

    async def compose(self, pending: Block | None) -> Write | None:
        """The object's write, among those of the others."""
        obj, model = self.obj, type(self.obj)
        effects, before = effects_of(model), obj._stored
        if self.moves:
            if relations_from_sql(model):
                await local(partial(refuse_rows, obj))
            other = decode.instance(model, dict(before))
            other.__dict__.update(self.values)
            values, item = await new_item(other, effects, pending, follows=True)
            target = decode.instance(model, uncounted(model, item))
            return await compose_move(obj, effects, target, values, pending=pending, absent=self.absent)
        values, given = self.values, {**decode.values_of(model, before), **self.values}
        for effect in effects:
            only = frozenset(self.values)
            values = {**values, **await effect.fill(Subject(obj), given, before, only, pending, lenient=False)}
        attributes = registry.attributes_of(model)
        as_read = [as_stored(before, attributes[name].attr_name) for name in self.values]
        draft = replace(draft_of(obj, values), computed=join(as_read))
        return await compose(obj, effects, draft, pending=pending, absent=self.absent)

    async def remember(self, write: Write, stored: Item) -> None:
        """The object has them now."""
        await remember(self.obj, write, stored)


def followers(way: Way, field: ModelField, objects: Sequence[Any], *, left: bool) -> list[Follower]:
    """What some objects become that refer to an object by one reference; ``left`` if that was moved before."""
    absent = frozenset({key_of_pk(way.model, way.old)}) if left else frozenset[ItemKey]()
    found = []
    for obj in objects:
        values: Values = {field.attname: way.new}
        mark = obj.__dict__.get(registry.DELETED_WITH)
        if mark in way.marks:
            values[registry.DELETED_WITH] = way.marks[mark]
        found.append(Follower(obj, values, absent))
    return found


# all at once


async def all_below(way: Way, most: int) -> list[Follower] | None:
    """All that follows an object, parents first; ``None`` if there are more than ``most``.

    What refers to several of them is written once. ``None`` as well where it moves by that and others refer to it.
    """
    steps: dict[ItemKey, Follower] = {}
    ways = [way]
    for each in ways:
        async with aclosing(_all_referring(each)) as found:
            async for field, some in found:
                for step in followers(each, field, some, left=False):
                    known = steps.setdefault(key_of(step.obj._stored), step)
                    before = known.new
                    known.values |= step.values
                    is_new = known is step
                    if not is_new and known.new != before and any(references_to(type(step.obj))):
                        return None
                    if is_new and step.moves:
                        ways.append(Way.of(type(step.obj), step.old, step.new, each.marks))
                if len(steps) > most:
                    return None
    return [*steps.values()]


async def _all_referring(way: Way) -> AsyncGenerator[tuple[Any, list[Any]], None]:
    """What refers to the identity that an object had, by one reference after the other, each with the reference."""
    for field, always in references_to(way.model):
        async with aclosing(_referring(way, field, always)) as found:
            async for some in found:
                yield field, some


async def _referring(way: Way, field: Any, always: bool) -> AsyncGenerator[list[Any], None]:
    """The objects that refer to the identity that an object had, a hundred at a time."""
    # Planning asks for it.
    await field.model._base_manager.all()._know()
    by_table = {*registry.layout_of(field.model).primary.partition.variables} <= {field.attname}
    for queryset in found_by(field, way.old, always=always):
        if by_table:
            queryset = queryset.using_index("primary").consistent()
        async with aclosing(each_of(queryset._pages())) as reading:
            while some := await some_of(reading, MAX_ACTIONS):
                yield some


async def is_left(way: Way, steps: Sequence[Follower]) -> bool:
    """Whether something refers still to what has moved: an index did not show it yet, or it was created meanwhile."""
    moved = (step for step in steps if step.moves)
    for each in (way, *(Way.of(type(step.obj), step.old, step.new, {}) for step in moved)):
        async with aclosing(_all_referring(each)) as found:
            async for field, some in found:
                if await _still_referring(field, each.old, some):
                    return True
    return False


async def _still_referring(field: Any, old: object, some: Sequence[Any]) -> list[object]:
    """Those of some objects that refer to an identity, as the table has them: an index may be behind."""
    everything = field.model._base_manager.order_by().with_visibility("all")
    fresh = await everything.filter(pk__in=[obj.pk for obj in some]).consistent()._read()
    return [obj for obj in fresh if getattr(obj, field.attname) == old]


async def mark(obj: Any, marked: Mapping[str, Any]) -> None:
    """Put the mark of a move on an object that has moved already: one UpdateItem."""
    before = obj._stored
    after = {**before, **marked}
    update = Update(key_of(before), set=dict(marked), condition=ITEM_EXISTS)
    transition = Transition(Subject(obj), before, after, frozenset(marked))
    await send.send_write(obj, Write(transition, type(obj)._options.alias, (update,), WriteConditions()))
    obj._stored = after


# one transaction after the other


class Following:
    """Letting follow what refers to an object that has moved, and bears the mark of the identity that it had.

    In memory are a hundred objects, and the identities of those that moved themselves and have others below them.
    """

    def __init__(self, obj: Any) -> None:
        self.obj = obj
        self.mark = obj._stored[names.MOVED_FROM]
        field = obj._meta.pk
        old = self.mark["S"] if isinstance(field, IdentityField) else field.attribute.from_attribute_value(self.mark)
        self.way = Way.of(type(obj), old, obj.pk, {})
        self.key = key_of(obj._stored)

    async def carry_out(self, *, again: bool) -> None:
        """Go through all that refers to what has moved, until nothing does; ``again`` if others have begun it.

        Raises ``StaleObject`` where the object is moved or deleted meanwhile, or there is another one in its old place.
        """
        ways = [self.way]
        if again:
            for way in ways:
                async for more in self._moved_before(way):
                    ways.append(more)
        for _ in range(ATTEMPTS):
            count = 0
            for way in ways:
                async with aclosing(_all_referring(way)) as found:
                    async for field, some in found:
                        count += await self._follow(way, field, some, ways)
            if not count:
                await self._finish()
                return
        raise StaleObject(
            f"{Subject(self.obj).name} has moved, and objects that refer to {self.way.shown} are still being created. "
            "Let whoever creates them know; move_tree() goes on then."
        )

    async def _moved_before(self, way: Way) -> AsyncGenerator[Way, None]:
        """The ways of those that followed in an earlier run, and have others below them that may not have."""
        here = replace(way, old=way.new)
        for field, always in references_to(way.model):
            model = field.model
            if field.attname not in model._identity or not any(references_to(model)):
                continue
            async with aclosing(_referring(here, field, always)) as found:
                async for some in found:
                    for obj in some:
                        held = {name: obj.__dict__[name] for name in model._identity}
                        yield Way.of(model, pk_of(model, {**held, field.attname: way.old}), obj.pk, way.marks)

    async def _follow(self, way: Way, field: ModelField, some: Sequence[Any], ways: list[Way]) -> int:
        """Write some objects; how many there were. Those that another writer changes, and those that an index shows as
        they were, are read again."""
        for attempt in range(ATTEMPTS):
            if attempt:
                # What an index shows may have followed already.
                some = await _still_referring(field, way.old, some)
            steps = followers(way, field, some, left=True)
            same_table = field.model._options.alias == self.way.model._options.alias
            try:
                await Cascade(steps, self._guards() if same_table else ()).send(None)
            except StaleObject as error:
                await self._check()
                if attempt == ATTEMPTS - 1:
                    # Of what is copied, too: the object itself has moved, and is not to be moved again.
                    raise StaleObject(f"{error} {Subject(self.obj).name} has moved; move_tree() goes on.") from error
            else:
                known = {(each.model, each.old) for each in ways}
                more = [Way.of(type(step.obj), step.old, step.new, way.marks) for step in steps if step.moves]
                ways += [
                    each for each in more if (each.model, each.old) not in known and any(references_to(each.model))
                ]
                return len(steps)
        return 0

    def _guards(self) -> list[Entry]:
        """That the object is where it moved to, under the same mark, and nobody where it was."""
        there = Check(self.key, Stored(names.MOVED_FROM, "=", (self.mark,)))
        gone = Check(key_of_pk(self.way.model, self.way.old), ITEM_MISSING)
        return [cascade.guard(Subject(self.obj).name, check, self._explained) for check in (there, gone)]

    def _explained(self, action: Action, found: Item | None) -> Exception:
        name, old = Subject(self.obj).name, self.way.shown
        if action.key == self.key:
            return StaleObject(f"{name} was moved, deleted or completed by another writer while others followed it.")
        return StaleObject(
            f"{name} has moved, and there is another object under its old identity {old}: nobody can tell whose the "
            "objects are that refer to it. Move or delete that one, and call move_tree() again."
        )

    async def _check(self) -> None:
        """Raise what a guard would, before others are read again."""
        block = Block(alias=self.way.model._options.alias, entries=self._guards())
        await send.send_block(block)

    async def _finish(self) -> None:
        """Take the mark away: one UpdateItem. Counts are read again, since others have changed them."""
        obj, before = self.obj, self.obj._stored
        after = {name: value for name, value in before.items() if name != names.MOVED_FROM}
        conditions = WriteConditions(as_read=(Stored(names.MOVED_FROM, "=", (self.mark,)),))
        update = Update(self.key, remove=(names.MOVED_FROM,), condition=conditions.whole())
        transition = Transition(Subject(obj), before, after, frozenset({names.MOVED_FROM}))
        await send.send_write(obj, Write(transition, type(obj)._options.alias, (update,), conditions))
        obj._stored = after
        await read_counts(obj)


async def read_counts(obj: DynamoModel) -> None:
    """Bring an object's counts up to date, if it has any, which others changed: one GetItem."""
    if own_counters(type(obj)):
        fresh = await decode.reloaded(obj)
        decode.follow(obj, fresh, ())


async def complete(obj: Any) -> None:
    """Let follow what an interrupted move of an object has left, if its item says that it has left anything."""
    if obj._stored is not None and names.MOVED_FROM in obj._stored:
        await Following(obj).carry_out(again=True)


def mark_of(obj: DynamoModel) -> dict[str, object]:
    """What an item says that its object had as its identity."""
    field: Any = obj._meta.pk
    if isinstance(field, IdentityField):
        return {"S": obj.pk}
    found: dict[str, Any] = field.attribute.to_attribute_value(field.attribute.prepare(obj.pk))
    return found
