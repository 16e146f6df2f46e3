"""An update with shared text equals the complete one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamo_single.orm.conditions.terms import EVERYTHING, And, Condition, Or, Stored
from dynamo_single.orm.requests import compiler
from dynamo_single.orm.requests.actions import ITEM_EXISTS, Update
from dynamo_single.orm.requests.expressions import ExpressionTooLong

NAMES = st.sampled_from(["name", "total", "gs1pk", "a.b", "ü", "createdAt", "deletedAt"])
VALUES = st.sampled_from([{"S": "x"}, {"N": "1"}, {"NULL": True}, {"M": {"a": {"S": "y"}}}, {"S": ""}])
TERMS: st.SearchStrategy[Condition] = st.one_of(
    st.just(ITEM_EXISTS),
    st.builds(lambda name, value: Stored(name, "=", (value,)), NAMES, VALUES),
    st.builds(lambda name: Stored(name, "missing"), NAMES),
    st.builds(lambda name, value: Stored(name, "=", (value,), ("in", 0)), NAMES, VALUES),
    st.builds(lambda name, value: Stored(name, "<", (value,)), NAMES, VALUES),
    st.builds(lambda name: Or((ITEM_EXISTS, Stored(name, "missing"))), NAMES),
)
CONDITIONS = st.one_of(
    TERMS, st.just(EVERYTHING), st.lists(TERMS, min_size=1, max_size=6).map(lambda found: And(tuple(found)))
)


@given(
    put=st.dictionaries(NAMES, VALUES, max_size=4),
    removed=st.lists(NAMES, unique=True, max_size=3),
    add=st.dictionaries(NAMES, st.just({"N": "1"}), max_size=1),
    condition=CONDITIONS,
)
def test_shared_update_equals_whole_update(
    put: dict[str, Any], removed: list[str], add: dict[str, Any], condition: Condition
) -> None:
    """Names, values, conditions and the order of the parameters."""
    removed = [name for name in removed if name not in put]
    if not (put or removed or add):
        put = {"name": {"S": "x"}}
    update = Update(("p", "s"), put, tuple(removed), add=add, condition=condition)
    shared, whole = compiler._update(update), compiler._whole_update(update)
    assert shared == whole
    assert [*shared] == [*whole]


def test_too_long_update_is_refused_with_its_key() -> None:
    """This includes an error of an earlier update with the same names."""
    names = {f"name{number}": {"S": "x"} for number in range(500)}
    for sort in ("one", "two"):
        with pytest.raises(ExpressionTooLong, match=sort):
            compiler.compile_action(Update(("p", sort), names, condition=ITEM_EXISTS))


def test_updates_do_not_share_values() -> None:
    """The values of one request do not change with another."""
    first = compiler.compile_action(Update(("p", "1"), {"name": {"S": "a"}}, condition=ITEM_EXISTS))
    compiler.compile_action(Update(("p", "2"), {"name": {"S": "b"}}, condition=ITEM_EXISTS))
    assert first.params["ExpressionAttributeValues"] == {":v0": {"S": "a"}}
