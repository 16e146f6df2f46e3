"""This app, by Django's own words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.orders import values
from benchmarks.sides.side import IN_BLOCK, IN_BULK, Side
from dynamo_single import transactions
from tests.catalog.models import Order


class Ours(Side):
    """The model of ``tests.catalog``."""

    name = "ours"

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.order = Order.objects.get(customer=self.listed, number=self.number)
        self.pks = [Order(customer=self.listed, number=number).pk for number in range(1, IN_BULK + 1)]

    def get(self) -> Any:
        """``get(pk=...)``."""
        return Order.objects.get(pk=self.order.pk)

    def create(self) -> Any:
        """``create()``."""
        made = self.new()
        Order.objects.create(**values(*made))
        return made

    def save(self) -> Any:
        """``save()`` with one attribute changed."""
        self.order.status = self.status()
        self.order.save()
        return self.order

    def update(self) -> Any:
        """``update()`` of one attribute of one item."""
        return Order.objects.filter(pk=self.order.pk).update(status=self.status())

    def objects(self) -> Sequence[Any]:
        """A list of objects."""
        return list(Order.objects.filter(customer=self.listed))

    def rows(self) -> Sequence[Any]:
        """A list of two columns."""
        return list(Order.objects.filter(customer=self.listed).values_list("number", "status"))

    def many(self) -> Sequence[Any]:
        """A longer list of objects."""
        return list(Order.objects.filter(customer=self.long_list))

    def in_bulk(self) -> Sequence[Any]:
        """``in_bulk()``."""
        return list(Order.objects.in_bulk(self.pks).values())

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
