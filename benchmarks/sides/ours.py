"""This app, by Django's own words."""

from __future__ import annotations

from typing import Any

from benchmarks.orders import values
from benchmarks.sides.managers import DjangoSide
from benchmarks.sides.side import IN_BLOCK, IN_BULK
from dynamo_single import transactions
from tests.catalog.models import Order


class Ours(DjangoSide):
    """The model of ``tests.catalog``."""

    name = "ours"
    orders = Order.objects

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.order = Order.objects.get(customer=self.listed, number=self.number)
        self.pks = [Order(customer=self.listed, number=number).pk for number in range(1, IN_BULK + 1)]

    def atomic(self) -> Any:
        """``create()`` in ``atomic()``."""
        block = self.new_block()
        with transactions.atomic():
            for number in range(1, IN_BLOCK + 1):
                Order.objects.create(**values(block, number))
        return block

    def bulk_create(self) -> Any:
        """``bulk_create()``, which looks of each item whether it is new."""
        block = self.new_block()
        Order.objects.bulk_create(self._new(block))
        return block

    def bulk_in_transactions(self) -> Any:
        """``bulk_create()``, which does so in transactions."""
        block = self.new_block()
        Order.objects.bulk_create(self._new(block), in_transactions=True)
        return block

    def put_many(self) -> Any:
        """``bulk_create()`` that writes over what is there, as BatchWriteItem does on all other sides."""
        block = self.new_block()
        Order.objects.bulk_create(self._new(block), update_conflicts=True)
        return block

    def _new(self, block: str) -> list[Order]:
        return [Order(**values(block, number)) for number in range(1, self.bulk + 1)]


SIDES = (Ours,)
