"""Books, each a map of any shape. Queries can filter by author and price, which are extracted from the map."""

from __future__ import annotations

from dynamo_single import models


class Book(models.Record):
    """A book, with all its data in ``data``."""

    author = models.ExtractedAttribute("data__author__lastname")
    price = models.ExtractedAttribute("data__price", output=models.DecimalAttribute())

    class Keys(models.Record.Keys):
        by_author = models.IndexKey("gs1", "BOOKSBY#{author}", "{id}")
        by_price = models.IndexKey("gs2", "BOOKS", "{price}#{id}")

    class Meta:
        id_prefix = "book"
        item_type = "records.Book"

    def __str__(self) -> str:
        title = (self.data or {}).get("title")
        return title if isinstance(title, str) and title else str(self.id)
