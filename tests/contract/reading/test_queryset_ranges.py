"""Ranges and orders on the real engine: numbers, datetimes and optional parts in keys, and expiring items."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from dynamo_single.testing import assert_requests
from tests.catalog.models import Order, Ticket


@pytest.fixture
def orders(table: Any) -> None:
    """Create orders whose numbers sort differently as strings."""
    start = datetime(2024, 9, 20, tzinfo=UTC)
    for number in (-5, 1, 2, 9, 10, 100):
        Order.objects.create(customer="c", number=number, placed_at=start + timedelta(days=number), coupon="SAVE")
    Order.objects.create(customer="c", number=7)


@pytest.mark.usefixtures("orders")
@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ({}, [-5, 1, 2, 7, 9, 10, 100]),
        ({"number": 1}, [1]),
        ({"number__gt": 2}, [7, 9, 10, 100]),
        ({"number__gte": 2, "number__lt": 10}, [2, 7, 9]),
        ({"number__lte": 1}, [-5, 1]),
        ({"number__range": (2, 9)}, [2, 7, 9]),
        ({"number__in": [100, 1]}, [100, 1]),
        ({"number__gt": 5, "number__lt": 3}, []),
    ],
)
def test_numbers_in_a_key_are_compared_as_numbers(conditions: dict[str, Any], expected: list[int]) -> None:
    """Ranges over a number in the sort key use numeric order."""
    assert [order.number for order in Order.objects.filter(customer="c", **conditions)] == expected


@pytest.mark.usefixtures("orders")
def test_a_time_window_is_one_query_on_the_index() -> None:
    """A range on the leading datetime of the sort key reads only that window, without items that lack it."""
    since = datetime(2024, 9, 25, tzinfo=UTC)
    with assert_requests(["Query"]) as sent:
        found = [order.number for order in Order.objects.filter(placed_at__gte=since).order_by("-placed_at")]
    assert found == [100, 10, 9]
    assert sent[0].response is not None
    assert sent[0].response["ScannedCount"] == 3


@pytest.mark.usefixtures("orders")
def test_an_order_without_the_optional_part_is_not_lost() -> None:
    """A sparse index does not serve a query that needs all objects."""
    assert Order.objects.filter(customer="c").count() == 7
    assert Order.objects.filter(coupon="SAVE").count() == 6


def test_expired_items_are_never_returned(table: Any) -> None:
    """An item past its time to live is not read, counted or found, even before DynamoDB deletes it."""
    now = timezone.now()
    Ticket.objects.create(code="old", expires_at=now - timedelta(seconds=5))
    Ticket.objects.create(code="new", expires_at=now + timedelta(hours=1))
    Ticket.objects.create(code="open")
    assert [ticket.code for ticket in Ticket.objects.all()] == ["new", "open"]
    assert Ticket.objects.count() == 2
    assert not Ticket.objects.filter(pk="old").exists()
    with pytest.raises(Ticket.DoesNotExist):
        Ticket.objects.get(pk="old")
