"""Forms of values for groups and distinct rows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from dynamo_single.orm.conditions.comparing import hashable

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("one", "other", "is_equal"),
    [
        (1, Decimal("1.0"), True),
        (0.5, Decimal("0.5"), True),
        (NOON, NOON.astimezone(timezone(timedelta(hours=2))), True),
        ({"a": 1, "b": [2]}, {"b": [2.0], "a": 1}, True),
        ({"a", "b"}, {"b", "a"}, True),
        ({"a": 1}, {"a": 2}, False),
        ([1, 2], [2, 1], False),
        ({"a": 1}, {"a": True}, False),
        ([0], [False], False),
    ],
)
def test_equal_values_have_equal_forms(one: Any, other: Any, is_equal: bool) -> None:
    assert (hash(hashable(one)) == hash(hashable(other)) and hashable(one) == hashable(other)) is is_equal
