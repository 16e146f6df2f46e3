"""A cached shape of a query gives the same plan, request or error as the planner."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from unittest import mock
from uuid import UUID

import pytest
from django.apps import apps
from django.db.models import Q
from hypothesis import HealthCheck, event, given, note, settings
from hypothesis import strategies as st

from dynamo_single import models
from dynamo_single.orm.conditions.terms import And, Compare, Condition, Order
from dynamo_single.orm.items.unique_rules import lookups_of
from dynamo_single.orm.plan import planner, shapes
from dynamo_single.orm.plan.plan import Plan, Query
from dynamo_single.orm.requests.compiler import compile_plan
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.identities import example_value_of
from tests.deep import examples
from tests.unit.declaring import declare, forgotten
from tests.unit.factories import in_tens

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MODELS: list[Any] = [model for model in apps.get_models(include_auto_created=True) if hasattr(model, "_options")]
#: Values of each type of key: escaped ones, too long ones, and invalid ones.
VALUES: dict[str, list[Any]] = {
    "text": [
        "a",
        "a b",
        "a#b",
        "",
        "x$",
        "é~",
        "\ud800",
        "e" * 1021,
        "e" * 2047,
        "root_a",
        "UNIQUE#x",
        "TRASH",
        "b~~c",
    ],
    "number": [0, -1, 1, 12345678, Decimal("-1.5"), 10**38, 10**200, True, 1.5],
    "boolean": [True, False],
    "date": [date(2026, 1, 2), date(1, 1, 1)],
    "time": [time(1, 2, 3), time(1, 2, tzinfo=UTC)],
    "timestamp": [
        NOW,
        NOW.astimezone(timezone(timedelta(hours=-9))),
        datetime(2026, 1, 1),
        datetime(1, 1, 1, tzinfo=UTC),
    ],
    "duration": [timedelta(1), timedelta(-1, 5)],
    "uuid": [UUID(int=1), UUID(int=2**128 - 1)],
}
ODD: list[Any] = [None, "", b"a", ["a"], 1, "a"]


def outcome(plan: Any, query: Query) -> Any:
    """Return a query's plan and requests, or its error."""
    now = NOW if query.layout.expires else None
    try:
        found: Plan = plan(query, now=now)
        requests = compile_plan(found, table_name="t")
    except Exception as error:
        return type(error), str(error)
    return found, [(each.operation, list(each.params.items())) for each in requests]


@st.composite
def conditions(draw: st.DrawFn, model: Any) -> Condition:
    """Draw values of some attributes: mostly of a key's, and seldom others."""
    layout, attributes = registry.layout_of(model), registry.attributes_of(model)
    key = draw(st.sampled_from(layout.keys))
    parts = [part.name for part in (*key.partition.parts, *key.sort.parts)]
    needed = [part.name for part in key.partition.parts]
    more = draw(st.lists(st.sampled_from([*parts, *attributes]), max_size=2))
    names = dict.fromkeys([*(needed if draw(st.integers(0, 9)) else ()), *more])
    terms = []
    for name in draw(st.permutations([*names])):
        usual = [example_value_of(attributes[name]), *VALUES.get(layout.attributes[name].kind, ODD)]
        value = draw(st.sampled_from(usual if draw(st.integers(0, 19)) else ODD))
        operator = draw(st.sampled_from(["exact"] * 12 + ["gte", "isnull"]))
        terms.append(Compare(name, operator, value))
    return terms[0] if len(terms) == 1 else And(tuple(terms))


@st.composite
def queries(draw: st.DrawFn, model: Any) -> Query:
    """Draw a query of a model."""
    layout = registry.layout_of(model)
    key = draw(st.sampled_from(layout.keys))
    names = [part.name for part in key.sort.parts if not part.path]
    ordered = names[: draw(st.integers(0, len(names)))] if draw(st.booleans()) else []
    backwards = draw(st.booleans())
    return Query(
        layout,
        draw(conditions(model)),
        tuple(Order(name, backwards) for name in ordered),
        draw(st.sampled_from(["live", "live", "all", "deleted"] if layout.soft_delete else ["live"])),
        draw(st.sampled_from([None, None, None, key.name])),
        draw(st.sampled_from([False, False, True])),
        draw(st.sampled_from([False, False, True])),
        lookups=lookups_of(model),
        in_pages=draw(st.booleans()),
    )


def check(query: Query) -> None:
    """Compare both plans, and note whether the shape served."""
    expected = outcome(planner.plan, query)
    with mock.patch.object(planner, "plan", wraps=planner.plan) as planned:
        found = outcome(shapes.plan, query)
        # The shape may be planned for its first query.
        again = outcome(shapes.plan, query)
        event("by the shape" if planned.call_count < 2 else "by the planner")
    assert found == expected
    assert again == expected


@pytest.mark.parametrize("group", in_tens(MODELS), ids=lambda group: group[0]._meta.label)
@settings(max_examples=examples(3, 60))
@given(st.data())
def test_shapes_of_all_models(group: Sequence[Any], data: st.DataObject) -> None:
    """This includes models of the demo and of the tests."""
    for model in group:
        if registry.layout_of(model).sharding is None:
            query = data.draw(queries(model))
            note(str(query))
            check(query)


@pytest.fixture
def alone() -> Iterator[None]:
    """Hide all models except one whose items can be in others' ranges."""
    with forgotten():
        keys = {"by_b": models.IndexKey("gs1", "N#{b}", "{a}"), "by_c": models.IndexKey("gs2", "{b}", "x{a}")}
        declare("Near", ("A#{a}", "S#{b}"), keys, a=models.UnicodeAttribute(), b=models.UnicodeAttribute())
        yield


TEMPLATES = ["N", "N#{%s}", "{%s}", "A#{%s}", "S#{%s}", "{%s}#T", "x_{%s}"]


def filled(template: str, name: str) -> str:
    """Return a template of one attribute, or of none."""
    return template % name if "%s" in template else template


@st.composite
def declared(draw: st.DrawFn) -> Any:
    """Draw a model with keys on two indexes."""
    kinds = {
        "a": models.UnicodeAttribute,
        "b": draw(st.sampled_from([models.IntegerAttribute, models.UnicodeAttribute, models.DateAttribute])),
        "c": draw(st.sampled_from([models.UnicodeAttribute, models.TimestampAttribute, models.DecimalAttribute])),
        "d": models.UnicodeAttribute,
    }
    keys = {}
    for index in ("gs1", "gs2"):
        one, two, *rest = draw(st.permutations("abcd"))
        templates = draw(st.lists(st.sampled_from(TEMPLATES), min_size=2, max_size=2))
        end = f"#{{{rest[0]}}}" if draw(st.booleans()) and not templates[1].endswith("T") else ""
        texts = filled(templates[0], one), filled(templates[1], two) + end
        condition = draw(st.sampled_from([None, None, Q(d="a"), Q(c__isnull=False)]))
        keys[f"by_{index}"] = models.IndexKey(index, *texts, condition=condition)
    unique = draw(st.booleans())
    attributes = {name: kind(null=name == "c", unique=unique and name == "d") for name, kind in kinds.items()}
    bases = draw(st.sampled_from([(models.Model,), (models.SoftDeleteModel,)]))
    more = {"gone_at": models.TTLAttribute(null=True)} if draw(st.integers(0, 3)) == 0 else {}
    return declare("Drawn", ("A#{a}", draw(st.sampled_from(["S#{b}", "#M"]))), keys, bases=bases, **attributes, **more)


@pytest.mark.usefixtures("alone")
@settings(max_examples=examples(10, 600), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_shapes_of_random_models(data: st.DataObject) -> None:
    """With neighbors, conditions, unique values and times to live."""
    with forgotten():
        model = data.draw(declared())
        for _ in range(3):
            query = data.draw(queries(model))
            note(f"{model._options.primary} {model._options.index_keys} {query}")
            check(query)


CODES = {"red": "r", "blue": "b"}


class ColorAttribute(models.UnicodeAttribute[Any]):
    """A custom string attribute with only two values."""

    def encode(self, value: str) -> str:
        return CODES[value]


@pytest.mark.parametrize("color", ["red", "green"])
def test_attribute_of_a_project_may_refuse_any_example(color: str) -> None:
    """The planner plans its queries, and raises its errors as without shapes."""
    with forgotten():
        keys = {"by_color": models.IndexKey("gs1", "T#{color}", "{code}"), "all": models.IndexKey("gs2", "T", "{code}")}
        model = declare(
            "Paint",
            ("PAINT#{code}", "M"),
            keys,
            code=models.UnicodeAttribute(),
            color=ColorAttribute(),
            lid=ColorAttribute(),
        )
        layout = registry.layout_of(model)
        for name, index in [("color", None), ("lid", "all")]:
            query = Query(layout, Compare(name, "exact", color), using_index=index)
            assert outcome(shapes.plan, query) == outcome(planner.plan, query)
