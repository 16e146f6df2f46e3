"""Lists whose options and addresses lead over relations in random ways: none is a server error."""

from __future__ import annotations

import random
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib import admin

from dynamo_single.admin import DynamoAdminSite, DynamoModelAdmin, paths
from project.directory.models import Company, Person
from tests.catalog.servers import GameServer, GameTag
from tests.contract.conftest import Registering
from tests.deep import examples

PATHS: dict[Any, list[str]] = {
    Company: [
        *("name", "stock", "founded", "public", "people", "people__name", "people__role", "people__email"),
        *("people__created_at", "offices__city", "offices__opened", "people__company__name", "offices__hours", "pk"),
    ],
    Person: [
        *("name", "company", "company__name", "company__stock", "company__founded", "company__public", "role"),
        *("company__offices__city", "company__people__name", "company__company_id", "company__created_at", "pk"),
    ],
    GameServer: [
        *("name", "tags", "tags__word", "players", "players__username", "gamemember__role", "players__servers__name"),
        *("links__name", "linked_from__name", "links", "tags__servers", "pk", "players__memberships__role"),
    ],
    GameTag: [
        "word",
        "servers",
        "servers__name",
        "servers__players__username",
        "servers__links",
        "servers__tags__word",
    ],
}
OF_RELATIONS = [None, admin.RelatedFieldListFilter, admin.RelatedOnlyFieldListFilter, admin.EmptyFieldListFilter]
OF_VALUES = [None, None, admin.AllValuesFieldListFilter, admin.ChoicesFieldListFilter]
LOOKUPS = [
    "",
    "__exact",
    "__isnull",
    "__isempty",
    "__in",
    "__gte",
    "__icontains",
    "__pk",
    "__id__exact",
    "__year",
    "__nothing",
]
VALUES = ["Ada", "", "1", "True", "x,y", "\x00", "2020-01-01", "9" * 30, "acme", "None", "[", "é" * 40]


def chosen(number: random.Random, names: list[str]) -> list[str]:
    """Some of the names."""
    return number.sample(names, number.randint(0, 3))


def options(number: random.Random, model: Any, names: list[str]) -> dict[str, Any]:
    """Options of an admin over the paths."""
    filters: list[Any] = []
    for name in chosen(number, [name for name in names if name != "pk"]):
        field = paths.field_of(model, paths.query_path(model, name))
        kinds = (
            OF_RELATIONS[: 4 if field.null or field.many_to_many else 3]
            if field.is_relation
            else [*OF_VALUES, *([admin.EmptyFieldListFilter] if field.null else [])]
        )
        filters.append((name, kind) if (kind := number.choice(kinds)) else name)
    found = {
        "list_filter": filters,
        "search_fields": [number.choice(["", "^", "="]) + name for name in chosen(number, names)],
        "list_display": ["__str__", *chosen(number, names)],
        "ordering": [number.choice(["", "-"]) + name for name in number.sample(names, number.randint(0, 1))],
        "date_hierarchy": number.choice([None, *names]),
        "list_max_in_memory": number.choice([2000, 2000, 3, 1, 0]),
        "list_scan_budget": number.choice([100_000, 0]),
        "show_facets": number.choice(list(admin.ShowFacets)),
    }
    return {name: value for name, value in found.items() if is_accepted(model, name, value)}


def is_accepted(model: Any, name: str, value: Any) -> bool:
    """Return whether the checks accept an option."""
    own: Any = type("OwnAdmin", (DynamoModelAdmin,), {name: value})
    return not any(each.is_serious() for each in own(model, DynamoAdminSite()).check())


def address(number: random.Random, names: list[str]) -> str:
    """Parameters of the list."""
    found = {
        name + number.choice(LOOKUPS): number.choice(VALUES) for name in number.sample(names, number.randint(0, 2))
    }
    for name, values in (
        ("q", VALUES),
        ("o", ["1", "-1.2", "2.-3", "9", "x"]),
        ("_facets", ["True"]),
        ("p", ["2", "x"]),
        ("all", [""]),
        ("scan", ["", "x"]),
        ("e", ["1"]),
    ):
        if number.random() < 0.25:
            found[name] = number.choice(values)
    return urlencode(found)


@pytest.fixture
def rows(table: object) -> None:
    """Five companies with people, and servers with tags."""
    for count in range(5):
        company = Company.objects.create(name=f"Acme {count}", stock="A" if count % 2 else None)
        Person.objects.create(company=company, name="Ada", role="manager")
        server = GameServer.objects.create(name=f"One {count}")
        server.tags.set([GameTag.objects.create(word=f"blue {count}")])


@pytest.mark.usefixtures("rows")
@pytest.mark.parametrize("model", PATHS)
def test_list_over_relations_is_no_server_error(registered: Registering, model: Any) -> None:
    """Any options and any URL lead to a page, a redirect or an explained error."""
    number = random.Random(f"{model.__name__}")
    errors = []
    for _example in range(examples(4, 400)):
        own = options(number, model, PATHS[model])
        pages = registered(model, **own)
        for _address in range(3):
            asked = f"{model._meta.app_label}/{model._meta.model_name}/?{address(number, PATHS[model])}"
            try:
                answered: object = pages.get(asked).status_code
            except Exception as error:  # the client raises what a browser would see as a server error
                answered = repr(error)
            if answered not in (200, 302, 400):
                errors.append((own, asked, answered))
    assert errors == []
