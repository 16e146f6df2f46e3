"""The synchronous methods of pydynox, whose client is written in Rust."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydynox import DynamoDBClient, Model, ModelConfig, SyncBatchWriter, SyncTransaction
from pydynox.attributes import DecimalAttribute, NumberAttribute, StringAttribute

from benchmarks.orders import item
from benchmarks.sides.side import IN_BLOCK, Side


def model_of(table: str, endpoint_url: str | None, region: str) -> type[Any]:
    """Return the model of one table, with a separate client. Datetimes are numbers, as it supports only strings."""
    secret = {"access_key": "local", "secret_key": "local"}
    client = DynamoDBClient(region=region, endpoint_url=endpoint_url, **secret)

    class DynoxOrder(Model):
        model_config = ModelConfig(table=table, client=client)

        pk = StringAttribute(partition_key=True)
        sk = StringAttribute(sort_key=True)
        item_type = StringAttribute(alias="itemType")
        gs1pk = StringAttribute()
        gs1sk = StringAttribute()
        gs2pk = StringAttribute()
        gs2sk = StringAttribute()
        customer = StringAttribute()
        number = NumberAttribute()
        placed_at = NumberAttribute()
        status = StringAttribute()
        coupon = StringAttribute()
        total = DecimalAttribute()

    return DynoxOrder


class PyDynox(Side):
    """The model above."""

    name = "pydynox"

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.model = model_of(self.table, self.settings.endpoint_url, self.settings.region)
        self.client = self.model.model_config.client
        self.order = self.get()

    def new_order(self, customer: str, number: int) -> Any:
        """Return a new order, which is not stored."""
        stored = item(customer, number)
        stored["item_type"] = stored.pop("itemType")
        return self.model(**stored)

    def get(self) -> Any:
        """Call ``Model.sync_get()``."""
        return self.model.sync_get(**self.key)

    def create(self) -> Any:
        """Call ``sync_save()`` for a new object if the item does not exist."""
        made = self.new()
        self.new_order(*made).sync_save(condition=self.model.pk.not_exists())
        return made

    def save(self) -> Any:
        """Call ``sync_update()`` for one attribute, which does not read the item back."""
        self.order.sync_update(status=self.status(), condition=self.model.pk.exists())
        return self.order

    update = save

    def objects(self) -> Sequence[Any]:
        """Call ``Model.sync_query()``."""
        return list(self.model.sync_query(partition_key=f"CUSTOMER#{self.listed}"))

    def many(self) -> Sequence[Any]:
        """Call ``Model.sync_query()``, page after page."""
        return list(self.model.sync_query(partition_key=f"CUSTOMER#{self.long_list}"))

    def in_bulk(self) -> Sequence[Any]:
        """Call ``Model.sync_batch_get()``."""
        return self.model.sync_batch_get(self.keys)

    def atomic(self) -> Any:
        """Call ``SyncTransaction`` for a block of writes."""
        block = self.new_block()
        with SyncTransaction(self.client) as transaction:
            for number in range(1, IN_BLOCK + 1):
                transaction.save_model(self.new_order(block, number), condition=self.model.pk.not_exists())
        return block

    def bulk_create(self) -> Any:
        """Call ``SyncBatchWriter``, which takes items of objects."""
        block = self.new_block()
        with SyncBatchWriter(self.client, self.table) as batch:
            for number in range(1, self.bulk + 1):
                batch.put(self.new_order(block, number).to_dict())
        return block

    bulk_in_transactions = put_many = bulk_create


SIDES = (PyDynox,)
