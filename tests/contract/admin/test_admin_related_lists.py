"""Filters and searches of lists over relations first read the related objects, within the limit."""

from __future__ import annotations

import datetime

import pytest
from django.contrib import admin
from django.contrib.admin.sites import all_sites
from django.urls import path

from dynamo_single.admin import DynamoAdminSite, DynamoModelAdmin
from project.directory.models import Company, Person
from tests.catalog.servers import GameServer, GameTag
from tests.contract.conftest import Pages, shown, text_of

COMPANY = "directory/company/"
PERSON = "directory/person/"
SERVER = "catalog/gameserver/"
TAG = "catalog/gametag/"


class CompanyAdmin(DynamoModelAdmin):
    """Relations to several objects, by the keys of their references."""

    list_display = ("name",)
    list_filter = (
        "people__name",
        "people__role",
        ("people__email", admin.EmptyFieldListFilter),
        ("stock", admin.EmptyFieldListFilter),
    )
    search_fields = ("name", "people__name")


class PersonAdmin(DynamoModelAdmin):
    """Attributes of a referenced object."""

    list_display = ("name",)
    list_filter = (
        ("company__stock", admin.EmptyFieldListFilter),
        "company__name",
        "company__public",
        "company__founded",
        ("company", admin.RelatedOnlyFieldListFilter),
    )
    search_fields = ("name", "company__name")


class ServerAdmin(DynamoModelAdmin):
    """Many to many."""

    list_display = ("name",)
    list_filter = ("tags", "tags__word", ("players", admin.RelatedOnlyFieldListFilter))
    search_fields = ("name", "tags__word")


class TagAdmin(DynamoModelAdmin):
    """Many to many from the other end."""

    list_display = ("word",)
    list_filter = ("servers", "servers__name")
    search_fields = ("servers__name",)


site = DynamoAdminSite()
for model, options in ((Company, CompanyAdmin), (Person, PersonAdmin), (GameServer, ServerAdmin), (GameTag, TagAdmin)):
    site.register(model, options)
all_sites.discard(site)
urlpatterns = [path("admin/", site.urls)]


@pytest.fixture
def lists(catalog: Pages) -> Pages:
    """Two companies with people, and two servers with tags."""
    for company, people in (("Acme", ("Ada", "Ben")), ("Bolt", ("Cleo",))):
        employer = Company.objects.create(name=company, public=company == "Acme", stock="A" if people[1:] else None)
        for name in people:
            Person.objects.create(
                company=employer,
                name=name,
                role="founder" if name == "Cleo" else "member",
                email=None if name == "Cleo" else f"{name}@example.com",
            )
    blue, red = (GameTag.objects.create(word=word) for word in ("blue", "red"))
    for name, tags in (("One", [blue]), ("Two", [blue, red])):
        GameServer.objects.create(name=name).tags.set(tags)
    return catalog


@pytest.fixture(params=[2000, 1])
def sized(lists: Pages, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Pages:
    """Return the same list with rows in memory, and with a limit of one row."""
    monkeypatch.setattr(DynamoModelAdmin, "list_max_in_memory", request.param)
    return lists


@pytest.fixture
def large(lists: Pages, monkeypatch: pytest.MonkeyPatch) -> Pages:
    """Return the same list with four more rows, beyond the limit."""
    for number in range(4):
        company = Company.objects.create(name=f"Dot {number}", stock="D")
        Person.objects.create(company=company, name=f"Eve {number}", role="manager")
        company.founded = datetime.date(2020, 1, 1)
        company.save()
        GameServer.objects.create(name=f"Dot {number}")
        GameTag.objects.create(word=f"dot {number}")
    monkeypatch.setattr(DynamoModelAdmin, "list_max_in_memory", 3)
    return lists


FILTERED = [
    (COMPANY, "people__name=Ada", ["Acme"]),
    (COMPANY, "people__role__exact=founder", ["Bolt"]),
    (COMPANY, "stock__isempty=1", ["Bolt"]),
    (COMPANY, "q=cle", ["Bolt"]),
    (COMPANY, "people__role__exact=founder&q=bolt", ["Bolt"]),
    (PERSON, "company__name=Acme", ["Ada", "Ben"]),
    (PERSON, "company__public__exact=1", ["Ada", "Ben"]),
    (PERSON, "company__founded__isnull=True", ["Ada", "Ben", "Cleo"]),
    (PERSON, "company__stock__isempty=1", ["Cleo"]),
    (PERSON, "q=acm", ["Ada", "Ben"]),
    (SERVER, "tags__word__exact=red", ["Two"]),
    (SERVER, "tags__word=blue", ["One", "Two"]),
    (SERVER, "q=red", ["Two"]),
    (TAG, "servers__name=One", ["blue"]),
    (TAG, "q=two", ["blue", "red"]),
]


@pytest.mark.parametrize(("page", "asked", "names"), [*FILTERED, (COMPANY, "person__email__isempty=0", ["Acme"])])
def test_filter_follows_relation(lists: Pages, page: str, asked: str, names: list[str]) -> None:
    """By an attribute of the related objects; each row comes once."""
    response = lists.get(f"{page}?{asked}")
    assert response.status_code == 200, (response.status_code, response.get("Location"))
    assert sorted(shown(response, "word" if page == TAG else "name")) == names


@pytest.mark.parametrize("page", [COMPANY, PERSON, SERVER, TAG])
@pytest.mark.parametrize("facets", ["", "?_facets=True"])
def test_list_shows_filters_over_relations(sized: Pages, page: str, facets: str) -> None:
    """With choices and counts, or with the parts that it leaves out."""
    assert sized.get(page + facets).status_code == 200


@pytest.mark.parametrize(
    ("page", "told"),
    [
        (COMPANY, ["Ada (1)", "Cleo (1)", "Member (1)", "Founder (1)", "Empty (1)"]),
        (PERSON, ["Acme (2)", "Bolt (1)", "Yes (2)", "No (1)"]),
        (SERVER, ["blue (2)", "red (1)"]),
        (TAG, ["One (1)", "Two (2)"]),
    ],
)
def test_facets_count_rows_over_relations(lists: Pages, page: str, told: list[str]) -> None:
    """Each row counts once for a choice."""
    offered = text_of(lists.get(f"{page}?_facets=True"))
    assert [each for each in told if each not in offered] == []


@pytest.mark.parametrize(("page", "asked", "names"), [each for each in FILTERED if "q=" not in each[1]])
def test_relation_filters_large_list(large: Pages, page: str, asked: str, names: list[str]) -> None:
    """Keys or a scan find the keys of the related objects."""
    response = large.get(f"{page}?{asked}")
    assert response.status_code == 200
    assert sorted(shown(response, "word" if page == TAG else "name")) == names


@pytest.mark.parametrize(
    ("asked", "column"),
    [
        (f"{COMPANY}?q=cle", "people: name"),
        (f"{PERSON}?q=acm", "company: name"),
        (f"{SERVER}?q=red", "tags: word"),
    ],
)
def test_search_past_bound_of_relation_finds_own_attributes(large: Pages, asked: str, column: str) -> None:
    """The page names the part of the search that it leaves out, and continues step by step."""
    response = large.get(asked)
    assert response.context["cl"].progress is not None
    assert f"so this page is shown without the search in {column}." in text_of(response)


@pytest.mark.parametrize(
    ("page", "asked"),
    [
        (COMPANY, "q=cle&_csv="),
        (COMPANY, "people__role__exact=manager"),
        (COMPANY, "people__role__exact=manager&q=dot"),
        (TAG, "q=two"),
    ],
)
def test_filter_past_bound_of_relation_leads_back_to_list(large: Pages, page: str, asked: str) -> None:
    """With the reason; a file, a filter and a search of nothing else cannot leave a part out."""
    response = large.client.get(f"/admin/{page}?{asked}", follow=True)
    assert (response.status_code, response.redirect_chain) == (200, [(f"/admin/{page}?e=1", 302)])
    assert "More than 3 related objects would have to be read" in text_of(response)


def test_relation_without_filter_is_not_compared(lists: Pages) -> None:
    """An address could otherwise find out attributes that the list does not show."""
    assert lists.get(f"{COMPANY}?people__person_id__startswith=a").status_code == 400
    assert lists.get(f"{PERSON}?company__created_at__gte=2020-01-01").status_code == 400


def test_children_are_no_column() -> None:
    """The check is Django's own for a reverse reference; the list would call their manager."""
    own: type[DynamoModelAdmin] = type("OwnAdmin", (DynamoModelAdmin,), {"list_display": ("name", "people")})
    assert [each.id for each in own(Company, site).check()] == ["admin.E109"]


def test_django_checks_accept_children() -> None:
    """A filter may name ``Children`` as queries do."""
    assert CompanyAdmin(Company, site).check() == []
