"""boto3: its client, which uses AttributeValues, and its resource's client, which uses plain values.

boto3's client is botocore's, so botocore replaces boto3 if boto3 is not installed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import botocore.session
from botocore.config import Config

from benchmarks.orders import item, wire
from benchmarks.sides.floor import BATCH, CHANGED, MISSING, NAMED, READ_BACK
from benchmarks.sides.side import IN_BLOCK, Side

try:
    import boto3
except ModuleNotFoundError:
    boto3 = None


def options(endpoint_url: str | None, region: str) -> dict[str, Any]:
    """Return the options of a client, with more connections than any benchmark has threads."""
    return {
        "endpoint_url": endpoint_url,
        "region_name": region,
        "aws_access_key_id": "local",
        "aws_secret_access_key": "local",  # an engine on this machine, which does not check it
        "config": Config(max_pool_connections=32, retries={"mode": "standard"}),
    }


class Client(Side):
    """The client, which supports only AttributeValues."""

    name = "boto3" if boto3 else "botocore"
    #: Returns an item in the client's representation.
    item: Callable[[str, int], dict[str, Any]] = staticmethod(wire)

    def __init__(self, *arguments: Any, **kinds: Any) -> None:
        super().__init__(*arguments, **kinds)
        self.client = self.connected()
        self._one = self._texts(self.key)
        self._all = [self._texts(each) for each in self.keys]

    def connected(self) -> Any:
        """Return a new client."""
        made = options(self.settings.endpoint_url, self.settings.region)
        return (
            boto3.client("dynamodb", **made)
            if boto3
            else botocore.session.get_session().create_client("dynamodb", **made)
        )

    @staticmethod
    def text(value: str) -> Any:
        """Return a string in the client's representation."""
        return {"S": value}

    def get(self) -> Any:
        """Call ``get_item()``."""
        return self.client.get_item(TableName=self.table, Key=self._one)["Item"]

    def create(self) -> Any:
        """Call ``put_item()`` if the item does not exist."""
        made = self.new()
        self.client.put_item(TableName=self.table, Item=self.item(*made), **MISSING)
        return made

    def save(self) -> Any:
        """Call ``update_item()`` for one attribute, which returns the item."""
        return self._change(READ_BACK)["Attributes"]

    def update(self) -> Any:
        """Call ``update_item()`` for one attribute, without returned values."""
        return self._change({})

    def _change(self, returned: dict[str, str]) -> Any:
        asked = {**CHANGED, **returned, "ExpressionAttributeValues": {":s": self.text(self.status())}}
        return self.client.update_item(TableName=self.table, Key=self._one, **asked)

    def objects(self) -> Sequence[Any]:
        """Call ``query()`` for the shorter list."""
        return self._query(self.listed)

    def rows(self) -> Sequence[Any]:
        """Call ``query()`` for two of the attributes."""
        return [(each["number"], each["status"]) for each in self._query(self.listed, **NAMED)]

    def many(self) -> Sequence[Any]:
        """Call ``query()`` for the longer list, page after page."""
        return self._query(self.long_list)

    def in_bulk(self) -> Sequence[Any]:
        """Call ``batch_get_item()``."""
        found = self.client.batch_get_item(RequestItems={self.table: {"Keys": self._all}})
        return found["Responses"][self.table]

    def atomic(self) -> Any:
        """Call ``transact_write_items()``."""
        block = self.new_block()
        puts = [
            {"Put": {"TableName": self.table, "Item": self.item(block, number), **MISSING}}
            for number in range(1, IN_BLOCK + 1)
        ]
        self.client.transact_write_items(TransactItems=puts)
        return block

    def bulk_create(self) -> Any:
        """Call ``batch_write_item()``, 25 items in each request."""
        block = self.new_block()
        requests = [{"PutRequest": {"Item": self.item(block, number)}} for number in range(1, self.bulk + 1)]
        for start in range(0, len(requests), BATCH):
            self.client.batch_write_item(RequestItems={self.table: requests[start : start + BATCH]})
        return block

    bulk_in_transactions = put_many = bulk_create

    def _query(self, customer: str, **kinds: Any) -> list[dict[str, Any]]:
        asked = {"KeyConditionExpression": "#p = :p", "ExpressionAttributeNames": {"#p": "pk"}, **kinds}
        asked["ExpressionAttributeValues"] = {":p": self.text(f"CUSTOMER#{customer}")}
        found: list[dict[str, Any]] = []
        while True:
            answer = self.client.query(TableName=self.table, **asked)
            found.extend(answer["Items"])
            if "LastEvaluatedKey" not in answer:
                return found
            asked["ExclusiveStartKey"] = answer["LastEvaluatedKey"]

    def _texts(self, stored: dict[str, str]) -> dict[str, Any]:
        return {name: self.text(value) for name, value in stored.items()}


class Resource(Client):
    """The client of boto3's resource, which converts plain values to AttributeValues, and back."""

    name = "boto3 resource"
    item = staticmethod(item)

    def connected(self) -> Any:
        """Return the client of a new resource."""
        made = options(self.settings.endpoint_url, self.settings.region)
        return boto3.resource("dynamodb", **made).meta.client

    @staticmethod
    def text(value: str) -> Any:
        """Return the string."""
        return value


SIDES = (Client, Resource) if boto3 else (Client,)
