"""aiodynamo on aiohttp, asynchronous and with plain values. Each operation is one run of a permanent loop."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import aiohttp
from aiodynamo.client import Client
from aiodynamo.credentials import Key, StaticCredentials
from aiodynamo.expressions import F, HashKey
from aiodynamo.http.aiohttp import AIOHTTP
from aiodynamo.models import BatchGetRequest, BatchWriteRequest, ReturnValues
from aiodynamo.operations import Put
from yarl import URL

from benchmarks.orders import item
from benchmarks.sides.floor import BATCH
from benchmarks.sides.side import IN_BLOCK, Side

ABSENT = F("pk").does_not_exist()


def client(session: aiohttp.ClientSession, endpoint_url: str | None, region: str) -> Client:
    """Return a client with numbers as Decimals, which are exact."""
    return Client(
        AIOHTTP(session), StaticCredentials(Key("local", "local")), region, URL(endpoint_url), numeric_type=Decimal
    )


class AioDynamo(Side):
    """The client, for individual and for many items."""

    name = "aiodynamo"

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.loop = asyncio.new_event_loop()
        self.loop.run_until_complete(self._begin())

    async def _begin(self) -> None:
        self.session = aiohttp.ClientSession()
        self.client = client(self.session, self.settings.endpoint_url, self.settings.region)

    def close(self) -> None:
        """Close the session and the loop."""
        self.loop.run_until_complete(self.session.close())
        self.loop.close()

    def get(self) -> Any:
        """Call ``get_item()``."""
        return self.loop.run_until_complete(self.client.get_item(self.table, self.key))

    def create(self) -> Any:
        """Call ``put_item()`` if the item does not exist."""
        made = self.new()
        self.loop.run_until_complete(self.client.put_item(self.table, item(*made), condition=ABSENT))
        return made

    def save(self) -> Any:
        """Call ``update_item()`` for one attribute, which returns the item."""
        return self._change(ReturnValues.all_new)

    def update(self) -> Any:
        """Call ``update_item()`` for one attribute, without returned values."""
        return self._change(ReturnValues.none)

    def _change(self, returned: ReturnValues) -> Any:
        change = F("status").set(self.status())
        asked = {"condition": F("pk").exists(), "return_values": returned}
        return self.loop.run_until_complete(self.client.update_item(self.table, self.key, change, **asked))

    def objects(self) -> Sequence[Any]:
        """Call ``query()`` for the shorter list."""
        return self.loop.run_until_complete(self._query(self.listed))

    def rows(self) -> Sequence[Any]:
        """Call ``query()`` for two of the attributes."""
        found = self.loop.run_until_complete(self._query(self.listed, projection=F("number") & F("status")))
        return [(each["number"], each["status"]) for each in found]

    def many(self) -> Sequence[Any]:
        """Call ``query()``, page after page."""
        return self.loop.run_until_complete(self._query(self.long_list))

    def in_bulk(self) -> Sequence[Any]:
        """Call ``batch_get()``."""
        found = self.loop.run_until_complete(self.client.batch_get({self.table: BatchGetRequest(self.keys)}))
        return found.items[self.table]

    def atomic(self) -> Any:
        """Call ``transact_write_items()``."""
        block = self.new_block()
        puts = [Put(self.table, item(block, number), ABSENT) for number in range(1, IN_BLOCK + 1)]
        self.loop.run_until_complete(self.client.transact_write_items(puts))
        return block

    def bulk_create(self) -> Any:
        """Call ``batch_write()``, 25 items in each request."""
        return self.loop.run_until_complete(self._put_all())

    bulk_in_transactions = put_many = bulk_create

    async def _put_all(self) -> Any:
        block = self.new_block()
        items = [item(block, number) for number in range(1, self.bulk + 1)]
        for start in range(0, len(items), BATCH):
            await self.client.batch_write({self.table: BatchWriteRequest(items_to_put=items[start : start + BATCH])})
        return block

    async def _query(self, customer: str, **options: Any) -> list[Any]:
        found = self.client.query(self.table, HashKey("pk", f"CUSTOMER#{customer}"), **options)
        return [each async for each in found]


SIDES = (AioDynamo,)
