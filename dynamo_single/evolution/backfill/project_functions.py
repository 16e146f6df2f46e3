"""Run a project's function on items, with the attribute names of the migration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dynamo_single.evolution.backfill.attributes import call_function, rewrite_items, with_dependents
from dynamo_single.evolution.backfill.rewrite import with_value
from dynamo_single.evolution.backfill.work import Task
from dynamo_single.evolution.snapshots import Snapshot
from dynamo_single.exceptions import InvalidValue
from dynamo_single.orm.requests.actions import Item
from dynamo_single.orm.schema import registry

#: Accepts an item's values by attribute, and returns the values to change or ``None``.
Function = Callable[[Mapping[str, Any]], Mapping[str, Any] | None]


def change_items(snapshot: Snapshot, function: Function) -> Task:
    """Change each item to the values that ``function`` returns for it, with its index keys, folded copies and claims.

    The function is called again with its own result and must then not return further changes, because an interrupted
    run meets items that it has already changed. Computed attributes, the primary key and the trash marker cannot be
    changed. The write is conditional on the complete item that the function received.
    """
    fixed = {name for name, each in snapshot.attributes.items() if each.is_computed}
    fixed |= {*snapshot.identity, registry.DELETED_AT}

    def given(item: Item) -> dict[str, object]:
        values = snapshot.values_of(item)
        found = dict(call_function(function, dict(values)) or {})
        if unknown := found.keys() - snapshot.attributes.keys():
            raise InvalidValue(f"There is no attribute {', '.join(sorted(unknown))}.")
        if refused := sorted(name for name in found.keys() & fixed if found[name] != values[name]):
            raise InvalidValue(f"{', '.join(refused)} cannot be changed by a function.")
        return {name: value for name, value in found.items() if name not in fixed}

    def with_values(item: Item, values: Mapping[str, object]) -> dict[str, Any]:
        found = dict(item)
        for name, value in values.items():
            attribute = snapshot.attributes[name]
            if value is None and attribute.required:
                raise InvalidValue(f"{name} has to have a value.")
            found = with_value(found, attribute.stored, attribute.stored_value(value))
        return found

    def rewritten(item: Item) -> dict[str, Any]:
        values = given(item)
        if not values:
            return dict(item)
        found = with_values(item, values)
        if with_values(found, given(found)) != found:
            raise InvalidValue(
                f"{getattr(function, '__name__', 'The function')}() changes again what it has changed. Let it give "
                "nothing for such an item: work that was interrupted would change it twice."
            )
        return with_dependents(snapshot, found, set(values))

    reads = {each.stored for each in snapshot.attributes.values()}
    return rewrite_items(snapshot, snapshot, rewritten, reads=reads)
