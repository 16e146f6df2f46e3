"""The app and DynamoDB compute the same result for a change."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamo_single.exceptions import ConditionFailed
from dynamo_single.orm.conditions.matching import normalized_value
from dynamo_single.orm.requests.actions import Put, Update
from dynamo_single.orm.requests.compiler import compile_action
from dynamo_single.orm.requests.updates import Change, Place, evaluate, required_conditions, unmet_change
from dynamo_single.table import Table
from tests.deep import examples

KEY = {"pk": {"S": "p"}, "sk": {"S": "s"}}
NUMBER = Place("number")
TEXTS = st.sampled_from(["a", "b", "c"])
NUMBERS = st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**12), max_value=10**12, places=6)


def number(value: Any) -> dict[str, str]:
    """Return the stored representation of a number."""
    return {"N": format(Decimal(value).normalize(), "f")}


def texts(kind: str) -> st.SearchStrategy[dict[str, Any]]:
    """Return a list or a set of strings."""
    if kind == "L":
        return st.lists(TEXTS.map(lambda text: {"S": text}), max_size=3).map(lambda found: {"L": found})
    return st.sets(TEXTS, min_size=1).map(lambda found: {"SS": sorted(found)})


ITEMS = st.fixed_dictionaries(
    {},
    optional={
        "number": NUMBERS.map(number),
        "other": NUMBERS.map(number),
        "list": texts("L"),
        "set": texts("SS"),
        "map": st.fixed_dictionaries({}, optional={"list": texts("L"), "number": NUMBERS.map(number)}).map(
            lambda found: {"M": found}
        ),
    },
)
SIGNS = st.sampled_from([1, -1])
PLACES = st.sampled_from([NUMBER, Place("other"), Place("map", ("number",)), Place("list", (1,))])
TARGETS = st.sampled_from([Place("target"), NUMBER, Place("map", ("a",)), Place("map", ("list", 0))])
LISTS = st.sampled_from([Place("list"), Place("map", ("list",)), Place("map", ("new",))])
SETS = st.sampled_from([Place("set"), Place("new"), Place("list"), Place("map", ("set",))])
CHANGES = st.one_of(
    st.builds(
        lambda place, of, sign, value: Change(place, "sum", value, ((of, sign),)),
        TARGETS,
        PLACES,
        SIGNS,
        NUMBERS.map(number),
    ),
    st.builds(lambda place, one, other: Change(place, "sum", None, ((one, 1), (other, -1))), TARGETS, PLACES, PLACES),
    st.builds(lambda place, of: Change(place, "copy", None, ((of, 1),)), TARGETS, PLACES),
    st.builds(Change, LISTS, st.sampled_from(["append", "prepend"]), texts("L")),
    st.builds(Change, SETS, st.sampled_from(["include", "exclude"]), texts("SS")),
    st.builds(Change, TARGETS, st.just("set"), NUMBERS.map(number)),
    st.builds(Change, st.one_of(TARGETS, LISTS, SETS), st.just("remove")),
)


@settings(max_examples=examples(25, 300))
@given(item=ITEMS, change=CHANGES)
def test_python_and_dynamodb_make_the_same(table: Table, item: dict[str, Any], change: Change) -> None:
    """The same elements are required, and the results are equal."""
    before = {**KEY, **item}
    table.send(compile_action(Put(before)))
    update = Update(("p", "s"), changes=(change,), condition=required_conditions([change]))
    request = compile_action(update, returns_item=True)
    if unmet_change([change], before) is not None:
        with pytest.raises(ConditionFailed):
            table.send(request)
        return
    after = {**before, **evaluate([change], before)}
    found = table.send(request)["Attributes"]
    assert {name: normalized_value(value) for name, value in found.items()} == {
        name: normalized_value(value) for name, value in after.items() if value is not None
    }


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("12345678901234567890123456789012345678", "1", "12345678901234567890123456789012345679"),
        ("0.1", "0.2", "0.3"),
        ("1E+20", "1E-17", "100000000000000000000.00000000000000001"),
    ],
)
def test_sums_are_exact(one: str, other: str, expected: str) -> None:
    """Python's own decimals would round to 28 digits."""
    change = Change(NUMBER, "sum", {"N": other}, ((NUMBER, 1),))
    value = evaluate([change], {"number": {"N": one}})["number"]
    assert value is not None
    assert Decimal(value["N"]) == Decimal(expected)


def test_removed_elements_are_those_that_were_meant() -> None:
    """A change removes two elements of a list by their original indexes."""
    item = {"list": {"L": [{"S": "a"}, {"S": "b"}, {"S": "c"}]}}
    changes = [Change(Place("list", (place,)), "remove") for place in (0, 1)]
    assert evaluate(changes, item) == {"list": {"L": [{"S": "c"}]}}
