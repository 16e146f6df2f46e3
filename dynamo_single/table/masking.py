"""Show keys in messages and logs without the secrets in them, which the mapping knows and the table does not."""

from __future__ import annotations

from collections.abc import Callable

from dynamo_single.table.names import PARTITION_KEY, SORT_KEY

#: Return a key as others may read it, of an alias, or of any for ``None``.
MaskKey = Callable[[str | None, str, str], tuple[str, str]]

_MASKS: list[MaskKey] = []


def mask_by(mask: MaskKey) -> None:
    """Let keys in messages pass a function."""
    _MASKS.append(mask)


def shown_key(alias: str | None, partition: str, sort: str) -> tuple[str, str]:
    """Return a partition key and a sort key, of a table or an index, as they are shown."""
    for mask in _MASKS:
        partition, sort = mask(alias, partition, sort)
    return partition, sort


def key_text(alias: str | None, key: tuple[str, str]) -> str:
    """Return the key of an item for a message: ``pk='SAFE#s1', sk='#METADATA'``."""
    partition, sort = shown_key(alias, *key)
    return f"{PARTITION_KEY}={partition!r}, {SORT_KEY}={sort!r}"
