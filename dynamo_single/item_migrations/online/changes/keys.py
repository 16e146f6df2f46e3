"""Index keys added, altered and removed: one task, which gives items the keys that a snapshot says."""

from __future__ import annotations

from collections.abc import Iterable

from dynamo_single.item_migrations.online.changes.rewriting import pairs_follow_from, rewriting, with_pairs
from dynamo_single.item_migrations.online.work import Others, Task, of_type
from dynamo_single.item_migrations.snapshots import Snapshot
from dynamo_single.orm.requests.actions import Action, Item


def index_pairs(after: Snapshot, indexes: Iterable[str]) -> Task:
    """Give every item the keys on some indexes that its attributes give by ``after``, and no others.

    For an index that is new, whose key is another one, or that no key is on any more. Items in the trash have the
    trash's key, or none; items for which a template gives none stay out.
    """
    chosen = frozenset(indexes)
    reads = pairs_follow_from(after, chosen)

    def change(item: Item, others: Others) -> tuple[Action, ...]:
        return rewriting(item, with_pairs(after, chosen, item), reads)

    return Task(of_type(after.item_type), change)
