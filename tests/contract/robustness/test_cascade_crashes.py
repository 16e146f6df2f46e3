"""Deletions and restorations of a family that end between two requests, and are repeated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from dynamo_single.table import Table, get_table
from dynamo_single.testing import intercept
from tests.catalog.clubs import Club, Player
from tests.contract.clubs import SIZES, club, items
from tests.contract.robustness.crashing import put_back
from tests.deep import examples

pytestmark = pytest.mark.usefixtures("table", "small_transactions")
#: Players of a club whose deletion is one transaction, and of one whose deletion is four.
FEW, MANY = examples(3, SIZES[0]), examples(20, SIZES[1])


class Crash(Exception):
    """The process ends here."""


@contextmanager
def crash(number: int, *, afterwards: bool = False) -> Iterator[list[str]]:
    """End at the ``number``-th write, before or after its execution; return the earlier writes."""
    writes: list[str] = []
    is_ours = True

    def interceptor(operation: str, params: Mapping[str, Any]) -> dict[str, Any] | None:
        nonlocal is_ours
        if not is_ours or operation not in {"TransactWriteItems", "UpdateItem", "DeleteItem"}:
            return None
        writes.append(operation)
        if len(writes) != number:
            return None
        if afterwards:
            is_ours = False
            get_table().call(operation, params)
            is_ours = True
        raise Crash

    with intercept(interceptor):
        yield writes


def timeless(found: Mapping[tuple[str, str], dict[str, Any]]) -> list[dict[str, Any]]:
    """Return items without their deletion times, which must be equal."""
    assert len({item["deletedAt"]["N"] for item in found.values() if "deletedAt" in item}) <= 1
    in_trash = {"deletedAt", "gs1sk"}
    return [
        {name: value for name, value in item.items() if "deletedAt" not in item or name not in in_trash}
        for _, item in sorted(found.items())
    ]


@pytest.mark.parametrize("afterwards", [False, True])
@pytest.mark.parametrize(("size", "count"), [(FEW, 1), (MANY, 4)])
@pytest.mark.parametrize("verb", ["delete", "restore", "hard_delete"])
def test_what_is_interrupted_is_completed_by_repeating_it(
    table: Table, verb: str, size: int, count: int, afterwards: bool
) -> None:
    """After any last request, no object is lost, and a repeated call on the stored object does the rest."""
    made = club(size)
    if verb == "restore":
        made.delete()
    before = items(table)
    with crash(0) as writes:
        getattr(Club.all_objects.get(pk="c"), verb)()
    assert len(writes) == count
    wanted = items(table)
    for number in range(1, count + 1):
        put_back(before)
        with pytest.raises(Crash), crash(number, afterwards=afterwards):
            getattr(Club.all_objects.get(pk="c"), verb)()
        left = Club.all_objects.filter(pk="c").first()
        if verb != "hard_delete":
            assert left is not None
            assert {key for key in items(table) if key[1] != "#CLAIM"} == {key for key in before if key[1] != "#CLAIM"}
        if left is not None:
            getattr(left, verb)()
        assert timeless(items(table)) == timeless(wanted)


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_an_interrupted_deletion_can_be_taken_back(table: Table, number: int) -> None:
    """``restore()`` brings back what went to the trash until then, so that nothing has changed."""
    club(MANY)
    before = items(table)
    with pytest.raises(Crash), crash(number, afterwards=True):
        Club.objects.get(pk="c").delete()
    Club.deleted_objects.get(pk="c").restore()
    assert items(table) == before


def test_an_object_in_memory_says_what_is_stored() -> None:
    """After a failure, the object of a parent in the trash knows its state, and can complete the deletion."""
    made = club(MANY)
    with pytest.raises(Crash), crash(2):
        made.delete()
    assert made.is_deleted
    assert made.delete()[0] > 0
    assert not Player.objects.filter(team="c~~b").exists()
