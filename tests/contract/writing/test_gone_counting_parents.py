"""If a counting parent no longer exists, deletions of several objects do not need to update its number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dynamo_single import models, transactions
from dynamo_single.contrib.doctor import verify
from dynamo_single.exceptions import MissingReference
from dynamo_single.table import Table
from tests.unit.declaring import declare, forgotten


@pytest.fixture(params=[models.Model, models.SoftDeleteModel], ids=["permanent", "trash"])
def shelf(request: Any, table: Table) -> Iterator[Any]:
    """Return a shelf with two books, all counted by a room that no longer exists."""
    bases = (request.param,)
    with forgotten():
        room = declare(
            "Room",
            ("ROOM#{room_id}", "#METADATA"),
            room_id=models.UnicodeAttribute(),
            shelves=models.Children("Shelf"),
            books=models.Children("Book", field="room"),
            shelf_count=models.CounterAttribute("shelves"),
            book_count=models.CounterAttribute("books"),
        )
        shelf = declare(
            "Shelf",
            ("SHELF#{shelf_id}", "#METADATA"),
            {"by_room": models.IndexKey("gs1", "SHELVES#{room_id}", "{shelf_id}")},
            bases=bases,
            shelf_id=models.UnicodeAttribute(),
            room=models.ReferenceAttribute(room, on_delete=models.DO_NOTHING),
        )
        book = declare(
            "Book",
            ("SHELF#{shelf_id}", "BOOK#{book_id}"),
            {"by_room": models.IndexKey("gs1", "BOOKS#{room_id}", "{shelf_id}#{book_id}")},
            bases=bases,
            shelf=models.ReferenceAttribute(shelf, on_delete=models.CASCADE),
            book_id=models.UnicodeAttribute(),
            room=models.ReferenceAttribute(room, on_delete=models.DO_NOTHING),
        )
        room.objects.create(room_id="r")
        found = shelf.objects.create(shelf_id="s", room_id="r")
        for book_id in ("1", "2"):
            book.objects.create(shelf_id="s", book_id=book_id, room_id="r")
        room.objects.get(pk="r").delete()
        yield found


def test_objects_of_a_gone_parent_are_deleted_together(shelf: Any) -> None:
    assert shelf.delete()[0] == 3
    assert [finding for finding in verify() if finding.kind != "reference to a missing object"] == []


def test_deletion_takes_several_transactions(shelf: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dynamo_single.orm.write.cascade.MAX_ACTIONS", 3)
    assert shelf.delete()[0] == 3
    assert [finding for finding in verify() if finding.kind != "reference to a missing object"] == []


def test_block_refuses_the_deletion(shelf: Any) -> None:
    """The deletion cannot be retried."""
    with pytest.raises(MissingReference, match="outside the atomic"), transactions.atomic():
        shelf.delete()
