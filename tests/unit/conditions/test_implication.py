"""Implications of conditions: no item contradicts one, and a query that names an index's condition has one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamo_single.orm.conditions.implication import gives_value, implies
from dynamo_single.orm.conditions.lowering import missing_condition
from dynamo_single.orm.conditions.matching import matches
from dynamo_single.orm.conditions.terms import EVERYTHING, And, Condition, Not, Nothing, Or, Stored, join, simplify

NAMES = st.sampled_from(["a", "b"])
TEXTS = st.sampled_from(["", "a", "aa", "ab", "b"]).map(lambda text: {"S": text})
NUMBERS = st.integers(-1, 2).map(lambda number: {"N": str(number)})
VALUES = st.one_of(TEXTS, NUMBERS, st.just({"NULL": True}))
ITEMS = st.dictionaries(NAMES, VALUES)


def stored(name: str, operator: str, *values: Any) -> Stored:
    """Draw a comparison of strings and numbers."""
    return Stored(name, operator, tuple({"S": each} if isinstance(each, str) else {"N": str(each)} for each in values))


def _between(values: Any) -> bool:
    return bool(values[0].keys() == values[1].keys() and str(values[0]) <= str(values[1]))


COMPARED = st.one_of(
    st.builds(lambda n, o, v: Stored(n, o, (v,)), NAMES, st.sampled_from(["=", "<", "<=", ">", ">="]), TEXTS | NUMBERS),
    st.builds(lambda n, v: Stored(n, "in", tuple(v)), NAMES, st.lists(TEXTS | NUMBERS, min_size=1, max_size=3)),
    st.builds(lambda n, v: Stored(n, "between", v), NAMES, st.tuples(TEXTS, TEXTS).filter(_between)),
    st.builds(lambda n, v: Stored(n, "begins_with", (v,)), NAMES, TEXTS),
    st.builds(lambda n, o: Stored(n, o), NAMES, st.sampled_from(["exists", "missing"])),
    st.builds(missing_condition, NAMES),
)
CONDITIONS: st.SearchStrategy[Condition] = st.recursive(
    COMPARED,
    lambda children: st.one_of(
        st.lists(children, min_size=1, max_size=3).map(lambda each: And(tuple(each))),
        st.lists(children, min_size=1, max_size=3).map(lambda each: Or(tuple(each))),
        children.map(Not),
    ),
    max_leaves=6,
)


@given(CONDITIONS, CONDITIONS, st.lists(ITEMS, min_size=20, max_size=40))
def test_nothing_follows_that_an_item_contradicts(one: Condition, other: Condition, items: list[Any]) -> None:
    """This includes two separate conditions, and combined ones."""
    for before, after in ((one, other), (other, one), (join((one, other)), one), (one, join((one, other)))):
        if implies(simplify(before), simplify(after)):
            assert all(matches(after, item) for item in items if matches(before, item))


@given(CONDITIONS, NAMES, st.booleans(), st.lists(ITEMS, min_size=20, max_size=40))
def test_a_value_that_is_there_is_there(condition: Condition, name: str, text: bool, items: list[Any]) -> None:
    """A compared value exists, and is not empty if the comparison excludes this."""
    if gives_value(simplify(condition), name, text=text):
        for item in items:
            if matches(condition, item):
                assert item.get(name) not in (None, {"NULL": True}, *([{"S": ""}] if text else []))


@given(CONDITIONS, CONDITIONS)
def test_a_condition_follows_from_itself_and_more(one: Condition, other: Condition) -> None:
    assert implies(simplify(one), simplify(one))
    assert implies(join((other, one)), simplify(one))


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        (stored("a", "=", "x"), stored("a", "in", "x", "y")),
        (stored("a", "in", "x", "y"), Not(stored("a", "=", "z"))),
        (stored("a", "=", 7), stored("a", ">=", 5)),
        (stored("a", "between", 5, 9), stored("a", ">=", 5)),
        (stored("a", ">", 5), stored("a", ">=", 5)),
        (stored("a", "begins_with", "ab"), stored("a", ">", "")),
        (stored("a", "<", 5), Not(missing_condition("a"))),
        (Or((stored("a", "=", "x"), stored("a", "=", "y"))), stored("a", "in", "x", "y", "z")),
        (And((stored("a", "=", "x"), stored("b", "=", 1))), Or((stored("b", ">", 0), stored("a", "=", "z")))),
        (Nothing(), stored("a", "=", "x")),
    ],
)
def test_what_a_query_says_in_other_words_follows(asked: Condition, wanted: Condition) -> None:
    assert implies(asked, wanted)


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        (EVERYTHING, stored("a", "=", "x")),
        (stored("a", "in", "x", "y"), stored("a", "=", "x")),
        (stored("a", ">=", 5), stored("a", ">", 5)),
        (stored("a", ">", 5), stored("a", ">", "5")),
        (Or((stored("a", "=", "x"), stored("b", "=", "y"))), stored("a", "=", "x")),
        (Not(stored("a", "=", "x")), Stored("a", "exists")),
    ],
)
def test_what_need_not_hold_does_not_follow(asked: Condition, wanted: Condition) -> None:
    assert not implies(asked, wanted)
