"""Counters of children: what is added to a parent's counter when a child is written.

The sum is in the child's own transaction, so that a counter is exact however many write at once. This module compares
items; only what counts again reads.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache, partial
from hashlib import blake2b
from typing import Any, Final

from msgspec import Struct

from dynamo_single.exceptions import DynamoSingleError, MissingReference, NoAccessPattern, SourceChanged
from dynamo_single.orm.conditions.matching import matches
from dynamo_single.orm.conditions.terms import EVERYTHING, Condition, Stored, join, names_in
from dynamo_single.orm.effects import send
from dynamo_single.orm.effects.base import Along, Conditions, Effect, Subject, Transition, standing
from dynamo_single.orm.effects.write import Write
from dynamo_single.orm.items.encode import key_of_pk
from dynamo_single.orm.requests.actions import ITEM_EXISTS, ITEM_MISSING, Action, Check, Item, ItemKey, Update, key_of
from dynamo_single.orm.requests.atomic_block import Block
from dynamo_single.orm.requests.updates import as_stored
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.attributes import CounterAttribute
from dynamo_single.orm.schema.identities import some_value_of
from dynamo_single.orm.schema.references import Children, checked, count_name, leading
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.orm.where import declared
from dynamo_single.table import masking, names
from dynamo_single.table.table import get_table

#: After how many seconds an index shows a write: "within a fraction of a second, under normal conditions", AWS
#: developer guide, "Data synchronization between tables and global secondary indexes".
LAG: Final = 1.0
#: What a checked reference asks of the item that it leads to.
ITEM_LIVE = join((ITEM_EXISTS, Stored(names.DELETED_AT, "missing")))


class Counted(Struct, frozen=True):
    """One number that follows from a model's objects: which other model has it, under which physical name, and by which
    reference of theirs. Only those count that meet the ``condition``, which is in stored names."""

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
        """What decides whether an object counts, if not every live one does."""
        if self.condition == EVERYTHING:
            return frozenset()
        return frozenset({self.reference, *names_in(self.condition)})


#: By the key of a parent and the physical name of its counter, what is to be added.
Sums = dict[ItemKey, dict[str, int]]


class Counters(Effect):
    """The counters of other models that count one model's objects."""

    def __init__(self, model: type[DynamoModel]) -> None:
        self.model = model
        self.references = frozenset(references(model))
        self.decided = tuple(each.conditional for each in counted(model) if each.conditional)
        counting = (each.reference for each in counted(model))
        self.watches = frozenset({names.DELETED_AT, *counting}).union(*self.decided)

    async def follow(self, transition: Transition) -> Along:
        """What is to be added where; without reading."""
        before, after = transition.before, transition.after
        as_read = set(self.references & transition.written)
        if before is not None and after is None:
            as_read = {*self.references, *standing(self.model, before)}
        elif names.DELETED_AT in transition.written:
            as_read = set(self.references)
        for deciding in self.decided:
            if before is not None and (after is None or transition.written & {*deciding, names.DELETED_AT}):
                as_read |= deciding
        live = set() if transition.lenient else entered(self.model, before, after)
        found = tuple(actions(self.model, before, after, transition.absent, live))
        return Along(found, frozenset(as_read), explain=partial(_explained, transition))

    def can_lack(self, transition: Transition, key: ItemKey) -> bool:
        """A parent that only loses children needs no counting."""
        return is_left(self.model, transition.before, transition.after, key)


def _explained(transition: Transition, action: Action, found: Item | None) -> Exception | None:
    subject = transition.subject
    key = masking.key_text(subject.model._options.alias, action.key)
    comes_to = action.key in entered(subject.model, transition.before, transition.after)
    if found and names.DELETED_AT in found and comes_to:
        return MissingReference(
            f"{subject.name} refers to an object in the trash, {key}; nothing was "
            "written. Restore that one first, or refer to another object.",
            key=action.key,
        )
    if action.key in transition.absent and isinstance(action, Check):
        return SourceChanged(f"{subject.name}: an object that counts it, and was gone, is there again.")
    if found or action.key not in sums(subject.model, transition.before, transition.after):
        return None
    by = "refers to" if comes_to else "is counted by"
    way = "Create that one first, or refer to another object."
    if transition.pending is not None and is_left(subject.model, transition.before, transition.after, action.key):
        way = "Write it outside the atomic() block, where an object that is gone has nothing to count."
    return MissingReference(
        f"{subject.name} {by} an object that is not stored, {key}; nothing was written. {way}",
        key=action.key,
    )


def counted(model: type[DynamoModel]) -> tuple[Counted, ...]:
    """The counters of other models that count this one's objects, and the counts of its references that are checked."""
    return _counted(model._meta.concrete_model, registry.generation)


@lru_cache(maxsize=1024)
def _counted(model: type[DynamoModel], generation: int) -> tuple[Counted, ...]:
    # Also of another generation, where what a condition asks for is being renamed.
    own = (each for each in leading(model) if each[1].attribute.checked)
    found = [Counted(target, count_name(field), field) for target, field in own]
    for parent in registry.all_models():
        for counter in registry.counters_of(parent):
            children = getattr(parent, counter.children)
            if children.model._meta.concrete_model is model:
                condition = declared.read_declared(model, counter.condition)
                found.append(Counted(parent, counter.attr_name, children.field, condition))
    return tuple(found)


def references(model: type[DynamoModel]) -> set[str]:
    """The physical names of the references that say where an object is counted, but for those that never change."""
    return {each.reference for each in counted(model) if each.field.attname not in model._identity}


def sums(model: type[DynamoModel], before: Item | None, after: Item | None) -> Sums:
    """What is to be added where, when one item becomes the other; ``None`` is one that is not there."""
    found: Sums = {}
    for item, step in ((before, -1), (after, 1)):
        for each, key in () if item is None else counting(model, item):
            at = found.setdefault(key, {})
            at[each.name] = at.get(each.name, 0) + step
    changed = {key: {name: number for name, number in at.items() if number} for key, at in found.items()}
    return {key: at for key, at in changed.items() if at}


def counting(model: type[DynamoModel], item: Item) -> Iterator[tuple[Counted, ItemKey]]:
    """What counts an item as it is, and the key of each parent; nothing counts what is in the trash."""
    if names.DELETED_AT in item:
        return
    for each in counted(model):
        stored = item.get(each.reference)
        if stored is not None and (each.condition == EVERYTHING or matches(each.condition, item)):
            yield each, key_of_pk(each.parent, each.field.attribute.from_attribute_value(dict(stored)))


def entered(model: type[DynamoModel], before: Item | None, after: Item | None) -> set[ItemKey]:
    """The keys of the objects that an item comes to refer to by a reference which is checked: they must be live.

    What comes back from the trash did so before.
    """
    if after is None or (before is not None and names.DELETED_AT in before):
        return set()
    found = set()
    for each in counted(model):
        name, attribute = each.reference, each.field.attribute
        if attribute.checked and name in after and (before or {}).get(name) != after[name]:
            found.add(key_of_pk(each.parent, attribute.from_attribute_value(dict(after[name]))))
    return found


def actions(
    model: type[DynamoModel],
    before: Item | None,
    after: Item | None,
    absent: Collection[ItemKey] = (),
    live: Collection[ItemKey] = (),
) -> list[Action]:
    """The sums as actions, which take away the mark of a migration that counts.

    A parent has to be there, out of the trash if it has to be ``live``, or not to be there if it is known to be
    ``absent``.
    """
    return [
        Check(key, ITEM_MISSING) if key in absent else _addition(key, at, ITEM_LIVE if key in live else ITEM_EXISTS)
        for key, at in sums(model, before, after).items()
    ]


def _addition(key: ItemKey, at: Mapping[str, int], condition: Condition) -> Update:
    numbers = {name: {"N": str(number)} for name, number in at.items()}
    return Update(key, remove=(names.COUNTING,), add=numbers, condition=condition)


def is_left(model: type[DynamoModel], before: Item | None, after: Item | None, key: ItemKey) -> bool:
    """Whether a parent only loses children, so that one which is not there any more needs no counting."""
    return all(number < 0 for number in sums(model, before, after).get(key, {"": 0}).values())


#: What an object counts: the physical name of the number, the children, and which of them count.
OnParent = tuple[str, Children, Any]


def counters_on(model: type[DynamoModel]) -> list[OnParent]:
    """What an object counts: declared counters, and the references to it that are checked."""
    declared = [(each.attr_name, getattr(model, each.children), each.condition) for each in registry.counters_of(model)]
    return [*declared, *((name, children, None) for name, children in checked(model))]


async def count(children: Children, pk: object, condition: Any = None) -> int:
    """How many live children an object has for a counter: one COUNT Query for each megabyte of them."""
    # Planning asks for it.
    await children.model._base_manager.all()._know()
    queryset = live_children(children, pk)
    found: int = await (queryset if condition is None else queryset.filter(condition))._count()
    return found


def problem(counter: CounterAttribute) -> tuple[str, str] | None:
    """Why a counter cannot count, and what can be done about it; ``None`` if it can."""
    model = counter.field.model
    children = getattr(model, counter.children, None)
    if not isinstance(children, Children):
        return "the model has no such Children.", f'Declare {counter.children} = models.Children("...").'
    if model.derived_by:
        return (
            f"{model._meta.label} objects follow from others, and are written whole whenever those change.",
            "Count at the object that they follow from.",
        )
    child = children.model
    if child._options.alias != model._options.alias:
        return f"{child._meta.label} is in another table.", "One transaction has one table: use the same."
    if registry.layout_of(child).expires is not None:
        return (
            f"{child._meta.label} objects expire, and nothing is written when DynamoDB deletes them.",
            f"Count them when it is needed: {counter.children}.count() is a Query.",
        )
    try:
        live_children(children, some_value_of(children.field.attribute))
    except NoAccessPattern as error:
        return str(error), f"Add a key whose partition is made of {{{children.field.attname}}} alone."
    try:
        declared.read_declared(child, counter.condition)
    except DynamoSingleError as error:
        return (
            f"the condition cannot be asked of {child._meta.label}. {error}",
            "Compare its own attributes with values.",
        )
    return None


class Seen(Struct, frozen=True):
    """Which live children an object had: how many, and a digest of their keys in any order."""

    number: int
    digest: int


async def seen(children: Children, pk: object, condition: Any = None) -> Seen:
    """Which live children an object has for a counter: one Query for each megabyte of them; none is kept.

    What a number lacks is known by two that are equal, at least ``lag()`` apart, with the same number read after the
    first and before the second: nobody came or went meanwhile, so that both are of one moment. Equal numbers of
    children would not do, as one may have come when another went.
    """
    await children.model._base_manager.all()._know()
    queryset = live_children(children, pk)
    found, digest = 0, 0
    async for page in (queryset if condition is None else queryset.filter(condition)).values_list("pk")._pages():
        for row in page:
            found += 1
            digest += int.from_bytes(blake2b(repr(row).encode(), digest_size=16).digest())
    return Seen(found, digest % 2**128)


def lag(children: Children) -> float:
    """After how many seconds what counts the children shows a write: 0 where no index does, or a local engine answers.

    Raises ``NoAccessPattern`` and ``KeyNotFilled`` as planning does.
    """
    is_local = get_table(children.model._options.alias).settings.is_local
    return LAG if not is_local and is_by_index(children) else 0.0


async def send_count(obj: DynamoModel, name: str, number: int, pending: Block | None) -> None:
    """Set a counter that is as the object was read: one UpdateItem; raises ``StaleObject`` if it was counted since."""
    before, value = obj._stored, {"N": str(number)}
    conditions = Conditions(as_read=(as_stored(before, name),))
    update = Update(key_of(before), set={name: value}, condition=conditions.whole())
    transition = Transition(Subject(obj), before, {**before, name: value}, frozenset({name}), pending)
    await send.deliver(obj, Write(transition, type(obj)._options.alias, (update,), conditions))
    know(obj, name, number)


def know(obj: DynamoModel, name: str, number: int) -> None:
    """Let an object know the number that it has under a physical name."""
    obj._stored = {**obj._stored, name: {"N": str(number)}}
    for attribute in registry.counters_of(type(obj)):
        if attribute.attr_name == name:
            obj.__dict__[attribute.name] = number


def is_by_index(children: Children) -> bool:
    """Whether an index gives the live children of an object; raises ``NoAccessPattern`` where nothing does."""
    key = live_children(children, some_value_of(children.field.attribute))._plan(ordered=False).key
    return key is None or key.index is not None


def live_children(children: Children, pk: object) -> Any:
    """The live children of the object with a ``pk``, whatever a manager of theirs leaves out; from the table itself if
    that has a key for them."""
    queryset = children.model._base_manager.with_visibility("live").filter(**{children.field.attname: pk})
    plan = queryset._plan(ordered=False)
    return queryset.consistent() if plan.key is not None and plan.key.index is None else queryset
