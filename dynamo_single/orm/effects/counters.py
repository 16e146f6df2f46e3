"""Counters of children: update a parent's counter with each write of a child, and count the children of an object.

The update is in the transaction of the child, so that a counter is exact with any number of concurrent writers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import aclosing
from functools import partial
from hashlib import blake2b
from typing import Any, Final

from msgspec import Struct

from dynamo_single.exceptions import DynamoSingleError, MissingReference, NoAccessPattern, SourceChanged
from dynamo_single.orm.conditions.matching import matches
from dynamo_single.orm.conditions.terms import EVERYTHING, Condition, Stored, join, names_in
from dynamo_single.orm.effects import send
from dynamo_single.orm.effects.base import Effect, SideWrites, Subject, Transition, WriteConditions, liveness_names
from dynamo_single.orm.effects.referrers import ReferrerQuery
from dynamo_single.orm.effects.write import Write
from dynamo_single.orm.items.encode import key_of_pk
from dynamo_single.orm.requests.actions import ITEM_EXISTS, ITEM_MISSING, Action, Check, Item, ItemKey, Update, key_of
from dynamo_single.orm.requests.atomic_block import Block
from dynamo_single.orm.requests.updates import as_stored
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.attributes import CounterAttribute
from dynamo_single.orm.schema.bindings import ModelBinding, fact
from dynamo_single.orm.schema.identities import example_value_of
from dynamo_single.orm.schema.references import Children, checked_references, count_name, referenced_models
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.orm.where import declared_conditions
from dynamo_single.table import names
from dynamo_single.table.flow import flatten
from dynamo_single.table.shown_keys import key_text
from dynamo_single.table.table import get_table

#: After how many seconds an index shows a write: "within a fraction of a second, under normal conditions", AWS
#: developer guide, "Data synchronization between tables and global secondary indexes".
LAG: Final = 1.0
#: The condition of a checked reference on its target.
ITEM_LIVE = join((ITEM_EXISTS, Stored(names.DELETED_AT, "missing")))


class ParentCounter(Struct, frozen=True):
    """A number that counts one model's objects: ``parent`` has it under the physical ``name``, and ``field`` is the
    reference to that. Only objects that meet the ``condition``, in physical names, are counted."""

    parent: Any
    name: str
    field: Any
    condition: Condition = EVERYTHING

    @property
    def reference(self) -> str:
        """The physical name of the reference."""
        found: str = self.field.attribute.attr_name
        return found

    @property
    def conditional(self) -> frozenset[str]:
        """The physical names that decide whether a live object counts; empty if all count."""
        if self.condition == EVERYTHING:
            return frozenset()
        return frozenset({self.reference, *names_in(self.condition)})


#: The number to add, by the key of a parent and the physical name of its counter.
Sums = dict[ItemKey, dict[str, int]]


class Counters(Effect):
    """Updates the counters of other models that count one model's objects."""

    def __init__(self, model: type[DynamoModel]) -> None:
        self.model = model
        self.references = frozenset(counted_references(model))
        self.decided = tuple(each.conditional for each in parent_counters(model) if each.conditional)
        counting = (each.reference for each in parent_counters(model))
        self.watches = frozenset({names.DELETED_AT, *counting}).union(*self.decided)

    async def side_writes(self, transition: Transition) -> SideWrites:
        """Return the updates of the parents' counters; it does not read."""
        before, after = transition.before, transition.after
        as_read = set(self.references & transition.written_names)
        if before is not None and after is None:
            as_read = {*self.references, *liveness_names(self.model, before)}
        elif names.DELETED_AT in transition.written_names:
            as_read = set(self.references)
        for deciding in self.decided:
            if before is not None and (after is None or transition.written_names & {*deciding, names.DELETED_AT}):
                as_read |= deciding
        live = set() if transition.lenient else new_parents(self.model, before, after)
        found = tuple(counter_actions(self.model, before, after, transition.missing_parents, live))
        return SideWrites(found, frozenset(as_read), explain=partial(_refusal_error, transition))

    def can_omit(self, transition: Transition, key: ItemKey) -> bool:
        """Return whether a parent only loses children: a missing parent needs no update then."""
        return only_loses_children(self.model, transition.before, transition.after, key)


def _refusal_error(transition: Transition, action: Action, found: Item | None) -> Exception | None:
    subject = transition.subject
    key = key_text(subject.model._options.alias, action.key)
    comes_to = action.key in new_parents(subject.model, transition.before, transition.after)
    if found and names.DELETED_AT in found and comes_to:
        return MissingReference(
            f"{subject.name} refers to an object in the trash, {key}. Nothing was written. Restore that "
            "object first, or refer to another object.",
            key=action.key,
        )
    if action.key in transition.missing_parents and isinstance(action, Check):
        return SourceChanged(f"{subject.name}: an object that counts it, and was gone, is there again.")
    if found or action.key not in counter_sums(subject.model, transition.before, transition.after):
        return None
    by = "refers to" if comes_to else "is counted by"
    way = "Create that object first, or refer to another object."
    if transition.pending is not None and only_loses_children(
        subject.model, transition.before, transition.after, action.key
    ):
        way = "Write it outside the atomic() block: a deleted object has no counter to change."
    return MissingReference(
        f"{subject.name} {by} an object that is not stored, {key}. Nothing was written. {way}",
        key=action.key,
    )


def parent_counters(model: type[DynamoModel]) -> tuple[ParentCounter, ...]:
    """Return the counters of other models that count this one's objects, and the counts of its checked references."""
    concrete: Any = model._meta.concrete_model
    return _parent_counters(concrete)


@fact
def _parent_counters(binding: ModelBinding) -> tuple[ParentCounter, ...]:
    model = binding.model
    own = (each for each in referenced_models(model) if each[1].attribute.checked)
    found = [ParentCounter(target, count_name(field), field) for target, field in own]
    for parent in registry.all_models():
        for counter in registry.counters_of(parent):
            children = getattr(parent, counter.children)
            if children.model._meta.concrete_model is model:
                condition = declared_conditions.read_declared(model, counter.condition, binding.layout)
                found.append(ParentCounter(parent, counter.attr_name, children.field, condition))
    return tuple(found)


def counted_references(model: type[DynamoModel]) -> set[str]:
    """Return the physical names of the counted references, except those that never change."""
    return {each.reference for each in parent_counters(model) if each.field.attname not in model._identity}


def counter_sums(model: type[DynamoModel], before: Item | None, after: Item | None) -> Sums:
    """Return the amounts to add to each parent when ``before`` becomes ``after``; ``None`` is a missing item."""
    found: Sums = {}
    for item, step in ((before, -1), (after, 1)):
        for each, key in () if item is None else counting_parents(model, item):
            at = found.setdefault(key, {})
            at[each.name] = at.get(each.name, 0) + step
    changed = {key: {name: number for name, number in at.items() if number} for key, at in found.items()}
    return {key: at for key, at in changed.items() if at}


def counting_parents(model: type[DynamoModel], item: Item) -> Iterator[tuple[ParentCounter, ItemKey]]:
    """Yield the counters that count an item, each with the key of the parent; none for an item in the trash."""
    if names.DELETED_AT in item:
        return
    for each in parent_counters(model):
        stored = item.get(each.reference)
        if stored is not None and (each.condition == EVERYTHING or matches(each.condition, item)):
            yield each, key_of_pk(each.parent, each.field.attribute.from_attribute_value(dict(stored)))


def new_parents(model: type[DynamoModel], before: Item | None, after: Item | None) -> set[ItemKey]:
    """Return the keys of the objects that an item newly refers to by a checked reference: they must be live.

    A restored item has no new ones.
    """
    if after is None or (before is not None and names.DELETED_AT in before):
        return set()
    found = set()
    for each in parent_counters(model):
        name, attribute = each.reference, each.field.attribute
        if attribute.checked and name in after and (before or {}).get(name) != after[name]:
            found.add(key_of_pk(each.parent, attribute.from_attribute_value(dict(after[name]))))
    return found


def counter_actions(
    model: type[DynamoModel],
    before: Item | None,
    after: Item | None,
    absent: Collection[ItemKey] = (),
    live: Collection[ItemKey] = (),
) -> list[Action]:
    """Return the updates of the parents' counters, which also remove the marker of a recount.

    They are conditional on the parent: it must exist, must not be in the trash if it is in ``live``, and must be
    missing if it is in ``absent``.
    """
    return [
        Check(key, ITEM_MISSING) if key in absent else _addition(key, at, ITEM_LIVE if key in live else ITEM_EXISTS)
        for key, at in counter_sums(model, before, after).items()
    ]


def _addition(key: ItemKey, at: Mapping[str, int], condition: Condition) -> Update:
    numbers = {name: {"N": str(number)} for name, number in at.items()}
    return Update(key, remove=(names.COUNTING,), add=numbers, condition=condition)


def only_loses_children(model: type[DynamoModel], before: Item | None, after: Item | None, key: ItemKey) -> bool:
    """Return whether a parent only loses children, so that a missing parent needs no update."""
    return all(number < 0 for number in counter_sums(model, before, after).get(key, {"": 0}).values())


class ChildrenSnapshot(Struct, frozen=True):
    """The live children of an object at one time: their number, and a digest of their keys in any order.

    Two equal snapshots, at least ``CountTarget.index_lag()`` apart, show that the set of children did not change
    between them, so the app can compare a number from that time with them. Equal numbers of children are not enough,
    since one child may have replaced another.
    """

    number: int
    digest: int


class CountTarget(Struct, frozen=True):
    """The number under a physical ``name`` of a ``model``: it counts live ``children`` that meet a ``condition``."""

    model: type[DynamoModel]
    name: str
    children: Any
    condition: Any = None

    def held(self, item: Item) -> int:
        """Return the number that an item has."""
        return int(item.get(self.name, {"N": "0"})["N"])

    async def count(self, pk: object) -> int:
        """Return the number of children of an object: one COUNT Query for each megabyte of them."""
        found: int = await (await self._live_children(pk))._count()
        return found

    async def snapshot(self, pk: object) -> ChildrenSnapshot:
        """Return a snapshot of the children: one Query for each megabyte of them; none stays in memory."""
        queryset = await self._live_children(pk)
        found, digest = 0, 0
        async with aclosing(flatten(queryset.values_list("pk")._pages())) as rows:
            async for row in rows:
                found += 1
                digest += int.from_bytes(blake2b(repr(row).encode(), digest_size=16).digest())
        return ChildrenSnapshot(found, digest % 2**128)

    def index_lag(self) -> float:
        """Return the seconds after which a snapshot includes a write: 0 without an index or on a local engine."""
        is_local = get_table(self.model._options.alias).settings.is_local
        return 0.0 if is_local or self.children.is_by_table else LAG

    async def _live_children(self, pk: object) -> Any:
        # The planner needs the state of migrations.
        await self.children.model._base_manager.all()._know()
        queryset = ReferrerQuery(self.children, "live").queryset([pk])
        return queryset if self.condition is None else queryset.filter(self.condition)


@fact
def own_counters(binding: ModelBinding) -> tuple[CountTarget, ...]:
    """Return the numbers that objects of a model have: declared counters, and counts of checked references."""
    model = binding.model
    own = ((each.attr_name, getattr(model, each.children), each.condition) for each in registry.counters_of(model))
    counts = ((name, children, None) for name, children in checked_references(binding))
    return tuple(CountTarget(model, *each) for each in (*own, *counts))


def counter_problem(counter: CounterAttribute) -> tuple[str, str] | None:
    """Return why a counter cannot count and how to fix this; ``None`` if it can."""
    model = counter.field.model
    children = getattr(model, counter.children, None)
    if not isinstance(children, Children):
        return "the model has no such Children.", f'Declare {counter.children} = models.Children("...").'
    if model.derived_by:
        return (
            f"{model._meta.label} objects are derived from others and are rewritten completely whenever those change.",
            "Declare the counter on the model that they are derived from.",
        )
    child = children.model
    if child._options.alias != model._options.alias:
        return f"{child._meta.label} is in another table.", "One transaction has one table: use the same."
    if registry.layout_of(child).expires is not None:
        return (
            f"{child._meta.label} objects expire, and DynamoDB does not update counters when it deletes expired items.",
            f"Count them when it is needed: {counter.children}.count() is a Query.",
        )
    try:
        ReferrerQuery(children, "live").queryset([example_value_of(children.field.attribute)])._plan()
    except NoAccessPattern as error:
        return str(error), f"Add a key whose partition is made of {{{children.field.attname}}} alone."
    try:
        declared_conditions.read_declared(child, counter.condition)
    except DynamoSingleError as error:
        return (
            f"the condition does not work for {child._meta.label}. {error}",
            "Compare its own attributes with values.",
        )
    return None


async def send_count(obj: DynamoModel, name: str, number: int, pending: Block | None) -> None:
    """Set a counter that is unchanged since the object was read: one UpdateItem; else raises ``StaleObject``."""
    before, value = obj._stored, {"N": str(number)}
    conditions = WriteConditions(as_read=(as_stored(before, name),))
    update = Update(key_of(before), set={name: value}, condition=conditions.request_condition())
    transition = Transition(Subject(obj), before, {**before, name: value}, frozenset({name}), pending)
    await send.send_write(obj, Write(transition, type(obj)._options.alias, (update,), conditions))
    set_known_count(obj, name, number)


def set_known_count(obj: DynamoModel, name: str, number: int) -> None:
    """Set the number that an object in memory has under a physical name."""
    obj._stored = {**obj._stored, name: {"N": str(number)}}
    for attribute in registry.counters_of(type(obj)):
        if attribute.attr_name == name:
            obj.__dict__[attribute.name] = number
