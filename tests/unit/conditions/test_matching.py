"""Conditions evaluated in Python, with DynamoDB's own semantics."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamo_single.exceptions import NotSupported
from dynamo_single.orm.conditions.matching import matches, normalized_value
from dynamo_single.orm.conditions.terms import And, Compare, Condition, Not, Nothing, Or, Stored, simplify
from tests.unit.factories import PERSON, compare

ITEM: dict[str, Any] = {
    "name": {"S": "Mike"},
    "age": {"N": "12.0"},
    "data": {"M": {"rows": {"L": [{"N": "1"}, {"S": "x"}]}, "none": {"NULL": True}}},
    "tags": {"SS": ["a", "b"]},
    "sizes": {"NS": ["1", "2.50"]},
    "raw": {"B": b"abc"},
    "gone": {"NULL": True},
    "flag": {"BOOL": True},
    "note": {"S": "é𝄞"},
}

CASES = [
    (Stored("name", "=", ({"S": "Mike"},)), True),
    (Stored("name", "=", ({"S": "mike"},)), False),
    (Stored("age", "=", ({"N": "12"},)), True),
    (Stored("age", "=", ({"S": "12"},)), False),
    (Stored("age", ">", ({"N": "9"},)), True),
    (Stored("age", ">", ({"S": "9"},)), False),
    (Stored("age", "<=", ({"N": "12"},)), True),
    (Stored("name", "<", ({"S": "N"},)), True),
    (Stored("raw", ">=", ({"B": b"abb"},)), True),
    (Stored("age", "between", ({"N": "1"}, {"N": "12"})), True),
    (Stored("age", "between", ({"N": "13"}, {"N": "14"})), False),
    (Stored("name", "in", ({"S": "A"}, {"S": "Mike"})), True),
    (Stored("age", "in", ({"N": "12.00"},)), True),
    (Stored("name", "begins_with", ({"S": "Mi"},)), True),
    (Stored("raw", "begins_with", ({"S": "a"},)), False),
    (Stored("name", "contains", ({"S": "ik"},)), True),
    (Stored("tags", "contains", ({"S": "a"},)), True),
    (Stored("tags", "contains", ({"S": "c"},)), False),
    (Stored("sizes", "contains", ({"N": "2.5"},)), True),
    (Stored("data", "contains", ({"N": "1"},), ("rows",)), True),
    (Stored("age", "contains", ({"N": "1"},)), False),
    (Stored("data", "=", ({"S": "x"},), ("rows", 1)), True),
    (Stored("data", "=", ({"S": "x"},), ("rows", 2)), False),
    (Stored("data", "exists", (), ("rows",)), True),
    (Stored("data", "exists", (), ("none",)), True),
    (Stored("data", "missing", (), ("other", "deeper")), True),
    (Stored("name", "exists", (), ("x",)), False),
    (Stored("gone", "exists"), True),
    (Stored("gone", "=", ({"NULL": True},)), True),
    (Stored("data", "size=", ({"N": "2"},), ("rows",)), True),
    (Stored("name", "size>", ({"N": "4"},)), False),
    (Stored("age", "size=", ({"N": "2"},)), False),
    (Stored("note", "size=", ({"N": "3"},)), True),
    (Stored("age", "type", ({"S": "N"},)), True),
    (Stored("age", "type", ({"S": "S"},)), False),
    (Stored("gone", "type", ({"S": "NULL"},)), True),
    (Stored("absent", "type", ({"S": "NULL"},)), False),
    (Stored("data", "type", ({"S": "S"},), ("rows", 1)), True),
    (Stored("flag", "=", ({"BOOL": True},)), True),
    (Stored("name", "canonical", ({"S": "mike"},)), True),
    (Stored("sizes", "=", ({"NS": ["2.5", "1.0"]},)), True),
    (Stored("data", "=", (ITEM["data"],)), True),
    (Stored("absent", "=", ({"S": "x"},)), False),
    (Not(Stored("absent", "=", ({"S": "x"},))), True),
    (Not(Stored("age", ">", ({"S": "9"},))), True),
    (Nothing(), False),
    (And(), True),
]


@pytest.mark.parametrize(("condition", "expected"), CASES)
def test_comparison(condition: Condition, expected: bool) -> None:
    """A comparison with a missing attribute, or of two types, does not hold; its negation does."""
    assert matches(condition, ITEM) is expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (compare(name="Mike", age__gt=5), True),
        (compare(email__isnull=True), True),
        (compare(email__isnull=False), False),
        (compare(company_id__isnull=True), True),
        (compare(data__rows__0=1), True),
        (compare(data__none__isnull=True), False),
        (compare(data__none=None), True),
        (compare(data__gone__isnull=True), True),
        (compare(data__gone=None), False),
        (compare(name__startswith="m"), False),
    ],
)
def test_model_names(condition: Condition, expected: bool) -> None:
    """With a layout, conditions use the model's names."""
    assert matches(condition, ITEM, PERSON) is expected


def test_unknown_operator() -> None:
    """An unknown operator raises an error."""
    with pytest.raises(NotSupported, match="'~' is not an operator"):
        matches(Stored("name", "~", ({"S": "x"},)), ITEM)


comparisons = st.builds(
    lambda name, operator, value: Compare(name, operator, value),
    st.sampled_from(["name", "email", "age"]),
    st.sampled_from(["exact", "lt", "lte", "gt", "gte"]),
    st.sampled_from(["", "a", "b", 1, 2]),
)
conditions: st.SearchStrategy[Condition] = st.recursive(
    st.one_of(comparisons, st.just(Nothing()), st.just(And()), st.just(Compare("name", "in", ()))),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda children: And(tuple(children))),
        st.lists(inner, max_size=3).map(lambda children: Or(tuple(children))),
        st.builds(Not, inner),
    ),
    max_leaves=6,
)
items = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from([{"S": "a"}, {"S": "b"}, {"S": ""}]),
        "email": st.sampled_from([{"S": "a"}, {"NULL": True}]),
        "age": st.sampled_from([{"N": "1"}, {"N": "2.0"}]),
    },
)


@given(conditions, items)
def test_simplifying_changes_no_answer(condition: Condition, item: Any) -> None:
    """A simplified condition holds for just the same items."""
    assert matches(simplify(condition), item, PERSON) == matches(condition, item, PERSON)


@given(conditions, conditions, items)
def test_laws_of_logic(one: Condition, two: Condition, item: Any) -> None:
    """Negation, conjunction and disjunction obey De Morgan, whatever is missing."""
    assert matches(Not(one), item, PERSON) != matches(one, item, PERSON)
    neither = Not(Or((one, two)))
    assert matches(neither, item, PERSON) == matches(And((Not(one), Not(two))), item, PERSON)


@given(items, st.sampled_from([1, 2]))
def test_a_present_number_is_below_at_or_above(item: Any, number: int) -> None:
    """Exactly one of less, equal and greater applies to an existing attribute; a missing one matches none of them."""
    held = [matches(compare(**{f"age__{operator}": number}), item, PERSON) for operator in ("lt", "exact", "gt")]
    assert sum(held) == ("age" in item)


def test_normal_form_can_be_hashed() -> None:
    """Equal values of any type have one normal form."""
    assert len({normalized_value(value) for value in ITEM.values()}) == len(ITEM)
    assert normalized_value({"L": [{"N": "1"}]}) == normalized_value({"L": [{"N": "1.0"}]})
