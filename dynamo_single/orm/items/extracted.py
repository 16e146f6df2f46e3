"""What a write of values out of documents depends on: pure, of the item before and after it.

This module must not know models or requests.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from msgspec import Struct

from dynamo_single.orm.conditions.matching import normal
from dynamo_single.orm.conditions.terms import Stored
from dynamo_single.orm.requests.actions import Item
from dynamo_single.orm.requests.changes import Change, Place, as_stored, find


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
        if self.place.name in put_whole or self._is_written(before, after):
            return None if self.copy in written else as_stored(before, self.copy)
        if self.copy not in written and not in_key:
            return None
        old = find(before, self.place)
        return self.place.stored("missing") if old is None else self.place.stored("=", old)

    def _is_written(self, before: Item, after: Item) -> bool:
        """Whether the difference of the two documents writes the place, or what it is in: a map that is none yet, whose
        place another writer may have filled, is written over although the place itself has nothing before and after."""
        for length in range(len(self.place.path) + 1):
            within = Place(self.place.name, self.place.path[:length])
            old, new = find(before, within), find(after, within)
            if old is None or new is None:
                return old is not new
            if length == len(self.place.path) or not ("M" in old and "M" in new):
                return normal(old) != normal(new)
        return False


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
