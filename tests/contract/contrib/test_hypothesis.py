"""Strategies for models: every value is stored and read as it was drawn."""

from __future__ import annotations

from typing import Any

import pytest
from django.apps import apps
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.errors import InvalidArgument

from dynamo_single.contrib.hypothesis import from_field, from_model
from dynamo_single.models import Model
from project.directory.models import Company, Person
from tests.catalog.library import Ledgered
from tests.catalog.models import Order, Product, Sample
from tests.catalog.service import Visit
from tests.catalog.studios import Painting
from tests.deep import deep

#: The models of the default table, all of which a deep run draws.
MODELS: list[Any] = [
    model
    for label in ("catalog", "directory", "records", "chat")
    for model in apps.get_app_config(label).get_models()
    if issubclass(model, Model) and model._options.alias == "default"
]
USUAL = {Sample, Order, Product, Person, Painting, Visit}


@pytest.mark.parametrize(
    "model",
    [pytest.param(each, marks=() if each in USUAL else deep, id=each._meta.label) for each in MODELS],
)
@given(data=st.data())
def test_drawn_object_is_stored(table: Any, model: Any, data: Any) -> None:
    obj = data.draw(from_model(model))
    found = getattr(model, "all_objects", model.objects).get(pk=obj.pk)
    names = [field.attname for field in model._meta.concrete_fields]
    assert [(name, getattr(found, name)) for name in names] == [(name, getattr(obj, name)) for name in names]


@pytest.mark.parametrize("field", Sample._meta.concrete_fields, ids=lambda field: field.name)
@given(data=st.data())
def test_drawn_value_is_valid(field: Any, data: Any) -> None:
    value = data.draw(from_field(field))
    assert value is None or field.clean(value, None) is not None


@given(data=st.data())
def test_given_strategy_is_used(table: Any, data: Any) -> None:
    person = data.draw(from_model(Person, company=from_model(Company, name=st.just("Acme")), name=...))
    assert person.company.name == "Acme"


@given(data=st.data())
def test_stored_object_does_not_get_the_unique_value_of_another(table: Any, data: Any) -> None:
    drawn = from_model(Ledgered, number=st.sampled_from([1, 2]), isbn=st.sampled_from("12"))
    for _ in range(4):
        data.draw(drawn)
    found = Ledgered.objects.in_bulk([1, 2]).values()
    assert len({each.isbn for each in found}) == len(found)


def test_unknown_attribute_is_an_error() -> None:
    with pytest.raises(InvalidArgument, match="Cannot draw colour"):
        from_model(Company, colour=st.just("red"))
