"""Rows of an inline that the admin of their model hides: not shown, not counted, and left as they are by a save."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib import admin

from project.directory import admin as directory
from project.directory.models import Company, Person
from tests.contract.admin.test_admin_hidden import hiding
from tests.contract.admin.test_admin_merging import form_of
from tests.contract.conftest import Pages, text_of

pytestmark = pytest.mark.urls("project.urls")

CHANGE = "directory/company/acme/change/"
NAMES = ("Anna", "Bob hidden", "Carla", "Dan hidden", "Eva")


@pytest.fixture
def acme(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> Company:
    """A company with three people and two hidden ones."""
    hiding(monkeypatch, Person, lambda queryset: queryset.exclude(name__contains="hidden"))
    company = Company.objects.create(company_id="acme", name="Acme")
    for name in NAMES:
        Person.objects.create(company=company, person_id=name[0], name=name)
    return company


def names() -> list[str]:
    """The people of the company."""
    return sorted(person.name for person in Person.objects.filter(company="acme"))


def test_hidden_rows_are_not_shown(pages: Pages, acme: Company) -> None:
    """The people and offices are one Query, as without hidden rows."""
    page = pages.get(CHANGE, sends=["GetItem", "Query"])
    form = form_of(page)
    assert (form["person_set-TOTAL_FORMS"], form["person_set-INITIAL_FORMS"]) == ("3", "3")
    assert [form[f"person_set-{number}-name"] for number in range(3)] == ["Anna", "Carla", "Eva"]
    assert [name for name in NAMES if name in page.content.decode()] == ["Anna", "Carla", "Eva"]


def test_save_leaves_hidden_rows(pages: Pages, acme: Company) -> None:
    """The save changes one row and deletes one, without requests for the hidden ones."""
    sent = {**form_of(pages.get(CHANGE)), "person_set-0-name": "Anne", "person_set-2-DELETE": "on"}
    pages.post(CHANGE, sent, sends=["GetItem", "Query", "TransactWriteItems"])
    assert names() == ["Anne", "Bob hidden", "Carla", "Dan hidden"]


@pytest.mark.parametrize("sent", [{"name": "Taken"}, {"DELETE": "on"}])
def test_hidden_row_is_not_taken(pages: Pages, acme: Company, sent: dict[str, str]) -> None:
    """The key of a hidden row has the same result as the key of a missing row."""
    row = {"identity": "acme~~B", **sent}
    form = {**form_of(pages.get(CHANGE)), **{f"person_set-1-{name}": value for name, value in row.items()}}
    assert "Bob" not in pages.post(CHANGE, form).content.decode()
    assert names() == list(NAMES)


def test_viewer_sees_no_hidden_rows(staff: Callable[..., Pages], acme: Company) -> None:
    viewer = staff("directory.view_company", "directory.view_person", "directory.view_office")
    page = text_of(viewer.get(CHANGE, sends=["GetItem", "Query"]))
    assert [name for name in NAMES if name in page] == ["Anna", "Carla", "Eva"]


def test_rule_for_one_object_hides_row(pages: Pages, acme: Company, monkeypatch: pytest.MonkeyPatch) -> None:
    """``has_view_permission(request, obj)`` of the admin of the rows' model."""
    rule = lambda request, obj=None: obj is None or obj.name != "Carla"  # noqa: E731 - as a method is patched
    monkeypatch.setattr(admin.site.get_model_admin(Person), "has_view_permission", rule)
    assert form_of(pages.get(CHANGE))["person_set-TOTAL_FORMS"] == "2"


@pytest.mark.parametrize(
    ("options", "total"), [({"extra": 2}, "5"), ({"extra": 2, "max_num": 4}, "4"), ({"min_num": 5}, "5")]
)
def test_hidden_rows_count_for_no_limit(
    pages: Pages, acme: Company, monkeypatch: pytest.MonkeyPatch, options: dict[str, int], total: str
) -> None:
    for name, value in options.items():
        monkeypatch.setattr(directory.PersonInline, name, value)
    assert form_of(pages.get(CHANGE))["person_set-TOTAL_FORMS"] == total


@pytest.mark.parametrize(("limit", "shows"), [(3, True), (2, False)])
def test_hidden_rows_do_not_fill_page(
    pages: Pages, acme: Company, monkeypatch: pytest.MonkeyPatch, limit: int, shows: bool
) -> None:
    """``max_rows`` counts visible rows of one inline, and of several inlines that share a read."""
    monkeypatch.setattr(directory.PersonInline, "max_rows", limit)
    company = admin.site.get_model_admin(Company)
    for inlines in (company.inlines, (directory.PersonInline,)):
        monkeypatch.setattr(company, "inlines", inlines)
        assert ("Eva" in pages.get(CHANGE).content.decode()) == shows


def test_inline_decides_for_model_without_admin(pages: Pages, acme: Company, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin.site, "is_registered", lambda model: model is not Person)
    own = directory.PersonInline.get_queryset
    monkeypatch.setattr(
        directory.PersonInline, "get_queryset", lambda self, request: own(self, request).filter(name="Eva")
    )
    form = form_of(pages.get(CHANGE))
    assert (form["person_set-TOTAL_FORMS"], form["person_set-0-name"]) == ("1", "Eva")
