"""Changes and conditions that turn one stored document into another."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamo_single import models
from dynamo_single.orm.conditions.matching import matches, normalized_value
from dynamo_single.orm.conditions.terms import And, Stored
from dynamo_single.orm.items.form import form_of
from dynamo_single.orm.requests.updates import Change, Difference, Place, difference_of, evaluate
from dynamo_single.orm.schema.keys.values import to_attribute_value
from tests.unit.declaring import declare, forgotten


def place(*path: str) -> Place:
    """A place in the map."""
    return Place("data", path)


def is_map(*path: str) -> Stored:
    """The condition that there is a map at a place."""
    return place(*path).stored("type", {"S": "M"})


ONE, LIST = {"N": "1"}, {"L": [{"N": "1"}]}
DIFFERENCES: list[tuple[Any, Any, Difference]] = [
    ({}, {"a": 1}, Difference((Change(place("a"), "set", ONE),), (is_map(),))),
    ({"a": 1}, {}, Difference((Change(place("a"), "remove"),), (is_map(),))),
    (
        {"a": {"x": 1, "y": 2}, "b": 2},
        {"a": {"x": 2, "y": 1}, "b": 1},
        Difference(
            (
                Change(place("a", "x"), "set", {"N": "2"}),
                Change(place("a", "y"), "set", ONE),
                Change(place("b"), "set", ONE),
            ),
            (is_map("a"), is_map()),
        ),
    ),
    (
        {"a": []},
        {"a": [1]},
        Difference((Change(place("a"), "set", LIST),), (is_map(), place("a").stored("=", {"L": []}))),
    ),
    (
        {},
        {"a": [1]},
        Difference((Change(place("a"), "set", LIST),), (is_map(), place("a").stored("missing"))),
    ),
    (None, {"a": 1}, Difference((Change(place(), "set", {"M": {"a": ONE}}),), (place().stored("missing"),))),
    ({"a": 1}, None, Difference((Change(place(), "remove"),), (place().stored("=", {"M": {"a": ONE}}),))),
    (None, {"a"}, Difference((Change(place(), "include", {"SS": ["a"]}),))),
    ({"a"}, None, Difference((Change(place(), "exclude", {"SS": ["a"]}),))),
]


@pytest.mark.parametrize(("before", "after", "expected"), DIFFERENCES)
def test_a_difference_names_what_is_otherwise(before: Any, after: Any, expected: Difference) -> None:
    """Each map around a changed element is named once; changed maps must be as they were loaded."""
    stored = [None if value is None else to_attribute_value(value) for value in (before, after)]
    assert difference_of("data", *stored) == expected


def test_an_empty_name_is_a_place_that_no_expression_has() -> None:
    """Another program may have stored one: the map is written completely, if it is unchanged."""
    before = {"M": {"": ONE}}
    expected = Difference((Change(place(), "set", {"M": {}}),), (place().stored("=", before),))
    assert difference_of("data", before, {"M": {}}) == expected


def test_a_number_that_is_written_otherwise_is_no_difference() -> None:
    """1 and 1.0 are one number to DynamoDB."""
    assert difference_of("data", {"M": {"a": {"N": "1"}}}, {"M": {"a": {"N": "1.0"}, "b": ONE}}).changes == (
        Change(place("b"), "set", ONE),
    )


VALUES = st.recursive(
    st.one_of(st.integers(0, 2), st.just({"s"}), st.just({"s", "t"})),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.sampled_from("abc"), inner, max_size=3)),
    max_leaves=10,
)
DOCUMENTS = st.one_of(
    st.none(), st.dictionaries(st.sampled_from("abcd"), VALUES), st.lists(VALUES), st.sets(st.sampled_from("abc"))
).map(lambda value: None if value is None or value == set() else to_attribute_value(value))


@given(before=DOCUMENTS, after=DOCUMENTS)
def test_a_difference_makes_the_one_of_the_other(before: Any, after: Any) -> None:
    """The old document meets the conditions, and changed elements do not overlap."""
    item = {} if before is None else {"data": before}
    difference = difference_of("data", before, after)
    assert matches(And(difference.conditions), item)
    places = [change.place for change in difference.changes]
    assert not any(one.overlaps(other) for number, one in enumerate(places) for other in places[:number])
    found = evaluate(difference.changes, item).get("data", before)
    assert (found if found is None else normalized_value(found)) == (
        after if after is None else normalized_value(after)
    )


@given(
    before=st.dictionaries(st.sampled_from("abcd"), VALUES, min_size=2),
    mine=st.dictionaries(st.sampled_from("abcd"), VALUES),
    theirs=st.dictionaries(st.sampled_from("abcd"), VALUES),
)
def test_differences_on_disjoint_places_commute(before: Any, mine: Any, theirs: Any) -> None:
    """Each meets its conditions after the other, and both orders have the same result."""
    differences = [difference_of("data", *map(to_attribute_value, (before, after))) for after in (mine, theirs)]
    if any(one.place.overlaps(other.place) for one in differences[0].changes for other in differences[1].changes):
        return
    results = []
    for order in (differences, differences[::-1]):
        item: Any = {"data": to_attribute_value(before)}
        for difference in order:
            assert matches(And(difference.conditions), item)
            item = {**item, **evaluate(difference.changes, item)}
        results.append(normalized_value(item["data"]))
    assert results[0] == results[1]


class Money(models.Attribute[Any]):
    """A value of two parts, stored as a map."""

    attr_type = "M"
    field_class = models.MapAttribute.field_class


def test_an_attribute_of_ones_own_is_one_value() -> None:
    """A custom attribute is one value unless it declares a document: two writers must not mix its parts."""
    with forgotten():
        model = declare(
            "Bill", ("BILL#{bill_id}", "#"), bill_id=models.IdAttribute(), sum=Money(), data=models.MapAttribute()
        )
        assert form_of(model).documents == {"data"}
