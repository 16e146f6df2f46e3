"""The page of all log entries: by day and by user, with permissions for the page and for models."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from io import StringIO
from typing import Any
from unittest import mock

import pytest
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.test import override_settings

from dynamo_single.admin import log
from dynamo_single.admin.log import LogEntry
from dynamo_single.table import get_table
from dynamo_single.testing import assert_requests, frozen_time
from project.directory.models import Company, Person
from tests.contract.conftest import Pages, link, text_of

LOG = "dynamodb/log/"


def written(user: Any, name: str, at: datetime, model: Any = Company) -> Any:
    """An entry about an object of this name."""
    with frozen_time(at):
        obj = Company(company_id=name, name=name) if model is Company else Person(person_id=name, name=name)
        return LogEntry.objects.log_actions(user.pk, [obj], 2, "Touched.", single_object=True)


@pytest.fixture
def three(pages: Pages) -> Any:
    """Entries of two users on two days."""
    other = get_user_model()._default_manager.create_user("olga", "olga@example.com", "secret")
    written(pages.user, "first", datetime(2026, 3, 1, 12, tzinfo=UTC))
    written(other, "second", datetime(2026, 3, 1, 23, 30, tzinfo=UTC))
    written(pages.user, "third", datetime(2026, 3, 2, 12, tzinfo=UTC))
    return other


def named(answer: Any) -> list[str]:
    """The objects of the entries on the page, in its order."""
    return [entry.object_repr for entry, _address in answer.context_data["entries"]]


def test_all_entries_are_one_query_newest_first(pages: Pages, three: Any) -> None:
    """And a batch for the users."""
    page = pages.get(LOG, sends=["Query", "BatchGetItem"])
    assert named(page) == ["third", "second", "first"]
    assert all(text in text_of(page) for text in ("olga", "admin", "Company: third", "Touched."))
    assert '<a href="/admin/directory/company/third/change/">third</a>' in page.content.decode()


def test_a_day_is_one_query(pages: Pages, three: Any) -> None:
    """With links to the day before and the day after."""
    page = pages.get(f"{LOG}?day=2026-03-01", sends=["Query", "BatchGetItem"])
    assert named(page) == ["second", "first"]
    assert all(f'href="?day={day}"' in page.content.decode() for day in ("2026-02-28", "2026-03-02"))


def test_a_day_is_one_of_the_zone_that_is_active(pages: Pages, three: Any) -> None:
    """Half past eleven in the evening in London is the next day in Berlin."""
    with override_settings(TIME_ZONE="Europe/Berlin"):
        page = pages.get(f"{LOG}?day=2026-03-02")
    assert named(page) == ["third", "second"]
    assert "Times are shown in the time zone Europe/Berlin." in text_of(page)


def test_the_entries_of_a_user_are_found_by_name(pages: Pages, three: Any) -> None:
    """Or by the user's key, as the page's links have it."""
    assert named(pages.get(f"{LOG}?user=olga")) == ["second"]
    assert named(pages.get(f"{LOG}?user={three.pk}")) == ["second"]


def test_the_entries_of_a_user_on_a_day(pages: Pages, three: Any) -> None:
    """Both together."""
    assert named(pages.get(f"{LOG}?user=admin&day=2026-03-02")) == ["third"]


def test_entries_of_somebody_who_is_gone_are_found_by_key(pages: Pages, three: Any) -> None:
    """The name no longer exists."""
    three.delete()
    page = pages.get(f"{LOG}?user={three.pk}")
    assert named(page) == ["second"]
    assert three.pk in text_of(page)


def test_entries_are_paged(pages: Pages) -> None:
    """Fifty a page, there and back."""
    for number in range(51):
        written(pages.user, f"c{number:02}", datetime(2026, 3, 1, 12, number, tzinfo=UTC))
    first = pages.get(LOG)
    second = pages.get(LOG + link(first, "next"))
    assert (named(first)[0], len(named(first)), named(second)) == ("c50", 50, ["c00"])
    assert named(pages.get(LOG + link(second, "prev"))) == named(first)


@pytest.mark.parametrize(
    "asked", ["day=x", "day=2026-02-30", "day=2026-03-01T00:00", "cursor=x", "cursor=" + "x" * 5000]
)
def test_what_no_link_of_the_page_asks_is_refused(pages: Pages, asked: str) -> None:
    """With status 400."""
    assert pages.get(f"{LOG}?{asked}").status_code == 400


@pytest.mark.parametrize(
    "asked", ["day=0001-01-01", "day=9999-12-31", "user=" + "x" * 3000, "user=%00", "user=%F0%9F%98%80"]
)
def test_what_finds_nothing_is_an_empty_page(pages: Pages, three: Any, asked: str) -> None:
    """The first and the last day too."""
    page = pages.get(f"{LOG}?{asked}")
    assert (page.status_code, named(page)) == (200, [])


def test_the_page_has_a_permission(staff: Callable[..., Pages]) -> None:
    """Without it there is neither the page nor a link to it."""
    pages = staff("directory.view_company")
    assert pages.get(LOG).status_code == 403
    assert "dynamodb/log/" not in pages.get("").content.decode()


def test_entries_of_hidden_models_are_left_out(staff: Callable[..., Pages]) -> None:
    """An entry names its object and its changes."""
    pages = staff("dynamo_single.view_logentry", "directory.view_person")
    written(pages.user, "company", datetime(2026, 3, 1, 12, tzinfo=UTC))
    written(pages.user, "person", datetime(2026, 3, 1, 13, tzinfo=UTC), model=Person)
    page = pages.get(LOG)
    assert named(page) == ["person"]
    assert "dynamodb/log/" in pages.get("").content.decode()


def test_visitors_are_sent_to_the_login_page(pages: Pages) -> None:
    """Every page of the admin does this."""
    pages.client.logout()
    assert pages.client.get(f"/admin/{LOG}").headers["Location"] == f"/admin/login/?next=/admin/{LOG}"


def test_markup_in_an_entry_is_text(pages: Pages) -> None:
    """This includes the name of its object, and the description."""
    company = Company(company_id="x", name="<script>1</script>")
    LogEntry.objects.log_actions(pages.user.pk, [company], 2, "<b>2</b>")
    page = pages.get(LOG).content.decode()
    assert "<script>1" not in page
    assert "<b>2" not in page


def test_an_entry_without_the_key_is_found_by_its_user_and_its_object(pages: Pages, three: Any) -> None:
    """It is an old entry; the page reports that such entries are missing, and ``dynamo_rebuild`` adds them."""
    table = get_table()
    (entry,) = LogEntry.objects.filter(user_id=three.pk)
    key = {"pk": {"S": f"LOG#USER#{three.pk}"}, "sk": entry._stored["sk"]}
    table.call("UpdateItem", {"TableName": table.name, "Key": key, "UpdateExpression": "REMOVE gs2pk, gs2sk"})
    page = pages.get(LOG)
    assert named(page) == ["third", "first"]
    assert "Entries from before this page existed may be missing here." in text_of(page)
    assert named(pages.get(f"{LOG}?user=olga")) == ["second"]
    assert [
        entry.object_repr for entry in LogEntry.objects.filter(object_type="directory.company", object_id="second")
    ] == ["second"]
    call_command("dynamo_rebuild", "dynamo_single.LogEntry", stdout=StringIO())
    assert named(pages.get(LOG)) == ["third", "second", "first"]


def test_a_table_of_one_index_has_the_entries_by_user(pages: Pages, three: Any) -> None:
    """The page requires a user."""
    with mock.patch.object(log, "TIME_INDEX", None):
        assert "Enter a user name to see their entries." in text_of(pages.get(LOG, sends=[]))
        assert named(pages.get(f"{LOG}?user=olga")) == ["second"]


def test_the_log_of_a_users_own_code(pages: Pages, three: Any) -> None:
    """The newest entries of all users are one Query."""
    with assert_requests(["Query"]):
        found = list(LogEntry.objects.order_by("-action_time")[:2])
    assert [entry.object_repr for entry in found] == ["third", "second"]


def test_an_entry_leads_to_an_object_whose_key_looks_like_an_escaped_one(pages: Pages) -> None:
    """The admin escapes keys in its URLs."""
    company = Company.objects.create(company_id="a_3Ab", name="Acme")
    LogEntry.objects.log_actions(pages.user.pk, [company], 2, "Touched.")
    (address,) = re.findall(r'href="([^"]*/change/)"', pages.get(LOG).content.decode().split("<tbody>")[1])
    assert "Acme" in text_of(pages.client.get(address))
