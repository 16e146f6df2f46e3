"""Shards: the partitions that one partition of a key is divided into, and the choice of an item's shard.

The shard depends on a value of the item's identity, the item's own time, and a schedule, which sets the number of
shards for each period. The hash and the encoding of a shard's number are part of the stored layout and never change.
This module does not depend on where a schedule is recorded, models or queries.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from itertools import pairwise
from typing import Final, NamedTuple

from msgspec import Struct

from dynamo_single import clock
from dynamo_single.exceptions import InvalidValue
from dynamo_single.orm.schema.keys.codecs import CANONICAL, Codec, codec_for

#: The most shards of one partition: a query that names no time reads all of them side by side.
MAX_SHARDS: Final = 64
#: The most entries of a schedule: the creation of an object checks one key for each.
MAX_ENTRIES: Final = 16
#: The separator between a partition's string and the number of a shard. No value in a key contains it: it sorts below
#: ``$``.
MARK: Final = "!"
#: The hash and the number format that a recorded schedule uses.
SCHEME: Final = 1
#: The same, with entries that hash a folded value: a release that does not know these refuses the schedule.
FOLDED_SCHEME: Final = 2

_NUMBERED = re.compile(rf"(.*){MARK}(0|[1-9][0-9]?)", re.DOTALL)
_SECOND = timedelta(seconds=1)
_HASHED_BYTES = 8


class Shards(Struct, frozen=True):
    """Declares the division of a model's ``sharded`` keys: a part of the identity, and the time ``at``.

    How many shards there are is recorded in the table, by ``manage.py dynamo_shards``; one, until that is done.
    """

    attribute: str
    at: str

    def deconstruct(self) -> tuple[str, list[object], dict[str, object]]:
        """Return the form for a migration file."""
        return "dynamo_single.models.Shards", [self.attribute], {"at": self.at}


class Entry(Struct, frozen=True, omit_defaults=True):
    """How many shards there are for items from a time on, in seconds since 1970.

    ``fold`` names the fold of the value before it is hashed, as in the primary key. It is empty in an entry that hashes
    the value itself, and in one with a single shard, where the hash does not matter.
    """

    since: int
    shards: int
    fold: str = ""

    @property
    def places(self) -> Iterable[int]:
        """The places that items of the entry can have."""
        return (0,) if self.shards == 1 else range(1, self.shards + 1)


class Window(NamedTuple):
    """The requested times, in whole seconds since 1970, both included; ``None`` for no bound."""

    low: int | None = None
    high: int | None = None


#: All times.
EVER: Final = Window()


class Schedule(Struct, frozen=True):
    """How many shards there are at which time. Items older than the first entry belong to it.

    A place is 0 for the single shard without a number, and one more than its number for any other.
    """

    entries: tuple[Entry, ...] = (Entry(0, 1),)

    def __post_init__(self) -> None:
        if not 0 < len(self.entries) <= MAX_ENTRIES:
            raise InvalidValue(f"A schedule of shards has 1 to {MAX_ENTRIES} entries, not {len(self.entries)}.")
        for entry in self.entries:
            if not 0 < entry.shards <= MAX_SHARDS:
                raise InvalidValue(f"A partition has 1 to {MAX_SHARDS} shards, not {entry.shards}.")
        times = [entry.since for entry in self.entries]
        if any(later <= earlier for earlier, later in pairwise(times)):
            raise InvalidValue("Each entry of a schedule of shards must begin later than the previous entry.")

    def __str__(self) -> str:
        """In words."""
        first, *later = self.entries
        counts = [_counted(first), *(f"{_counted(each)} from {time_text(each.since)} on" for each in later)]
        return ", ".join(counts)

    @property
    def fold(self) -> str:
        """How the latest entry that folds the value does so; empty if no entry does."""
        return next((entry.fold for entry in reversed(self.entries) if entry.fold), "")

    @property
    def scheme(self) -> int:
        """The rules that a process must support to use the schedule."""
        return FOLDED_SCHEME if self.fold else SCHEME

    def entry(self, moment: int) -> Entry:
        """The entry that an item belongs to, by its time in seconds since 1970."""
        number = bisect_right(self.entries, moment, key=lambda entry: entry.since)
        return self.entries[max(number - 1, 0)]

    def folds(self, entry: Entry) -> tuple[str, ...]:
        """Return the possible folds of the values of an entry's items, starting with the rule for new items.

        Once later entries fold the value, ``dynamo_verify --repair`` moves items of earlier ones to the folded place.
        """
        return (entry.fold,) if entry.fold or not self.fold else ("", self.fold)

    def touched(self, window: Window) -> Iterable[Entry]:
        """Return the entries whose items can have these times; the nearest one if the bounds are empty."""
        for number, entry in enumerate(self.entries):
            begins = entry.since if number else None
            ends = self.entries[number + 1].since if number + 1 < len(self.entries) else None
            after = window.low is None or ends is None or ends > window.low
            before = window.high is None or begins is None or begins <= window.high
            if after and before:
                yield entry
        if None not in window and window.low > window.high:  # type: ignore[operator]  # neither is None
            yield self.entries[0]


def time_text(moment: int) -> str:
    """A time in seconds since 1970 as ISO text."""
    return (clock.EPOCH + moment * _SECOND).isoformat().replace("+00:00", "Z")


def _counted(entry: Entry) -> str:
    count = "1 shard" if entry.shards == 1 else f"{entry.shards} shards"
    return f"{count} ({entry.fold})" if entry.fold else count


def place_of(text: str, count: int) -> int:
    """Return the place of a string among this number of shards."""
    if count == 1:
        return 0
    return 1 + int.from_bytes(sha256(text.encode()).digest()[:_HASHED_BYTES], "big") % count


def shard_suffix(place: int) -> str:
    """Return the end of the partition key in a place."""
    return f"{MARK}{place - 1}" if place else ""


def split_partition(partition: str) -> tuple[str, int]:
    """The text of a partition key without its shard's number, and its place."""
    found = _NUMBERED.fullmatch(partition)
    return (partition, 0) if found is None else (found[1], int(found[2]) + 1)


class Sharding(Struct, frozen=True):
    """The division of a model's sharded keys, with the codec that encodes the value in keys.

    ``fold`` names the primary key's fold, which maps several values to one address; ``folded`` encodes the folded
    value. Both are empty if the primary key distinguishes all values.
    """

    attribute: str
    at: str
    codec: Codec
    fold: str = ""
    folded: tuple[Codec, ...] = ()

    def can_fold(self, fold: str) -> bool:
        """Return whether the value can be written as an entry with this ``fold`` hashes it."""
        return fold in ("", self.fold) or (fold == CANONICAL and self.codec.kind == "text")

    def text(self, value: object, fold: str = "") -> str:
        """Return the string that is hashed: the value as encoded in a key."""
        if not fold:
            return self.codec.encode(value)
        writers = self.folded if fold == self.fold else (codec_for(self.codec.kind, fold),)
        return "#".join(writer.encode(value) for writer in writers)

    def place(self, schedule: Schedule, value: object, moment: datetime) -> int:
        """Return the place of a new item with this value and time."""
        entry = schedule.entry(seconds(moment))
        return place_of(self.text(value, entry.fold), entry.shards)

    def places(
        self,
        schedule: Schedule,
        window: Window = EVER,
        values: Sequence[object] | None = None,
        *,
        alike: bool = False,
    ) -> tuple[int, ...]:
        """Return the places of all items of some times, in order; if ``values`` are given, of those items only.

        ``alike`` values are known except for their case: they determine entries that fold the case, but no others.
        """
        found: set[int] = set()
        for entry in schedule.touched(window):
            if values is None or (alike and entry.fold != CANONICAL):
                found.update(entry.places)
            else:
                texts = (text for fold in schedule.folds(entry) for text in self._texts(values, fold))
                found.update(place_of(text, entry.shards) for text in texts)
        return tuple(sorted(found))

    def _texts(self, values: Sequence[object], fold: str) -> Iterator[str]:
        """Return the strings of several values, without those that keys cannot contain."""
        for value in values:
            try:
                yield self.text(value, fold)
            except InvalidValue:
                continue


def seconds(moment: datetime) -> int:
    """The whole seconds from 1970 up to a moment."""
    return int((clock.in_utc(moment) - clock.EPOCH) // _SECOND)
