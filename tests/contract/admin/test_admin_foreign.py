"""No URL or form of a page reads or changes objects of other pages."""

from __future__ import annotations

import html
import re
from typing import Any
from urllib.parse import quote

import pytest

from project.directory.models import Company, Person
from tests.contract.conftest import NO_INLINES, Pages, Registering
from tests.deep import deep

COMPANY = "directory/company/"
PERSON = "directory/person/"
USERS = "accounts/user/"
AUTOCOMPLETE = "autocomplete/?app_label={0}&model_name={1}&field_name={2}&term=A"
#: Values that no page produces but every page may receive: invalid numbers, keys and characters.
VALUES = ["", "x", "9" * 30, "\x00", "%ED%A0%80", "a~~b", "COMPANY%23c", "[]", "a" * 3000, "٣", "../../"]


@pytest.fixture
def others(pages: Pages) -> tuple[Any, Any]:
    """Two people of two companies."""
    return tuple(
        Person.objects.create(company=Company.objects.create(name=f"A {name}"), name=name) for name in ("Anna", "Bert")
    )  # type: ignore[return-value]  # two of them


@pytest.mark.parametrize("initial", ["0", "1"])
@pytest.mark.parametrize("field", ["identity", "company"])
def test_a_row_of_another_object_is_not_taken(pages: Pages, others: tuple[Any, Any], initial: str, field: str) -> None:
    """An inline saves only rows of its own object."""
    anna, bert = others
    own = {"identity": anna.pk if initial == "1" else "", "company": anna.company_id}
    row = {**own, field: bert.pk if field == "identity" else bert.company_id, "name": "Changed", "role": "member"}
    rows = {f"person_set-0-{name}": value for name, value in row.items()}
    counts = {"person_set-TOTAL_FORMS": "1", "person_set-INITIAL_FORMS": initial}
    answer = pages.post(f"{COMPANY}{anna.company_id}/change/", {"name": "A Anna", **NO_INLINES, **rows, **counts})
    assert answer.status_code in {200, 302}
    assert [person.name for person in Person.objects.filter(company=bert.company_id)] == ["Bert"]


def test_an_object_of_another_model_is_not_there(pages: Pages, others: tuple[Any, Any]) -> None:
    """Its key in the address of a page of this model leads back to the index."""
    anna, _ = others
    answers = {
        (page, method): getattr(pages.client, method)(
            f"/admin/{COMPANY}{quote(anna.pk)}/{page}/", {"post": "yes"}
        ).status_code
        for page in ("change", "delete", "history", "restore")
        for method in ("get", "post")
    }
    assert answers == {**dict.fromkeys(answers, 302), ("restore", "get"): 405}
    assert Person.objects.count() == 2


@pytest.mark.parametrize("page", ["change", "delete", "history", "restore"])
@pytest.mark.parametrize("method", ["get", "post"])
def test_what_get_queryset_leaves_out_is_not_there(registered: Registering, method: str, page: str) -> None:
    """The pages do not show, change, delete or restore it."""
    mine, other = (Company.objects.create(name=name) for name in ("Mine", "Other"))
    if page == "restore":
        other.delete()

    def get_queryset(self: Any, request: Any) -> Any:
        return super(type(self), self).get_queryset(request).filter(pk=mine.pk)

    pages = registered(Company, get_queryset=get_queryset)
    answer = getattr(pages.client, method)(f"/admin/{COMPANY}{other.pk}/{page}/", {"post": "yes", "name": "Changed"})
    assert answer.status_code == (405 if (page, method) == ("restore", "get") else 302)
    assert b"Other" not in answer.content
    assert [(each.name, each.is_deleted) for each in Company.all_objects.filter(pk=other.pk)] == [
        ("Other", page == "restore")
    ]


def test_an_action_takes_no_object_that_get_queryset_leaves_out(registered: Registering) -> None:
    """The action ignores its key."""
    mine, other = (Company.objects.create(name=name) for name in ("Mine", "Other"))

    def get_queryset(self: Any, request: Any) -> Any:
        return super(type(self), self).get_queryset(request).filter(pk=mine.pk)

    pages = registered(Company, get_queryset=get_queryset)
    keys = [mine.pk, other.pk]
    pages.post(COMPANY, {"action": "delete_selected", "_selected_action": keys, "post": "yes"})
    assert [company.name for company in Company.objects.all()] == ["Other"]


def test_a_search_is_for_fields_that_have_one(pages: Pages, others: tuple[Any, Any]) -> None:
    """Autocomplete for another field does not list its objects."""
    wanted = {
        ("directory", "person", "company"): 200,
        ("directory", "person", "name"): 403,
        ("directory", "person", "nothing"): 403,
        ("directory", "nothing", "company"): 403,
        ("nothing", "person", "company"): 403,
        ("accounts", "user", "password"): 403,
        ("sessions", "session", "session_key"): 403,
    }
    assert {asked: pages.get(AUTOCOMPLETE.format(*asked)).status_code for asked in wanted} == wanted


def test_what_may_not_be_asked_of_a_list_is_refused(pages: Pages) -> None:
    """A lookup cannot reveal a password letter by letter."""
    asked = ["password__startswith=p", "password=x", "groups__name=x", "_to_field=password", "_to_field=nothing"]
    answers = {each: pages.get(f"{USERS}?{each}").status_code for each in asked}
    assert answers == dict.fromkeys(answers, 400)
    assert pages.get(f"{USERS}?nothing=x").headers["Location"] == f"/admin/{USERS}?e=1"


#: A page and the parameters of its URL.
ASKED = {
    COMPANY: ("q", "o", "p", "size", "cursor", "scan", "trash", "public__exact", "_facets", "_changelist_filters"),
    f"{PERSON}?trash=yes": ("q", "o", "p", "cursor", "role__exact", "company__company_id__exact", "pk__in"),
    f"{COMPANY}add/": ("name", "founded", "created_at", "_popup", "_to_field", "_changelist_filters"),
    f"{PERSON}add/": ("company", "email", "person_id"),
    f"{COMPANY}c/change/": ("_popup", "_to_field", "_changelist_filters", "name"),
    f"{COMPANY}c/delete/": ("_popup", "_to_field"),
    f"{COMPANY}c/history/": ("p",),
    AUTOCOMPLETE.format("directory", "person", "company"): ("page", "term", "field_name", "model_name", "app_label"),
    "dynamodb/table/": ("pk", "begins", "index", "alias", "after", "order"),
    "dynamodb/table/?pk=COMPANY&index=gs1": ("after", "order", "begins"),
    "dynamodb/item/?pk=a": ("sk", "alias"),
    "dynamodb/patterns/": ("alias",),
    "dynamodb/health/": ("alias", "check"),
    "login/": ("next",),
}


def refused_wrongly(pages: Pages, addresses: list[str]) -> dict[str, int]:
    """Return the URLs without a page, an error or a redirect."""
    Company.objects.create(company_id="c", name="Acme")
    answers = {address: pages.get(address).status_code for address in addresses}
    return {address: status for address, status in answers.items() if status not in {200, 302, 400, 403, 404}}


def _with(path: str, *names: str, value: str) -> str:
    asked = "&".join(f"{name}={value if '%' in value else quote(value)}" for name in names)
    return f"{path}{'&' if '?' in path else '?'}{asked}"


@pytest.mark.parametrize("path", ASKED)
def test_whatever_stands_in_the_address_of_a_page(pages: Pages, path: str) -> None:
    """With a value in every parameter, the response is a page, an error or a 404 rather than a server error."""
    assert refused_wrongly(pages, [_with(path, *ASKED[path], value=value) for value in VALUES]) == {}


@deep
@pytest.mark.parametrize("path", ASKED)
def test_whatever_stands_in_one_parameter_of_a_page(pages: Pages, path: str) -> None:
    """Each parameter gets the value separately."""
    assert refused_wrongly(pages, [_with(path, name, value=value) for name in ASKED[path] for value in VALUES]) == {}


@pytest.mark.parametrize("value", ["x", "\x00", "%ED%A0%80", "a~~b", "../../"])
def test_whatever_stands_for_the_key_of_an_object(pages: Pages, value: str) -> None:
    """The response is a redirect or a 404."""
    key = value if "%" in value else quote(value, safe="")
    paths = [f"{model}{key}/{page}/" for model in (COMPANY, PERSON) for page in ("change", "delete", "history")]
    paths += [f"{COMPANY}{key}/restore/", f"{USERS}{key}/password/", f"dynamodb/jobs/{key}/", f"r/{key}/{key}/"]
    answers = {path: (pages.get(path).status_code, pages.post(path).status_code) for path in paths}
    known = {200, 302, 301, 400, 403, 404, 405}
    assert {path: answer for path, answer in answers.items() if not known.issuperset(answer)} == {}


@pytest.mark.parametrize("key", ["a_3Ab", "a/b?c=d", "ä b", "50%", "a+b", '"', "<b>", "a\\b", "add"])
def test_an_object_is_found_whatever_its_key_looks_like(pages: Pages, key: str) -> None:
    """Any key works on the list, the page, the history, the confirmation, the trash and the restoration."""
    Company.objects.create(company_id=key, name="Acme")
    (address,) = re.findall(r'class="field-name"><a href="([^"]*)">Acme', pages.get(COMPANY).content.decode())
    page = address.removesuffix("change/")
    assert [pages.client.get(f"{page}{each}/").status_code for each in ("change", "history", "delete")] == [200] * 3
    pages.client.post(f"{page}delete/", {"post": "yes"})
    (restore,) = re.findall(r'formaction="([^"]*restore/)"', pages.client.get(address).content.decode())
    pages.client.post(html.unescape(restore))
    assert [company.pk for company in Company.objects.all()] == [key]
    pages.post(COMPANY, {"action": "delete_selected", "_selected_action": [key], "post": "yes"})
    assert not Company.objects.exists()
