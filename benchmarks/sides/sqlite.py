"""Django's ORM on SQLite, in the memory of this process, without a network."""

from __future__ import annotations

from typing import Any

from django.apps import apps
from django.db import connections, transaction
from django.db.models import QuerySet

from benchmarks.orders import values
from benchmarks.sides.managers import DjangoSide
from benchmarks.sides.side import IN_BLOCK, IN_BULK

ALIAS = "sqlite"


class Sqlite(DjangoSide):
    """The model of ``benchmarks.sql``."""

    name = "Django, SQLite"

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.model = apps.get_model("sql", "SqlOrder")
        if not connections[ALIAS].introspection.table_names():
            with connections[ALIAS].schema_editor() as editor:
                editor.create_model(self.model)

    def fill(self, customer: str, number: int) -> None:
        """Replace a customer's orders in the table."""
        self.orders.filter(customer=customer).delete()
        self.orders.bulk_create(self.model(**values(customer, each)) for each in range(1, number + 1))

    def ready(self) -> None:
        """Record the orders to read and write."""
        listed = self.orders.filter(customer=self.listed)
        self.order = listed.get(number=self.number)
        self.pk = self.order.pk
        self.pks = list(listed.filter(number__lte=IN_BULK).values_list("pk", flat=True))

    @property
    def orders(self) -> QuerySet[Any]:
        """Return all orders."""
        return self.model.objects.using(ALIAS)

    def atomic(self) -> Any:
        """Call ``create()`` in ``atomic()``."""
        block = self.new_block()
        with transaction.atomic(using=ALIAS):
            for number in range(1, IN_BLOCK + 1):
                self.orders.create(**values(block, number))
        return block

    def bulk_create(self) -> Any:
        """Call ``bulk_create()``."""
        block = self.new_block()
        self.orders.bulk_create(self.model(**values(block, number)) for number in range(1, self.bulk + 1))
        return block

    bulk_in_transactions = put_many = bulk_create


SIDES = (Sqlite,) if ALIAS in connections else ()
