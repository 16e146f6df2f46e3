"""This app, with Django's API."""

from __future__ import annotations

from typing import Any

from benchmarks.orders import ENTRY, PLACE, document, values
from benchmarks.sides.managers import DjangoSide
from benchmarks.sides.side import IN_BLOCK, IN_BULK
from dynamo_single import transactions
from tests.catalog.models import Order, Sample


class Ours(DjangoSide):
    """The model of ``tests.catalog``."""

    name = "ours"
    orders = Order.objects

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.order = Order.objects.get(customer=self.listed, number=self.number)
        self.pk = self.order.pk
        self._sample: Any = None
        self.pks = [Order(customer=self.listed, number=number).pk for number in range(1, IN_BULK + 1)]

    def document(self) -> int:
        """Call ``save()`` for an object with one changed path."""
        if self._sample is None:
            Sample.objects.create(sample_id="sample-of-documents", data=document())
            self._sample = Sample.objects.get(pk="sample-of-documents")
            self.document_key = {name: self._sample._stored[name]["S"] for name in ("pk", "sk")}
        stock = self.stock()
        self._sample.data[ENTRY][PLACE] = stock
        self._sample.save()
        return stock

    def atomic(self) -> Any:
        """Call ``create()`` in ``atomic()``."""
        block = self.new_block()
        with transactions.atomic():
            for number in range(1, IN_BLOCK + 1):
                Order.objects.create(**values(block, number))
        return block

    def bulk_create(self) -> Any:
        """Call ``bulk_create()``, which checks whether each item is new."""
        block = self.new_block()
        Order.objects.bulk_create(self._new(block))
        return block

    def bulk_in_transactions(self) -> Any:
        """Call ``bulk_create()`` in transactions, which checks whether each item is new."""
        block = self.new_block()
        Order.objects.bulk_create(self._new(block), in_transactions=True)
        return block

    def put_many(self) -> Any:
        """Call ``bulk_create()``, and overwrite existing items, as BatchWriteItem does on all other sides."""
        block = self.new_block()
        Order.objects.bulk_create(self._new(block), update_conflicts=True)
        return block

    def _new(self, block: str) -> list[Order]:
        return [Order(**values(block, number)) for number in range(1, self.bulk + 1)]


SIDES = (Ours,)
