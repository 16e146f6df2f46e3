"""The text of an error never runs a project's ``__str__``: a failing one would replace the error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db.models import Count, Q

from accounts.models import Group
from dynamo_single.exceptions import InvalidValue, NotSupported
from project.directory.models import Company, Office, Person
from tests.catalog.models import Product, Sample

Door = Callable[[Any, Any], Any]


@pytest.fixture
def acme(table: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a stored company whose model's ``__str__`` reads a missing attribute."""

    def failing(self: Any) -> str:
        raise AttributeError("the project's own mistake")

    for model in (Company, Person, get_user_model(), Group):
        monkeypatch.setattr(model, "__str__", failing)
    return Company.objects.create(company_id="c1", name="Acme")


DOORS: list[tuple[str, Door, type[Exception]]] = [
    ("get", lambda acme, person: Office.objects.get(company=acme), Office.DoesNotExist),
    ("get by Q", lambda acme, person: Office.objects.get(Q(company=acme)), Office.DoesNotExist),
    ("an attribute", lambda acme, person: Company.objects.create(name=acme), InvalidValue),
    ("a lookup's value", lambda acme, person: list(Company.objects.filter(name=acme)), InvalidValue),
    ("a list that is none", lambda acme, person: list(Company.objects.filter(name__in=acme)), InvalidValue),
    ("in a document", lambda acme, person: Product.objects.create(data={"of": acme}), InvalidValue),
    ("in a list", lambda acme, person: Sample.objects.create(things=[acme]), InvalidValue),
    ("update", lambda acme, person: Company.objects.filter(pk="c1").update(name=acme), InvalidValue),
    ("update a place", lambda acme, person: Product.objects.filter(pk="p").update(data__a=acme), InvalidValue),
    ("add to a relation", lambda acme, person: acme.people.add(acme), TypeError),
    ("add what is new", lambda acme, person: acme.people.add(person), ValueError),
    ("bulk_create", lambda acme, person: Company.objects.bulk_create([person]), TypeError),
    ("bulk_update", lambda acme, person: Company.objects.bulk_update([person], ["name"]), TypeError),
    ("union", lambda acme, person: Company.objects.all().union(acme), NotSupported),
    ("cursor_for", lambda acme, person: Company.objects.cursor_for(person), InvalidValue),
    ("page", lambda acme, person: Company.objects.page(acme), InvalidValue),
    ("condition", lambda acme, person: acme.save(condition=acme), InvalidValue),
    ("aggregate", lambda acme, person: Company.objects.aggregate(n=Count("x", filter=Q(name=acme))), Exception),
]


@pytest.mark.parametrize(("door", "error"), [door[1:] for door in DOORS], ids=[door[0] for door in DOORS])
def test_an_error_does_not_run_the_models_own_str(acme: Any, door: Door, error: type[Exception]) -> None:
    person = Person(company=acme, person_id="p1", name="Anna")

    with pytest.raises(error) as caught:
        door(acme, person)

    assert "the project's own mistake" not in str(caught.value)


def test_a_user_that_is_not_stored_is_named_by_its_key(acme: Any) -> None:
    user = get_user_model()(user_id="u1", username="ann")

    with pytest.raises(ValueError, match=r"accounts\.User with pk 'u1' is not stored"):
        user.groups.add(Group(group_id="g", name="g"))


def test_djangos_own_errors_keep_their_text(acme: Any) -> None:
    with pytest.raises(ValueError, match=r"Cannot assign .*Company with pk 'c1'.*Sample\.parent.* must be"):
        Sample(parent=acme)
