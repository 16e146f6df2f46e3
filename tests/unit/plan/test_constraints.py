"""A query's constraints on its attributes stay cheap for thousands of values."""

from __future__ import annotations

import pytest
from msgspec.structs import force_setattr

from dynamo_single.orm.conditions.terms import And, Compare
from dynamo_single.orm.plan.constraints import constraints_of
from dynamo_single.orm.schema.layout import AttributeInfo
from tests.unit.factories import Space

LAYOUT = Space().model("x.A", {"a": "text", "b": "text"}, ("A#{a}", "M"))


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        ((Compare("a", "in", ("x", "y", "z")), Compare("a", "in", ("z", "y"))), ("y", "z")),
        ((Compare("a", "in", ("x", "y")), Compare("a", "gt", "x")), ("y",)),
        ((Compare("a", "exact", "x"), Compare("a", "in", ("x", "x"))), ("x",)),
    ],
)
def test_conditions_on_one_attribute_leave_the_values_that_meet_all(
    terms: tuple[Compare, ...], expected: tuple[str, ...]
) -> None:
    """Several conditions leave the common values, in their first order."""
    found = constraints_of(And(terms), LAYOUT)
    assert found is not None
    assert found.allowed["a"] == expected


def test_contradicting_equalities_leave_nothing() -> None:
    """No item can have two values in one place."""
    assert constraints_of(And((Compare("a", "exact", "x"), Compare("a", "exact", "y"))), LAYOUT) is None


def test_thousands_of_values_are_worked_out_in_one_pass() -> None:
    """Each condition handles a value once, rather than once per other value."""
    written = 0

    def serialize(value: str) -> dict[str, str]:
        nonlocal written
        written += 1
        return {"S": value}

    attributes = {**LAYOUT.attributes, "a": AttributeInfo("a", "a", "S", True, serialize)}
    layout = Space().model("x.B", {"a": "text"}, ("B#{a}", "M"))
    force_setattr(layout, "attributes", attributes)
    values = tuple(f"v{number}" for number in range(3_000))
    constraints_of(And((Compare("a", "in", values),)), layout)
    assert written <= 4 * len(values)


@pytest.mark.parametrize(("kind", "is_text"), [("text", True), ("date", False), ("uuid", False), ("", False)])
def test_only_text_can_be_stored_empty(kind: str, is_text: bool) -> None:
    """Dates and UUIDs are also stored as S, and a comparison with one excludes empty values."""
    assert AttributeInfo("a", "a", "S", False, lambda value: {"S": value}, kind).is_text is is_text


@pytest.mark.parametrize(("text", "excluded"), [(True, False), (False, True)])
def test_what_lies_below_a_value_may_be_empty_only_for_text(text: bool, excluded: bool) -> None:
    """A missing date never meets ``due < x``, so an index of optional dates supports it."""
    found = constraints_of(Compare("a", "lt", "x"), LAYOUT)
    assert found is not None
    assert found.excludes_empty("a", text=text) is excluded
