"""A paged list of books in three orders, and a book with all its data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.views.generic import DetailView, ListView

from dynamo_single.models import QuerySet
from dynamo_single.pagination import CursorListMixin
from project.records.models import Book


class BookList(CursorListMixin, ListView):  # type: ignore[type-arg]  # not generic at run time
    """A page of books: one Query of the key that supports the filter and order."""

    paginate_by = 12
    template_name = "records/books.html"

    def get_queryset(self) -> QuerySet[Any]:
        """Return an author's books, the cheapest books first, or the newest books first."""
        if self.request.GET.get("author"):
            return Book.objects.filter(author=self.request.GET["author"])
        if self.request.GET.get("order") == "price":
            return Book.objects.filter(price__isnull=False).order_by("price")
        return Book.objects.order_by("-created_at")


class BookPage(DetailView):  # type: ignore[type-arg]  # not generic at run time
    """A book: one GetItem."""

    model = Book
    template_name = "records/book.html"

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        """Add each path of the map with its value."""
        return super().get_context_data(places=[*_places(self.object.data or {})], **context)


def _places(value: Any, *names: str) -> Iterator[tuple[str, object]]:
    """Yield each path and its value. Sort the names in maps, because DynamoDB does not keep their order."""
    parts: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        parts = sorted(value.items())
    elif isinstance(value, list):
        parts = list(enumerate(value))
    if not parts:
        yield ".".join(names), value
    for name, inner in parts:
        yield from _places(inner, *names, str(name))
