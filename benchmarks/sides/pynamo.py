"""PynamoDB: a plain model, used as its documentation describes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pynamodb.connection import Connection
from pynamodb.transactions import TransactWrite

from benchmarks.orders import ENTRY, PLACE, document, item, values
from benchmarks.sides import pynamodb_model
from benchmarks.sides.side import IN_BLOCK, Side


class PynamoDB(Side):
    """The model of ``pynamodb_model``."""

    name = "PynamoDB"

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        where = self.settings
        self.model = pynamodb_model.model_of(where.endpoint_url, where.region, self.table)
        secret = {"aws_access_key_id": "local", "aws_secret_access_key": "local"}
        self.connection = Connection(region=where.region, host=where.endpoint_url, **secret)
        self.order = self.get()
        self._document: Any = None

    def new_order(self, customer: str, number: int) -> Any:
        """Return a new order, which is not stored."""
        stored = item(customer, number)
        stored["item_type"] = stored.pop("itemType")
        return self.model(**{**stored, **values(customer, number)})

    def get(self) -> Any:
        """Call ``Model.get()``."""
        return self.model.get(self.key["pk"], self.key["sk"])

    def create(self) -> Any:
        """Call ``save()`` for a new object if the item does not exist."""
        made = self.new()
        self.new_order(*made).save(condition=self.model.pk.does_not_exist())
        return made

    def save(self) -> Any:
        """Call ``update()`` for one attribute, which reads the item back into the object."""
        self.order.update(actions=[self.model.status.set(self.status())], condition=self.model.pk.exists())
        return self.order

    update = save

    def objects(self) -> Sequence[Any]:
        """Call ``Model.query()``."""
        return list(self.model.query(f"CUSTOMER#{self.listed}"))

    def rows(self) -> Sequence[Any]:
        """Call ``Model.query()`` for two of the attributes."""
        found = self.model.query(f"CUSTOMER#{self.listed}", attributes_to_get=["number", "status"])
        return [(each.number, each.status) for each in found]

    def many(self) -> Sequence[Any]:
        """Call ``Model.query()``, page after page."""
        return list(self.model.query(f"CUSTOMER#{self.long_list}"))

    def in_bulk(self) -> Sequence[Any]:
        """Call ``Model.batch_get()``."""
        return list(self.model.batch_get([(each["pk"], each["sk"]) for each in self.keys]))

    def document(self) -> int:
        """Call ``save()`` for an object with one changed path, which puts the whole item."""
        if self._document is None:
            kind = pynamodb_model.document_of(self.settings.endpoint_url, self.settings.region, self.table)
            self._document = kind(*self.document_key.values(), data=document())
        stock = self.stock()
        self._document.data[ENTRY][PLACE] = stock
        self._document.save()
        return stock

    def atomic(self) -> Any:
        """Call ``TransactWrite``."""
        block = self.new_block()
        with TransactWrite(connection=self.connection) as transaction:
            for number in range(1, IN_BLOCK + 1):
                transaction.save(self.new_order(block, number), condition=self.model.pk.does_not_exist())
        return block

    def bulk_create(self) -> Any:
        """Call ``Model.batch_write()``."""
        block = self.new_block()
        with self.model.batch_write() as batch:
            for number in range(1, self.bulk + 1):
                batch.save(self.new_order(block, number))
        return block

    bulk_in_transactions = put_many = bulk_create


SIDES = (PynamoDB,)
