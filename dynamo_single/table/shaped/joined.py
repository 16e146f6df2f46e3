"""Join keys of two parts into one string, for tables without a sort key.

All code above the table uses ``pk`` and ``sk``. In a table without a sort key, the ``sk`` of a model's item is a
constant, so its key is its ``pk`` alone. In a table of records, whose ``KEY`` is ``"id"``, the prefix of the identifier
determines the ``sk``, and the ``pk`` is the escaped identifier. The key of any other item is its ``pk`` and ``sk``,
joined. Each pair has a different text. ``declared`` has the prefixes of records.
"""

from __future__ import annotations

import re
from typing import Final

from dynamo_single.conf.shapes import NO_SORT_KEY
from dynamo_single.exceptions import InvalidValue, UnexpectedItem
from dynamo_single.table import masking
from dynamo_single.table.masking import escape, unescape
from dynamo_single.table.names import MIGRATIONS
from dynamo_single.table.request import PARTITION_KEY_LIMIT, Parameters
from dynamo_single.table.shaped import declared

_MARK: Final = "#"
_BETWEEN: Final = "|"
_UUID: Final = re.compile(r"-[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\Z")


def id_of_pair(partition: str, sort: str, *, by_prefix: bool = True) -> str:
    """Return the only key of an item: the identifier of a record, or ``pk`` and ``sk``, joined.

    Raise ``InvalidValue`` if it is longer than DynamoDB's limit. In a table without ``by_prefix``, a model's item has
    the constant ``NO_SORT_KEY``.
    """
    if not by_prefix:
        if sort == NO_SORT_KEY and not is_pair(partition):
            return partition
    else:
        identifier = unescape(partition)
        if sort == _sort_of(identifier) and not is_pair(identifier) and escape(identifier) == partition:
            return identifier
    found = f"{beginning_of(partition)}{_BETWEEN}{sort}"
    # Lone surrogates are reported when the request's body is encoded.
    size = len(found.encode("utf-8", "surrogatepass"))
    if size > PARTITION_KEY_LIMIT:
        raise InvalidValue(
            f"The key {shown_id(partition, sort)!r} has {size} bytes as one text, which it is in a table "
            f"without a sort key; DynamoDB takes {PARTITION_KEY_LIMIT}."
        )
    return found


def pair_of_id(identifier: str, *, by_prefix: bool = True) -> tuple[str, str]:
    """Return ``pk`` and ``sk`` for a key; raise ``UnexpectedItem`` if ``id_of_pair()`` cannot return it."""
    if not is_pair(identifier):
        return record_key(identifier) if by_prefix else (identifier, NO_SORT_KEY)
    beginning, _, sort = identifier[len(_MARK) :].partition(_BETWEEN)
    partition = beginning.replace("~1", _BETWEEN).replace("~0", "~")
    if id_of_pair(partition, sort, by_prefix=by_prefix) != identifier:
        raise UnexpectedItem(
            f"The item {shown_id(partition, sort)!r} has a key that begins with {_MARK!r} and contains {_BETWEEN!r}, "
            "but the app cannot have written it. Give it another key."
        )
    return partition, sort


def shown_id(partition: str, sort: str) -> str:
    """Return the only key of an item for a message, without the secrets in it."""
    masked = masking.shown_key(None, partition, sort)
    if masked == (partition, sort) and sort in (NO_SORT_KEY, _sort_of(unescape(partition))):
        return unescape(partition)
    return f"{beginning_of(masked[0])}{_BETWEEN}{masked[1]}"


def record_key(identifier: str) -> tuple[str, str]:
    """Return the key of the record with an identifier."""
    return escape(identifier), _sort_of(identifier)


def is_pair(text: str) -> bool:
    """Return whether a key has the form of two joined parts."""
    return text.startswith(_MARK) and _BETWEEN in text


def beginning_of(partition: str, sort: str | None = None) -> str:
    """Return the common prefix of the keys in a partition; with ``sort``, of those whose ``sk`` begins with it."""
    found = _MARK + partition.replace("~", "~0").replace(_BETWEEN, "~1")
    return found if sort is None else f"{found}{_BETWEEN}{sort}"


def _sort_of(identifier: str) -> str:
    """Return the sort key of the record with an identifier, by the longest registered prefix.

    The prefix of an unknown model ends before a UUID, or else before the last ``-``.
    """
    for prefix, sort in declared.record_sorts():
        if not prefix or identifier.startswith(f"{prefix}-"):
            return sort
    found = _UUID.search(identifier)
    prefix = identifier.rpartition("-")[0] if found is None else identifier[: found.start()]
    return f"#{prefix.upper()}"


_PARTITION: Final = re.compile(r"(#\w+) = (:\w+) AND begins_with\((#\w+), (:\w+)\)")


def beginning_of_query(params: Parameters) -> str | None:
    """Return the beginning of the keys that a Query of the partition of migrations reads; ``None`` for another Query.

    A Scan finds them, which has no order. Other partitions contain at most one item.
    """
    found = _PARTITION.fullmatch(params.get("KeyConditionExpression", ""))
    values = params.get("ExpressionAttributeValues", {})
    is_plain = not params.keys() & {"FilterExpression", "ScanIndexForward"}
    if found is None or values[found[2]] != {"S": MIGRATIONS} or not is_plain:
        return None
    return beginning_of(MIGRATIONS, values[found[4]]["S"])
