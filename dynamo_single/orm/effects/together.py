"""What has to change with an item: claims, derived items, copies and counters, and what all of it depends on.

It compares the item before and after a write; ``None`` is one that is not there. This module must not know how an
object's own item is computed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

from dynamo_single.exceptions import MissingReference, SourceChanged
from dynamo_single.orm.conditions.terms import Condition
from dynamo_single.orm.effects import child_counters, claims, copies, derived, sending
from dynamo_single.orm.items import versions
from dynamo_single.orm.items.serialization import item_of, stored_name
from dynamo_single.orm.requests import block
from dynamo_single.orm.requests.actions import Action, Check, Item, ItemKey
from dynamo_single.orm.requests.block import Explain
from dynamo_single.orm.requests.changes import as_stored
from dynamo_single.orm.schema import registry
from dynamo_single.table import names


def actions(
    model: Any, before: Item | None, after: Item | None, absent: Collection[ItemKey] = frozenset()
) -> list[Action]:
    """The actions on other items; ``absent`` are the keys of parents that are known to be gone."""
    items = (derived.items_of(model, each, item_of) for each in (before, after))
    return [
        *claims.actions(model, before, after),
        *derived.actions(*items),
        *copies.checks(model, before, after),
        *child_counters.actions(model, before, after, absent),
    ]


def outside(model: Any) -> list[str]:
    """The attributes that tie objects to others: copied and counted ones, and the model's own copies and counters."""
    counting = [field.name for _, _, field in child_counters.counted(model)]
    copied = [copy.source.name for copy in registry.copied_from(model)]
    own = [*registry.copied_of(model), *registry.counters_of(model)]
    return [*copied, *counting, *(attribute.name for attribute in own)]


def touched(model: Any, before: Item | None, after: Item | None) -> list[Item | None]:
    """Every item that a write changes, as it is and as it will be; the object's own new one last."""
    following = [item for each in (before, after) for item in derived.items_of(model, each, item_of).values()]
    return [*following, before, after]


def conditions(model: Any, before: Item, after: Item, written: set[str]) -> list[Condition]:
    """What has to be as it was read, for the keys, the claims and the derived items that are written to be right."""
    layout = registry.layout_of(model)
    as_before = {names.DELETED_AT} if layout.soft_delete else set()
    for key in layout.index_keys:
        made_of = {layout.attributes[name].stored for name in key.variables if name not in layout.identity}
        pair = {names.index_partition(key.index), names.index_sort(key.index)} if key.index else set()
        if pair & written:
            as_before |= made_of
        elif made_of & written:
            # The same key from other values, or none as before: it has to be the one that is stored.
            as_before |= pair
    as_before |= claims.depends_on(model, before, after, written)
    derives_from = derived.stored_names(model)
    if derives_from and written & {*derives_from, names.DELETED_AT}:
        as_before |= derives_from
    for copy in registry.copies_of(model):
        pair = {copy.attr_name, stored_name(model, copy.source)}
        # If only one of them changes, the other one has to be what it goes with.
        as_before |= pair - written if pair & written else set()
    as_before |= _needed(model, written)
    return [*versions.conditions(model, before), *(as_stored(before, stored) for stored in sorted(as_before))]


def _needed(model: Any, written: set[str]) -> set[str]:
    """The physical names of what has to be as it was read, for copies and counters to be right."""
    references = child_counters.references(model)
    found = references if names.DELETED_AT in written else references & written
    found |= {copy.source.attr_name for copy in registry.copied_from(model)} & written
    for copy in registry.copied_of(model):
        pair = {copy.attr_name, copy.reference_field.attribute.attr_name}
        # If only one of them changes, the other one has to be what it goes with.
        found |= pair if pair & written else set()
    return found


def send(
    obj: Any,
    main: Action,
    before: Item | None,
    after: Item | None,
    explain: Explain,
    *,
    beside: Sequence[Action] = (),
    spread: copies.Spread | None = None,
    lenient: bool = False,
) -> dict[str, Any] | None:
    """Send an object's own action with all that follows, or leave it to the block; gives DynamoDB's answer.

    ``beside`` are further actions of its own. A parent that is gone loses no child: then it is left out. ``lenient``
    leaves out any that is not there.
    """
    model = type(obj)
    along = spread or copies.Spread()
    absent: frozenset[ItemKey] = frozenset()
    while True:
        whole = block.combined((main, *beside, *actions(model, before, after, absent), *along.actions))
        try:
            return sending.send(
                obj,
                whole,
                partial(explained, obj, main.key, (before, after), explain, along),
                lambda: [*along.items, *touched(model, before, after)],
            )
        except MissingReference as error:
            can_be_left_out = lenient or child_counters.is_left(model, before, after, error.key)
            if not can_be_left_out or error.key in absent:
                raise
            absent |= {error.key}


def explained(
    obj: Any,
    own: ItemKey,
    change: Sequence[Item | None],
    explain: Explain,
    along: copies.Spread,
    action: Action,
    found: Item | None,
) -> Exception:
    """The error for the action that failed; ``explain`` gives that of the object's own, and of claims."""
    model = type(obj)
    if action.key == own:
        return explain(action, found)
    if action.key in {each.key for each in along.actions}:
        return SourceChanged(f"{model._meta.label} with pk {obj.pk!r}: an object that copies from it was changed.")
    if not found and action.key in child_counters.sums(model, *change):
        return MissingReference(
            f"{model._meta.label} with pk {obj.pk!r} is counted by an object that is not stored, pk={action.key[0]!r}, "
            f"sk={action.key[1]!r}; nothing was written. Create that one first, or refer to another object.",
            key=action.key,
        )
    if isinstance(action, Check) or action.key in {each.key for each in copies.checks(model, *change)}:
        return SourceChanged(
            f"{model._meta.label} with pk {obj.pk!r}: what it copies was changed by another writer; nothing was "
            "written."
        )
    return explain(action, found)
