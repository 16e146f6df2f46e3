"""The choice among several keys, and its explanation."""

from __future__ import annotations

from typing import Any

import pytest

from dynamo_single.exceptions import InvalidValue, NotSupported, UnknownField
from dynamo_single.orm.plan.planner import plan
from tests.unit.factories import COMPANY, EVENT, PERSON, Space, ask, compare


def test_a_key_is_preferred_to_a_scan() -> None:
    """``allow_scan()`` does not cause a scan if a key supports the query."""
    assert plan(ask(COMPANY, allow_scan=True)).kind == "query"


CHOICES = [
    ({"company_id": "1", "person_id": "9"}, "primary", "by_id", "it would read more than single items"),
    ({"stream": "s", "kind": "k"}, "by_kind", "by_time", "it uses fewer parts of its sort key"),
    ({"stream": "s", "number__gt": 1}, "primary", "by_kind", "it narrows no part of its sort key"),
    ({"stream": "s"}, "primary", "by_kind", "the table comes before an index"),
    ({"city": "c", "kind": "k"}, "by_city", "by_time", "it uses fewer parts of its sort key"),
]


@pytest.mark.parametrize(("where", "chosen", "other", "drawback"), CHOICES)
def test_the_best_key_is_chosen(where: Any, chosen: str, other: str, drawback: str) -> None:
    """Single items come before queries, more of the sort key before less, the table before an index."""
    found = plan(ask(PERSON if "company_id" in where else EVENT, where))
    assert found.key is not None
    assert found.key.name == chosen
    assert {rejection.key.name: rejection.reason for rejection in found.rejected}[other] == drawback


def test_a_tie_is_settled_by_declaration() -> None:
    """The first of two equally good keys is used, and the other one reports this."""
    layout = Space().model(
        "x.A",
        {"a": "text", "b": "text"},
        ("A#{a}", "M"),
        {"one": ("gs1", "B#{b}", "{a}"), "two": ("gs2", "C#{b}", "{a}")},
    )
    found = plan(ask(layout, {"b": "1"}))
    assert found.key == layout.indexes[0]
    assert found.rejected[-1].reason == "it is equally good, but comes later in Keys"


@pytest.mark.parametrize(("name", "key"), [("by_kind", "by_kind"), ("gs2", "by_kind"), ("primary", "primary")])
def test_a_named_key_is_used(name: str, key: str) -> None:
    """The name of a key or of its index works."""
    found = plan(ask(EVENT, {"stream": "s"}, using_index=name))
    assert found.key is not None
    assert found.key.name == key
    assert found.rejected == ()


def test_an_index_shared_with_the_trash_means_the_live_key() -> None:
    """The name of an index with the trash reads live items, unless the query is for deleted ones."""
    found = plan(ask(COMPANY, using_index="gs1"))
    assert found.key is COMPANY.indexes[0]


def test_reasons_are_told() -> None:
    """A plan contains the reason for its key."""
    assert (
        plan(ask(PERSON, {"company_id": "1", "person_id": "2"})).reason == "the query contains the complete primary key"
    )
    assert plan(ask(COMPANY, {"company_id__in": ["1", "2"]})).reason == "the query contains 2 complete primary keys"
    assert plan(ask(COMPANY, {"name__gt": "A"})).reason == "its partition is given, and its sort key by name"
    assert plan(ask(PERSON, {"person_id": "2"})).reason == "its partition is given, and its whole sort key"
    assert plan(ask(PERSON, {"company_id__in": ["1", "2"]})).reason == "2 partitions are given"


@pytest.mark.parametrize(
    ("where", "order", "error", "message"),
    [
        ({"nmae": "x"}, (), UnknownField, "directory.Company has no attribute 'nmae'; it has company_id, "),
        ({}, ("nmae",), UnknownField, "Cannot order directory.Company by 'nmae'. It has company_id, "),
        ({"name__regex": "x"}, (), NotSupported, "DynamoDB cannot evaluate name__regex='x'. It supports exact, in, "),
        ({"name": None}, (), InvalidValue, "no value equals None. Use name__isnull=True"),
        ({"name__in": ["x", None]}, (), InvalidValue, "no value equals None"),
        ({"name": frozenset()}, (), InvalidValue, "no empty set"),
        ({"company_id__gt": None}, (), InvalidValue, "no value equals None"),
    ],
)
def test_a_wrong_question_is_told_as_such(where: Any, order: Any, error: type[Exception], message: str) -> None:
    """An unknown name, lookup or value raises a separate error instead of a missing access pattern."""
    with pytest.raises(error, match=message):
        plan(ask(COMPANY, where, order))


def test_plans_are_values() -> None:
    """Planning one query twice gives equal plans."""
    query = ask(COMPANY, compare(name__startswith="A"))
    assert plan(query) == plan(query)
