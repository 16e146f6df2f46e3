"""The system check reports attributes that would never be stored, with an alternative."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import models as django_models
from django.db.models.functions import Now
from pynamodb import attributes as pynamodb_attributes

from dynamo_single import models
from dynamo_single.checks.models import check_models
from tests.catalog.models import Sample
from tests.unit.declaring import declare, forgotten


@pytest.fixture(autouse=True)
def forget_models() -> Iterator[None]:
    """Remove the models that a test declares."""
    with forgotten():
        yield


def found(model: Any) -> list[tuple[str, str | None]]:
    """Return the messages about unstored values, each with its alternative."""
    return [(m.msg, m.hint) for m in check_models() if m.obj is model and m.id == "dynamo_single.E008"]


def with_attribute(attribute: Any, **options: Any) -> Any:
    """A model with one more attribute."""
    return declare("Leaky", ("LEAKY#{x}", "#X"), x=models.IdAttribute(), extra=attribute, **options)


@pytest.mark.parametrize(
    ("field", "kind", "way_out"),
    [
        (
            django_models.CharField(max_length=9),
            "CharField",
            "dynamo_single.models has instead: UnicodeAttribute(max_length=...).",
        ),
        (django_models.DateTimeField(), "DateTimeField", "dynamo_single.models has instead: TimestampAttribute()."),
        (
            django_models.ForeignKey("catalog.Firm", django_models.CASCADE, related_name="+"),
            "ForeignKey",
            "dynamo_single.models has instead: ReferenceAttribute(Company, on_delete=...).",
        ),
        (
            django_models.GeneratedField(expression=Now(), output_field=django_models.DateTimeField(), db_persist=True),
            "GeneratedField",
            "dynamo_single.models has instead: CanonicalAttribute(source=...) or CopiedAttribute(...), "
            "or set an attribute in save().",
        ),
        (
            django_models.ManyToManyField("catalog.Firm", related_name="+"),
            "ManyToManyField",
            "Use models.ManyToMany of dynamo_single, or a model of the memberships with two references.",
        ),
    ],
)
def test_a_field_of_django(field: Any, kind: str, way_out: str) -> None:
    """The message names a column of an SQL database, and the attribute that replaces it."""
    message = f"extra is Django's {kind}, a column of an SQL database: it would not be stored."
    assert found(with_attribute(field)) == [(message, way_out)]


class Place(pynamodb_attributes.MapAttribute[str, Any]):
    """A map with attributes, as PynamoDB has them."""

    city = pynamodb_attributes.UnicodeAttribute()


@pytest.mark.parametrize(
    ("attribute", "kind", "way_out"),
    [
        (
            pynamodb_attributes.UnicodeAttribute(),
            "UnicodeAttribute",
            "Use models.UnicodeAttribute of dynamo_single.",
        ),
        (pynamodb_attributes.MapAttribute(), "MapAttribute", "Use models.MapAttribute of dynamo_single."),
        (Place(), "Place", "Use an attribute of dynamo_single."),
    ],
)
def test_a_plain_attribute_of_pynamodb(attribute: Any, kind: str, way_out: str) -> None:
    """PynamoDB's own attributes have no Django field, so that nothing would write them."""
    message = f"extra is PynamoDB's own {kind}, which brings no Django field along: it would not be stored."
    assert found(with_attribute(attribute)) == [(message, way_out)]


@pytest.mark.parametrize("attribute", [models.UnicodeAttribute(), django_models.CharField(max_length=9)])
def test_an_attribute_of_a_class_that_is_no_model(attribute: Any) -> None:
    """Django takes no fields from a plain class, so the class has to become an abstract model."""
    mixin = type("Named", (), {"extra": attribute})
    model = declare("Mixed", ("MIXED#{x}", "#X"), bases=(mixin, models.Model), x=models.IdAttribute())
    assert found(model) == [
        (
            "extra is declared on Named, which is no model: it would not be stored.",
            "Make Named an abstract model: derive it from models.Model, with class Meta: abstract = True.",
        )
    ]


def test_an_attribute_that_the_model_declares_itself() -> None:
    """If the model redeclares an attribute of a mixin, it is stored."""
    mixin = type("Named", (), {"extra": models.UnicodeAttribute()})
    own = models.UnicodeAttribute()
    model = declare("Mixed", ("MIXED#{x}", "#X"), bases=(mixin, models.Model), x=models.IdAttribute(), extra=own)
    assert found(model) == []


def test_a_stock_admin_is_refused() -> None:
    """E011 names the model and the class to derive from."""
    from django.contrib import admin

    from dynamo_single.admin.apps import check_registered

    assert check_registered() == []
    site = admin.AdminSite("stock")
    site.register(Sample)
    (found,) = check_registered()
    assert (found.id, found.msg) == (
        "dynamo_single.E011",
        "catalog.Sample is stored in DynamoDB and registered with ModelAdmin.",
    )
    assert "DynamoModelAdmin" in str(found.hint)
