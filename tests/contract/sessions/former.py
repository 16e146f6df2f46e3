"""Sessions of earlier versions, stored under their key instead of its hash."""

from __future__ import annotations

from typing import Any

from dynamo_single.sessions import FormerSession, key_hash
from dynamo_single.table import Request, Table, get_table

FORMER, HASHED = "SESSION#", "SESSIONHASH#"


def item_of(table: Table, partition: str) -> dict[str, Any] | None:
    """Return the item under a partition key."""
    key = {"pk": {"S": partition}, "sk": {"S": "#METADATA"}}
    found: dict[str, Any] | None = table.send(Request("GetItem", {"Key": key, "ConsistentRead": True})).get("Item")
    return found


def put(table: Table, item: dict[str, Any]) -> None:
    """Write an item as another process would."""
    table.send(Request("PutItem", {"Item": item}))


def as_former(session_key: str | None, *, keep: bool = False) -> str:
    """Store a session as an earlier version did, instead of under its hash or, with ``keep``, next to that."""
    table, key = get_table(), str(session_key)
    partition = HASHED + key_hash(key)
    item = item_of(table, partition)
    assert item is not None
    del item["sessionKeyHash"]
    form = {"pk": {"S": FORMER + key}, "itemType": {"S": "Session"}, "sessionKey": {"S": key}}
    put(table, {**item, **form})
    if not keep:
        table.send(Request("DeleteItem", {"Key": {"pk": {"S": partition}, "sk": {"S": "#METADATA"}}}))
        assert FormerSession.objects.get(pk=key).session_key == key
    return key
