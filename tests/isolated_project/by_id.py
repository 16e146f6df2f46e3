"""Tests of records in a table whose key is ``id`` alone: each finds it as its class has begun with it."""

from __future__ import annotations

from django.test import TestCase, TransactionTestCase

from dynamo_single import models
from dynamo_single.table import get_table


class Product(models.Record):
    """A record with a unique number."""

    isbn = models.UnicodeAttribute(null=True, unique=True)

    class Meta:
        app_label = "notes"
        id_prefix = "product"
        table = "products"


class InTestCase(TestCase):
    """Each test finds the objects of the class."""

    @classmethod
    def setUpTestData(cls) -> None:
        cls.kept = Product.objects.create(data={}, isbn="kept")

    def test_one_takes_it_away(self) -> None:
        Product.objects.get(isbn="kept").hard_delete()
        Product.objects.create(data={}, isbn="one")
        self.assertEqual(Product.objects.count(), 1)

    def test_another_finds_it(self) -> None:
        self.assertEqual(Product.objects.get(isbn="kept"), self.kept)
        self.assertEqual(Product.objects.count(), 1)


class InTransactionTestCase(TransactionTestCase):
    """The table is empty after other tests."""

    def test_nothing_is_there(self) -> None:
        self.assertEqual(get_table("products").settings.key, "id")
        self.assertEqual(Product.objects.count(), 0)
        Product.objects.create(data={}, isbn="kept")
