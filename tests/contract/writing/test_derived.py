"""Derived items are written in the object's own transactions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import pytest

from dynamo_single import exceptions, models
from dynamo_single.table import Request, SentRequest, Table
from tests.unit.declaring import declare, forgotten


class Book(models.SoftDeleteModel):
    """A book that can be found by each word of its title."""

    book_id = models.UnicodeAttribute()
    title = models.UnicodeAttribute()
    shelf = models.IntegerAttribute(null=True)

    derived_from: ClassVar[tuple[str, ...]] = ("title",)

    class Keys:
        primary = models.Key("BOOK#{book_id}", "#METADATA")
        by_title = models.IndexKey("gs1", "BOOK", "{title}#{book_id}")

    class Meta:
        app_label = "catalog"

    def derived_objects(self) -> Iterable[Word]:
        """Its title's words."""
        for place, word in enumerate(self.title.split()):
            yield Word(book_id=self.book_id, word=word, place=place)


class Word(models.Model):
    """One word of a title."""

    book_id = models.UnicodeAttribute()
    word = models.UnicodeAttribute()
    place = models.IntegerAttribute()

    class Keys:
        primary = models.Key("BOOK#{book_id}", "WORD#{word}")

    class Meta:
        app_label = "catalog"


@pytest.fixture
def book(table: Table) -> Book:
    """A stored book."""
    return Book.objects.create(book_id="1", title="War and Peace")


def words(table: Table) -> dict[str, int]:
    """The stored words and their places."""
    items = table.send(Request("Scan", {}))["Items"]
    return {item["word"]["S"]: int(item["place"]["N"]) for item in items if item["itemType"]["S"] == "Word"}


def test_they_are_written_with_the_object(book: Book, table: Table) -> None:
    """Creating the object creates them."""
    assert words(table) == {"War": 0, "and": 1, "Peace": 2}


def test_a_change_replaces_what_it_touches(book: Book, table: Table, sent: list[SentRequest]) -> None:
    """One transaction creates new items, replaces changed ones, deletes others, and does not touch the rest."""
    book.title = "War or Peace and"
    book.save()
    (request,) = sent
    keys = [
        (next(iter(action)), (described.get("Key") or described["Item"])["sk"]["S"])
        for action in request.params["TransactItems"]
        for described in action.values()
    ]
    assert keys == [("Update", "#METADATA"), ("Put", "WORD#or"), ("Put", "WORD#and")]
    assert words(table) == {"War": 0, "or": 1, "Peace": 2, "and": 3}


def test_other_changes_leave_them_alone(book: Book, sent: list[SentRequest]) -> None:
    """A change of an unrelated attribute takes one UpdateItem."""
    book.shelf = 3
    book.save()
    assert [request.operation for request in sent] == ["UpdateItem"]


def test_they_go_to_the_trash_and_come_back(book: Book, table: Table) -> None:
    """A deleted object has no derived items, and a restored one has them again."""
    book.delete()
    assert words(table) == {}
    book.restore()
    assert set(words(table)) == {"War", "and", "Peace"}
    book.hard_delete()
    assert table.send(Request("Scan", {}))["Items"] == []


def test_a_queryset_update_keeps_them_in_step(book: Book, table: Table) -> None:
    """Every write path computes them."""
    Book.objects.filter(book_id="1").update(title="Peace")
    assert words(table) == {"Peace": 0}


@pytest.mark.parametrize("write", ["save", "hard_delete"])
def test_a_writer_who_read_another_title_is_refused(book: Book, table: Table, write: Any) -> None:
    """If another process has changed the title, the write fails, so derived items are never outdated."""
    late = Book.objects.get(pk="1")
    book.title = "Peace"
    book.save()
    late.title = "War"
    with pytest.raises(exceptions.StaleObject):
        getattr(late, write)()
    assert words(table) == {"Peace": 0}


@pytest.mark.parametrize(
    ("name", "why"), [("nothing", "is no attribute. It has page_id"), ("version", "changes without a read or write")]
)
def test_what_nothing_can_follow_from_is_refused_at_the_first_write(name: str, why: str, table: Table) -> None:
    with forgotten():
        model = declare(
            "Leaflet",
            ("LEAFLET#{page_id}", "#"),
            page_id=models.UnicodeAttribute(),
            version=models.VersionAttribute(),
            derived_from=(name,),
        )
        with pytest.raises(exceptions.ConfigurationError, match=f"Leaflet.derived_from names '{name}', which {why}"):
            model.objects.create(page_id="1")
