"""A request as a value, the types of items and parameters, and the limits of DynamoDB.

DynamoDB's type next to a value determines its Python type (``{"S": "text"}``, ``{"L": [...]}``), and the operation
determines parameters and responses. Type checkers can do neither, so the types with ``Any`` are defined here only:
https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_AttributeValue.html

Each limit names the AWS page that documents it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from msgspec import Struct, field

from dynamo_single.table.lease import Lease
from dynamo_single.table.names import PARTITION_KEY, SORT_KEY

#: An attribute value while it is built; and as it is read, without changes.
AttributeValue = dict[str, Any]
StoredValue = Mapping[str, Any]
#: An item by the stored names of its attributes; and while it is built.
Item = Mapping[str, StoredValue]
NewItem = dict[str, AttributeValue]

#: The parameters of a request without its table, and its response.
Parameters = Mapping[str, Any]
Response = dict[str, Any]
#: The operations that only read.
READS = frozenset({"BatchGetItem", "GetItem", "Query", "Scan", "TransactGetItems"})
#: The operations that write items. The app sends BatchExecuteStatement only to insert items.
WRITES = frozenset(
    {"BatchExecuteStatement", "BatchWriteItem", "DeleteItem", "PutItem", "TransactWriteItems", "UpdateItem"}
)


class Request(Struct, frozen=True):
    """One request as DynamoDB's API takes it, without the table's name; it is sent under ``lease`` if there is one."""

    operation: str
    params: Parameters = field(default_factory=dict)
    lease: Lease | None = None

    def with_params(self, params: Parameters) -> Request:
        """Return a request of the same operation and lease with other parameters."""
        return Request(self.operation, params, self.lease)


def only_reads(operation: str) -> bool:
    """Return whether an operation changes neither items nor tables."""
    return operation in READS or operation.startswith(("Describe", "List"))


def key_schema(keys: Sequence[str]) -> list[dict[str, str]]:
    """Return a partition key and perhaps a sort key as a parameter of DynamoDB's API."""
    return [{"AttributeName": name, "KeyType": kind} for name, kind in zip(keys, ("HASH", "RANGE"), strict=False)]


_MARK = re.compile(r"#\w+")
#: A placeholder of an attribute rather than of a key inside a document, which may have the same placeholder.
_OF_ATTRIBUTE = re.compile(r"(?<![.\w])#\w+")


def with_names(params: Parameters, names: Mapping[str, str]) -> Parameters:
    """Return the parameters with attributes renamed by ``names``; names inside a document are unchanged."""
    asked: Mapping[str, str] = params.get("ExpressionAttributeNames", {})
    marks = {mark: names[name] for mark, name in asked.items() if name in names}
    if not marks:
        return params
    known = {**asked, **{f"{mark}_now": name for mark, name in marks.items()}}
    texts = {
        key: _OF_ATTRIBUTE.sub(lambda found: found[0] + ("_now" if found[0] in marks else ""), text)
        for key, text in params.items()
        if key.endswith("Expression")
    }
    if "ProjectionExpression" in texts:
        # Two names may have become one, which DynamoDB does not accept twice.
        read = (each.strip() for each in texts["ProjectionExpression"].split(","))
        texts["ProjectionExpression"] = ", ".join({known.get(each, each): each for each in read}.values())
    used = {mark for text in texts.values() for mark in _MARK.findall(text)}
    return {**params, **texts, "ExpressionAttributeNames": {mark: known[mark] for mark in known if mark in used}}


#: The most keys of one BatchGetItem (AWS API reference, BatchGetItem).
MAX_BATCH_KEYS = 100
#: The most writes of one BatchWriteItem (AWS API reference, BatchWriteItem).
MAX_BATCH_WRITES = 25

#: The most statements of one BatchExecuteStatement (AWS API reference, BatchExecuteStatement), and the most characters
#: of one statement without its parameters (AWS API reference, BatchStatementRequest).
MAX_STATEMENTS = 25
MAX_STATEMENT = 8192

#: The most actions of one transaction (AWS API reference, TransactWriteItems).
MAX_ACTIONS = 100
#: The most bytes of all items of one transaction (AWS API reference, TransactWriteItems).
MAX_TRANSACTION_SIZE = 4 * 1024 * 1024
#: The most characters of a client request token (AWS API reference, TransactWriteItems).
MAX_TOKEN = 36

#: The largest item that DynamoDB stores, in bytes (AWS: "Quotas in Amazon DynamoDB", item size).
MAX_ITEM_SIZE = 409_600
#: The most items of one page of a Query or Scan: 1 MB (AWS API reference, Query) of items that contain only two short
#: keys. A larger ``Limit`` does not read more, and DynamoDB rejects one above 2**31-1.
MAX_PAGE_ITEMS = 1024 * 1024 // 6
#: How deep lists and maps may be nested (AWS: "Quotas in Amazon DynamoDB", nested attribute depth).
MAX_DEPTH = 32
#: The digits and the exponent of a number (AWS: "Supported data types and naming rules in Amazon DynamoDB", Number).
MAX_DIGITS = 38
MAX_EXPONENT = 125

#: The longest keys in UTF-8 bytes (AWS: "Quotas in Amazon DynamoDB", partition and sort key values).
PARTITION_KEY_LIMIT = 2048
SORT_KEY_LIMIT = 1024

#: The most operands of one IN (AWS: "Comparison operator and function reference").
MAX_IN_OPERANDS = 100
#: The longest expression in bytes, with its placeholders (AWS: "Quotas in Amazon DynamoDB", expression parameters).
MAX_EXPRESSION = 4096
#: The most operators and functions of one expression, of any kind (the same page names it for an UpdateExpression).
MAX_OPERATORS = 300
#: The page of the limits of expressions.
LIMITS = (
    "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html#limits-expression-parameters"
)


# INSERT statements of BatchExecuteStatement. DynamoDB refuses each by itself if its item exists, as it refuses a
# PutItem under this condition. A statement contains names only; all values are parameters.
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ql-reference.multiplestatements.batching.html

#: One entry of a BatchExecuteStatement.
Statement = dict[str, Any]

_INSERT: Final = re.compile(r"""INSERT INTO "((?:[^"]|"")+)" VALUE \{('(?:[^']|'')+': \?(?:, '(?:[^']|'')+': \?)*)\}""")
_INSERTED: Final = re.compile(r"'((?:[^']|'')+)': \?")
_OWN_KEYS: Final = (PARTITION_KEY, SORT_KEY)


def insert_statement(table_name: str, item: Item, keys: tuple[str, ...] = _OWN_KEYS) -> Statement | None:
    """Return the statement that inserts an item, as it is stored; ``None`` if it is longer than 8,192 characters.

    ``keys`` are the names of the table's keys, which the statement names first.
    """
    names = (*item,)
    if names[: len(keys)] != keys:
        names = (*keys, *(name for name in names if name not in keys))
        item = {name: item[name] for name in names}
    text = _text(table_name, names)
    return None if len(text) > MAX_STATEMENT else {"Statement": text, "Parameters": [*item.values()]}


@lru_cache(maxsize=256)
def _text(table_name: str, names: tuple[str, ...]) -> str:
    quoted = (name.replace("'", "''") for name in names)
    table = table_name.replace('"', '""')
    return f'INSERT INTO "{table}" VALUE {{' + ", ".join(f"'{name}': ?" for name in quoted) + "}"


def inserted_item(statement: Mapping[str, Any]) -> tuple[str, Item] | None:
    """Return the table and the stored item of ``insert_statement()``; ``None`` for another statement."""
    found = _INSERT.fullmatch(statement["Statement"])
    if found is None:
        return None
    names = [name.replace("''", "'") for name in _INSERTED.findall(found[2])]
    values = statement.get("Parameters", ())
    if len(names) != len(values):
        return None
    return found[1].replace('""', '"'), dict(zip(names, values, strict=True))
