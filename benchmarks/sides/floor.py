"""The floor: a persistent connection, orjson and items as plain values, without signatures, retries and checks."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Sequence
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

import orjson

from benchmarks.orders import ENTRY, PLACE, attribute_value, document, wire
from benchmarks.sides.side import IN_BLOCK, Side

#: The most items of a request: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html
BATCH = 25
MISSING = {"ConditionExpression": "attribute_not_exists(#p)", "ExpressionAttributeNames": {"#p": "pk"}}
CHANGED = {
    "UpdateExpression": "SET #s = :s",
    "ConditionExpression": "attribute_exists(#p)",
    "ExpressionAttributeNames": {"#s": "status", "#p": "pk"},
}
READ_BACK = {"ReturnValues": "ALL_NEW"}
NAMED = {
    "ProjectionExpression": "#n, #s",
    "ExpressionAttributeNames": {"#p": "pk", "#n": "number", "#s": "status"},
    "KeyConditionExpression": "#p = :p",
}
#: A local engine requires a signature, but does not check it.
HEADERS = {
    "Content-Type": "application/x-amz-json-1.0",
    "X-Amz-Date": "20260101T000000Z",
    "Authorization": "AWS4-HMAC-SHA256 Credential=local/20260101/us-east-1/dynamodb/aws4_request, "
    f"SignedHeaders=host;x-amz-date;x-amz-target, Signature={'0' * 64}",
}


def plain(stored: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return an item of strings and numbers as plain values."""
    read: dict[str, Any] = {}
    for name, value in stored.items():
        for kind, each in value.items():
            if kind == "N":
                read[name] = int(each) if each.isdigit() else Decimal(each)
            else:
                read[name] = each
    return read


class Floor(Side):
    """``http.client`` and orjson without a client library."""

    name = "floor"

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._local = threading.local()
        address = urlsplit(self.settings.endpoint_url)
        self._place = address.hostname, address.port
        self._has_document = False
        self._wire_key = texts(self.key)
        self._wire_keys = [texts(each) for each in self.keys]

    def call(self, operation: str, params: dict[str, Any]) -> Any:
        """Send one request on the thread's connection."""
        try:
            connection = self._local.connection
        except AttributeError:
            connection = self._local.connection = http.client.HTTPConnection(*self._place)
        headers = {**HEADERS, "X-Amz-Target": f"DynamoDB_20120810.{operation}"}
        connection.request("POST", "/", orjson.dumps(params), headers)
        answer = connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{operation}: {answer.status} {body!r}")
        return orjson.loads(body)

    def get(self) -> Any:
        """Send a GetItem."""
        return plain(self.call("GetItem", {"TableName": self.table, "Key": self._wire_key})["Item"])

    def create(self) -> Any:
        """Send a PutItem if the item does not exist."""
        made = self.new()
        self.call("PutItem", {"TableName": self.table, "Item": wire(*made), **MISSING})
        return made

    def save(self) -> Any:
        """Send an UpdateItem for one attribute if the item exists, which returns the item."""
        return plain(self._change(READ_BACK)["Attributes"])

    def update(self) -> Any:
        """Send an UpdateItem for one attribute if the item exists, without returned values."""
        return self._change({})

    def _change(self, returned: dict[str, str]) -> Any:
        said = {":s": {"S": self.status()}}
        params = {"TableName": self.table, "Key": self._wire_key, **CHANGED, **returned}
        return self.call("UpdateItem", {**params, "ExpressionAttributeValues": said})

    def objects(self) -> Sequence[Any]:
        """Send a Query for the shorter list."""
        return self._query(self.listed)

    def rows(self) -> Sequence[Any]:
        """Send a Query for two of the attributes."""
        found = self._query(self.listed, **NAMED)
        return [(each["number"], each["status"]) for each in found]

    def many(self) -> Sequence[Any]:
        """Send a Query for the longer list, page after page."""
        return self._query(self.long_list)

    def in_bulk(self) -> Sequence[Any]:
        """Send a BatchGetItem."""
        answer = self.call("BatchGetItem", {"RequestItems": {self.table: {"Keys": self._wire_keys}}})
        return [plain(each) for each in answer["Responses"][self.table]]

    def document(self) -> int:
        """Send an UpdateItem for one path in an item that is put first."""
        key = texts(self.document_key)
        if not self._has_document:
            self.call("PutItem", {"TableName": self.table, "Item": {**key, "data": attribute_value(document())}})
            self._has_document = True
        stock = self.stock()
        places = {"#p": "pk", "#d": "data", "#e": ENTRY, "#s": PLACE}
        change = {"UpdateExpression": "SET #d.#e.#s = :s", "ConditionExpression": "attribute_exists(#p)"}
        said = {"ExpressionAttributeNames": places, "ExpressionAttributeValues": {":s": {"N": str(stock)}}}
        self.call("UpdateItem", {"TableName": self.table, "Key": key, **change, **said})
        return stock

    def atomic(self) -> Any:
        """Send a TransactWriteItems."""
        block = self.new_block()
        puts = [
            {"Put": {"TableName": self.table, "Item": wire(block, number), **MISSING}}
            for number in range(1, IN_BLOCK + 1)
        ]
        self.call("TransactWriteItems", {"TransactItems": puts})
        return block

    def bulk_create(self) -> Any:
        """Send a BatchWriteItem, 25 items in each request."""
        block = self.new_block()
        self.put(wire(block, number) for number in range(1, self.bulk + 1))
        return block

    bulk_in_transactions = put_many = bulk_create

    def put(self, items: Any) -> None:
        """Put items, and overwrite existing ones."""
        requests = [{"PutRequest": {"Item": each}} for each in items]
        for start in range(0, len(requests), BATCH):
            answer = self.call("BatchWriteItem", {"RequestItems": {self.table: requests[start : start + BATCH]}})
            if answer.get("UnprocessedItems"):
                raise RuntimeError("The engine did not take all items.")

    def _query(self, customer: str, **options: Any) -> list[dict[str, Any]]:
        asked = {"KeyConditionExpression": "#p = :p", "ExpressionAttributeNames": {"#p": "pk"}, **options}
        params = {"TableName": self.table, **asked, "ExpressionAttributeValues": {":p": {"S": f"CUSTOMER#{customer}"}}}
        found: list[dict[str, Any]] = []
        while True:
            answer = self.call("Query", params)
            found.extend([plain(each) for each in answer["Items"]])
            if "LastEvaluatedKey" not in answer:
                return found
            params["ExclusiveStartKey"] = answer["LastEvaluatedKey"]


def texts(stored: dict[str, str]) -> dict[str, Any]:
    return {name: {"S": value} for name, value in stored.items()}


SIDES = (Floor,)
