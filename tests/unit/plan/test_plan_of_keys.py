"""A plan from complete primary keys is the planner's plan for their values."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any

import pytest
from django.apps import apps
from hypothesis import given, note, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from dynamo_single.orm.conditions.terms import And, Compare, Condition, Or
from dynamo_single.orm.items.encode import computed_key
from dynamo_single.orm.plan import planner
from dynamo_single.orm.plan.plan import Plan, Query
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.identities import example_value_of
from dynamo_single.orm.schema.keys.codecs import example_value
from dynamo_single.orm.where import lookups
from tests.deep import examples
from tests.unit.factories import in_tens

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MODELS = [
    model
    for model in apps.get_models(include_auto_created=True)
    if hasattr(model, "_options")
    and registry.layout_of(model).primary.sharding is None
    and not lookups.identity_texts(model).intersection(registry.layout_of(model).identity)
    and all(
        registry.layout_of(model).attributes[name].kind in ("text", "number", "uuid")
        for name in registry.layout_of(model).identity
    )
]
#: Values in other models' keys, so that a key may also be another model's.
TEXTS = ["a", "b", "#METADATA", "root_a", "people_a", "UNIQUE#x"]


def made_of(plan: Plan) -> Plan:
    """Return the relevant parts of a plan, without the query and rejected keys."""
    return replace(plan, query=replace(plan.query, where=And()), rejected=())


texts, numbers = st.sampled_from(TEXTS), st.integers(0, 99)
visibilities, visibilities_of_trash = st.sampled_from(["live", "all"]), st.sampled_from(["live", "deleted", "all"])


@st.composite
def identities(draw: st.DrawFn, layout: Any) -> dict[str, Any]:
    """Draw the values of one primary key."""
    kinds = {name: layout.attributes[name].kind for name in layout.identity}
    # No string is valid for a reference whose identity is split in a key.
    apart = {part.name for key in (layout.primary.partition, layout.primary.sort) for part in key.parts if part.path}
    attributes = registry.attributes_of(registry.model_of(layout))
    return {
        name: example_value_of(attributes[name])
        if name in apart
        else draw(texts)
        if kind == "text"
        else draw(numbers)
        if kind == "number"
        else example_value(kind)
        for name, kind in kinds.items()
    }


@cache
def several_of(model: Any) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Some primary keys of a model."""
    return st.lists(identities(registry.layout_of(model)), min_size=1, max_size=3, unique_by=repr)


@pytest.mark.parametrize("group", in_tens(MODELS), ids=lambda group: group[0]._meta.label)
@settings(max_examples=examples(6, 20))
@given(st.data())
def test_keys_give_the_plan_that_their_values_give(group: Sequence[Any], data: st.DataObject) -> None:
    """This applies to every model and visibility."""
    for model in group:
        layout = registry.layout_of(model)
        note(layout.label)
        visibility = data.draw(visibilities_of_trash if layout.soft_delete else visibilities)
        several = data.draw(several_of(model))
        wheres: list[Condition] = [
            And(tuple(Compare(name, "exact", value) for name, value in each.items())) for each in several
        ]
        query = Query(layout, visibility=visibility, consistent=data.draw(st.booleans()))
        keys = [computed_key(model, each) for each in several]

        found = planner.plan_of_keys(query, list(dict.fromkeys(keys)), now=NOW)

        where = wheres[0] if len(wheres) == 1 else Or(tuple(wheres))
        assert made_of(found) == made_of(planner.plan(replace(query, where=where), now=NOW))
