"""Every lookup on every type of attribute has Python's results and the documented cost on the real engine."""

from __future__ import annotations

from typing import Any

import pytest
from django.db.models import Q

from dynamo_single.exceptions import DynamoSingleError
from dynamo_single.orm.plan.plan import Plan
from dynamo_single.orm.query.state import state_of
from dynamo_single.testing import assert_requests
from tests.contract.noted import case
from tests.docs import lookup_table as matrix

CELLS = [(lookup, name) for lookup in matrix.LOOKUPS for name in matrix.COLUMNS]
#: A test compares the page with the planner.
ANSWERED = matrix.answered()
REFUSED = [each for each in CELLS if each not in ANSWERED]


def by_column(cells: list[tuple[str, str]]) -> Any:
    """Return the lookups of these cells by column: one model with data serves all lookups of a column."""
    found: dict[str, list[str]] = {}
    for lookup, name in cells:
        found.setdefault(name, []).append(lookup)
    return pytest.mark.parametrize(("name", "lookups"), found.items(), ids=found)


#: Lookups that need a key with the canonical form.
NEEDS_KEY = [matrix.CANONICAL]


def fill(model: Any, name: str) -> None:
    """Store an object for each value of a column."""
    for place, value in enumerate(matrix.COLUMNS[name].values):
        model.objects.create(cell_id=str(place), value=value)


def requests(plan: Plan) -> int:
    """Return the number of requests of a plan in a small table."""
    if plan.kind == "union":
        return sum(map(requests, plan.parts))
    return len(plan.conditions)


def assert_answered(model: Any, lookup: str, name: str) -> None:
    """Assert that every key that supports the lookup returns Python's results."""
    expected = matrix.expected(lookup, name)
    asked = [matrix.by_key(model, lookup, name, key) for key in matrix.KEYS]
    assert any(queryset is not None for queryset in asked)
    for queryset in filter(lambda queryset: queryset is not None, asked):
        with assert_requests(requests(queryset._plan())) as sent:
            found = sorted(obj.pk for obj in queryset)
        assert found == expected, queryset.explain()
        assert queryset.count() == len(expected)
        if matrix.in_key(queryset):
            read = sum(each.response["ScannedCount"] for each in sent if each.response)
            assert read == len(expected), queryset.explain()


@pytest.mark.usefixtures("table")
@by_column([cell for cell in ANSWERED if cell not in NEEDS_KEY])
def test_an_answer_is_what_python_finds(name: str, lookups: list[str]) -> None:
    """Every supporting key returns exactly Python's results, and a key condition does not read other items."""
    with matrix.declared(name) as model:
        fill(model, name)
        for lookup in lookups:
            with case(lookup):
                assert_answered(model, lookup, name)


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize(("lookup", "name"), NEEDS_KEY)
def test_an_answer_by_a_key_of_its_own_is_what_python_finds(lookup: str, name: str) -> None:
    """The key contains the canonical form of a string."""
    with matrix.models_of(lookup, name) as model:
        fill(model, name)
        assert_answered(model, lookup, name)


@pytest.mark.usefixtures("table")
@by_column([cell for cell in ANSWERED if cell not in NEEDS_KEY])
def test_a_missing_value_meets_no_lookup_and_every_negation(name: str, lookups: list[str]) -> None:
    """Only ``isnull`` finds an object without the attribute, and a negation returns all others."""
    with matrix.declared_nullable(name) as model:
        fill(model, name)
        model.objects.create(cell_id="none")
        everything = {obj.pk for obj in model.objects.all()}
        for lookup in lookups:
            with case(lookup):
                expected = {"none"} if lookup == "isnull" else set(matrix.expected(lookup, name))
                queryset = matrix.ask(model, lookup, name)
                assert {obj.pk for obj in queryset} == expected
                question = Q(*queryset.query.where.children)
                assert {obj.pk for obj in model.objects.filter(~question)} == everything - expected


@by_column(REFUSED)
def test_what_is_not_answered_is_refused_by_name(name: str, lookups: list[str]) -> None:
    """The error names the attribute or the lookup, unless it is a path into a document."""
    with matrix.declared(name) as model:
        for lookup in lookups:
            with case(lookup):
                assert_refused(model, lookup, name)


def assert_refused(model: Any, lookup: str, name: str) -> None:
    """By name, or it is a path."""
    try:
        queryset = matrix.ask(model, lookup, name)
        queryset.explain()
    except DynamoSingleError as error:
        asked = matrix.LOOKUPS[lookup].conditions(matrix.COLUMNS[name])
        words = {"value", *(f"'{suffix.partition('__')[0]}" for suffix in asked)}
        assert any(word in str(error) for word in words), error
    else:
        assert name in ("map", "list"), queryset.explain()
        assert "path=('" in repr(state_of(queryset).where)
