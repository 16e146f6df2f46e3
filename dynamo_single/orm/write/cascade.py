"""Find the objects that follow a deleted or restored object, and send the writes of all as one operation.

``Children(cascade=...)``, or the ``on_delete`` of their reference, selects the children. The writes are one transaction
if they fit, else several in order. This module does not depend on the change of an object, or on signals.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import aclosing, suppress
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from dynamo_single.exceptions import BeginAgain, MissingReference, SourceChanged
from dynamo_single.orm.conditions.matching import matches
from dynamo_single.orm.conditions.terms import EVERYTHING, Stored, join
from dynamo_single.orm.effects import send, trash_counts
from dynamo_single.orm.effects.all_effects import effects_of
from dynamo_single.orm.effects.base import NO_CONDITIONS, CallerConditions, Filling, Subject, filled_values
from dynamo_single.orm.effects.compose import compose, draft_of, taken
from dynamo_single.orm.effects.counters import Sums
from dynamo_single.orm.effects.referrers import ReferrerQuery
from dynamo_single.orm.effects.write import Write
from dynamo_single.orm.items import decode
from dynamo_single.orm.items.encode import Values
from dynamo_single.orm.requests.actions import Action, Check, Delete, Item, ItemKey, Put, Update, key_of
from dynamo_single.orm.requests.atomic_block import Block, Entry, Explain
from dynamo_single.orm.requests.compiler import compile_batches
from dynamo_single.orm.requests.updates import as_stored
from dynamo_single.orm.schema import bindings, registry
from dynamo_single.orm.schema.references import Children, cascading_children, cascading_to_trash
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.orm.write.save import SOURCE_ATTEMPTS, missing_parents, record_write
from dynamo_single.table import names
from dynamo_single.table.batches import RemainingItems, get_batches
from dynamo_single.table.request import MAX_ACTIONS, MAX_TRANSACTION_SIZE
from dynamo_single.table.table import get_table

#: The number of parents in one query of their children: DynamoDB compares with up to 100 values (AWS API reference,
#: Query).
PARENTS_AT_ONCE = 100
#: The maximum number of attempts if other processes change the objects in the meantime.
ATTEMPTS = 3
#: The seconds before the app reads an incomplete index again.
PAUSE = 0.2


class Operation(Struct, frozen=True):
    """The scope of a deletion or a restoration: which references it follows, and which of their objects it includes.

    ``follow`` returns the references to a model that the operation follows, and ``queries`` the queries of such a
    reference. ``protects`` returns whether an object with a protected reference prevents the deletion.
    """

    follow: Callable[[type[DynamoModel]], tuple[Children, ...]]
    queries: Callable[[Children], Sequence[ReferrerQuery]]
    protects: Callable[[Any], bool] | None = None

    async def below(
        self,
        roots: Sequence[DynamoModel],
        *,
        again: bool = False,
        block: Block | None = None,
        most: int | None = None,
    ) -> list[DynamoModel]:
        """Return all objects that follow some others, parents before their children, each once.

        One Query reads the kinds of children that are adjacent in a partition, and a separate Query each other kind,
        for a hundred parents at a time. ``again`` as in ``ReferrerQuery.belonging()``. All objects stay in memory. If a
        ``block`` has to write all of them, more than it has room for are not read: raises ``NotSupported``. If there
        are ``most`` or more, some may be missing.
        """
        if block is not None and block.limit is not None:
            most = block.limit + 1
        seen = {key_of(obj._stored) for obj in roots}
        found: list[Any] = []
        level: list[Any] = [*roots]
        while level and (most is None or block is not None or len(found) < most):
            following: list[Any] = []
            for model, pks in parents_of(level):
                queries = [query for children in self.follow(model) for query in self.queries(children)]
                following += await _read_together(queries, pks, again=again, most=most)
                if block is not None:
                    block.check_room({*seen, *(key_of(each._stored) for each in following)}, Subject(roots[0]).name)
            level = []
            for obj in following:
                key = key_of(obj._stored)
                if key not in seen:
                    seen.add(key)
                    level.append(obj)
            found += level
        return found


def parents_of(objects: Iterable[DynamoModel]) -> Iterator[tuple[type[DynamoModel], list[Any]]]:
    """Yield models with up to a hundred ``pk``s of their objects: as many as one query of referring objects takes."""
    by_model: dict[Any, list[Any]] = {}
    for obj in objects:
        by_model.setdefault(obj._meta.concrete_model, []).append(obj.pk)
    for model, pks in by_model.items():
        for start in range(0, len(pks), PARENTS_AT_ONCE):
            yield model, pks[start : start + PARENTS_AT_ONCE]


async def _read_together(
    queries: Sequence[ReferrerQuery], pks: Sequence[object], *, again: bool, most: int | None = None
) -> list[DynamoModel]:
    """Read the children of up to a hundred parents: by one Query if they are adjacent in the table.

    If there are ``most`` children or more, some may be missing.
    """
    querysets = [each.queryset(pks) for each in queries]
    by_table = [queryset for each, queryset in zip(queries, querysets, strict=True) if each.children.is_by_table]
    if len(by_table) > 1:
        await by_table[0]._read_with(by_table[1:], most)
    found: list[Any] = []
    for each, queryset in zip(queries, querysets, strict=True):
        if most is not None and queryset._result_cache is None:
            first = await queryset[:most]._read()
            some = await each.belonging(first, pks, again=again)
            # If some of the first ones do not belong to it, later ones may.
            if len(first) < most or len(some) == most:
                found += some
                continue
        found += await each.belonging(await queryset._read(), pks, again=again)
    return found


def every_query(children: Children) -> list[ReferrerQuery]:
    """Return the queries of the children of some parents, live and in the trash.

    As one query they would read all of the trash for each of the parents.
    """
    if children.is_by_table or not registry.has_soft_delete(children.model):
        return [ReferrerQuery(children)]
    return [ReferrerQuery(children, "live"), ReferrerQuery(children, "deleted")]


def live_queries(children: Children) -> list[ReferrerQuery]:
    """Return the query of the objects that are not in the trash."""
    return [ReferrerQuery(children, "live")]


#: A permanent deletion includes live objects and those in the trash.
DELETION = Operation(cascading_children, every_query)
#: Moving to the trash: it includes live objects whose model has a trash.
TRASH = Operation(cascading_to_trash, live_queries, lambda obj: names.DELETED_AT not in obj._stored)


def cascade_models(model: type[DynamoModel]) -> list[type[DynamoModel]]:
    """Return a model and the models whose objects its permanent deletion may include."""
    found = [model]
    for each in found:
        found += [child.model for child in cascading_children(each) if child.model not in found]
    return found


class Step:
    """The write of one object in an operation on several: sent by itself, in a block, or as a part of a cascade.

    It is conditional on the ``counters`` of the item that was ``read``, which are physical names.
    """

    #: The keys of objects that count the object and no longer exist.
    missing_parents: frozenset[ItemKey] = frozenset()
    #: Whether the result counts the object, and the app sends its signals.
    is_reported: bool = True
    counters: Sequence[str] = ()
    #: Whether the write also compares the counters if it is separate or joins a block.
    is_held_alone: bool = False

    def __init__(self, obj: DynamoModel, terms: CallerConditions = NO_CONDITIONS) -> None:
        self.obj = obj
        self.terms = terms
        self.read: Item = obj._stored

    async def compose(self, pending: Block | None) -> Write | None:
        """Return the write; ``pending`` contains the earlier writes. ``None`` if there is nothing to write."""
        raise NotImplementedError

    async def record_write(self, write: Write, stored: Item) -> None:
        """Update the object after its write."""
        await record_write(self.obj, write, stored)

    async def send(self, pending: Block | None) -> bool:
        """Send the write by itself, or add it to the block; return whether there was anything to write."""
        late = 0
        while True:
            begun, write = bindings.current(), await self.compose(pending)
            if begun is not bindings.current():
                continue  # it has former names or keys
            if write is None:
                return False
            if self.is_held_alone:
                write = replace(write, own_actions=self.with_counts(write.own_actions, {}))
            try:
                stored = await send.send_write(self.obj, write)
            except MissingReference as error:
                self.missing_parents = missing_parents(write, effects_of(type(self.obj)), error)
            except SourceChanged as error:
                late += 1  # compose it again from the current state
                if not isinstance(error.__cause__, BeginAgain) or late == SOURCE_ATTEMPTS:
                    raise
            else:
                await self.record_write(write, stored)
                return True

    def with_counts(self, actions: Iterable[Action], added: Sums) -> tuple[Action, ...]:
        """Return the actions; the action on the object's item is conditional on its counters.

        ``added`` contains the amounts that earlier transactions have added to them since the read.
        """
        if not self.counters:
            return tuple(actions)
        key = key_of(self.read)
        sums = added.get(key, {})
        held = [_count_condition(self.read, name, sums.get(name, 0)) for name in self.counters]
        return tuple(
            replace(each, condition=join((each.condition, *held)))
            if isinstance(each, Update | Delete) and each.key == key
            else each
            for each in actions
        )


class ReferenceStep(Step):
    """The change of references of one object, conditional on their values as read. It does not send signals."""

    is_reported = False

    def __init__(self, obj: Any, values: Values, absent: frozenset[ItemKey] = frozenset()) -> None:
        super().__init__(obj)
        self.values = values
        self.missing_parents = absent

    async def compose(self, pending: Block | None) -> Write | None:
        """Return the object's write, with the copies that depend on its references."""
        model, before, effects = type(self.obj), self.obj._stored, effects_of(type(self.obj))
        given, only = {**decode.values_of(model, before), **self.values}, frozenset(self.values)
        filling = Filling(Subject(self.obj), given, before, only, pending)
        values = {**self.values, **await filled_values(effects, filling)}
        attributes = registry.attributes_of(model)
        as_read = [as_stored(before, attributes[name].attr_name) for name in self.values]
        draft = replace(await draft_of(self.obj, values), computed=join(as_read))
        return await compose(self.obj, effects, draft, pending=pending, absent=self.missing_parents)


class _StepWrite(Struct, frozen=True, eq=False):
    """The write of one step, and its entry in a transaction."""

    step: Step
    write: Write
    entry: Entry

    def held(self, added: Sums) -> _StepWrite:
        """Return it conditional on the counters of its item; see ``Step.with_counts()``."""
        entry = replace(self.entry, actions=self.step.with_counts(self.entry.actions, added))
        return replace(self, entry=entry)


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
        """Send all steps; update each object after its write."""
        if pending is not None:
            await self._join(pending)
        elif len(self.steps) == 1 and not self.guards and not self.steps[0].counters:
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
        left = [*self.steps]
        while left:
            begun, collected = bindings.current(), Block()
            groups = [*self._groups(await self._composed(self.steps, collected))]
            if len(groups) > 1:
                return False
            if await self._send_groups(groups, collected, {}, left, begun):
                break
        return True

    async def _send_parts(self) -> None:
        added: Sums = {}
        callbacks: list[Callable[[], Coroutine[Any, Any, None]]] = []
        left = [*self.steps]
        while left:
            # The block collects the writes, so that each is composed on top of the earlier ones.
            begun, collected = bindings.current(), Block(callbacks=callbacks)
            parts = await self._composed(left, collected)
            groups = [*self._groups(parts)]
            if self.checks_first and len(groups) > 1:
                await self._ask(parts)
            try:
                if await self._send_groups(groups, collected, added, left, begun):
                    return
            except MissingReference as error:
                if not _omit_missing_parents(parts, error):
                    raise

    async def _send_groups(
        self,
        groups: Iterable[Sequence[_StepWrite]],
        collected: Block,
        added: Sums,
        left: list[Step],
        begun: bindings.Generation,
    ) -> bool:
        """Send transactions; return ``False`` if the caller has to compose the steps in ``left`` again.

        Between two transactions a migration may begin or end, and the next one would write former names or keys. While
        a migration is open, this reads the table's state as often as single writes do.
        """
        for group in groups:
            found = [await taken(model) for model in {type(part.step.obj) for part in group}]
            if begun is not bindings.current():
                return False
            held = [part.held(added) for part in group]
            block = self._block(held)
            block.lease = found[0].lease
            try:
                await send.send_block(block)
            except SourceChanged as error:
                if not isinstance(error.__cause__, BeginAgain):
                    raise
                return False
            _add_sums(added, held)
            self.done += [part.step.obj for part in held if part.step.is_reported]
            for part in held:
                left.remove(part.step)
                await part.step.record_write(part.write, part.write.stored_after(None))
        for callback in collected.callbacks:
            await callback()
        return True

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
        # Writes of one item, and a guard on a written item, are one action.
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
        """Before the first transaction, raise the error for an item to create whose key is taken."""
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
            part.step.missing_parents = missing_parents(part.write, effects_of(type(part.step.obj)), error)
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


def _count_condition(item: Item, name: str, added: int) -> Stored:
    """Return the condition that a number is unchanged since the read, apart from ``added`` of transactions."""
    if not added:
        return as_stored(item, name)
    return Stored(name, "=", ({"N": str(int(item.get(name, {"N": "0"})["N"]) + added)},))


def guard_entry(name: str, check: Check, explain: Explain) -> Entry:
    """Return the entry of a check that accompanies other objects' writes."""
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
