"""Keys of items for messages, by the names and in the values of their table."""

from __future__ import annotations

from dynamo_single.conf import table_settings
from dynamo_single.conf.shapes import OWN, Shape
from dynamo_single.table.masking import shown_key
from dynamo_single.table.names import PARTITION_KEY, SORT_KEY


def shown_shape(alias: str) -> Shape:
    """Return the shape by whose names messages about an alias's table call attributes."""
    return table_settings(alias).shape


def key_text(alias: str | None, key: tuple[str, str]) -> str:
    """Return the key of an item for a message: ``pk='SAFE#s1', sk='#METADATA'``, by the names of the alias's table."""
    partition, sort = shown_key(alias, *key)
    shape = OWN if alias is None else shown_shape(alias)
    if shape.is_own:
        return f"{PARTITION_KEY}={partition!r}, {SORT_KEY}={sort!r}"
    from dynamo_single.table.shaped.shown_keys import shown_pairs  # a plain project does not import it

    return ", ".join(f"{name}={value}" for name, value in shown_pairs(shape, partition, sort))
