"""Tests of a table that the project does not own: both tables are as each class has begun with them."""

from __future__ import annotations

from django.test import TestCase, TransactionTestCase

from dynamo_single import models
from dynamo_single.contrib.doctor import verify
from dynamo_single.table import Request, get_table


class Order(models.Model):
    """An order with a unique number, whose claim is in the companion."""

    order_id = models.IdAttribute()
    number = models.UnicodeAttribute(unique=True)

    class Keys:
        primary = models.Key("ORDER#{order_id}", "#ORDER")
        listed = models.IndexKey("gs1", "ORDER", "{number}")

    class Meta:
        app_label = "notes"
        table = "theirs"


def claims() -> int:
    """Return the number of claims in the companion."""
    prefix = get_table("theirs").settings.own_prefix
    return sum(item["pk"]["S"].startswith(prefix) for item in get_table().send(Request("Scan"))["Items"])


class InTestCase(TestCase):
    """The class's object and its claim come back for each test."""

    @classmethod
    def setUpTestData(cls) -> None:
        cls.kept = Order.objects.create(number="kept")

    def test_one_takes_both_away(self) -> None:
        Order.objects.get(number="kept").delete()
        Order.objects.create(number="one")
        self.assertEqual((Order.objects.count(), claims()), (1, 1))

    def test_another_finds_both(self) -> None:
        self.assertEqual(Order.objects.get(number="kept"), self.kept)
        self.assertEqual((Order.objects.count(), claims()), (1, 1))
        self.assertEqual([*verify("theirs"), *verify()], [])


class InTransactionTestCase(TransactionTestCase):
    """Both tables are empty after other tests."""

    def test_nothing_is_there(self) -> None:
        self.assertTrue(get_table("theirs").name.startswith("test_"))
        self.assertEqual((Order.objects.count(), claims()), (0, 0))
        Order.objects.create(number="kept")
