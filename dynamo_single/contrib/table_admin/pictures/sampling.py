"""Take a sample of a table within a budget, and store what the pictures need of it as one item.

A Scan returns items in the order of the hashes of their partition keys, so its beginning is a sample of partitions.
Keys with secrets are not part of a sample.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from django.db import IntegrityError
from msgspec import Struct

from dynamo_single import clock
from dynamo_single.admin.secrets import Masks
from dynamo_single.admin.viewing.table_samples import TableSample
from dynamo_single.contrib.table_admin.item_view import keys_of, links_of
from dynamo_single.costs import measure_requests
from dynamo_single.orm.requests.actions import Item, ItemKey, key_of
from dynamo_single.orm.schema.keys.values import item_size
from dynamo_single.table import names
from dynamo_single.table.request import Request
from dynamo_single.table.table import Table

#: The items and bytes that a sample reads at most; the last response is used in full.
MAX_ITEMS: Final = 2_000
MAX_BYTES: Final = 4 * 1024 * 1024
#: The most read units of a sample: an eventually consistent Scan reads 8 KB a unit, and a response has up to 1 MB.
MAX_UNITS: Final = (MAX_BYTES + 1024 * 1024) // 8192

#: The upper limits of the classes of sizes in bytes; an item has at most 400 KB.
SIZES: Final = (128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072, 409600)
#: The most partitions of a picture, the items of each, and the largest items and partitions that are named.
PARTITIONS: Final = 9
_ITEMS: Final = 6
_LARGEST: Final = 10
#: The longest key in bytes that is drawn or named.
_LONGEST: Final = 200
#: The most types. The rest of the items is not part of a sample.
_TYPES: Final = 60


class Drawn(Struct, frozen=True):
    """An item of the picture, by its key and type."""

    key: ItemKey
    item_type: str


def take(table: Table) -> TableSample:
    """Read a sample of a table and store it.

    Sends Scans until ``MAX_ITEMS`` items or ``MAX_BYTES`` bytes were read, an UpdateItem, and a PutItem for the first
    sample of the table.
    """
    items: list[Item] = []
    size = 0
    with measure_requests() as costs:
        start: dict[str, Any] | None = {}
        while start is not None and len(items) < MAX_ITEMS and size < MAX_BYTES:
            params = {"Limit": MAX_ITEMS - len(items), **({"ExclusiveStartKey": start} if start else {})}
            answer = table.send(Request("Scan", params))
            items += answer.get("Items", ())
            size += sum(map(item_size, answer.get("Items", ())))
            start = answer.get("LastEvaluatedKey")
    found = {
        **contents(table.settings.alias, items),
        "items": len(items),
        "bytes": size,
        "units": costs.read_units,
        "is_whole": start is None,
    }
    values: dict[str, Any] = {"taken_at": clock.now(), "found": found}
    if not TableSample.objects.filter(pk=table.settings.alias).update(**values):
        with suppress(IntegrityError):  # another process has just stored a sample
            TableSample.objects.create(alias=table.settings.alias, **values)
    return TableSample(alias=table.settings.alias, **values)


def contents(alias: str, items: Sequence[Item]) -> dict[str, Any]:
    """Return the numbers and keys of some items as JSON's types."""
    masks = Masks()
    sizes = [item_size(item) for item in items]
    types = [item.get(names.ITEM_TYPE, {}).get("S", "") for item in items]
    classes: dict[str, list[int]] = defaultdict(lambda: [0] * len(SIZES))
    total: Counter[str] = Counter()
    for item_type, size in zip(types, sizes, strict=True):
        classes[item_type][min(bisect_left(SIZES, size), len(SIZES) - 1)] += 1
        total[item_type] += size
    kept = [name for name, _size in total.most_common(_TYPES)]
    named = [place for place, item in enumerate(items) if _is_named(alias, item, masks)]
    drawn = list(_drawn(alias, [items[place] for place in named], masks))
    keys = {each.key: place for place, each in enumerate(drawn)}
    by_key = {key_of(items[place]): items[place] for place in named}
    return {
        "types": [[name, total[name], classes[name]] for name in kept],
        "partitions": _partitions(items, sizes, named),
        "largest": [
            [*key_of(items[place]), types[place], sizes[place]]
            for place in sorted(named, key=lambda place: -sizes[place])[:_LARGEST]
        ],
        "drawn": [[*each.key, each.item_type] for each in drawn],
        "arrows": [
            [keys[each.key], keys[link.key], link.relation]
            for each in drawn
            for link in links_of(alias, by_key[each.key], masks)
            if link.key in keys and link.relation in ARROWS and link.key != each.key
        ],
    }


_LISTS: Final = ("types", "partitions", "largest", "drawn", "arrows")


def is_complete(found: object) -> bool:
    """Return whether stored contents have the form that ``take()`` stores."""
    return isinstance(found, dict) and all(isinstance(found.get(name), list) for name in _LISTS)


#: The relations that are drawn. A copy is drawn from its source.
ARROWS: Final = ("reference", "owner", "source", "counter")


def _is_named(alias: str, item: Item, masks: Masks) -> bool:
    """Return whether a picture can contain the key of an item: it is short and does not contain a secret."""
    key = next(keys_of(alias, item, (), masks))
    return key.place is not None and len(f"{key.partition}{key.sort}".encode()) <= _LONGEST


def _partitions(items: Sequence[Item], sizes: Sequence[int], named: Iterable[int]) -> list[list[Any]]:
    counts: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for place in named:
        partition = key_of(items[place])[0]
        counts[partition] += 1
        total[partition] += sizes[place]
    return [[name, counts[name], size] for name, size in total.most_common(_LARGEST)]


def _drawn(alias: str, items: Sequence[Item], masks: Masks) -> Iterator[Drawn]:
    """Yield the items of a picture: of partitions with new types first, then of partitions that they refer to."""
    partitions: dict[str, list[Drawn]] = defaultdict(list)
    for item in items:
        partitions[key_of(item)[0]].append(Drawn(key_of(item), item.get(names.ITEM_TYPE, {}).get("S", "")))
    by_key = {key_of(item): item for item in items}
    chosen: dict[str, list[Drawn]] = {}
    seen: set[str] = set()
    waiting: list[str] = []
    while len(chosen) < PARTITIONS:
        name = next((each for each in waiting if each not in chosen), None) or _richest(partitions, chosen, seen)
        if name is None:
            break
        chosen[name] = _few(partitions[name])
        seen |= {each.item_type for each in partitions[name]}
        linked = [link.key for each in chosen[name] for link in links_of(alias, by_key[each.key], masks)]
        # Half of the picture shows other types, whatever the first partitions refer to.
        waiting = [key[0] for key in linked if key[0] in partitions][:1] if len(chosen) % 2 else []
    for name in sorted(chosen):
        yield from chosen[name]


def _richest(partitions: Mapping[str, Sequence[Drawn]], chosen: Mapping[str, object], seen: set[str]) -> str | None:
    """Return the partition with the most types that are not drawn yet, then with the most types and items."""
    found = [
        (-len({each.item_type for each in items} - seen), -len({each.item_type for each in items}), -len(items), name)
        for name, items in partitions.items()
        if name not in chosen
    ]
    return min(found)[3] if found else None


def _few(items: Sequence[Drawn]) -> list[Drawn]:
    """Return some items of a partition in the order of their sort keys: one of each type, then the first ones."""
    ordered = sorted(items, key=lambda each: each.key[1].encode())
    first = {each.item_type: each for each in reversed(ordered)}
    wanted = [*first.values(), *(each for each in ordered if each not in first.values())][:_ITEMS]
    return sorted(wanted, key=lambda each: each.key[1].encode())
