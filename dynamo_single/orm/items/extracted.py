"""What a write of values out of documents depends on: pure, of the item before and after it.

This module must not know models or requests.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from msgspec import Struct

from dynamo_single.orm.conditions.matching import normal
from dynamo_single.orm.conditions.terms import Stored
from dynamo_single.orm.requests.changes import Change, Place, as_stored, find
from dynamo_single.table.items import Item


class Extraction(Struct, frozen=True):
    """One value: its physical name, and the place that it is extracted from."""

    copy: str
    place: Place

    def is_reached_by(self, change: Change) -> bool:
        """Whether a change is of the place, or of what it is in."""
        return self.place.overlaps(change.place)

    def as_read(
        self, before: Item, after: Item, written: Collection[str], put_whole: Collection[str], *, in_key: bool
    ) -> Stored | None:
        """The condition under which the value fits its document once an update is written; ``None`` for none.

        Where only one of the two changes, the other one has to be as it was read; so has the place where a key is
        written that the value is a part of (``in_key``). Two writers of other places of a document agree. ``put_whole``
        are the documents that are written over whatever another writer has put in.
        """
        old, new = find(before, self.place), find(after, self.place)
        is_same = normal(old) == normal(new) if old is not None and new is not None else old is new
        if self.place.name in put_whole or not is_same:
            return None if self.copy in written else as_stored(before, self.copy)
        if self.copy not in written and not in_key:
            return None
        return self.place.stored("missing") if old is None else self.place.stored("=", old)


#: Whether a key is written that names a value, by its physical name.
InKey = Callable[[str], bool]


def as_read(
    extracted: Collection[Extraction],
    items: tuple[Item, Item],
    written: Collection[str],
    put_whole: Collection[str],
    in_key: InKey,
) -> tuple[Stored, ...]:
    """The conditions of all values of an item, which is given as it was read and as it will be."""
    before, after = items
    found = (each.as_read(before, after, written, put_whole, in_key=in_key(each.copy)) for each in extracted)
    return tuple(each for each in found if each is not None)
