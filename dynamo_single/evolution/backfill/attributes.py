"""Add, rename, convert and remove attributes, with the claims, keys and folded copies that depend on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from dynamo_single.evolution.backfill.claims import claim_actions, claim_sources, required_claims
from dynamo_single.evolution.backfill.rewrite import (
    index_key_sources,
    indexes_of,
    keys_naming,
    rewrite_actions,
    with_index_keys,
    with_value,
)
from dynamo_single.evolution.backfill.work import Others, Task
from dynamo_single.evolution.snapshots import Snapshot
from dynamo_single.evolution.stored_attributes import StoredAttribute
from dynamo_single.exceptions import ConfigurationError, InvalidValue
from dynamo_single.orm.requests.actions import Action, Item, ItemKey, type_condition
from dynamo_single.table import names
from dynamo_single.table.request import NewItem

_KEY = (names.PARTITION_KEY, names.SORT_KEY)

Convert = Callable[[Any], Any]
#: Returns an attribute's value for the other values of an item, by the historical names of the attributes.
Compute = Callable[[Mapping[str, Any]], Any]


def fill_attribute(after: Snapshot, name: str, compute: Compute | None = None) -> Task:
    """Write an attribute into the items that lack it: the result of ``compute`` for the item's values by attribute.

    A folded copy is computed from its source and also replaces an outdated copy. ``None`` is not stored.
    """
    attribute = after.attributes[name]
    if attribute.source:
        return _fill_computed(after, name)

    def change(item: Item, others: Others) -> tuple[Action, ...]:
        if attribute.stored in item or compute is None:
            return ()
        value = attribute.stored_value(call_function(compute, after.values_of(item)))
        if value is None:
            return ()
        return rewrite_actions(item, with_value(item, attribute.stored, value), ())

    return Task(type_condition(after.item_type), change)


def _fill_computed(after: Snapshot, name: str) -> Task:
    """Write the values that depend on a string or a document, with the keys and claims that contain them."""
    attribute = after.attributes[name]
    source = after.attributes[attribute.source]
    indexes = keys_naming(after, name)

    def rewritten(item: Item) -> NewItem:
        value = attribute.followed(source.value(item.get(source.stored)))
        wanted = with_value(item, attribute.stored, attribute.stored_value(value))
        return with_index_keys(after, indexes, wanted)

    if any(name in rule.names for rule in after.unique):
        return rewrite_items(after, after, rewritten, reads={source.stored})
    reads = {source.stored, *(index_key_sources(after, indexes) if indexes else ())}
    return Task(type_condition(after.item_type), lambda item, others: rewrite_actions(item, rewritten(item), reads))


def call_function(function: Callable[[Any], Any], argument: object) -> Any:
    """Call a project's function. Any exception that it raises is reported as the failure of one item."""
    try:
        return function(argument)
    except Exception as error:
        name = getattr(function, "__name__", "The function")
        raise InvalidValue(f"{name}() raised {type(error).__name__}: {error}") from error


def copy_value(
    before: Snapshot,
    after: Snapshot,
    old: str,
    new: str,
    convert: Convert | None = None,
    *,
    is_paused: bool = False,
) -> Task:
    """Copy an attribute to another physical name: ``old`` and ``new`` are its Python names before and after.

    The old attribute is authoritative, because old code writes only the old attribute. The task takes the claims under
    the new name and keeps the claims under the old name. ``convert`` converts a value for the new attribute. In a
    pause, code writes neither attribute, so an earlier run has moved an item without the old attribute.
    """
    one, other = before.attributes[old], after.attributes[new]
    rules = [rule for rule in after.unique if other.stored in claim_sources(after, (rule,))]
    reads = {one.stored, other.stored, *claim_sources(after, rules)}

    def copied(item: Item) -> Item:
        value = item.get(one.stored)
        if value is None and is_paused:
            return item
        if convert is not None or one.kind != other.kind or one.options != other.options:
            value = None if value is None else _convert_value(one.value(value), convert, other.stored_value)
        return with_value(item, other.stored, value)

    def change(item: Item, others: Others) -> tuple[Action, ...]:
        wanted = copied(item)
        old, new = required_claims(after, rules, item), required_claims(after, rules, wanted)
        return rewrite_actions(item, wanted, reads, claim_actions(old, new, wanted, others))

    def claims(item: Item) -> Iterable[ItemKey]:
        return required_claims(after, rules, item) | required_claims(after, rules, copied(item)) if rules else ()

    return Task(type_condition(before.item_type), change, wanted=claims)


def _convert_value(value: object, convert: Convert | None, store: Convert) -> Any:
    return store(value if convert is None else call_function(convert, value))


def drop_attribute(before: Snapshot, after: Snapshot, name: str) -> Task:
    """Remove an attribute from the items, with the claims under its name that ``after`` no longer has.

    ``name`` is the Python name in ``before``. An attribute that ``after`` stores under the same physical name is kept.
    """
    attribute = before.attributes[name]
    kept = any(each.stored == attribute.stored for each in after.attributes.values())
    rules = [rule for rule in before.unique if name in rule.names]
    reads = claim_sources(before, rules) | claim_sources(after, after.unique if rules else ())

    def change(item: Item, others: Others) -> tuple[Action, ...]:
        if kept or attribute.stored not in item:
            return ()
        wanted = with_value(item, attribute.stored, None)
        old = required_claims(before, rules, item)
        along = claim_actions(old, old & required_claims(after, after.unique, wanted), wanted, others) if old else []
        return rewrite_actions(item, wanted, reads, along)

    def claims(item: Item) -> Iterable[ItemKey]:
        return required_claims(before, rules, item) if attribute.stored in item else ()

    return Task(type_condition(before.item_type), change, wanted=claims)


def convert_attribute(before: Snapshot, after: Snapshot, name: str, convert: Convert | None = None) -> Task:
    """Convert an attribute's values under the same physical name, with its keys, claims and folded copies.

    A converted value must be recognizable: it has another type, or converting it again does not change it. Other values
    need another physical name. An attribute of the primary key cannot be converted; see ``move_items``.
    """
    one, other = before.attributes[name], after.attributes[name]
    if one.stored != other.stored:
        raise ConfigurationError(f"{name} goes to another physical name: copy it, and drop the old one afterwards.")
    if name in after.identity:
        raise ConfigurationError(f"{name} is in the primary key, which cannot change in its place: move the items.")

    def store(item: Item) -> Mapping[str, object] | None:
        value = item.get(one.stored)
        return None if value is None else _convert_once((one, other), convert, value)

    def rewritten(item: Item) -> NewItem:
        return with_dependents(after, with_value(item, other.stored, store(item)), {name})

    return rewrite_items(before, after, rewritten, reads={one.stored})


def _convert_once(
    forms: tuple[StoredAttribute, StoredAttribute], convert: Convert | None, value: Mapping[str, object]
) -> Mapping[str, Any] | None:
    """Return a stored value converted from the first form to the second, or the value itself if it already is."""
    one, other = forms
    try:
        loaded = one.value(value)
    except InvalidValue:
        other.value(value)  # The value has another type: it is converted already, or this raises the error.
        return value
    converted: Mapping[str, Any] | None = _convert_value(loaded, convert, other.stored_value)
    if converted is None or converted == value:
        return converted
    try:
        again = _convert_value(one.value(converted), convert, other.stored_value)
    except InvalidValue:
        return converted
    if again != converted:
        raise InvalidValue(
            "Converted values cannot be distinguished from former values, so an interrupted migration would convert "
            "them twice. Store the attribute under another name (RenameAttribute with stored=...)."
        )
    return converted


def with_dependents(snapshot: Snapshot, item: Item, changed: set[str]) -> dict[str, Any]:
    """Return an item with updated folded copies of some attributes, and with the index keys that depend on them."""
    found = dict(item)
    for each in snapshot.attributes.values():
        if each.source in changed:
            source = snapshot.attributes[each.source]
            value = each.followed(source.value(found.get(source.stored)))
            found = with_value(found, each.stored, each.stored_value(value))
    return with_index_keys(snapshot, indexes_of(snapshot), found)


def rewrite_items(
    before: Snapshot,
    after: Snapshot,
    rewritten: Callable[[Item], dict[str, Any]],
    reads: Iterable[str],
    *,
    whole: bool = False,
) -> Task:
    """Return a task that replaces each item; ``after`` determines its keys and claims.

    The write is conditional on the attributes in ``reads`` (physical names), or on all of a ``whole`` item.
    """
    rules = after.unique
    follows = {*reads, *index_key_sources(after, indexes_of(after)), *claim_sources(after, rules)}

    def change(item: Item, others: Others) -> tuple[Action, ...]:
        wanted = rewritten(item)
        if not rewrite_actions(item, wanted, ()):
            return ()
        old, new = _former_claims(before, item), required_claims(after, rules, wanted)
        held = follows.union(item).difference(_KEY) if whole else follows
        return rewrite_actions(item, wanted, held, claim_actions(old, new, wanted, others))

    def claims(item: Item) -> Iterable[ItemKey]:
        return _former_claims(before, item) | required_claims(after, rules, rewritten(item)) if rules else ()

    return Task(type_condition(before.item_type), change, wanted=claims)


def _former_claims(before: Snapshot, item: Item) -> set[ItemKey]:
    """Return the claims of an unconverted item. The claims of a converted item are the new ones already."""
    try:
        return required_claims(before, before.unique, item)
    except InvalidValue:
        return set()
