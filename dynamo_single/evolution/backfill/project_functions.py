"""Run a project's functions on items, with the attribute names of the migration or with physical names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from dynamo_single.evolution.backfill.attributes import call_function, rewrite_items, with_dependents
from dynamo_single.evolution.backfill.rewrite import index_attributes, indexes_of, with_value
from dynamo_single.evolution.backfill.work import Task
from dynamo_single.evolution.snapshots import Snapshot
from dynamo_single.exceptions import InvalidValue
from dynamo_single.orm.conditions.terms import And, Or, Stored
from dynamo_single.orm.requests.actions import Item
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.keys.values import from_attribute_value, to_attribute_value
from dynamo_single.orm.schema.upgrades import FIRST, operation_text
from dynamo_single.table import names

#: Accepts an item's values by attribute, and returns the values to change or ``None``.
Function = Callable[[Mapping[str, Any]], Mapping[str, Any] | None]
#: The functions from each schema version to the next. They accept and return values by physical name.
Upgrades = Mapping[int, Function]


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
                f"{getattr(function, '__name__', 'The function')}() changes its own result again, so interrupted work "
                "would change an item twice. Return None for an item that it has already changed."
            )
        return with_dependents(snapshot, found, set(values))

    reads = {each.stored for each in snapshot.attributes.values()}
    return rewrite_items(snapshot, snapshot, rewritten, reads=reads)


def each_by_type(tasks: Mapping[str, Task]) -> Task:
    """Return one task for the items of several types, each with its own change, so that the table is read once."""

    def task_of(item: Item) -> Task:
        return tasks[item[names.ITEM_TYPE]["S"]]

    return Task(
        Or(tuple(each.items for each in tasks.values())),
        lambda item, others: task_of(item).change(item, others),
        wanted=lambda item: task_of(item).wanted(item),
    )


def upgrade_items(snapshot: Snapshot, name: str, functions: Upgrades) -> Task:
    """Upgrade the items below the snapshot's schema version, with their index keys, folded copies and claims.

    ``name`` is the model's name. The primary key, index keys and the type of an item cannot be changed. The write is
    conditional on the complete item.
    """
    to = snapshot.schema_version
    pairs = index_attributes(indexes_of(snapshot))
    hidden = {names.PARTITION_KEY, names.SORT_KEY, names.ITEM_TYPE, names.SCHEMA_VERSION, *pairs}
    fixed = hidden.union(snapshot.attributes[each].stored for each in snapshot.identity)

    def upgraded(item: Item) -> dict[str, Any]:
        found: dict[str, Any] = dict(item)
        version = version_of(item)
        if version >= to:
            return found
        for start in range(version, to):
            if start not in functions:
                raise InvalidValue(
                    f"It is of schema version {start}, and UpgradeItems has no function from there. Add it: "
                    f"{operation_text(name, to)}."
                )
            values = {each: from_attribute_value(stored) for each, stored in found.items() if each not in hidden}
            given = call_function(functions[start], values) or {}
            if refused := sorted(fixed.intersection(given)):
                raise InvalidValue(f"{', '.join(refused)} cannot be changed by a function.")
            for each, value in given.items():
                found = with_value(found, each, None if value is None else to_attribute_value(value, path=each))
        return with_dependents(snapshot, found | {names.SCHEMA_VERSION: {"N": str(to)}}, {*snapshot.attributes})

    task = rewrite_items(
        snapshot, snapshot, upgraded, (each.stored for each in snapshot.attributes.values()), whole=True
    )
    earlier = Stored(names.SCHEMA_VERSION, "<", ({"N": str(to)},))
    return replace(task, items=And((task.items, Or((Stored(names.SCHEMA_VERSION, "missing"), earlier)))))


def version_of(item: Item) -> int:
    """Return the schema version of an item; raise ``InvalidValue`` if the item stores it as something else."""
    try:
        return int(item.get(names.SCHEMA_VERSION, {"N": FIRST})["N"])
    except (KeyError, ValueError) as error:
        raise InvalidValue(f"{names.SCHEMA_VERSION} is not a number.") from error
