"""Conditions as plain tuples equal the conditions."""

from __future__ import annotations

import pytest

from dynamo_single.exceptions import ConfigurationError
from dynamo_single.orm.conditions.terms import EVERYTHING, And, Compare, Condition, Not, Nothing, Or, Stored, StoredPair
from dynamo_single.orm.conditions.wording import condition_of, plain_condition, rename_in_plain

CONDITIONS = [
    EVERYTHING,
    Nothing(),
    Stored("a", "exists"),
    Stored("a", "between", ({"N": "1"}, {"N": "2"}), ("b", 0)),
    And((Not(Stored("a", "=", ({"S": "x"},))), Or((Stored("b", "missing"), StoredPair("a", "<", "b", (), ("c",)))))),
]


@pytest.mark.parametrize("condition", CONDITIONS, ids=str)
def test_what_is_read_back_is_equal(condition: Condition) -> None:
    """This includes every kind of condition in stored names."""
    assert condition_of(plain_condition(condition)) == condition


@pytest.mark.parametrize("condition", CONDITIONS, ids=str)
def test_renaming_there_and_back_changes_nothing(condition: Condition) -> None:
    """A name that the condition does not have yet."""
    assert rename_in_plain(rename_in_plain(plain_condition(condition), "a", "new"), "new", "a") == plain_condition(
        condition
    )


def test_a_renamed_condition_is_about_the_new_name() -> None:
    """Wherever it stands."""
    assert rename_in_plain(plain_condition(CONDITIONS[-1]), "a", "z") == (
        "and",
        ("not", ("=", "z", {"S": "x"})),
        ("or", ("missing", "b"), ("pair", "<", "z", ("b", "c"))),
    )


def test_a_condition_in_a_models_names_is_refused() -> None:
    """The condition would mean another attribute after a rename."""
    with pytest.raises(ConfigurationError, match="not in stored names"):
        plain_condition(Compare("name", "exact", "x"))
