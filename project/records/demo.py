"""The demo's books, all invented. Only their times differ between runs."""

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
    """Return whether all demo data exist: one read of the last book, which may be in the trash."""
    return Book.all_objects.filter(pk=_identifier(0)).exists()


def load() -> None:
    """Create 40 books; keep existing ones."""
    titles = [f"{first} {second}" for second in SECOND for first in FIRST]
    books = [Book(id=_identifier(number), data=_data(number, title)) for number, title in enumerate(titles)]
    Book.objects.bulk_create(books[1:], ignore_conflicts=True)
    Book.objects.bulk_create(books[:1], ignore_conflicts=True)


def _identifier(number: int) -> str:
    return f"book-{UUID(int=number, version=1)}"


def _data(number: int, title: str) -> dict[str, Any]:
    """Return the data of a book. Books have different paths, as records permit."""
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
