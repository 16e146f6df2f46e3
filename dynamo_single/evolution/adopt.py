"""Adopt items that are older than their model's first migration, after checking a sample of them.

The sample is the first items of a Scan. ``manage.py dynamo_verify`` checks all items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from dynamo_single.evolution.backfill import Task, type_condition
from dynamo_single.evolution.backfill.checkpoints import Segment
from dynamo_single.evolution.backfill.project_functions import version_of
from dynamo_single.evolution.backfill.run import scan
from dynamo_single.evolution.snapshots import Snapshot
from dynamo_single.exceptions import InvalidValue, MigrationIncomplete
from dynamo_single.orm.conditions.matching import normalized_value
from dynamo_single.orm.reading.single import has_expired
from dynamo_single.orm.requests.actions import Item, key_of
from dynamo_single.orm.requests.compiler import compile_reads
from dynamo_single.orm.schema import registry
from dynamo_single.table.table import Table

#: The maximum number of items that a Scan reads, and of Scans that search for an item of the model.
MAX_SAMPLES: Final = 1_000
MAX_PAGES: Final = 20


@dataclass(frozen=True)
class ItemSample:
    """A model's items on the first page that contains any; ``complete`` if that is the table's last page."""

    items: tuple[Item, ...]
    complete: bool


def sample_items(table: Table, snapshot: Snapshot) -> ItemSample:
    """Return a sample of a model's items: at most 20 Scans of 1,000 items each."""
    task = Task(type_condition(snapshot.item_type), lambda item, others: ())
    for answer in islice(table.pages(scan(task, Segment(0), 1, MAX_SAMPLES)), MAX_PAGES):
        complete = "LastEvaluatedKey" not in answer
        if answer["Items"] or complete:
            return ItemSample(tuple(answer["Items"]), complete)
    return ItemSample((), complete=False)


def check_samples(table: Table, snapshot: Snapshot, found: Sequence[Item], say: Callable[[str], None]) -> None:
    """Raise ``MigrationIncomplete`` with the keys of the items that do not match the snapshot.

    Sends a GetItem for each unique claim that a sampled item must hold.
    """
    wrong = [(key_of(item), reason) for item in found for reason in _differences(table, snapshot, item)]
    if not wrong:
        say(f"    {snapshot.item_type}: checked {len(found):,} items, all of which match the migration.")
        return
    named = "".join(f"\n  {' / '.join(key)}: {reason}" for key, reason in wrong[:10])
    raise MigrationIncomplete(
        f"{len(wrong):,} of {len(found):,} items of type {snapshot.item_type} do not match the migration:{named}\n"
        "Repair them with the code that wrote them (manage.py dynamo_verify --repair), then repeat the command.",
        failed=len(wrong),
        failures=tuple(wrong),
    )


def derivation_source(snapshot: Snapshot) -> str | None:
    """Return the label of the model that the current code derives these objects from, if there is one."""
    model: Any = registry.model_of_type(snapshot.alias, snapshot.item_type)
    derived_by = None if model is None else model.derived_by
    return str(model._meta.get_field(derived_by).related_model._meta.label) if derived_by else None


def _differences(table: Table, snapshot: Snapshot, item: Item) -> Iterator[str]:
    try:
        version = version_of(item)
    except InvalidValue as error:
        yield str(error)
        return
    if not snapshot.oldest_version <= version <= snapshot.schema_version:
        yield (
            f"its schema version is {version}, but the migration allows {snapshot.oldest_version} to "
            f"{snapshot.schema_version}; pass schema_version={version} to AddModel"
        )
    # A migration upgrades an item of an earlier version, so its values need not match.
    elif version == snapshot.schema_version and not has_expired(item):
        yield from _current_differences(table, snapshot, item)


def _current_differences(table: Table, snapshot: Snapshot, item: Item) -> Iterator[str]:
    try:
        values = snapshot.values_of(item)
        primary, pairs = snapshot.primary_keys(values), snapshot.index_attributes(values)
        claims = snapshot.claims(item)
    except InvalidValue as error:
        yield str(error)
        return
    if key_of(item) not in primary:
        yield f"its key should be {' / '.join(primary[0])}"
    for name in snapshot.keys:
        for each in snapshot.index_names(name):
            if not _is_same(item.get(each), pairs.get(each)):
                yield f"{each} is {_shown(item.get(each))} and should be {_shown(pairs.get(each))}"
    for key, rule in claims.items():
        answer = table.send(compile_reads([key], table.name))["Responses"][0].get("Item")
        if answer is None:
            yield f"its claim on {' and '.join(rule.attributes)} is missing"


def _is_same(one: Any, other: Any) -> bool:
    return one == other if one is None or other is None else bool(normalized_value(one) == normalized_value(other))


def _shown(value: Any) -> str:
    return "missing" if value is None else repr(value.get("S", value))
