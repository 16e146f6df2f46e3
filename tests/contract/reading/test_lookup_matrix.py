"""Every lookup on every type of attribute, on the real engine: the answers are Python's, and paid for as documented."""

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
#: A test of the page holds it to what the planner answers.
ANSWERED = matrix.answered()
REFUSED = [each for each in CELLS if each not in ANSWERED]


def by_column(cells: list[tuple[str, str]]) -> Any:
    """The lookups of these cells, column by column: a model is declared and filled once for all of its lookups."""
    found: dict[str, list[str]] = {}
    for lookup, name in cells:
        found.setdefault(name, []).append(lookup)
    return pytest.mark.parametrize(("name", "lookups"), found.items(), ids=found)


#: What only a key with the canonical form answers.
NEEDS_KEY = [matrix.CANONICAL]


def fill(model: Any, name: str) -> None:
    """Store an object for each value of a column."""
    for place, value in enumerate(matrix.COLUMNS[name].values):
        model.objects.create(cell_id=str(place), value=value)


def requests(plan: Plan) -> int:
    """How many requests a small table needs for a plan."""
    if plan.kind == "union":
        return sum(map(requests, plan.parts))
    return len(plan.conditions)


def assert_answered(model: Any, lookup: str, name: str) -> None:
    """By every key that answers the lookup just those objects are found that Python finds."""
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
    """By every key that answers a lookup just those objects are found, and a key condition reads no others."""
    with matrix.declared(name) as model:
        fill(model, name)
        for lookup in lookups:
            with case(lookup):
                assert_answered(model, lookup, name)


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize(("lookup", "name"), NEEDS_KEY)
def test_an_answer_by_a_key_of_its_own_is_what_python_finds(lookup: str, name: str) -> None:
    """A key that has the canonical form of a text."""
    with matrix.models_of(lookup, name) as model:
        fill(model, name)
        assert_answered(model, lookup, name)


@pytest.mark.usefixtures("table")
@by_column([cell for cell in ANSWERED if cell not in NEEDS_KEY])
def test_a_missing_value_meets_no_lookup_and_every_negation(name: str, lookups: list[str]) -> None:
    """An object without the attribute is found by ``isnull`` and left out by all others; a negation is the rest."""
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
    """A cell without an answer is an error that names the attribute or the lookup, or it is a path into a document."""
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
