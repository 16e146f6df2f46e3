"""A partition of many pages of items in which nothing matches: what looks for one match reads it to its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dynamo_single.orm.reading import budget
from dynamo_single.orm.requests import compiler
from dynamo_single.table import Request, Table
from dynamo_single.table.request import MAX_PAGE_ITEMS
from dynamo_single.testing import capture_requests
from tests.catalog.models import Order
from tests.deep import deep

BATCH = 25


def fill(table: Table, items: int) -> None:
    """Put orders of one customer into the table, of which none is rare: a hundred thousand have some 13 pages."""
    item = Order(customer="big", number=0, coupon="x" * 30)._container_serialize()
    for start in range(0, items, BATCH):
        puts = [
            {"PutRequest": {"Item": {**item, "sk": {"S": f"ORDER#{number}"}, "number": {"N": str(number)}}}}
            for number in range(start, start + BATCH)
        ]
        answer = table.send(Request("BatchWriteItem", {"RequestItems": {table.name: puts}}))
        assert not answer["UnprocessedItems"]


@pytest.mark.parametrize(
    ("items", "requests", "most"),
    [
        (2_500, 5, MAX_PAGE_ITEMS // 100),
        pytest.param(25_000, 5, MAX_PAGE_ITEMS, marks=deep),
        pytest.param(100_000, 15, MAX_PAGE_ITEMS, marks=deep),
    ],
)
def test_looking_for_a_match_ends_where_there_is_none(
    table: Table, monkeypatch: pytest.MonkeyPatch, settings: Any, items: int, requests: int, most: int
) -> None:
    """Every search for one match returns none, and does not request more items than fit into a page."""
    for module in (budget, compiler):
        monkeypatch.setattr(module, "MAX_PAGE_ITEMS", most)
    settings.DYNAMO_SINGLE_COSTS = {"MAX_READS": 2 * items}
    fill(table, items)
    rare = Order.objects.filter(customer="big", status="rare")

    def get() -> list[Any]:
        with pytest.raises(Order.DoesNotExist):
            rare.get()
        return []

    questions: dict[str, Callable[[], Any]] = {
        "first": rare.first,
        "exists": rare.exists,
        "slice": lambda: list(rare[:1]),
        "get": get,
        "page": lambda: rare.page(1).items,
    }
    for name, question in questions.items():
        with capture_requests() as sent:
            assert not question(), name
        assert len(sent) > requests, name
        assert max(request.params.get("Limit", 0) for request in sent) == most, name
