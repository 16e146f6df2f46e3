"""The items that a plan excludes: deleted and expired ones, items of other models, and claims."""

from __future__ import annotations

from typing import Any

import pytest

from dynamo_single.orm.conditions.wording import condition_text
from dynamo_single.orm.plan.planner import plan
from tests.unit.factories import EVENT, PERSON, SESSION, Space, ask, moment

ALIVE = "deleted_at__isnull=True"
JANUARY = moment("2024-01-01")

VISIBILITY = [
    ({"company_id": "1"}, "live", "primary", ALIVE),
    ({"company_id": "1"}, "all", "primary", "everything"),
    ({"company_id": "1"}, "deleted", "primary", "deleted_at__isnull=False"),
    ({"person_id": "9"}, "live", "by_id", "everything"),
    ({}, "deleted", "trash", "everything"),
    ({"deleted_at__gt": JANUARY}, "deleted", "trash", "everything"),
]


@pytest.mark.parametrize(("where", "visibility", "key", "left"), VISIBILITY)
def test_soft_deleted_items(where: Any, visibility: Any, key: str, left: str) -> None:
    """An index holds live items only, the trash deleted ones only, and the table both."""
    found = plan(ask(PERSON, where, visibility=visibility))
    assert found.key is not None
    assert (found.key.name, condition_text(found.filter)) == (key, left)


def test_a_model_without_soft_delete_has_no_deleted_items() -> None:
    """A query for deleted objects of such a model does not send a request."""
    assert plan(ask(EVENT, visibility="deleted")).kind == "empty"
    assert plan(ask(EVENT, {"kind": "k"}, visibility="all")).kind == "query"


def test_a_trash_in_the_same_range_is_filtered_out() -> None:
    """If deleted items can be in the range of an index, a filter excludes them."""
    layout = Space().model(
        "x.A", {"a": "text"}, ("A#{a}", "M"), {"by_a": ("gs1", "A", "{a}")}, trash=("gs1", "A", "{deleted_at}#{a}")
    )
    assert condition_text(plan(ask(layout)).filter) == ALIVE
    assert (
        condition_text(plan(ask(layout, visibility="deleted", using_index="trash")).filter)
        == "deleted_at__isnull=False"
    )


def test_expired_items_are_filtered_out() -> None:
    """Expired items are excluded, although DynamoDB still stores them."""
    found = plan(ask(SESSION, {"session_key": "s"}), now=1700000000)
    assert condition_text(found.filter) == "(expires_at__isnull=True | expires_at__gt=1700000000)"
    with pytest.raises(ValueError, match="planning needs the current time"):
        plan(ask(SESSION, {"session_key": "s"}))


def test_other_models_items_are_told_apart_only_where_they_can_be() -> None:
    """The discriminator is compared only if another model's items can be in the range."""
    space = Space()
    first = space.model("x.First", {"a": "text", "b": "text"}, ("P#{a}", "X#{b}"), {"by_b": ("gs1", "B", "{b}")})
    space.model("x.Other", {"a": "text", "b": "text"}, ("P#{a}", "Y#{b}"), {"by_b": ("gs1", "B", "{b}#{a}")})
    assert condition_text(plan(ask(first, {"a": "1"})).filter) == "everything"
    assert condition_text(plan(ask(first)).filter) == "item_type='First'"
    assert condition_text(plan(ask(first, {"b": "1"})).filter) == "everything"
    space.model("x.Third", {"c": "text"}, ("P#{c}", "X#META"))
    assert condition_text(plan(ask(first, {"a": "1"})).filter) == "item_type='First'"
    assert condition_text(plan(ask(first, {"a": "1", "b": "META"})).filter) == "item_type='First'"
    assert condition_text(plan(ask(first, {"a": "1", "b": "2"})).filter) == "everything"


def test_unique_claims_are_told_apart() -> None:
    """A partition that may contain claims is never treated as the model's own."""
    layout = Space().model("x.A", {"a": "text", "b": "text"}, ("{a}#{b}", "M"))
    assert condition_text(plan(ask(layout, {"a": "UNIQUE", "b": "x"})).filter) == "item_type='A'"
    assert condition_text(plan(ask(layout, {"a": "UNIQUES", "b": "x"})).filter) == "everything"


def test_only_a_scan_compares_the_discriminator_and_everything_else() -> None:
    """A scan has no key condition, so its filter contains the whole query."""
    found = plan(ask(PERSON, {"name": "Mike"}, allow_scan=True))
    assert (found.kind, found.key) == ("scan", None)
    assert condition_text(found.filter) == f"name='Mike', {ALIVE}, item_type='Person'"
    assert condition_text(plan(ask(PERSON, {}, allow_scan=True, visibility="all")).filter) == "item_type='Person'"
