"""Translate requests and responses of a table whose only key attribute is ``id``.

All code above the table uses ``pk`` and ``sk``. The ``pk`` of a record is its identifier, and the prefix of the
identifier determines its ``sk``, so the ``id`` of a record is the identifier alone. The ``id`` of any other item is its
``pk`` and ``sk``, joined. Each pair has a different ``id``. The mapping registers the prefixes of records with
``register_records()``. The module does not send requests.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgspec
from msgspec import Struct

from dynamo_single.exceptions import InvalidValue, NotSupported, UnexpectedItem
from dynamo_single.table import masking
from dynamo_single.table.answers import TypedResponse
from dynamo_single.table.masking import escape, unescape
from dynamo_single.table.names import ID, MIGRATIONS, PARTITION_KEY, SORT_KEY
from dynamo_single.table.request import PARTITION_KEY_LIMIT, Item, Parameters, StoredValue, inserted_key

_MARK: Final = "#"
_BETWEEN: Final = "|"
_UUID: Final = re.compile(r"-[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\Z")

_PAIR: Final = frozenset({PARTITION_KEY, SORT_KEY})
#: The placeholder of the key; no other code uses it.
_KEY: Final = "#key"
_EXPRESSIONS: Final = ("ConditionExpression", "FilterExpression", "UpdateExpression")
#: A placeholder of an attribute's name rather than of a key inside a document.
_NAME: Final = re.compile(r"(?<![.#\w])#\w+")
#: A key attribute in an expression without a placeholder.
_BARE: Final = re.compile(rf"(?<![.#:\w])({PARTITION_KEY}|{SORT_KEY})(?!\w)")
_PLACEHOLDER: Final = re.compile(r"#\w+")
_EXISTS: Final = re.compile(r"attribute_(?:not_)?exists ?\($")
_RANGE: Final = re.compile(r" BETWEEN (:\w+) AND (:\w+)")
_PARTITION: Final = re.compile(r"(#\w+) = (:\w+) AND begins_with\((#\w+), (:\w+)\)")


def _none() -> Sequence[tuple[str, str]]:
    return ()


#: The prefixes of records' identifiers, the longest first, each with the sort key of its records.
_declared: Callable[[], Sequence[tuple[str, str]]] = _none


def register_records(declared: Callable[[], Sequence[tuple[str, str]]]) -> None:
    """Register a function that returns the prefixes of records; the mapping calls this when it is imported."""
    global _declared
    _declared = declared


def id_of_pair(partition: str, sort: str) -> str:
    """Return the ``id`` of an item: the identifier of a record, or ``pk`` and ``sk``, joined.

    Raise ``InvalidValue`` if it is longer than DynamoDB's limit.
    """
    identifier = unescape(partition)
    if sort == _sort_of(identifier) and not _is_pair(identifier) and escape(identifier) == partition:
        return identifier
    found = f"{_beginning(partition)}{_BETWEEN}{sort}"
    # Lone surrogates are reported when the request's body is encoded.
    size = len(found.encode("utf-8", "surrogatepass"))
    if size > PARTITION_KEY_LIMIT:
        raise InvalidValue(
            f"The key {_shown(partition, sort)!r} has {size} bytes as one text, which it is in a table "
            f"whose KEY is 'id'; DynamoDB takes {PARTITION_KEY_LIMIT}."
        )
    return found


def pair_of_id(identifier: str) -> tuple[str, str]:
    """Return ``pk`` and ``sk`` for an ``id``; raise ``UnexpectedItem`` if ``id_of_pair()`` cannot return it."""
    if not _is_pair(identifier):
        return record_key(identifier)
    beginning, _, sort = identifier[len(_MARK) :].partition(_BETWEEN)
    partition = beginning.replace("~1", _BETWEEN).replace("~0", "~")
    if id_of_pair(partition, sort) != identifier:
        raise UnexpectedItem(
            f"The item {_shown(partition, sort)!r} has an id that begins with {_MARK!r} and contains {_BETWEEN!r}, "
            "but the app cannot have written it. Give it another id."
        )
    return partition, sort


def _shown(partition: str, sort: str) -> str:
    """Return the ``id`` of an item for a message, without the secrets in it."""
    masked = masking.shown_key(None, partition, sort)
    if masked == (partition, sort) and sort == _sort_of(unescape(partition)):
        return unescape(partition)
    return f"{_beginning(masked[0])}{_BETWEEN}{masked[1]}"


def record_key(identifier: str) -> tuple[str, str]:
    """Return the key of the record with an identifier."""
    return escape(identifier), _sort_of(identifier)


def key_of(item: Mapping[str, Any]) -> tuple[str, str]:
    """Return ``pk`` and ``sk`` of an item or key, of either kind of table; empty strings if it has neither."""
    found = with_pair(item) if PARTITION_KEY not in item else item
    return found.get(PARTITION_KEY, {}).get("S", ""), found.get(SORT_KEY, {}).get("S", "")


def written_keys(operation: str, params: Parameters) -> Iterator[tuple[str, str, str]]:
    """Yield table, ``pk`` and ``sk`` of each item that a request writes, for either kind of table."""
    for table, written in _written(operation, params):
        yield table, *key_of(written.get("Key") or written["Item"])


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
        for table, key in filter(None, map(inserted_key, params["Statements"])):
            yield table, {"Key": key}


def has_keys(operation: str, params: Parameters) -> bool:
    """Return whether ``written_keys()`` yields all items that a request writes; a PartiQL statement may have none."""
    return operation != "BatchExecuteStatement" or all(map(inserted_key, params["Statements"]))


def _is_pair(text: str) -> bool:
    return text.startswith(_MARK) and _BETWEEN in text


def _beginning(partition: str) -> str:
    """Return the common prefix of the ids in a partition, which records do not have."""
    return _MARK + partition.replace("~", "~0").replace(_BETWEEN, "~1")


def _sort_of(identifier: str) -> str:
    """Return the sort key of the record with an identifier, by the longest registered prefix.

    The prefix of an unknown model ends before a UUID, or else before the last ``-``.
    """
    for prefix, sort in _declared():
        if not prefix or identifier.startswith(f"{prefix}-"):
            return sort
    found = _UUID.search(identifier)
    prefix = identifier.rpartition("-")[0] if found is None else identifier[: found.start()]
    return f"#{prefix.upper()}"


def with_id(item: Item) -> Item:
    """Return an item or a key as it is stored; without ``pk``, it already is."""
    if PARTITION_KEY not in item or SORT_KEY not in item:
        return item
    partition, sort = item[PARTITION_KEY]["S"], item[SORT_KEY]["S"]
    identifier = {"S": id_of_pair(partition, sort)}
    if item.get(ID, identifier) != identifier:
        raise InvalidValue(
            f"{_shown(*record_key(item[ID].get('S', '')))!r} cannot be the id of an item in a table whose KEY is 'id': "
            f"its key would be {_shown(partition, sort)!r}. The identifier of a record begins with '<id_prefix>-' "
            "there; leave it out, and one is made; or let the record have id_prefix = '', which takes any."
        )
    return {ID: identifier, **{name: value for name, value in item.items() if name not in _PAIR}}


def with_pair(item: Item) -> Item:
    """Return a stored item or key with ``pk`` and ``sk``, unless it was read without its key."""
    if ID not in item:
        return item
    identifier = item[ID]["S"]
    partition, sort = pair_of_id(identifier)
    # An item of another system may have an attribute with the name of a key attribute.
    found: dict[str, StoredValue] = {**item, PARTITION_KEY: {"S": partition}, SORT_KEY: {"S": sort}}
    if _is_pair(identifier):
        del found[ID]
    return found


def translated_request(operation: str, params: Parameters, own: str | None = None) -> tuple[str, Parameters]:
    """Return a request for such a table; raise ``NotSupported`` for a Query of a partition, which it does not have.

    ``own`` is the name of the table, if it is known. Actions of a transaction on another table are unchanged.
    """
    if operation in ("BatchGetItem", "BatchWriteItem"):
        of_tables: Mapping[str, Any] = params["RequestItems"]
        each = _batch if operation == "BatchGetItem" else _writes
        return operation, {**params, "RequestItems": {name: each(entry) for name, entry in of_tables.items()}}
    if operation in ("TransactGetItems", "TransactWriteItems"):
        actions = [
            {kind: _one(entry) if own in (None, entry["TableName"]) else entry for kind, entry in action.items()}
            for action in params["TransactItems"]
        ]
        return operation, {**params, "TransactItems": actions}
    if operation == "Query" and "IndexName" not in params:
        return "Scan", _scan_of_migrations(params)
    return operation, _one(params)


def _one(params: Parameters) -> dict[str, Any]:
    """Return the translated parameters of a request or an action on one table."""
    found: dict[str, Any] = dict(params)
    for name in ("Key", "Item", "ExclusiveStartKey"):
        if name in found:
            found[name] = with_id(found[name])
    return _named(found)


def _batch(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {**_named(dict(entry)), "Keys": [with_id(key) for key in entry["Keys"]]}


def _writes(entries: list[dict[str, Any]]) -> list[dict[str, object]]:
    return [{kind: _one(write) for kind, write in entry.items()} for entry in entries]


def _named(params: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters with ``id`` instead of ``pk`` and ``sk`` in their expressions."""
    params = _without_bare_names(params)
    placeholders: Mapping[str, str] = params.get("ExpressionAttributeNames", {})
    pair = {placeholder for placeholder, name in placeholders.items() if name in _PAIR}
    if not pair:
        return params
    found = {**params}
    for name in _EXPRESSIONS:
        if name in found:
            found[name] = _NAME.sub(lambda each: _KEY if each[0] in pair else each[0], found[name])
            found |= _compared(found[name], found)
    if "ProjectionExpression" in found:
        own = {ID, *pair, *(placeholder for placeholder, name in placeholders.items() if name == ID)}
        places = (place.strip() for place in found["ProjectionExpression"].split(","))
        # DynamoDB rejects a path that occurs twice.
        found["ProjectionExpression"] = ", ".join(dict.fromkeys(_KEY if each in own else each for each in places))
    expressions = (found.get(name, "") for name in (*_EXPRESSIONS, "ProjectionExpression", "KeyConditionExpression"))
    used = {placeholder for text in expressions for placeholder in _PLACEHOLDER.findall(text)}
    # DynamoDB rejects names that no expression uses.
    found["ExpressionAttributeNames"] = {each: name for each, name in placeholders.items() if each in used}
    if _KEY in used:
        found["ExpressionAttributeNames"][_KEY] = ID
    return found


def _without_bare_names(params: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters with placeholders for ``pk`` and ``sk``, which a project's own request may lack."""
    written = [name for name in (*_EXPRESSIONS, "ProjectionExpression") if name in params]
    bare: dict[str, Any] = {name: _BARE.sub(r"#own_\1", params[name]) for name in written}
    if all(text == params[name] for name, text in bare.items()):
        return params
    names = {**params.get("ExpressionAttributeNames", {}), "#own_pk": PARTITION_KEY, "#own_sk": SORT_KEY}
    return {**params, **bare, "ExpressionAttributeNames": names}


def _compared(text: str, params: Parameters) -> Parameters:
    """Return the values that the key is compared with; raise ``NotSupported`` if a comparison has no equivalent."""
    values = dict(params.get("ExpressionAttributeValues", {}))
    for found in re.finditer(_KEY + r"\b", text):
        if _EXISTS.search(text, 0, found.start()):
            continue
        if (ends := _RANGE.match(text, found.end())) is None:
            raise NotSupported(
                f"{text!r} compares pk or sk, which items of a table whose KEY is 'id' do not have: compare the id."
            )
        values |= {each: {"S": _beginning(values[each]["S"])} for each in ends.groups()}
    return {"ExpressionAttributeValues": values} if values else {}


def _scan_of_migrations(params: Parameters) -> Parameters:
    """Return a Query of the partition of migrations as a Scan; other partitions contain at most one item."""
    found = _PARTITION.fullmatch(params.get("KeyConditionExpression", ""))
    values = params.get("ExpressionAttributeValues", {})
    # A Scan has no order and no key condition.
    is_plain = not params.keys() & {"FilterExpression", "ScanIndexForward"}
    if found is None or values[found[2]] != {"S": MIGRATIONS} or not is_plain:
        raise NotSupported(
            "A table whose KEY is 'id' has no partitions to query, because each item is its own partition. Query by "
            "the id, or by a key on an index."
        )
    beginning = f"{_beginning(MIGRATIONS)}{_BETWEEN}{values[found[4]]['S']}"
    return {
        **_one({name: value for name, value in params.items() if name != "KeyConditionExpression"}),
        "FilterExpression": f"begins_with({_KEY}, :beginning)",
        "ExpressionAttributeNames": {_KEY: ID},
        "ExpressionAttributeValues": {":beginning": {"S": beginning}},
    }


def translated_response(operation: str, answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return a response or an error response with ``pk`` and ``sk`` in its items."""
    if isinstance(answer, TypedResponse):
        return _typed(operation, answer)
    found = dict(answer)
    for name in ("Attributes", "Item", "LastEvaluatedKey"):
        if found.get(name):
            found[name] = with_pair(found[name])
    if "Items" in found:
        found["Items"] = [with_pair(item) for item in found["Items"]]
    if "Responses" in found:
        found["Responses"] = _responses(operation, found["Responses"])
    if found.get("UnprocessedKeys"):
        found["UnprocessedKeys"] = {
            name: {**entry, "Keys": [with_pair(key) for key in entry["Keys"]]}
            for name, entry in found["UnprocessedKeys"].items()
        }
    if found.get("UnprocessedItems"):
        found["UnprocessedItems"] = {
            name: [{kind: _unwritten(write) for kind, write in entry.items()} for entry in entries]
            for name, entries in found["UnprocessedItems"].items()
        }
    if "CancellationReasons" in found:
        found["CancellationReasons"] = [_unwritten(reason) for reason in found["CancellationReasons"]]
    return found


def _responses(operation: str, responses: Any) -> Any:
    if operation == "BatchGetItem":
        return {name: [with_pair(item) for item in items] for name, items in responses.items()}
    return [_unwritten(each) for each in responses]


def _unwritten(entry: Mapping[str, Any]) -> Parameters:
    """Return an entry of a response with ``pk`` and ``sk`` in its item or key."""
    return {name: with_pair(value) if name in ("Item", "Key") and value else value for name, value in entry.items()}


class _NotRecord(Exception):
    """A page contains an item that is not a record, whose ``id`` is not one of its attributes."""


class _Identified(Struct, rename={"identifier": ID}):
    identifier: dict[str, str] | None = None


_identified = msgspec.json.Decoder(_Identified).decode


def _typed(operation: str, answer: TypedResponse) -> dict[str, Any]:
    """Return a page of decoded items; as dicts if one of them is not a record."""
    given = answer.typed
    try:
        typed = {each: _with_keys(given[each]) for each in given} if isinstance(given, dict) else _with_keys(given)
    except _NotRecord:
        return translated_response(operation, answer.as_plain())
    return answer.of_items(
        typed, translated_response(operation, dict(answer)), partial(translated_response, operation, answer.as_plain())
    )


def _with_keys(items: list[object]) -> list[object]:
    """Add keys to items that are bytes; items that are already decoded do not need keys."""
    return [_with_key(item) if type(item) is msgspec.Raw else item for item in items]


def _with_key(item: msgspec.Raw) -> msgspec.Raw:
    identifier = _identified(item).identifier
    if identifier is None:
        return item
    if _is_pair(identifier["S"]):
        raise _NotRecord
    partition, sort = pair_of_id(identifier["S"])
    key = msgspec.json.encode({PARTITION_KEY: {"S": partition}, SORT_KEY: {"S": sort}})
    # If two members have one name, the last one counts.
    return msgspec.Raw(bytes(item)[:-1] + b"," + key[1:])
