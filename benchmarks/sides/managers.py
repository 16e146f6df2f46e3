"""Operations with Django's API, for every side that has a manager."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.orders import values
from benchmarks.sides.side import Side


class DjangoSide(Side):
    """Operations of a manager. A subclass sets the manager, and the objects to read and write."""

    #: A manager or a queryset of all orders.
    orders: Any
    #: The order that is read and written, its ``pk``, and the ``pk`` of the orders that are read in bulk.
    order: Any
    pk: Any
    pks: Sequence[Any]

    def get(self) -> Any:
        """Call ``get(pk=...)``."""
        return self.orders.get(pk=self.pk)

    def create(self) -> Any:
        """Call ``create()``."""
        made = self.new()
        self.orders.create(**values(*made))
        return made

    def save(self) -> Any:
        """Call ``save()`` with one changed attribute."""
        self.order.status = self.status()
        self.order.save()
        return self.order

    def update(self) -> Any:
        """Call ``update()`` for one attribute of one item."""
        return self.orders.filter(pk=self.pk).update(status=self.status())

    def objects(self) -> Sequence[Any]:
        """Return a list of objects."""
        return list(self.orders.filter(customer=self.listed))

    def rows(self) -> Sequence[Any]:
        """Return a list of two columns."""
        return list(self.orders.filter(customer=self.listed).values_list("number", "status"))

    def many(self) -> Sequence[Any]:
        """Return a longer list of objects."""
        return list(self.orders.filter(customer=self.long_list))

    def in_bulk(self) -> Sequence[Any]:
        """Call ``in_bulk()``."""
        return list(self.orders.in_bulk(self.pks).values())
