"""The trash count: how many items went to the trash with an object, stored on that object.

An index can be behind, so that a restore may not find all items. The count reveals this: each transaction that moves
items to the trash adds to it, and each that takes one out subtracts. Only items that their parents find by an index
count. This module reads only the object with the count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from typing import Any

from msgspec.structs import replace

from dynamo_single.exceptions import InvalidValue, StaleObject
from dynamo_single.orm.conditions.terms import Condition, Stored, join
from dynamo_single.orm.effects.base import Effect, SideWrites, Transition
from dynamo_single.orm.items.encode import Values, key_of_pk
from dynamo_single.orm.plan.plan import PartialItem
from dynamo_single.orm.reading import single
from dynamo_single.orm.requests.actions import ITEM_EXISTS, Action, Item, ItemKey, Update, key_of
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.bindings import ModelBinding, fact
from dynamo_single.orm.schema.references import cascading_parents, cascading_to_trash
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.table import names
from dynamo_single.table.table import get_table

#: The objects with counts, by their keys, during the write of several items together.
_cached_roots: ContextVar[dict[ItemKey, Item | None] | None] = ContextVar("_read", default=None)


@contextmanager
def cached_roots(known: Iterable[DynamoModel]) -> Iterator[None]:
    """Read each counted object at most once within the block, except those that are ``known``."""
    whole = (each for each in known if has_trash_count(type(each)) and not isinstance(each._stored, PartialItem))
    token = _cached_roots.set({key_of(each._stored): each._stored for each in whole})
    try:
        yield
    finally:
        _cached_roots.reset(token)


@fact
def is_counted(binding: ModelBinding) -> bool:
    """Return whether items of a model count when they go to the trash with another object.

    Items that expire separately do not count, because DynamoDB deletes them without a write. Items with the purge time
    of their object count: they expire together.
    """
    parents = [field for parent, field in cascading_parents(binding) if registry.has_soft_delete(parent)]
    if not parents or not registry.has_soft_delete(binding.model):
        return False
    if binding.layout.expires is not None and binding.model._options.purge_after is None:
        return False
    partition = {*binding.layout.primary.partition.variables}
    return not all(partition <= {field.attname} for field in parents)


@fact
def has_trash_count(binding: ModelBinding) -> bool:
    """Return whether objects of a model have a trash count: whether their deletion can include counted items."""
    if not registry.has_soft_delete(binding.model):
        return False
    below: list[Any] = [each.model for each in cascading_to_trash(binding)]
    for model in below:
        below += [each.model for each in cascading_to_trash(model) if each.model not in below]
    return any(map(is_counted, below))


def trash_count(item: Item) -> int | None:
    """Return the trash count of an item; ``None`` if it went to the trash before counts existed."""
    stored = item.get(names.DELETED_ALONG)
    return None if stored is None else int(stored["N"])


def add_known_count(root: DynamoModel, moved: Sequence[DynamoModel]) -> None:
    """Set the count of an object in memory that was just moved to the trash."""
    number = sum(1 for each in moved if is_counted(type(each)))
    if number and root._stored is not None:
        known = {names.DELETED_ALONG: {"N": str((trash_count(root._stored) or 0) + number)}}
        root._stored = {**root._stored, **known}


def is_complete(root: Item, found: Sequence[DynamoModel]) -> bool:
    """Return whether the search found at least as many counted items as the object's count."""
    return (trash_count(root) or 0) <= sum(1 for each in found if is_counted(type(each)))


def values_with_new_parent(model: type[DynamoModel], changed: Values) -> Values:
    """Return the ``changed`` values of an item in the trash without the mark of a deletion, if it gets another parent.

    The deletion of the former parent included it, and that parent's restoration no longer finds it. Objects of models
    with children in the trash keep the marker: their restoration finds the children by it.
    """
    if cascading_to_trash(model) or not any(field.attname in changed for _, field in cascading_parents(model)):
        return changed
    return {**changed, registry.DELETED_WITH: None}


class TrashCounts(Effect):
    """Updates the count of an object when items of one model go to the trash with it, or leave it."""

    def __init__(self, model: type[DynamoModel]) -> None:
        self.model = model
        self.watches = frozenset({names.DELETED_AT, names.DELETED_WITH} if is_counted(model) else {names.DELETED_AT})
        #: The physical names of the references by which parents find an item.
        self.references = frozenset(field.attribute.attr_name for _, field in cascading_parents(model))

    def concerns(self, transition: Transition) -> bool:
        """Return whether an item enters or leaves the trash, or changes its parent there."""
        if self.watches & transition.written_names:
            return True
        return names.DELETED_WITH in (transition.before or {}) and bool(self.references & transition.written_names)

    async def side_writes(self, transition: Transition) -> SideWrites | None:
        """Return the update of the count; it sends one GetItem for an item that leaves the trash."""
        before, after = transition.before, transition.after
        if names.DELETED_AT not in (before or {}):
            return await self._loaded(after) if transition.lenient else self._entering(before, after)
        if before is None:
            return None
        if after is not None and names.DELETED_AT not in after and names.DELETED_ALONG in before:
            # Its last items leave with it: the transaction removes the count instead of subtracting them.
            return SideWrites(amend=_without_number)
        root = await self._root(before) if names.DELETED_WITH in before and self._leaves(before, after) else None
        if root is None or root.get(names.DELETED_AT) != before[names.DELETED_AT] or trash_count(root) is None:
            return None  # restored, gone, or deleted before counts existed
        condition = join((_deleted_as(before), Stored(names.DELETED_ALONG, "exists")))
        as_read = frozenset({names.DELETED_AT, names.DELETED_WITH})
        return SideWrites(
            (_count_update(key_of(root), -1, condition),), as_read, explain=partial(_refusal_error, transition, root)
        )

    async def _loaded(self, after: Item | None) -> SideWrites | None:
        """Count an item that a fixture puts into the trash, if the object of its deletion already exists."""
        if after is None or not {names.DELETED_AT, names.DELETED_WITH} <= after.keys() or not is_counted(self.model):
            return None
        root = await self._root(after)
        if root is None or root.get(names.DELETED_AT) != after[names.DELETED_AT]:
            return None
        return SideWrites((_count_update(key_of(root), 1, _deleted_as(after)),))

    def _entering(self, before: Item | None, after: Item | None) -> SideWrites | None:
        if before is None or after is None or names.DELETED_AT not in after:
            return None
        left = trash_count(before) or 0
        # An object that older code restored still has its count, which a new count must not continue.
        amend = partial(_reset, number=left) if left else None
        actions: tuple[Action, ...] = ()
        if names.DELETED_WITH in after and is_counted(self.model):
            key = _root_key(self.model, after)
            # The transaction also writes the object, or checks that it is in the trash.
            actions = () if key is None else (_count_update(key, 1, ITEM_EXISTS),)
        if not actions and amend is None:
            return None
        as_read = {names.DELETED_AT} | ({names.DELETED_ALONG} if amend else set())
        return SideWrites(actions, frozenset(as_read), amend=amend)

    def _leaves(self, before: Item, after: Item | None) -> bool:
        """Return whether the object of its deletion no longer restores an item."""
        if not is_counted(self.model):
            return False
        if after is None or after.get(names.DELETED_AT) != before[names.DELETED_AT]:
            return True
        if after.get(names.DELETED_WITH, before[names.DELETED_WITH]) != before[names.DELETED_WITH]:
            return False  # the object has moved to another identity, and keeps its count
        return any(before.get(name) != after.get(name) for name in self.references)

    async def _root(self, item: Item) -> Item | None:
        key, known = _root_key(self.model, item), _cached_roots.get()
        if key is None:
            return None
        if known is not None and key in known:
            return known[key]
        found = await single.stored_item(get_table(self.model._options.alias), key)
        if known is not None:
            known[key] = found
        return found


def _without_number(own: Update) -> Update:
    return replace(own, remove=(*own.remove, names.DELETED_ALONG))


def _reset(own: Update, number: int) -> Update:
    return replace(own, add={**own.add, names.DELETED_ALONG: {"N": str(-number)}})


def _deleted_as(item: Item) -> Condition:
    """Return the condition that an object and an item have the same deletion time."""
    return Stored(names.DELETED_AT, "=", (item[names.DELETED_AT],))


def _count_update(key: ItemKey, number: int, condition: Condition) -> Update:
    return Update(key, add={names.DELETED_ALONG: {"N": str(number)}}, condition=condition)


def _root_key(model: type[DynamoModel], item: Item) -> ItemKey | None:
    """Return the key of the object whose deletion included an item; ``None`` if no model of the table matches it."""
    roots = roots_of(model._options.alias, item[names.DELETED_WITH]["S"])
    return next((key for root, key in roots if has_trash_count(root)), None)


def roots_of(alias: str, mark: str) -> Iterator[tuple[type[DynamoModel], ItemKey]]:
    """Yield the objects that a mark may name: an item type and a ``pk``, joined by a ``#`` that both may contain."""
    for position, letter in enumerate(mark):
        root = registry.model_of_type(alias, mark[:position]) if letter == "#" else None
        if root is not None:
            attribute = getattr(root._meta.pk, "attribute", None)
            with suppress(InvalidValue):  # another program wrote the mark
                pk = mark[position + 1 :]
                yield root, key_of_pk(root, pk if attribute is None else attribute.from_text(pk))


def _refusal_error(transition: Transition, root: Item, action: Action, found: Item | None) -> Exception | None:
    if action.key != key_of(root):
        return None
    return StaleObject(
        f"{transition.subject.name} went to the trash with an object that was restored or deleted permanently in the "
        "meantime. Nothing was written. Read it again and repeat the write."
    )
