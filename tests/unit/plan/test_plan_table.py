"""A table of querysets and their plans: key, key conditions, filter, or the error's whole text.

``plans.txt`` is for readers and this test: a queryset in the first column, and its plan below, indented.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.db.models import F, Q

from dynamo_single.exceptions import DynamoSingleError
from dynamo_single.orm.conditions.terms import EVERYTHING
from dynamo_single.orm.conditions.wording import condition_text
from dynamo_single.orm.plan.plan import KeyCondition, Plan
from project.directory.models import Company, Office, Person
from tests.catalog import boards, models

TABLE = Path(__file__).with_name("plans.txt")
NOW = datetime(2024, 3, 1, tzinfo=UTC)
NAMES: dict[str, Any] = {
    **vars(boards),
    **vars(models),
    "Company": Company,
    "Office": Office,
    "Person": Person,
    "F": F,
    "Q": Q,
    "Decimal": Decimal,
    "MOMENT": datetime(2024, 1, 1, tzinfo=UTC),
    "LATER": datetime(2024, 2, 1, tzinfo=UTC),
    "DAY": date(2024, 1, 1),
    "MANY": [str(number) for number in range(10_001)],
}


def rows() -> Iterator[tuple[str, str]]:
    """Yield each queryset with its expected plan; headings and empty lines are for readers."""
    expected: dict[str, list[str]] = {}
    queryset = ""
    for line in TABLE.read_text().splitlines():
        if line.startswith("    "):
            expected[queryset].append(line[4:])
        elif line and not line.startswith("#"):
            queryset = line
            assert queryset not in expected, f"{queryset} stands in the table twice."
            expected[queryset] = []
    for queryset, lines in expected.items():
        yield queryset, "\n".join(lines)


def written(plan: Plan) -> str:
    """Write a plan as the table does."""
    if plan.kind == "empty":
        return "nothing is sent"
    if plan.kind == "union":
        parts = [line for part in plan.parts for line in written(part).splitlines()]
        return "\n".join([*parts, *(["merged in order"] if plan.query.ordering else [])])
    name = plan.key.name if plan.key else "the table"
    lines = [f"{plan.kind} {name}{'' if plan.forward else ' backwards'}"]
    lines += [f"  {pk!r} / {sk!r}" for pk, sk in plan.keys]
    lines += [f"  {key_condition(condition)}" for condition in plan.conditions]
    if plan.merge == "sort_key":
        lines.append("  merged by the sort key")
    if plan.filter != EVERYTHING:
        lines.append(f"  filter {condition_text(plan.filter)}")
    return "\n".join(lines)


def key_condition(condition: KeyCondition) -> str:
    """Write a key condition as the table does."""
    operands = " and ".join(map(repr, condition.operands))
    return f"{condition.partition!r} {condition.operator} {operands}".strip()


def answered(queryset: str) -> str:
    """Return the plan of a row's queryset without a request."""
    try:
        found = eval(queryset, NAMES)  # noqa: S307 - the table is ours
        return "nothing is sent" if found.query.is_empty() else written(found._plan())
    except DynamoSingleError as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize(("queryset", "expected"), list(rows()))
def test_a_queryset_is_planned_as_the_table_says(queryset: str, expected: str, monkeypatch: Any) -> None:
    """The queryset's plan, or its refusal, is what stands below it."""
    monkeypatch.setattr("django.utils.timezone.now", lambda: NOW)
    assert answered(queryset) == expected


def test_the_table_is_long_enough() -> None:
    """There are at least 150 rows, a fifth of them refusals."""
    expected = [text for _, text in rows()]
    assert len(expected) >= 150
    assert sum(not text.startswith(("get", "batch", "query", "scan", "nothing")) for text in expected) >= 30
