"""The orders of a key, their directions, and several partitions."""

from __future__ import annotations

from typing import Any

import pytest

from dynamo_single.orm.plan.planner import plan
from tests.unit.factories import COMPANY, EVENT, PERSON, ask

SERVED = [
    (COMPANY, {}, ("name",), "by_name", True),
    (COMPANY, {}, ("-name",), "by_name", False),
    (COMPANY, {}, ("name", "company_id"), "by_name", True),
    (COMPANY, {}, ("-name", "-company_id"), "by_name", False),
    (COMPANY, {}, ("name", "company_id", "-stock"), "by_name", True),
    (COMPANY, {"name": "A"}, ("company_id",), "by_name", True),
    (COMPANY, {"name": "A"}, ("-name", "company_id"), "by_name", True),
    (COMPANY, {"name__startswith": "A"}, ("name", "name"), "by_name", True),
    (PERSON, {"company_id": "1"}, ("company_id", "-person_id"), "primary", False),
    (EVENT, {"stream": "s"}, ("number",), "primary", True),
    (EVENT, {"stream": "s"}, ("-kind", "-score"), "by_kind", False),
    (EVENT, {"stream": "s", "kind": "k"}, ("score",), "by_kind", True),
    (EVENT, {"kind": "k"}, ("-at",), "by_time", False),
    (EVENT, {"stream": "s", "kind": "k"}, ("number",), "primary", True),
    (PERSON, {"person_id": "1", "company_id__in": ["1"]}, ("name",), "primary", True),
]


@pytest.mark.parametrize(("layout", "where", "order", "key", "forward"), SERVED)
def test_order_is_served_by_a_key(layout: Any, where: Any, order: Any, key: str, forward: bool) -> None:
    """A run of the sort key's parts, all in one direction; what the query fixes orders nothing."""
    found = plan(ask(layout, where, order))
    assert found.key is not None
    assert (found.key.name, found.forward) == (key, forward)


PARTITIONS = [
    ((), "concatenate", ["COMPANY#2", "COMPANY#1"], True),
    (("person_id",), "sort_key", ["COMPANY#2", "COMPANY#1"], True),
    (("-person_id",), "sort_key", ["COMPANY#2", "COMPANY#1"], False),
    (("company_id",), "concatenate", ["COMPANY#1", "COMPANY#2"], True),
    (("company_id", "-person_id"), "concatenate", ["COMPANY#1", "COMPANY#2"], False),
    (("-company_id", "person_id"), "concatenate", ["COMPANY#2", "COMPANY#1"], True),
]


@pytest.mark.parametrize(("order", "merge", "partitions", "forward"), PARTITIONS)
def test_order_over_several_partitions(order: Any, merge: str, partitions: list[str], forward: bool) -> None:
    """Partitions are read sequentially if they come first in the order, and are merged otherwise."""
    found = plan(ask(PERSON, {"company_id__in": ["2", "1"]}, order))
    assert (found.merge, found.forward) == (merge, forward)
    assert [condition.partition for condition in found.conditions] == partitions


@pytest.mark.parametrize(
    ("order", "keys"),
    [
        ((), ["2", "1", "10"]),
        (("person_id",), ["1", "10", "2"]),
        (("-person_id",), ["2", "10", "1"]),
        (("company_id", "-person_id"), ["2", "10", "1"]),
    ],
)
def test_order_of_single_items(order: Any, keys: list[str]) -> None:
    """Individual items are sorted by their keys before any read."""
    found = plan(ask(PERSON, {"company_id": "1", "person_id__in": ["2", "1", "10"]}, order))
    assert [sort for _, sort in found.keys] == [f"PEOPLE#{key}" for key in keys]


@pytest.mark.parametrize("where", [{"company_id": "1"}, {"company_id": "1", "name__startswith": "A"}])
def test_one_item_is_in_any_order(where: Any) -> None:
    """A query that finds at most one item accepts every order."""
    assert plan(ask(COMPANY, where, ("-stock", "name"))).single
    index = plan(ask(COMPANY, where, ("-stock",), using_index="by_name"))
    assert (index.kind, index.single) == ("query", True)
