"""The ways to read: each gives the live objects by their ``pk``, with the named values. A further way is one row here.

A history calls them, so that you can paste it: ``from tests.contract.pairs.readers import *``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Struct

Rows = dict[str, dict[str, Any]]
#: The identities of all things that there may be.
Read = Callable[..., Rows]


def rows(objects: Iterable[Any], names: Iterable[str]) -> Rows:
    """Objects as values to compare."""
    found = [(obj.pk, {name: getattr(obj, name) for name in names}) for obj in objects]
    assert len(dict(found)) == len(found), f"an object twice: {[pk for pk, _ in found]}"
    return dict(found)


def read_by_key(model: Any, names: list[str], pks: list[str]) -> Rows:
    """The list that an index gives."""
    return rows(model.objects.all(), names)


def read_one_by_one(model: Any, names: list[str], pks: list[str]) -> Rows:
    """Each object by its identity, strongly consistent."""
    found = (model.objects.consistent().filter(pk=pk).first() for pk in pks)
    return rows((obj for obj in found if obj is not None), names)


def read_in_bulk(model: Any, names: list[str], pks: list[str]) -> Rows:
    """All of them by their identities, strongly consistent."""
    return rows(model.objects.consistent().in_bulk(pks).values(), names)


def read_values(model: Any, names: list[str], pks: list[str]) -> Rows:
    """Return rows instead of objects."""
    found = [*model.objects.values("pk", *names)]
    assert len({row["pk"] for row in found}) == len(found)
    return {row.pop("pk"): row for row in found}


def read_pages(model: Any, names: list[str], pks: list[str]) -> Rows:
    """Page by page, by cursors."""
    found, cursor = [], None
    while True:
        page = model.objects.all().page(2, cursor)
        found += [*page]
        if (cursor := page.next_cursor) is None:
            return rows(found, names)


def read_in_memory(model: Any, names: list[str], pks: list[str]) -> Rows:
    """Filtered and put in order in memory."""
    return rows(model.objects.allow_in_memory().exclude(note="nobody's").order_by("note"), names)


def read_by_pynamodb(model: Any, names: list[str], pks: list[str]) -> Rows:
    """PynamoDB's own query of each partition, strongly consistent."""
    partitions = {model._partition(pk) for pk in pks}
    found = [obj for partition in sorted(partitions) for obj in model.query(partition, consistent_read=True)]
    return rows(found, names)


def read_by_claim(model: Any, names: list[str], pks: list[str]) -> Rows:
    """By the unique value."""
    found = (model.objects.consistent().filter(code=code).first() for code in CODES)
    return rows((obj for obj in found if obj is not None), names)


def read_in_order(model: Any, names: list[str], pks: list[str]) -> Rows:
    """The shards of a list, merged in the order of its key."""
    found = [*model.objects.order_by("made")]
    assert [obj.made for obj in found] == sorted(obj.made for obj in found)
    return rows(found, names)


#: The values that are unique.
CODES = ["x", "y", "z"]


class Reader(Struct, frozen=True):
    """One way to read; ``consistent``: it shows all earlier writes; ``needs``: with these capabilities only."""

    title: str
    read: Read
    consistent: bool = False
    needs: frozenset[str] = frozenset()
    #: Attributes that an object needs to be read this way.
    by: str = ""


READERS: dict[str, Reader] = {
    reader.read.__name__: reader
    for reader in (
        Reader("a key's list", read_by_key),
        Reader("single objects", read_one_by_one, consistent=True),
        Reader("`in_bulk()`", read_in_bulk, consistent=True),
        Reader("`values()`", read_values),
        Reader("pages", read_pages),
        Reader("in memory", read_in_memory),
        Reader("claims", read_by_claim, consistent=True, needs=frozenset({"unique"}), by="code"),
        Reader("shards", read_in_order, needs=frozenset({"shards"})),
    )
}
__all__ = [*READERS]
