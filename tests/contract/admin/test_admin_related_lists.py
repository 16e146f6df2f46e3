"""Filters and searches of lists over relations first read the related objects, within the limit."""

from __future__ import annotations

import datetime

import pytest
from django.contrib import admin
from django.contrib.admin.sites import all_sites
from django.db.models import Q
from django.urls import path

from dynamo_single.admin import DynamoAdminSite, DynamoModelAdmin
from dynamo_single.admin.lists import related, stepwise
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.testing import assert_requests
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


DOTS = [f"Dot {number}" for number in range(4)]
EVES = [f"Eve {number}" for number in range(4)]
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
    ("page", "asked", "names"),
    [
        (COMPANY, "people__role__exact=manager", DOTS),
        (COMPANY, "people__role__exact=manager&q=dot", DOTS),
        (COMPANY, "person__email__isempty=1", ["Bolt", *DOTS]),
        (COMPANY, "q=cle", ["Bolt"]),
        (PERSON, "company__founded__isnull=False", EVES),
        (PERSON, "company__stock__isempty=0", ["Ada", "Ben", *EVES]),
        (PERSON, "q=dot", EVES),
        (SERVER, "q=red", ["Two"]),
        (TAG, "q=two", ["blue", "red"]),
    ],
)
def test_filter_past_bound_of_relation_scans_list(large: Pages, page: str, asked: str, names: list[str]) -> None:
    """The related objects of each row are read, also in the steps that follow."""
    found, address = [], f"{page}?{asked}"
    while address:
        response = large.get(address)
        found += shown(response, "word" if page == TAG else "name")
        address = page + link if (link := response.context["cl"].scan_link) else ""
    assert (response.status_code, sorted(found)) == (200, names)


def test_search_past_bound_of_relation_names_what_keys_leave_out(large: Pages) -> None:
    """Keys find the beginning of a name; the page offers a scan, which finds the names of related objects too."""
    response = large.get(f"{COMPANY}?q=Bolt")
    assert response.context["cl"].progress is None
    assert "so this page is shown without the search in people: name." in text_of(response)
    assert response.context["cl"].scan_link


def test_action_past_bound_of_relation_is_about_chosen_rows(large: Pages) -> None:
    """The page has found them; their related objects are not compared again."""
    dots = Company.objects.filter(name__startswith="Dot")[:2]
    chosen = {"action": "delete_selected", "_selected_action": [each.pk for each in dots], "post": "yes"}
    large.client.post(f"/admin/{COMPANY}?people__role__exact=manager", chosen, follow=True)
    assert sorted(each.name for each in Company.objects.filter(name__startswith="Dot")) == DOTS[2:]


MANAGERS = f"{COMPANY}?people__role__exact=manager"


@pytest.fixture
def step(large: Pages, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of the second step of a scan."""
    monkeypatch.setattr(stepwise, "_CHUNK_OF_RELATED", 2)
    monkeypatch.setattr(CompanyAdmin, "list_per_page", 1)
    return f"/admin/{COMPANY}{large.get(MANAGERS).context['cl'].scan_link}"


def test_step_that_follows_relations_does_not_count_all_related_objects_again(large: Pages, step: str) -> None:
    """The position in the address says that there are too many."""
    # The session and the user; a page of two rows, a match for each of them, and the choices of a filter.
    with assert_requests(["GetItem", "GetItem", "Query", "Query", "Query", "Query"]):
        large.client.get(step)


@pytest.mark.parametrize("address", [f"/admin/{COMPANY}?q=cle", f"/admin/{MANAGERS}", ""])
def test_file_past_bound_of_relation_leads_back_to_list(large: Pages, step: str, address: str) -> None:
    """With the reason: a file must not leave a part out, and is not read in steps."""
    response = large.client.get(f"{address or step}&_csv=", follow=True)
    assert (response.status_code, response.redirect_chain) == (200, [(f"/admin/{COMPANY}?e=1", 302)])
    assert "More than 3 related objects would have to be read" in text_of(response)


@pytest.mark.parametrize("address", [f"/admin/{MANAGERS}", ""])
def test_action_on_all_rows_past_bound_of_relation_is_refused(large: Pages, step: str, address: str) -> None:
    """Rows that the filter leaves out must not be deleted."""
    chosen = Company.objects.get(name="Acme").pk
    sent = {"action": "delete_selected", "_selected_action": chosen, "select_across": "1", "post": "yes"}
    assert large.client.post(address or step, sent).status_code == 400
    assert Company.objects.count() == 6


def test_filter_past_bound_of_relation_leads_back_to_list_that_is_not_scanned(
    large: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the reason."""
    monkeypatch.setattr(DynamoModelAdmin, "list_scan_budget", 0)
    response = large.client.get(f"/admin/{MANAGERS}", follow=True)
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


@pytest.mark.parametrize(
    ("model", "condition"),
    [
        (Company, Q(people__role="member", people__name="Ada")),
        (Company, Q(people=None)),
        (Company, Q(people__email=None)),
        (Company, Q(name="Bolt") | Q(people__company__people__name="Ben")),
        (Person, Q(company__stock=None)),
        (Person, Q(company__people__name="Ben")),
        (GameServer, Q(tags__word="red") | Q(name="One")),
        (GameServer, Q(tags__servers__tags__word="red")),
        (GameTag, Q(servers__tags__isnull=True)),
        (GameTag, Q(servers__isnull=False)),
    ],
)
@pytest.mark.parametrize("is_negated", [False, True])
def test_related_objects_of_known_rows_decide_as_all_do(
    large: Pages, model: type[DynamoModel], condition: Q, is_negated: bool
) -> None:
    """The steps begin at the rows instead of at the last relation."""
    rows = list(model.objects.all())
    filtered = model.objects.filter(~condition if is_negated else condition).allow_in_memory(1000)
    asked = model.objects.exclude(condition) if is_negated else model.objects.filter(condition)
    found = related.matching_rows(model.objects.all(), asked._asked.inside, rows)
    assert [each.pk for each in found] == [each.pk for each in rows if each in set(filtered)]
