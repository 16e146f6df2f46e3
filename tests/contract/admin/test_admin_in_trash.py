"""The admin shows when and by whom an object was deleted, how long it is kept, and the effects of a restoration."""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model

from dynamo_single.table import Request, Table
from dynamo_single.testing import frozen_time, moved_time
from project.directory.models import Company, Person
from tests.catalog.clubs import Draft
from tests.contract.conftest import Pages, Registering, text_of

ACME = "directory/company/acme/"
PEOPLE = "directory/person/"


@pytest.fixture
def anna(pages: Pages) -> Person:
    """A person who went to the trash with the company, which the superuser deleted."""
    company = Company.objects.create(company_id="acme", name="Acme & Sons")
    anna = Person.objects.create(company=company, person_id="anna", name="Anna")
    pages.post(f"{ACME}delete/", {"post": "yes"})
    return anna


@pytest.fixture
def drafts(registered: Registering) -> Pages:
    """Return an admin whose trash keeps objects for thirty days, with one deleted in May."""
    pages = registered(Draft, list_display=("title",))
    with frozen_time(datetime(2026, 5, 1, 12, 30, tzinfo=UTC)):
        Draft.objects.create(draft_id="d", title="A draft").delete()
    return pages


def cells(response: Any, column: str) -> list[str]:
    """Return the cells of a column."""
    found = re.findall(rf'<td class="field-{column}[^"]*">(.*?)</td>', response.content.decode())
    return [html.unescape(re.sub(r"<[^>]+>", "", each)) for each in found]


def page_of(pages: Pages, anna: Person) -> str:
    """Return the text of the person's page."""
    return text_of(pages.get(f"{PEOPLE}{anna.pk}/change/"))


def test_the_list_of_the_trash_says_what_rows_went_there_with(pages: Pages, anna: Person) -> None:
    """By name, for one GetItem of all of them."""
    listed = pages.get(f"{PEOPLE}?trash=yes", sends=["Query", "GetItem", "GetItem"])
    assert cells(listed, "taken_with") == ["Company: Acme & Sons"]


def test_the_list_of_the_trash_says_when_rows_went_there(drafts: Pages) -> None:
    """An additional column contains the time."""
    with frozen_time(datetime(2026, 5, 2, tzinfo=UTC)):
        assert cells(drafts.get("catalog/draft/?trash=yes", sends=["Query"]), "deleted_at") == [
            "May 1, 2026, 12:30 p.m."
        ]


def test_the_list_of_the_trash_says_until_when_it_keeps_rows(drafts: Pages) -> None:
    """In whole seconds, rounded up."""
    with frozen_time(datetime(2026, 5, 2, tzinfo=UTC)):
        assert cells(drafts.get("catalog/draft/?trash=yes"), "purge_at") == ["May 31, 2026, 12:30 p.m."]


def test_the_list_of_live_objects_has_the_declared_columns_only(pages: Pages, anna: Person) -> None:
    """The attributes of deleted objects have no columns."""
    assert "Deleted with" not in text_of(pages.get(PEOPLE))


def test_a_column_that_is_declared_is_there_once(registered: Registering) -> None:
    """In the trash too."""
    Draft.objects.create(draft_id="d", title="A draft").delete()
    pages = registered(Draft, list_display=("title", "deleted_at", "deleted_with"))
    assert text_of(pages.get("catalog/draft/?trash=yes")).count("Deleted") == 2


def test_what_took_rows_along_is_named_by_its_kind_where_the_user_may_not_view_it(staff: Any, anna: Person) -> None:
    """The name is another model's."""
    assert cells(staff("directory.view_person").get(f"{PEOPLE}?trash=yes"), "taken_with") == ["Company"]


def test_what_took_rows_along_is_named_by_its_key_once_it_is_gone(pages: Pages, anna: Person, table: Table) -> None:
    """The name no longer exists."""
    table.send(Request("DeleteItem", {"Key": {"pk": {"S": "COMPANY#acme"}, "sk": {"S": "#METADATA"}}}))
    assert cells(pages.get(f"{PEOPLE}?trash=yes"), "taken_with") == ["Company acme"]


def test_a_child_says_who_deleted_what_it_went_with(pages: Pages, anna: Person) -> None:
    """The log has an entry for the parent alone."""
    assert re.search(r"Deleted by admin on .*, 20\d\d, .* along with Company: Acme & Sons", page_of(pages, anna))


def test_a_child_shows_no_mark_of_how_it_is_stored(pages: Pages, anna: Person) -> None:
    """People read a name."""
    assert "Company#acme" not in page_of(pages, anna)


def test_what_was_deleted_outside_of_the_admin_says_when(pages: Pages) -> None:
    """The user is unknown."""
    with frozen_time(datetime(2026, 5, 1, 12, 30, tzinfo=UTC)):
        Company.objects.create(company_id="acme", name="Acme").delete()
    assert "Deleted on May 1, 2026, 12:30 p.m." in text_of(pages.get(f"{ACME}change/"))


def test_an_earlier_deletion_names_nobody(pages: Pages, anna: Person) -> None:
    """Code has restored and deleted the company again, so the page does not name the first user."""
    with moved_time(timedelta(seconds=1)):
        Company.deleted_objects.get(pk="acme").restore()
    with moved_time(timedelta(seconds=2)):
        Company.objects.get(pk="acme").delete()
        assert "Deleted by" not in text_of(pages.get(f"{ACME}change/"))


def test_who_deleted_it_is_named_by_the_key_once_gone(pages: Pages) -> None:
    """The log outlives the users."""
    other = get_user_model()._default_manager.create_superuser("other", "other@example.com", "secret")
    Company.objects.create(company_id="acme", name="Acme")
    Pages(other).post(f"{ACME}delete/", {"post": "yes"})
    key = other.pk
    other.delete()
    assert f"Deleted by {key} on" in text_of(pages.get(f"{ACME}change/"))


def test_an_object_says_until_when_it_can_be_restored(drafts: Pages) -> None:
    """In words, with the year."""
    with frozen_time(datetime(2026, 5, 2, tzinfo=UTC)):
        page = text_of(drafts.get("catalog/draft/d/change/"))
    assert "It will be deleted permanently on May 31, 2026, 12:30 p.m.." in page


def test_an_object_in_the_trash_shows_its_children_there(pages: Pages, anna: Person) -> None:
    """The rows are read-only, and show the children's values."""
    page = pages.get(f"{ACME}change/").content.decode()
    assert '<td class="field-name">' in page
    assert ">Anna<" in page
    assert 'name="person_set-0-name"' not in page


def test_a_question_before_a_deletion_counts_what_goes_along(pages: Pages) -> None:
    """By kind, above the names."""
    company = Company.objects.create(company_id="acme", name="Acme")
    for name in ("Anna", "Bert"):
        Person.objects.create(company=company, name=name)
    assert "Companies: 1 People: 2" in text_of(pages.get(f"{ACME}delete/"))
