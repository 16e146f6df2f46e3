"""Relations find referenced objects even if the model's own managers exclude them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dynamo_single import models
from dynamo_single.table import Table
from project.directory.models import Company, Person
from tests.unit.declaring import declare, forgotten


class OpenManager(models.Manager[Any]):
    """A manager that hides closed objects."""

    def get_queryset(self) -> models.QuerySet[Any]:
        """Only what is open."""
        return super().get_queryset().filter(is_open=True)


@pytest.fixture
def desk(table: Table) -> Iterator[tuple[Any, Any]]:
    """Return a model whose default manager filters, and a model that refers to it."""
    with forgotten():
        key = ("DESK#{desk_id}", "#METADATA")
        is_open = models.BooleanAttribute(default=True)
        desks = declare("Desk", key, objects=OpenManager(), desk_id=models.IdAttribute(), is_open=is_open)
        drawers = declare(
            "Drawer",
            ("DRAWER#{drawer_id}", "#METADATA"),
            drawer_id=models.IdAttribute(),
            desk=models.ReferenceAttribute(desks, on_delete=models.DO_NOTHING),
        )
        yield desks, drawers


def test_a_reference_finds_what_the_default_manager_hides(desk: tuple[Any, Any]) -> None:
    """The reference, its validation and a refresh use the base manager, as in Django."""
    desks, drawers = desk
    closed = desks(desk_id="d1", is_open=False)
    closed.save()
    drawer = drawers.objects.create(drawer_id="r1", desk=closed)
    found = drawers.objects.get(pk=drawer.pk)
    assert found.desk == closed
    found.full_clean()
    closed.refresh_from_db()
    assert not desks.objects.filter(pk="d1").exists()


def test_the_default_manager_stays_the_declared_one(desk: tuple[Any, Any]) -> None:
    """The manager for relations is neither the default one nor an override of one."""
    desks, drawers = desk
    assert type(desks._default_manager) is OpenManager
    assert desks._default_manager.name == "objects"
    assert type(drawers._default_manager) is models.Manager
    assert [model._base_manager.name for model in desk] == ["_unfiltered", "_unfiltered"]


def test_a_reference_finds_what_is_in_the_trash(table: Table) -> None:
    """A deleted company is still the company of its people."""
    company = Company.objects.create(company_id="c1", name="Acme")
    Person.objects.create(person_id="p1", company=company, name="Mike")
    company.delete()
    person = Person.all_objects.get(company_id="c1", person_id="p1")
    assert person.company.is_deleted
    assert Company._default_manager.name == "objects"
