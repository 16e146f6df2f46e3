"""Copies of other objects' attributes: filled when an object is written, and followed when their source changes.

A copy is written under the condition that the source has its value. A changed source takes its copies along in its own
transaction; where they do not fit, it carries a mark until they have followed. This module must not know how an
object's own change is made: it is given what makes the actions.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, TypeVar, cast

from dynamo_single.exceptions import (
    CopiesDue,
    DynamoSingleError,
    InvalidValue,
    MissingReference,
    NoAccessPattern,
    SourceChanged,
)
from dynamo_single.orm.conditions.algebra import join
from dynamo_single.orm.conditions.terms import Stored
from dynamo_single.orm.effects import sending
from dynamo_single.orm.items import hydration
from dynamo_single.orm.items.serialization import is_same, key_of_pk
from dynamo_single.orm.reading import plans
from dynamo_single.orm.requests import block as pending
from dynamo_single.orm.requests.actions import Action, Check, Item, ItemKey, Update, key_of
from dynamo_single.orm.requests.changes import as_stored
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.attributes import CopiedAttribute
from dynamo_single.orm.schema.encoding.values import item_size
from dynamo_single.table import names
from dynamo_single.table.limits import MAX_ACTIONS
from dynamo_single.table.table import get_table

#: How often a write is begun anew because a source, or a copy, was changed by another writer meanwhile.
ATTEMPTS = 5
#: How many actions go along with their source's, which may have some for claims and derived items itself.
MAX_ALONG = MAX_ACTIONS - 10
#: The most bytes of the copies' items that go along with their source; more follow in batches.
MAX_SIZE = 3 * 1024 * 1024

#: A ``pk`` of each kind that is not a text, to plan by.
_SOME_PK = {"number": 1, "uuid": uuid.UUID(int=1)}

F = TypeVar("F", bound=Callable[..., Any])
#: Gives the actions that set attributes of a stored object, and its item as it is then.
MakeActions = Callable[[Any, dict[str, Any]], tuple[list[Action], Item]]


def begun_anew(write: F) -> F:
    """Begin a write anew when a source of its copies, or one of its own copies, was changed by another writer."""

    @wraps(write)
    def attempt(*args: Any, **options: Any) -> Any:
        for _ in range(ATTEMPTS - 1):
            try:
                return write(*args, **options)
            except SourceChanged:
                options.pop("prepared", None)  # with the source as it was
        return write(*args, **options)

    return cast("F", attempt)


# what an object copies


def fill(obj: Any, before: Item | None = None, only: Collection[str] | None = None, *, lenient: bool = False) -> None:
    """Give an object its copies: one GetItem for each source that it refers to anew.

    ``before`` is the item that is stored, ``only`` names the attributes to look at. Raises ``MissingReference`` for a
    source that is not stored; ``lenient`` leaves its copies empty.
    """
    model = type(obj)
    found: dict[ItemKey, Item | None] = {}
    for copy in registry.copied_of(model):
        field = copy.reference_field
        if only is not None and field.attname not in only:
            continue
        try:
            pk = field.attribute.prepare(obj.attribute_values.get(field.attname))
        except InvalidValue:
            return  # the write says so for every attribute
        if before is not None and is_same(field.attribute, pk, value_in(field.attribute, before)):
            continue
        obj.attribute_values[copy.name] = None if pk is None else _of_source(obj, copy, pk, found, lenient=lenient)


def _of_source(obj: Any, copy: CopiedAttribute, pk: Any, found: dict[ItemKey, Item | None], *, lenient: bool) -> Any:
    key = key_of_pk(copy.source_model, pk)
    if key not in found:
        found[key] = _source_item(obj, key)
    item = found[key]
    if item is None or hydration.has_expired(item):
        if lenient:
            return None
        raise MissingReference(
            f"{obj._meta.label}.{copy.name} is copied from {copy.source_model._meta.label} with pk {pk!r}, which is "
            "not stored; nothing was written. Create it first, or refer to another object.",
            key=key,
        )
    hydration.check_type(copy.source_model, cast("hydration.Item", item))
    return value_in(copy.source, item)


def _source_item(obj: Any, key: ItemKey) -> Item | None:
    block = pending.current()
    if block is not None and block.writes_to(key):
        return block.item_after(key)
    # Whatever a block counts there, it does not change what is copied.
    return plans.stored_item(get_table(type(obj)._options.alias), key)


def checks(model: Any, before: Item | None, after: Item | None) -> list[Action]:
    """That each source still has the value that one item has and the other one had not."""
    found: list[Action] = []
    block = pending.current()
    for copy in registry.copied_of(model) if after is not None else ():
        involved = (copy.reference_field.attribute.attr_name, copy.attr_name)
        reference = (after or {}).get(involved[0])
        unchanged = before is not None and all(before.get(name) == (after or {}).get(name) for name in involved)
        if reference is None or unchanged or after is None:
            continue
        key = key_of_pk(copy.source_model, copy.reference_field.attribute.from_attribute_value(dict(reference)))
        if block is None or not block.writes_to(key):
            found.append(Check(key, _has(copy, after)))
    return found


def _has(copy: CopiedAttribute, holder: Item) -> Stored:
    """The condition on a source that it has the value which a holder's item has."""
    value = holder.get(copy.attr_name)
    stored = copy.source.attr_name
    return Stored(stored, "missing") if value is None else Stored(stored, "=", (value,))


def value_in(attribute: Any, item: Item) -> Any:
    """The value of an attribute in an item, without a default for a missing one."""
    stored = item.get(attribute.attr_name)
    return None if stored is None else attribute.from_attribute_value(dict(stored))


# what is copied from an object


@dataclass(frozen=True, slots=True)
class Group:
    """The copies of one source that the objects of one model hold by one reference, and what they are to be."""

    holder: Any
    field: Any
    pk: Any
    values: Mapping[str, Any]

    def stale(self, *, deleted: bool = True) -> Iterator[Any]:
        """The objects whose copies are otherwise: a Query by the key that the relation has; ``deleted`` ones too.

        From the table itself, strongly consistent, if that has a key for them.
        """
        attributes = registry.attributes_of(self.holder)
        for queryset in _holders(self.holder, self.field, self.pk, deleted=deleted):
            for obj in queryset.iterator():
                held = obj.attribute_values
                if not all(is_same(attributes[name], value, held[name]) for name, value in self.values.items()):
                    yield obj


def _holders(holder: Any, field: Any, pk: Any, *, deleted: bool) -> list[Any]:
    """The querysets that find the objects which refer to one; raises ``NoAccessPattern`` if no key does."""
    every = holder._base_manager.filter(**{field.attname: pk})
    querysets = [every]
    if registry.layout_of(holder).soft_delete and not _is_one_reading(every):
        # Deleted objects have left the live keys.
        querysets = [every.with_visibility("live"), every.with_visibility("deleted")][: 1 + deleted]
    return [_as_consistent_as_possible(queryset) for queryset in querysets]


def _is_one_reading(queryset: Any) -> bool:
    try:
        return queryset._plan(ordered=False).kind in ("query", "get", "batch_get")
    except NoAccessPattern:
        return False


def _as_consistent_as_possible(queryset: Any) -> Any:
    plan = queryset._plan(ordered=False)
    from_table = plan.kind == "query" and plan.key is not None and plan.key.index is None
    return queryset.consistent() if from_table or plan.kind in ("get", "batch_get") else queryset


def problem(copy: CopiedAttribute) -> str | None:
    """What is wrong with how a copy's holders are found, if anything is."""
    kind = copy.reference_field.attribute.key_kind
    try:
        _holders(copy.field.model, copy.reference_field, _SOME_PK.get(kind, "1"), deleted=True)
    except NoAccessPattern as error:
        return str(error)
    return None


def groups(model: Any, pk: Any, item: Item, copies: Iterable[CopiedAttribute]) -> list[Group]:
    """Some copies of an object's attributes, as its item says they are to be."""
    values: dict[tuple[Any, Any], dict[str, Any]] = {}
    for copy in copies:
        at = values.setdefault((copy.field.model, copy.reference_field), {})
        at[copy.name] = value_in(copy.source, item)
    return [Group(holder, field, pk, found) for (holder, field), found in values.items()]


def marks(copies: Iterable[CopiedAttribute]) -> list[str]:
    """Copies as a source's mark names them."""
    return sorted(f"{copy.field.model._options.item_type}.{copy.attr_name}" for copy in copies)


def marked(model: Any, item: Item) -> list[CopiedAttribute]:
    """The copies that an item's mark says have not followed yet."""
    due = item.get(names.COPIES_DUE, {}).get("SS", ())
    return [copy for copy in registry.copied_from(model) if set(marks([copy])) & set(due)]


@dataclass(frozen=True, slots=True)
class Spread:
    """What a change of a source takes along: the holders' actions and items, or a mark."""

    copies: tuple[CopiedAttribute, ...] = ()
    actions: tuple[Action, ...] = ()
    items: tuple[Item, ...] = ()
    mark: tuple[str, ...] = ()


def spread(obj: Any, before: Item, after: Item, make: MakeActions) -> Spread:
    """What goes along when one item becomes the other: nothing is read if no copied attribute changes.

    Copies that do not fit into the transaction are marked. Within an atomic() block they have to fit.
    """
    model = type(obj)
    changed = [
        copy
        for copy in registry.copied_from(model)
        if before.get(copy.source.attr_name) != after.get(copy.source.attr_name)
    ]
    if not changed:
        return Spread()
    copies = list(dict.fromkeys([*changed, *marked(model, before)]))
    own = key_of(before)
    actions: list[Action] = []
    items: list[Item] = []
    in_block = pending.current() is not None
    for group in groups(model, obj.pk, after, copies):
        for holder in group.stale():
            more, item = make(holder, dict(group.values))
            actions += (action for action in more if action.key != own)
            items += (holder._stored, item)
            too_many = len({action.key for action in actions}) > MAX_ALONG
            if not in_block and (too_many or sum(map(item_size, items)) > MAX_SIZE):
                return Spread(tuple(copies), mark=tuple(marks(copies)))
    return Spread(tuple(copies), tuple(pending.combined(actions)), tuple(items))


def with_mark(update: Update, found: Spread, before: Item) -> Update:
    """A source's change that leaves the mark, or takes an earlier one away with what it was about."""
    if found.mark:
        return replace(update, add={**update.add, names.COPIES_DUE: {"SS": list(found.mark)}})
    if found.copies and names.COPIES_DUE in before:
        return replace(update, remove=(*update.remove, names.COPIES_DUE))
    return update


def mark_after(found: Spread, before: Item) -> dict[str, Mapping[str, Any]]:
    """The mark that an item has after a source's change, by its physical name; nothing if it has none."""
    if not found.copies:
        return {name: value for name, value in before.items() if name == names.COPIES_DUE}
    return {names.COPIES_DUE: {"SS": list(found.mark)}} if found.mark else {}


def finish(obj: Any, found: Spread, make: MakeActions) -> None:
    """What has to happen behind a source's change: copies that were made meanwhile, or that did not fit, follow."""
    block = pending.current()
    if not found.copies:
        return
    if block is not None:
        item = dict(obj._stored)
        block.callbacks.append(lambda: _follow(obj, item, found.copies, make))
    elif found.mark:
        complete(obj, make)
    else:
        _follow(obj, obj._stored, found.copies, make)


def catch_up(obj: Any, make: MakeActions) -> None:
    """Fill the copies of objects that were stored before their source: a Query for each reference to it."""
    finish(obj, Spread(registry.copied_from(type(obj))), make)


def complete(obj: Any, make: MakeActions) -> None:
    """Let the copies that an object's mark names follow, and take the mark away: batches, then one UpdateItem."""
    item = obj._stored
    due = item.get(names.COPIES_DUE)
    if due is None:
        return
    block = pending.current()
    if block is not None:
        block.callbacks.append(lambda: complete(obj, make))
        return
    copies = marked(type(obj), item)
    _follow(obj, item, copies, make, deleted=True)
    names_copied = sorted({copy.source.attr_name for copy in copies})
    unchanged = [as_stored(item, name) for name in names_copied]
    update = Update(key_of(item), discard={names.COPIES_DUE: due}, condition=join(unchanged))
    try:
        sending.carry_out(type(obj)._options.alias, [(update, _superseded)])
    except SourceChanged:
        return  # another writer changed the source, and takes the copies and the mark along
    obj._stored = {name: value for name, value in item.items() if name != names.COPIES_DUE}


def _superseded(action: Action, found: Item | None) -> Exception:
    return SourceChanged("A copied attribute was changed again meanwhile.")


def _follow(
    obj: Any, item: Item, copies: Sequence[CopiedAttribute], make: MakeActions, *, deleted: bool = False
) -> None:
    """Write the copies that are not as an item of their source says, until there are none."""
    model = type(obj)
    try:
        for group in groups(model, obj.pk, item, copies):
            _follow_group(model, group, item, make, deleted=deleted)
    except DynamoSingleError as error:
        raise CopiesDue(
            f"{model._meta.label} with pk {obj.pk!r} is saved, but not every copy of it has followed: {error} Save it "
            "again, or run manage.py dynamo_rebuild."
        ) from error


def _follow_group(model: Any, group: Group, item: Item, make: MakeActions, *, deleted: bool) -> None:
    # The source has its value already, so that nothing can be copied of an earlier one any more: one passage finds all.
    for _ in range(ATTEMPTS):
        again = False
        for batch in _batches(group, make, deleted=deleted):
            try:
                sending.carry_out(model._options.alias, [(action, _changed(key_of(item))) for action in batch])
            except _HolderChanged:
                again = True
            except SourceChanged:
                return  # another writer changed the source, and takes the copies along
        if not again:
            return
    raise SourceChanged(f"The copies in {group.holder._meta.label} are changed by others all the time.")


class _HolderChanged(SourceChanged):
    """An object that holds a copy was changed since it was read."""


def _changed(source: ItemKey) -> Callable[[Action, Item | None], Exception]:
    def explain(action: Action, found: Item | None) -> Exception:
        if action.key == source:
            return SourceChanged("A copied attribute was changed again meanwhile.")
        return _HolderChanged("An object that holds a copy was changed meanwhile.")

    return explain


def _batches(group: Group, make: MakeActions, *, deleted: bool) -> Iterator[list[Action]]:
    """The holders' actions in transactions, each with the check of the source."""
    batch: list[Action] = []
    for holder in group.stale(deleted=deleted):
        more, _ = make(holder, dict(group.values))
        larger = pending.combined([*batch, *more])
        if batch and len(larger) > MAX_ACTIONS:
            yield batch
            larger = pending.combined(more)
        batch = larger
    if batch:
        yield batch
