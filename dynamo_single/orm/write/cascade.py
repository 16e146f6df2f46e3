"""Find the children that are deleted or restored with an object, and send several objects' writes as one operation.

``Children(cascade=...)``, or the ``on_delete`` of their reference, selects the children. The writes are one transaction
if they fit, else several in order. This module does not depend on what is done to an object, or which signals follow.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from functools import partial
from itertools import groupby
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from dynamo_single.exceptions import MissingReference
from dynamo_single.orm.conditions.matching import matches
from dynamo_single.orm.conditions.terms import EVERYTHING, MAX_MEMBERS, Stored
from dynamo_single.orm.effects import send, trash_counts
from dynamo_single.orm.effects.all_effects import effects_of
from dynamo_single.orm.effects.base import NO_CONDITIONS, CallerConditions
from dynamo_single.orm.effects.counters import Sums
from dynamo_single.orm.effects.write import Write
from dynamo_single.orm.plan.plan import Visibility
from dynamo_single.orm.requests.actions import Action, Check, Item, ItemKey, Put, Update, key_of
from dynamo_single.orm.requests.atomic_block import Block, Entry, Explain
from dynamo_single.orm.requests.compiler import compile_batches
from dynamo_single.orm.requests.updates import as_stored
from dynamo_single.orm.schema.references import Children, cascading, cascading_to_trash
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.orm.write.save import absent_parents
from dynamo_single.table.batches import RemainingItems, get_batches
from dynamo_single.table.request import MAX_ACTIONS, MAX_TRANSACTION_SIZE
from dynamo_single.table.table import get_table

#: The number of parents in one query of their children: DynamoDB compares with up to 100 values (AWS API reference,
#: Query).
PARENTS_AT_ONCE = 100


class ChildQuery(Struct, frozen=True):
    """A query of children. ``still`` returns whether a child that an index returned belongs to it, given its stored
    item."""

    children: Any  # of the class Children, which a checker takes for a descriptor here
    visibility: Visibility
    conditions: Mapping[str, Any] = {}
    still: Callable[[Any], bool] | None = None

    def queryset(self, pks: Sequence[object]) -> Any:
        """Return the queryset of some parents' children: a consistent read of the table if that has their key, else an
        index."""
        name = self.children.field.attname
        given = {name: pks[0]} if len(pks) == 1 else {f"{name}__in": list(pks)}
        found = self._everything().with_visibility(self.visibility).filter(**given, **self.conditions)
        return found.using_index("primary").consistent() if self.children.is_by_table else found

    async def again(self, found: Sequence[DynamoModel], pks: Sequence[object]) -> list[DynamoModel]:
        """Read the children that an index returned from the table, since an index may be behind."""
        name = self.children.field.attname
        fresh: list[Any] = []
        for start in range(0, len(found), MAX_MEMBERS):
            some = [obj.pk for obj in found[start : start + MAX_MEMBERS]]
            fresh += await self._everything().filter(pk__in=some).consistent()._read()
        return [obj for obj in fresh if getattr(obj, name) in pks]

    def _everything(self) -> Any:
        # Without Meta.ordering, which no key may have.
        return self.children.model._base_manager.order_by()


ChildQueries = Callable[[Children], Iterable[ChildQuery]]


def cascade_children(model: type[DynamoModel], *, for_good: bool = False) -> tuple[Children, ...]:
    """Return the children that are deleted with objects of a model: with ``for_good`` all, else those with a trash."""
    return cascading(model) if for_good else cascading_to_trash(model)


def cascade_models(model: type[DynamoModel]) -> list[type[DynamoModel]]:
    """Return a model and the models whose objects may be deleted permanently with it."""
    found = [model]
    for each in found:
        found += [child.model for child in cascade_children(each, for_good=True) if child.model not in found]
    return found


async def descendants(
    root: DynamoModel,
    listings_of: ChildQueries,
    *,
    again: bool = False,
    for_good: bool = False,
    also: Sequence[DynamoModel] = (),
) -> list[DynamoModel]:
    """Return all children below an object and those in ``also``, parents before their children, each once.

    Kinds of children that are adjacent in a partition are read by one Query, each other kind by a separate one. With
    ``again`` children that an index returns are read from the table.
    """
    level = [root, *also]
    seen = {key_of(obj._stored) for obj in level}
    found: list[Any] = []
    while level:
        following: list[Any] = []
        for model, group in groupby(level, key=type):
            pks = [obj.pk for obj in group]
            listings = [
                each for children in cascade_children(model, for_good=for_good) for each in listings_of(children)
            ]
            for start in range(0, len(pks), PARENTS_AT_ONCE):
                following += await _children_of(listings, pks[start : start + PARENTS_AT_ONCE], again=again)
        level = []
        for obj in following:
            key = key_of(obj._stored)
            if key not in seen:
                seen.add(key)
                level.append(obj)
        found += level
    return found


async def _children_of(listings: Sequence[ChildQuery], pks: Sequence[object], *, again: bool) -> list[DynamoModel]:
    """Read the children of some parents."""
    querysets = [each.queryset(pks) for each in listings]
    by_table = [queryset for each, queryset in zip(listings, querysets, strict=True) if each.children.is_by_table]
    if len(by_table) > 1:
        await by_table[0]._read_with(by_table[1:])
    children: list[Any] = []
    for each, queryset in zip(listings, querysets, strict=True):
        found = await queryset._read()
        if again and found and not each.children.is_by_table:
            found = await each.again(found, pks)
        children += found if each.still is None else filter(each.still, found)
    return children


class Step:
    """The write of one object in an operation on several: sent by itself, in a block, or as a part of a cascade."""

    def __init__(self, obj: DynamoModel, terms: CallerConditions = NO_CONDITIONS) -> None:
        self.obj = obj
        self.terms = terms

    async def send(self, pending: Block | None) -> bool:
        """Send the write by itself, or add it to the block; return whether there was anything to write."""
        raise NotImplementedError

    async def compose(self, pending: Block) -> Write | None:
        """Return the write; ``pending`` contains those of earlier steps. ``None`` if there is nothing to write."""
        raise NotImplementedError

    async def remember(self, write: Write, stored: Item) -> None:
        """Update the object after its write."""
        raise NotImplementedError

    #: The keys of objects that count this one and do not exist any more.
    absent: frozenset[ItemKey] = frozenset()
    #: Whether its write depends on the counters of its item, which earlier steps change.
    counts: bool = False
    #: Whether the object is reported to the caller, and signals are sent for it.
    is_reported: bool = True

    def with_counts(self, entry: Entry, added: Sums) -> Entry:
        """Return the entry conditional on the counters as they were read; ``added`` contains what earlier transactions
        added."""
        return entry


class _StepWrite(Struct, frozen=True, eq=False):
    """The write of one step, and its entry in a transaction."""

    step: Step
    write: Write
    entry: Entry


class Cascade:
    """The writes of several objects: one transaction if they fit, else several in the order of the steps.

    - ``guards`` are checked with every transaction that does not write their item.
    - With ``checks_first`` conflicts with existing items are found before the first of several transactions.
    - Inside an ``atomic()`` block all writes join the block.
    - ``done`` contains the objects that are written, ``failed`` is the one that failed.
    """

    def __init__(self, steps: Sequence[Step], guards: Sequence[Entry] = (), *, checks_first: bool = False) -> None:
        self.steps = steps
        self.guards = guards
        self.checks_first = checks_first
        self.done: list[Any] = []
        self.failed: Any = None

    async def send(self, pending: Block | None) -> None:
        """Send all steps; each object is updated after its write is sent."""
        if pending is not None:
            await self._join(pending)
        elif len(self.steps) == 1 and not self.guards and not self.steps[0].counts:
            (step,) = self.steps
            self.failed = step.obj
            self.done += [step.obj] if await step.send(None) and step.is_reported else []
        elif self.steps:
            await self._send_parts()

    async def _join(self, block: Block) -> None:
        count = len(block.entries)
        try:
            written = {key_of(step.obj._stored) for step in self.steps}
            for guard in self.guards:
                if not any(action.key in written for action in guard.actions):
                    block.add(_alias(self.steps[0].obj), guard)
            with trash_counts.cached_roots(step.obj for step in self.steps):
                for step in self.steps:
                    self.done += [step.obj] if await step.send(block) and step.is_reported else []
        except BaseException:
            block.discard(count)
            self.done.clear()
            raise

    async def send_at_once(self) -> bool:
        """Send all steps as one transaction; return ``False`` without sending anything if they need several."""
        collected = Block()
        groups = [*self._groups(await self._composed(self.steps, collected))]
        if len(groups) > 1:
            return False
        await self._send_groups(groups, collected, {}, [*self.steps])
        return True

    async def _send_parts(self) -> None:
        added: Sums = {}
        callbacks: list[Callable[[], Coroutine[Any, Any, None]]] = []
        left = [*self.steps]
        while left:
            # It collects the writes, so that each is composed knowing those before it, and nothing is written twice.
            collected = Block(callbacks=callbacks)
            parts = await self._composed(left, collected)
            groups = [*self._groups(parts)]
            if self.checks_first and len(groups) > 1:
                await self._ask(parts)
            try:
                await self._send_groups(groups, collected, added, left)
                return
            except MissingReference as error:
                if not _omit_missing_parents(parts, error):
                    raise

    async def _send_groups(
        self, groups: Iterable[Sequence[_StepWrite]], collected: Block, added: Sums, left: list[Step]
    ) -> None:
        for group in groups:
            held = [replace(part, entry=part.step.with_counts(part.entry, added)) for part in group]
            await send.send_block(self._block(held))
            _add_sums(added, held)
            self.done += [part.step.obj for part in held if part.step.is_reported]
            for part in held:
                left.remove(part.step)
                await part.step.remember(part.write, part.write.stored_after(None))
        for callback in collected.callbacks:
            await callback()

    async def _composed(self, steps: Sequence[Step], collected: Block) -> list[_StepWrite]:
        parts = []
        with trash_counts.cached_roots(step.obj for step in steps):
            for step in steps:
                write = await step.compose(collected)
                if write is not None:
                    explain = partial(self._explained, step.obj, write.explain)
                    entry = replace(write.entry(_no_undo), explain=explain)
                    collected.add(write.alias, entry)
                    parts.append(_StepWrite(step, write, entry))
        return parts

    def _explained(self, obj: object, explain: Explain, action: Action, found: Item | None) -> Exception:
        self.failed = obj
        return explain(action, found)

    def _groups(self, parts: Sequence[_StepWrite]) -> Iterator[list[_StepWrite]]:
        """Yield as few transactions as contain the parts in their order; each part is checked once."""
        # What several do to one item is one action, and a guard on an item that is written is none of its own.
        guarded = {action.key for guard in self.guards for action in guard.actions}
        group: list[_StepWrite] = []
        keys, size = set(guarded), 0
        for each in parts:
            more, larger = {action.key for action in each.entry.actions}, each.entry.size
            if group and (size + larger > MAX_TRANSACTION_SIZE or len(keys | more) > MAX_ACTIONS):
                yield group
                group, keys, size = [], set(guarded), 0
            group.append(each)
            keys |= more
            size += larger
        if group:
            yield group

    def _block(self, group: Sequence[_StepWrite]) -> Block:
        block = Block(alias=_alias(self.steps[0].obj), entries=[part.entry for part in group])
        guards = [
            replace(guard, explain=partial(self._explained, None, guard.explain))
            for guard in self.guards
            # A counter of the guarded item goes together with its check.
            if not any(block.writes_to(action.key) for action in guard.actions)
        ]
        block.entries += guards
        return block

    async def _ask(self, parts: Sequence[_StepWrite]) -> None:
        """Raise the error for an item to create whose key is taken, before the first transaction is sent."""
        wanted = {
            action.key: (action, part.entry)
            for part in parts
            for action in part.entry.actions
            if isinstance(action, Put) and action.condition != EVERYTHING
        }
        for item in await self._stored(list(wanted)):
            action, entry = wanted[key_of(item)]
            if not matches(action.condition, item):
                raise entry.explain(action, item)

    async def _stored(self, keys: Sequence[ItemKey]) -> list[Item]:
        table = get_table(_alias(self.steps[0].obj))
        async with aclosing(get_batches(table, compile_batches(keys, table.name), RemainingItems(None))) as batches:
            return [item async for batch in batches for item in batch]


def _omit_missing_parents(parts: Sequence[_StepWrite], error: MissingReference) -> bool:
    """Let steps omit a missing parent that they only subtract from; return whether there is any."""
    lacking = False
    for part in parts:
        with suppress(MissingReference):
            part.step.absent = absent_parents(part.write, effects_of(type(part.step.obj)), error)
            lacking = True
    return lacking


def _add_sums(added: Sums, group: Sequence[_StepWrite]) -> None:
    """Add the amounts that one transaction added to counters."""
    for part in group:
        for action in part.entry.actions:
            for name, value in action.add.items() if isinstance(action, Update) else ():
                if "N" in value:
                    at = added.setdefault(action.key, {})
                    at[name] = at.get(name, 0) + int(value["N"])


def count_condition(item: Item, name: str, added: int) -> Stored:
    """Return the condition that a number is unchanged except for what transactions ``added`` since it was read."""
    if not added:
        return as_stored(item, name)
    return Stored(name, "=", ({"N": str(int(item.get(name, {"N": "0"})["N"]) + added)},))


def guard_entry(name: str, check: Check, explain: Explain) -> Entry:
    """Return the entry of a check that is sent with other objects' writes."""
    return Entry(lambda: name, (check,), (), explain, _no_undo)


def _no_undo() -> None:
    """Undo nothing: a check changes no object, and steps update theirs after the write."""


def _alias(obj: DynamoModel) -> str:
    alias: str = type(obj)._options.alias
    return alias


def deletion_counts(model: type[DynamoModel], objects: Sequence[DynamoModel]) -> tuple[int, dict[str, int]]:
    """Return the number of objects, and the number by model, as Django's ``delete()`` does."""
    found = {model._meta.label: 0}
    for obj in objects:
        label = obj._meta.label
        found[label] = found.get(label, 0) + 1
    return len(objects), found
