"""Send the app's own items about a table that it does not own to the companion of that table.

Callers use one table: the partition keys of the app's own items begin with ``TableSettings.own_prefix``, and requests
for them are addressed to the companion here. A transaction can therefore write a model's item and its claims. The
module does not send requests.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from dynamo_single.table.names import PARTITION_KEY
from dynamo_single.table.request import Parameters, Request, Response

_TRANSACTIONS: Final = frozenset({"TransactGetItems", "TransactWriteItems"})
BATCHES: Final = frozenset({"BatchGetItem", "BatchWriteItem"})
_SINGLE: Final = frozenset({"DeleteItem", "GetItem", "PutItem", "UpdateItem"})
#: The condition for the partition, with which the key conditions of our Queries begin.
_PARTITION: Final = re.compile(r"(#?\w+) = (:\w+)")

#: The parts of a request for the table itself, and for its companion.
Routes = tuple[Request | None, Request | None]


def routed(request: Request, own: str, companion: str, prefix: str) -> Routes:
    """Return the part of a request that the table receives, and the part for its companion.

    ``own`` and ``companion`` are the names of the tables. A transaction is never divided: its actions name their
    tables. A batch can be divided into two requests.
    """
    operation, params = request.operation, request.params
    if operation in _SINGLE:
        return (None, request) if _is_ours(params, prefix) else (request, None)
    if operation in _TRANSACTIONS:
        return _transaction(request, companion, prefix)
    if operation in BATCHES:
        return _batch(request, own, companion, prefix)
    if operation == "Query" and _partition_of(params).startswith(prefix):
        return None, request
    return request, None


def _is_ours(params: Parameters, prefix: str) -> bool:
    """Return whether the key of a request or an action begins with the prefix."""
    key: Mapping[str, Any] = params.get("Key") or params.get("Item") or {}
    text: object = key.get(PARTITION_KEY, {}).get("S")
    return isinstance(text, str) and text.startswith(prefix)


def _partition_of(params: Parameters) -> str:
    """Return the partition key that a Query of the table reads, or an empty string."""
    found = None if "IndexName" in params else _PARTITION.match(params.get("KeyConditionExpression", ""))
    if found is None or params.get("ExpressionAttributeNames", {}).get(found[1], found[1]) != PARTITION_KEY:
        return ""
    return str(params["ExpressionAttributeValues"][found[2]].get("S", ""))


def _transaction(request: Request, companion: str, prefix: str) -> Routes:
    actions, number = [], 0
    for action in request.params["TransactItems"]:
        ((kind, entry),) = action.items()
        if _is_ours(entry, prefix):
            number += 1
            action = {kind: {**entry, "TableName": companion}}
        actions.append(action)
    if not number:
        return request, None
    found = request.with_params({**request.params, "TransactItems": actions})
    return (None, found) if number == len(actions) else (found, None)


def _batch(request: Request, own: str, companion: str, prefix: str) -> Routes:
    is_read = request.operation == "BatchGetItem"
    contents = request.params["RequestItems"][own]
    entries = contents["Keys"] if is_read else contents
    ours = [entry for entry in entries if _is_in_batch(entry, prefix, is_read=is_read)]
    if not ours:
        return request, None
    others = [entry for entry in entries if entry not in ours]

    def part(name: str, entries: list[Any]) -> Request | None:
        wrapped = {**contents, "Keys": entries} if is_read else entries
        return request.with_params({**request.params, "RequestItems": {name: wrapped}}) if entries else None

    return part(own, others), part(companion, ours)


def _is_in_batch(entry: Mapping[str, Any], prefix: str, *, is_read: bool) -> bool:
    if is_read:
        return _is_ours({"Key": entry}, prefix)
    return any(_is_ours(write, prefix) for write in entry.values())


def merged(own: str, companion: str, first: Response | None, second: Response) -> Response:
    """Return the responses to both parts of a batch as one response of the table, with all unprocessed entries."""
    found: Response = {**(first or {})}
    for name in ("Responses", "UnprocessedItems", "UnprocessedKeys"):
        theirs = (second.get(name) or {}).get(companion)
        if not theirs:
            continue
        ours = (found.get(name) or {}).get(own)
        if name == "UnprocessedKeys":
            both: Any = {**theirs, "Keys": [*(ours or {}).get("Keys", ()), *theirs["Keys"]]}
        else:
            both = [*(ours or ()), *theirs]
        found[name] = {own: both}
    found.setdefault("Responses", {})
    return found
