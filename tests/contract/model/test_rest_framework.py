"""The serialisers of Django REST framework over these models."""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework import serializers

from project.directory.models import Company, Person
from tests.catalog.models import Employee, Firm


def serializer_of(of: Any) -> Any:
    """A serialiser of everything that a model has."""
    return type(
        "Serializer", (serializers.ModelSerializer,), {"Meta": type("Meta", (), {"model": of, "fields": "__all__"})}
    )


@pytest.fixture
def firm(table: Any) -> Firm:
    """A firm with one employee."""
    firm = Firm.objects.create(firm_id="f1", name="Acme", stock="ACM")
    Employee.objects.create(firm_id="f1", employee_id="e1", name="Ann")
    return firm


def test_a_key_of_several_attributes_that_is_taken_is_an_error_of_the_serialiser(firm: Firm) -> None:
    serializer = serializer_of(Employee)(data={"firm": "f1", "employee_id": "e1", "name": "Bob"})

    assert not serializer.is_valid()
    assert [error.code for error in serializer.errors["non_field_errors"]] == ["unique"]


def test_a_key_of_one_attribute_that_is_taken_is_an_error_of_its_field(firm: Firm) -> None:
    serializer = serializer_of(Firm)(data={"firm_id": "f1", "name": "Other", "stock": "OTH"})

    assert not serializer.is_valid()
    assert [error.code for error in serializer.errors["firm_id"]] == ["unique"]


def test_a_key_that_is_free_is_created(firm: Firm) -> None:
    serializer = serializer_of(Employee)(data={"firm": "f1", "employee_id": "e2", "name": "Bob"})

    assert serializer.is_valid()
    assert serializer.save().pk == "f1~~e2"


def test_an_object_is_updated_under_its_own_key(firm: Firm) -> None:
    ann = Employee.objects.get(pk="f1~~e1")
    serializer = serializer_of(Employee)(ann, data={"firm": "f1", "employee_id": "e1", "name": "Anna"})

    assert serializer.is_valid()
    serializer.save()
    assert Employee.objects.get(pk="f1~~e1").name == "Anna"


def test_an_identifier_that_the_app_makes_is_not_asked_for(table: Any) -> None:
    Company.objects.create(company_id="c1", name="Acme")
    serializer = serializer_of(Person)(data={"company": "c1", "name": "Ann"})

    assert serializer.is_valid()
    assert serializer.save().person_id.startswith("person-")
