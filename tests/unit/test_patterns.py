"""The listed access patterns of a key are the planner's."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from uuid import UUID

import pytest

from dynamo_single.contrib.doctor.patterns import Answer, by_index, patterns, patterns_of
from dynamo_single.orm.conditions import lowering
from dynamo_single.orm.conditions.terms import And, Compare, Condition, Order
from dynamo_single.orm.plan import planner
from dynamo_single.orm.plan.plan import Query
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.attributes.references import ReferenceAttribute
from dynamo_single.orm.schema.identities import example_value_of
from project.directory.models import Company, Person
from tests.catalog.queues import Dispatch
from tests.unit.factories import in_tens

NOW = datetime(2026, 1, 1, tzinfo=UTC)
#: Two values of each kind of attribute that a key can have, the lower first.
VALUES: dict[str, tuple[Any, Any]] = {
    "text": ("a", "b"),
    "number": (1, 2),
    "boolean": (False, True),
    "date": (date(2026, 1, 1), date(2026, 1, 2)),
    "time": (time(1), time(2)),
    "timestamp": (NOW, NOW + timedelta(1)),
    "duration": (timedelta(1), timedelta(2)),
    "uuid": (UUID(int=1), UUID(int=2)),
    "label": ("catalog.mineral", "catalog.emblem"),
}
MODELS = [model for model in registry.all_models() if model._options.alias == "default"]


@pytest.mark.parametrize("group", in_tens(MODELS), ids=lambda group: group[0]._meta.label)
def test_a_key_answers_what_it_is_listed_with(group: Sequence[Any]) -> None:
    """One request returns a page in the listed order, without work in memory."""
    for listed in group:
        model = registry.model_of_type("default", registry.layout_of(listed).item_type)
        for pattern in patterns_of(listed):
            for answer in () if pattern.name.startswith("unique ") else pattern.answers:
                assert_answered(model, pattern.name, answer)


def assert_answered(model: Any, key: str, answer: Answer) -> None:
    """Assert that the planner uses the key as listed."""
    said = f"{model._meta.label} by {key}: {answer}"
    layout, attributes = registry.layout_of(model), registry.attributes_of(model)
    where: list[Condition] = []
    for name, lookup in answer.conditions:
        first, second = VALUES[layout.attributes[name].kind]
        if isinstance(attributes.get(name), ReferenceAttribute):
            first = example_value_of(attributes[name])
        if lookup == "present":
            where.append(Compare(name, "isnull", False))
        elif lookup == "filled":
            where.append(Compare(name, "gt", ""))
        else:
            where.append(Compare(name, lookup, (first, second) if lookup == "range" else first))
    for each in layout.indexes if answer.only else ():
        if each.name == key and each.condition is not None:
            where.append(lowering.with_stored_names(each.condition, layout))
    plan = planner.plan(
        Query(
            layout,
            And(tuple(where)),
            ordering=(Order(answer.order, False),) if answer.order else (),
            visibility="deleted" if answer.manager == "deleted_objects" else "live",
            using_index=key,
        ),
        now=NOW,
    )
    assert plan.key is not None, said
    assert plan.key.name == key, said
    assert plan.kind == ("get" if answer.method == "get" else "query"), said
    assert len(plan.conditions) <= 1, said
    assert plan.in_memory is None, said


def test_a_key_with_a_condition_is_listed_with_it() -> None:
    """The key supports queries that include its condition."""
    found = {pattern.name: [str(answer) for answer in pattern.answers] for pattern in patterns_of(Dispatch)}
    assert found["waiting"][0] == "objects.filter(status='open').order_by(\"rank\")"
    assert found["urgent"][0] == "objects.filter(owner=…, rank__gte=5, status='open').order_by(\"rank\")"


def test_the_patterns_of_a_model() -> None:
    """Its keys, the trash, and its unique values."""
    found = {pattern.name: [str(answer) for answer in pattern.answers] for pattern in patterns_of(Person)}
    assert found == {
        "primary": ["objects.get(company_id=…, person_id=…)", 'objects.filter(company_id=…).order_by("person_id")'],
        "by_id": ["objects.filter(person_id=…)"],
        "by_name": [
            'objects.all().order_by("name")',
            'objects.filter(name__range=(…, …)).order_by("name")',
            "objects.filter(name__startswith=…)",
            'objects.filter(name=…).order_by("person_id")',
        ],
        "trash": ["deleted_objects.all()"],
        "unique email": ["objects.get(email=…)"],
    }


def test_every_model_of_a_table_is_among_them() -> None:
    """In the order of their labels."""
    labels = list(dict.fromkeys(pattern.label for pattern in patterns()))
    assert labels == sorted(labels)
    assert set(labels) == {m._meta.label for m in registry.all_models() if m._options.alias == "default"}


def test_what_lies_beside_each_other_stands_together() -> None:
    """By index, and there by partition."""
    table, gs1 = by_index(patterns_of(Company))
    assert [(table.index, gs1.index)] == [("", "gs1")]
    assert [pattern.name for pattern in gs1.patterns] == ["by_name", "trash"]
