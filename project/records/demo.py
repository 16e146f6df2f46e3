"""The demo's books, all of them invented; the same each time, but for their times."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import UUID

from project.records.models import Book

FIRST = ("The Silent", "A Short", "The Last", "An Unfinished", "The Second", "A Careful", "Every", "The Patient")
SECOND = ("Harbour", "History of Rain", "Lighthouse", "Winter", "Gardener")
AUTHORS = (
    {"firstname": "Ada", "lastname": "Sample"},
    {"firstname": "Ben", "lastname": "Example"},
    {"firstname": "Clara", "lastname": "Placeholder"},
    {"firstname": "Dan", "lastname": "Specimen"},
)
PUBLISHERS = ("Example Press", "Sample & Daughters")


def is_loaded() -> bool:
    """Whether everything was written: one read of the last book, which may be in the trash."""
    return Book.all_objects.filter(pk=_identifier(0)).exists()


def load() -> None:
    """40 books; what is there already stays."""
    titles = [f"{first} {second}" for second in SECOND for first in FIRST]
    books = [Book(id=_identifier(number), data=_data(number, title)) for number, title in enumerate(titles)]
    Book.objects.bulk_create(books[1:], ignore_conflicts=True)
    Book.objects.bulk_create(books[:1], ignore_conflicts=True)


def _identifier(number: int) -> str:
    return f"book-{UUID(int=number, version=1)}"


def _data(number: int, title: str) -> dict[str, Any]:
    """Not all have the same places: that is what a record is for."""
    found: dict[str, Any] = {
        "title": title,
        "author": AUTHORS[number % len(AUTHORS)],
        "price": Decimal(795 + 1250 * (7 * number % 23)) / 100,
        "publisher": PUBLISHERS[number % 3 % 2],
    }
    if number % 3 == 0:
        found["discount"] = Decimal("3.5")
    if number % 5 == 0:
        found["editions"] = [{"year": 1990 + number, "pages": 120 + 4 * number}]
    if number % 4 == 0:
        found["subjects"] = ["weather", "travel"]
    return found
