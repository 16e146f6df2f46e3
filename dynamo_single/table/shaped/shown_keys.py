"""Keys for messages, by the names and in the values of their table."""

from __future__ import annotations

from collections.abc import Iterator

from dynamo_single.conf.shapes import KeyAttribute, Shape
from dynamo_single.table.shaped.joined import id_of_pair, shown_id
from dynamo_single.table.shaped.sortable import is_number_text, number_of_text


def shown_pairs(shape: Shape, partition: str, sort: str) -> Iterator[tuple[str, str]]:
    """Yield the name of each key attribute of the table with its value as Python source."""
    if shape.sort is None:
        identifier = shown_id(partition, sort) if shape.by_prefix else id_of_pair(partition, sort, by_prefix=False)
        yield shape.partition.name, shown_value(shape.partition, identifier)
    else:
        yield shape.partition.name, shown_value(shape.partition, partition)
        yield shape.sort.name, shown_value(shape.sort, sort)


def shown_value(key: KeyAttribute, text: str) -> str:
    """Return the value of a key attribute as Python source; the app has a string for each."""
    return number_of_text(text) if key.type == "N" and is_number_text(text) else repr(text)
