"""Rows with documents are decoded one by one, and other rows by page."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from dynamo_single.orm.items.page_readers import rows_reader
from tests.catalog.stocks import Stock

BODY = json.dumps(
    {
        "Items": [
            {
                "itemType": {"S": "Stock"},
                "code": {"S": "a"},
                "data": {"M": {"n": {"N": "1"}}},
                "tags": {"L": [{"N": "2"}]},
            },
            {"itemType": {"S": "Stock"}, "code": {"S": "b"}, "data": {"M": {}}},
        ],
        "Count": 2,
        "ScannedCount": 2,
        "ConsumedCapacity": {"CapacityUnits": 1},
    }
).encode()


@pytest.mark.parametrize(
    ("names", "is_raw", "expected"),
    [
        (("code",), False, [("a",), ("b",)]),
        (("code", "data"), True, [("a", {"n": 1}), ("b", {})]),
        (("tags", "code"), True, [([2], "a"), (None, "b")]),
    ],
)
def test_rows_with_documents_are_decoded_one_by_one(names: Any, is_raw: bool, expected: Any) -> None:
    """So that the decoded documents of a page are never in memory together."""
    reader = rows_reader(Stock, names, names, "tuple")
    assert reader is not None
    items: Any = (reader.form.decoded(BODY) or {})["Items"]
    assert all(isinstance(item, msgspec.Raw) is is_raw for item in items)
    assert reader.make(items) == expected
