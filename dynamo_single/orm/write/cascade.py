"""What goes along with an object that is deleted or restored, and sending it: at once where it fits, else in order.

Which children go along says ``Children(cascade=...)``. This module must not know what is done to an object, nor which
signals follow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import Any

from dynamo_single.orm.conditions.matching import matches
from dynamo_single.orm.conditions.terms import EVERYTHING
from dynamo_single.orm.effects.sending import commit
from dynamo_single.orm.plan.plan import Visibility
from dynamo_single.orm.requests import block as pending
from dynamo_single.orm.requests.actions import Action, Check, Item, ItemKey, Put, key_of
from dynamo_single.orm.requests.block import Block, Explain, Write
from dynamo_single.orm.requests.compiler import item_key
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.children import Children, declared
from dynamo_single.orm.schema.encoding.values import item_size
from dynamo_single.table.batches import Wanted, get_batches
from dynamo_single.table.limits import MAX_ACTIONS, MAX_BATCH_KEYS, MAX_TRANSACTION_SIZE
from dynamo_single.table.request import Request
from dynamo_single.table.table import get_table

#: How many parents' children are asked for at once: DynamoDB compares with up to 100 values (AWS API reference, Query).
PARENTS_AT_ONCE = 100

ChildrenOf = Callable[[Children[Any], Sequence[Any]], Sequence[Any]]


def followers(model: Any, *, for_good: bool = False) -> tuple[Children[Any], ...]:
    """The children that go along: into the trash those that have one, ``for_good`` all that cascade."""
    return tuple(
        children
        for children in declared(model)
        if children.cascades and (for_good or registry.has_soft_delete(children.model))
    )


def parents(model: Any) -> Iterator[tuple[Any, Any]]:
    """The models whose deletion takes objects of this model along, each with the reference that leads there."""
    for parent in registry.all_models():
        if registry.has_soft_delete(parent):
            yield from ((parent, each.field) for each in followers(parent) if each.model is model)


def below(root: Any, children_of: ChildrenOf, *, for_good: bool = False) -> list[Any]:
    """All that goes along with an object, parents before their children, each once."""
    seen = {key_of(root._stored)}
    found: list[Any] = []
    level = [root]
    while level:
        following: list[Any] = []
        for model, group in groupby(level, key=type):
            pks = [obj.pk for obj in group]
            for children in followers(model, for_good=for_good):
                for start in range(0, len(pks), PARENTS_AT_ONCE):
                    following += children_of(children, pks[start : start + PARENTS_AT_ONCE])
        level = []
        for obj in following:
            key = key_of(obj._stored)
            if key not in seen:
                seen.add(key)
                level.append(obj)
        found += level
    return found


def listed(
    children: Children[Any], pks: Sequence[Any], visibility: Visibility, *, again: bool = False, **conditions: Any
) -> list[Any]:
    """The children of some parents: from the table, consistently, if their key is there, else from an index.

    ``again``: what an index gives is looked up in the table, since an index may be behind.
    """
    name = children.field.attname
    given = {name: pks[0]} if len(pks) == 1 else {f"{name}__in": list(pks)}
    everything = children.model._base_manager.get_queryset()
    queryset = everything.with_visibility(visibility).filter(**given, **conditions)
    if children.is_by_table:
        return list(queryset.using_index("primary").consistent())
    found = list(queryset)
    if not again or not found:
        return found
    fresh = everything.filter(pk__in=[obj.pk for obj in found]).consistent()
    return [obj for obj in fresh if getattr(obj, name) in pks]


@dataclass(frozen=True, slots=True)
class Step:
    """What is done to one object of several; ``write`` tells whether there was anything to do."""

    obj: Any
    write: Callable[[], bool]


class Cascade:
    """The writes of several objects: one transaction if they fit into one, else several in the order of the steps.

    ``guards`` are checked with every transaction that does not write their item. With ``ask_first`` what is to be made
    and cannot be is found out before the first of several transactions. Inside of an ``atomic()`` block everything
    joins the block. ``done`` are the objects that are written.
    """

    def __init__(self, steps: Sequence[Step], guards: Sequence[Write] = (), *, ask_first: bool = False) -> None:
        self.steps = steps
        self.guards = guards
        self.ask_first = ask_first
        self.done: list[Any] = []
        self.failed: Any = None
        self._unsent: list[Write] = []
        self._callbacks: list[Callable[[], Any]] = []

    def send(self) -> None:
        """Send everything; what was not sent when it fails is taken back from its objects."""
        block = pending.current()
        if block is not None:
            self._join(block)
        elif len(self.steps) == 1 and not self.guards:
            (step,) = self.steps
            self.failed = step.obj
            self.done += [step.obj] if step.write() else []
        elif self.steps:
            self._send_parts(self._collected())
            # What was left to the commit while the writes were collected, as by a handler of a signal.
            for callback in self._callbacks:
                callback()

    def _join(self, block: Block) -> None:
        count = len(block.writes)
        try:
            for guard in self.guards:
                block.add(_alias(self.steps[0].obj), guard)
            self.done += [step.obj for step in self.steps if step.write()]
        except BaseException:
            block.discard(count)
            self.done.clear()
            raise

    def _collected(self) -> list[tuple[Any, Write]]:
        """The writes of all steps, and whose they are."""
        block = Block()
        token = pending.enter(block)
        found: list[tuple[Any, Write]] = []
        try:
            for step in self.steps:
                count = len(block.writes)
                step.write()
                for write in block.writes[count:]:
                    explain = partial(self._explained, step.obj, write.explain)
                    found.append((step.obj, replace(write, explain=explain)))
        except BaseException:
            block.discard()
            raise
        finally:
            pending.leave(token)
        self._callbacks = block.callbacks
        return found

    def _explained(self, obj: Any, explain: Explain, action: Action, found: Item | None) -> Exception:
        # What is wrong with an object is told from what it was read as.
        self._take_back()
        self.failed = obj
        return explain(action, found)

    def _take_back(self) -> None:
        for write in reversed(self._unsent):
            write.undo()
        self._unsent = []

    def _send_parts(self, writes: list[tuple[Any, Write]]) -> None:
        self._unsent = [write for _, write in writes]
        try:
            parts = [*self._parts(writes)]
            if self.ask_first and len(parts) > 1:
                self._ask(self._unsent)
            for part in parts:
                commit(self._block([write for _, write in part]))
                del self._unsent[: len(part)]
                self.done += [obj for obj, _ in part]
        except BaseException:
            self._take_back()
            raise

    def _parts(self, writes: Sequence[tuple[Any, Write]]) -> Iterator[list[tuple[Any, Write]]]:
        part: list[tuple[Any, Write]] = []
        for each in writes:
            if part and not self._fits([write for _, write in (*part, each)]):
                yield part
                part = []
            part.append(each)
        if part:
            yield part

    def _fits(self, writes: Sequence[Write]) -> bool:
        size = sum(max(map(item_size, write.touched), default=0) for write in writes)
        return size <= MAX_TRANSACTION_SIZE and len(self._block(writes).actions()) <= MAX_ACTIONS

    def _block(self, writes: Sequence[Write]) -> Block:
        block = Block(alias=_alias(self.steps[0].obj), writes=[*writes])
        guards = [
            replace(guard, explain=partial(self._explained, None, guard.explain))
            for guard in self.guards
            # A counter of the guarded item goes together with its check.
            if not any(block.writes_to(action.key) for action in guard.actions)
        ]
        block.writes += guards
        return block

    def _ask(self, writes: Sequence[Write]) -> None:
        """Raise the error of an item that is to be made where another is: it would be found out in the middle."""
        wanted = {
            action.key: (action, write)
            for write in writes
            for action in write.actions
            if isinstance(action, Put) and action.condition != EVERYTHING
        }
        table = get_table(_alias(self.steps[0].obj))
        keys = [item_key(key) for key in wanted]
        requests = (
            Request("BatchGetItem", {"RequestItems": {table.name: {"Keys": keys[start:end], "ConsistentRead": True}}})
            for start, end in ((n, n + MAX_BATCH_KEYS) for n in range(0, len(keys), MAX_BATCH_KEYS))
        )
        for batch in get_batches(table, requests, Wanted(None)):
            for item in batch:
                action, write = wanted[key_of(item)]
                if not matches(action.condition, item):
                    raise write.explain(action, item)


def guard(name: str, key: ItemKey, condition: Any, explain: Explain) -> Write:
    """A write that only checks an item."""
    return Write(name, (Check(key, condition),), (), explain, _nothing)


def _nothing() -> None:
    """What there is to take back of a check."""


def _alias(obj: Any) -> str:
    alias: str = type(obj)._options.alias
    return alias


def counts(model: Any, objects: Sequence[Any]) -> tuple[int, dict[str, int]]:
    """How many objects, and how many of each model, as Django's ``delete()`` tells it."""
    found = {model._meta.label: 0}
    for obj in objects:
        label = obj._meta.label
        found[label] = found.get(label, 0) + 1
    return len(objects), found
