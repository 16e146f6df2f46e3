"""The keys in requests as they are sent, by the app's own names, for every kind of table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from dynamo_single.table.names import PARTITION_KEY, SORT_KEY
from dynamo_single.table.request import Item, Parameters, inserted_item

if TYPE_CHECKING:
    from dynamo_single.table.shaped.translator import Translator

#: Return the translator of a table by its name; ``None`` if it uses the app's own names.
TranslatorOf = Callable[[str], "Translator | None"]


def own_key(item: Item) -> tuple[str, str]:
    """Return ``pk`` and ``sk`` of an item or key by the app's own names; empty strings if it has neither."""
    return item.get(PARTITION_KEY, {}).get("S", ""), item.get(SORT_KEY, {}).get("S", "")


def sent_key(item: Item, table_name: str, translator_of: TranslatorOf) -> tuple[str, str]:
    """Return ``pk`` and ``sk`` of an item or key in a request or response as it was sent."""
    translator = translator_of(table_name)
    return own_key(item) if translator is None else translator.pair(item)


def written_keys(operation: str, params: Parameters, translator_of: TranslatorOf) -> Iterator[tuple[str, str, str]]:
    """Yield table, ``pk`` and ``sk`` of each item that a request writes, as it is sent."""
    for table, written in _written(operation, params):
        yield table, *sent_key(written.get("Key") or written["Item"], table, translator_of)


def _written(operation: str, params: Parameters) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if operation in ("PutItem", "UpdateItem", "DeleteItem"):
        yield params["TableName"], params
    elif operation == "TransactWriteItems":
        for entry in params["TransactItems"]:
            yield from ((action["TableName"], action) for action in entry.values())
    elif operation == "BatchWriteItem":
        for table, entries in params["RequestItems"].items():
            yield from ((table, action) for entry in entries for action in entry.values())
    elif operation == "BatchExecuteStatement":
        for table, item in filter(None, map(inserted_item, params["Statements"])):
            yield table, {"Item": item}


def has_keys(operation: str, params: Parameters) -> bool:
    """Return whether ``written_keys()`` yields all items that a request writes, also those of PartiQL statements."""
    return operation != "BatchExecuteStatement" or all(map(inserted_item, params["Statements"]))
