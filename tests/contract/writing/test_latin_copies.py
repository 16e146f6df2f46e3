"""Copies in which Latin letters are what they resemble: written by every way, looked up by keys, and searched."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dynamo_single import models
from dynamo_single.exceptions import UniqueViolation
from dynamo_single.testing import assert_requests
from tests.contract.conftest import Registering, shown
from tests.contract.tables import assert_consistent
from tests.unit.declaring import declare, forgotten

NAMES = ("Sørensen", "Łódź", "Đặng", "Straße", "Þór", "Smith")
SEARCHED = ("sorensen", "lodz", "dang", "strasse", "thor", "smith")


@pytest.fixture
def citizen(table: object) -> Iterator[Any]:
    """People of many countries."""
    with forgotten():
        model = declare(
            "Citizen",
            ("CITIZEN#{citizen_id}", "#METADATA"),
            {
                "listed": models.IndexKey("gs1", "CITIZEN", "{name_latin}#{citizen_id}"),
                "by_nick": models.IndexKey("gs2", "NICK#{nick:canonical}", "{citizen_id}"),
            },
            bases=(models.SoftDeleteModel,),
            citizen_id=models.IdAttribute(),
            name=models.UnicodeAttribute(),
            name_latin=models.CanonicalAttribute(source="name", fold="latin"),
            nick=models.UnicodeAttribute(unique=True, canonical=True),
        )
        model.objects.bulk_create([model(name=name, nick=name) for name in NAMES])
        yield model


@pytest.mark.parametrize(("name", "searched"), list(zip(NAMES, SEARCHED, strict=True)))
def test_a_name_is_found_without_its_strokes(citizen: Any, name: str, searched: str) -> None:
    """By one Query of the key that has the copy; by its own spelling, too."""
    for text in (searched, searched.upper(), name, name.upper()):
        with assert_requests(["Query"]):
            assert [each.name for each in citizen.objects.filter(name__iexact=text)] == [name]
        assert [each.name for each in citizen.objects.filter(name__istartswith=text[:3])] == [name]
        assert name in [each.name for each in citizen.objects.filter(name__icontains=text[1:])]


def test_every_way_to_write_keeps_the_copy(citizen: Any) -> None:
    """Saved, updated, in the trash and out of it."""
    found = citizen.objects.get(name__iexact="smith")
    found.name = "Ærø"
    found.save()
    assert citizen.objects.get(name__iexact="aero").pk == found.pk
    citizen.objects.filter(pk=found.pk).update(name="Œuvre")
    assert citizen.objects.get(name__iexact="oeuvre").pk == found.pk
    found.name = "Ħal"
    citizen.objects.bulk_update([found], ["name"])
    found.delete()
    assert not citizen.objects.filter(name__iexact="hal").exists()
    citizen.deleted_objects.get(pk=found.pk).restore()
    assert citizen.objects.get(name__iexact="hal").pk == found.pk
    assert_consistent()


def test_unique_values_keep_the_canonical_form(citizen: Any) -> None:
    """Two who differ in a stroke are two."""
    citizen.objects.create(name="x", nick="Sorensen")
    with pytest.raises(UniqueViolation):
        citizen.objects.create(name="x", nick="SØRENSEN")
    assert citizen.objects.get(nick__iexact="sørensen").nick == "Sørensen"


@pytest.mark.parametrize("options", [{}, {"list_max_in_memory": 1}], ids=["in memory", "by keys"])
def test_the_admin_finds_a_name_without_its_strokes(
    citizen: Any, registered: Registering, options: dict[str, int]
) -> None:
    """In lists of any length."""
    pages = registered(citizen, list_display=("name",), search_fields=("name",), **options)
    for name, searched in zip(NAMES, SEARCHED, strict=True):
        assert shown(pages.get(f"catalog/citizen/?q={searched}")) == [name]
        assert shown(pages.get(f"catalog/citizen/?q={name}")) == [name]
