"""Index keys added, altered and removed: one task, which gives items the keys that a snapshot says."""

from __future__ import annotations

from collections.abc import Iterable

from dynamo_single.item_migrations.online.changes.rewriting import pairs_follow_from, rewriting, with_pairs
from dynamo_single.item_migrations.online.work import Others, Task, below_version
from dynamo_single.item_migrations.snapshots import Snapshot
from dynamo_single.orm.conditions.matching import matches
from dynamo_single.orm.conditions.terms import EVERYTHING
from dynamo_single.orm.requests.actions import Action, Item, of_type
from dynamo_single.table import names


def index_pairs(after: Snapshot, indexes: Iterable[str]) -> Task:
    """Give every item the keys on some indexes that its attributes give by ``after``, and no others.

    For an index that is new, whose key is another one, or that no key is on any more. Items in the trash have the
    trash's key, or none; items for which a template gives none stay out. A live item of an earlier schema version is
    left alone if upgrades change what such a key is made of: it gets its keys when it is upgraded.
    """
    chosen = frozenset(indexes)
    reads = pairs_follow_from(after, chosen)
    made_of = {name for key, each in after.keys.items() if each.index in chosen for name in _variables(after, key)}
    waits = not after.pending_names.isdisjoint(made_of)

    def change(item: Item, others: Others) -> tuple[Action, ...]:
        if waits and names.DELETED_AT not in item and _is_earlier(after, item):
            return ()
        return rewriting(item, with_pairs(after, chosen, item), reads)

    return Task(of_type(after.item_type), change)


def _variables(after: Snapshot, key: str) -> tuple[str, ...]:
    return after.access_keys[key].made_of


def _is_earlier(after: Snapshot, item: Item) -> bool:
    return matches(below_version(EVERYTHING, after.schema_version), item)
