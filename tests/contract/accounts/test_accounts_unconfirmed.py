"""Whoever signs up and never confirms the address holds name and address for a week, and no longer."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

from accounts.models import Login, User
from dynamo_single import clock
from dynamo_single.exceptions import ConfigurationError
from dynamo_single.table import Request, Table
from dynamo_single.testing import moved_time
from tests.contract.accounts.account_pages import is_in, link, sign_up, void

pytestmark = pytest.mark.urls("project.urls")


@pytest.fixture(autouse=True)
def _table(table: Table) -> None:
    """An empty table."""


def test_name_and_address_are_free_again(mailoutbox: Any) -> None:
    """A week later somebody else signs up with them, confirms, and logs in with each; the user of before is gone."""
    sign_up(Client())
    with moved_time(timedelta(days=6)):
        assert "already exists" in sign_up(Client(), email="other@example.com").content.decode()
    with moved_time(timedelta(days=8)):
        assert not User.objects.filter(username="Mike").exists()
        assert sign_up(Client()).status_code == 302
        assert Client().post(link(mailoutbox[-1])).url == "/accounts/confirm/done/"
        assert is_in(Client(), "Mike")
        assert is_in(Client(), "user1@example.com")
        assert void(Client(), link(mailoutbox[0]))
        assert User.objects.all().count() == 1
        assert Login.objects.find("EMAIL", "user1@example.com") is not None


def test_everything_of_the_account_expires_with_it(table: Table) -> None:
    """The user, the ways to log in and the claims carry one time to live, which DynamoDB deletes them by."""
    sign_up(Client())
    items = [item for item in table.send(Request("Scan"))["Items"] if item["pk"]["S"].startswith(("USER#", "UNIQUE#"))]
    ends = {item.get("expiresAt", {}).get("N") for item in items}
    assert len(items) == 5
    assert len(ends) == 1
    (end,) = ends
    assert 0 < float(end) - clock.timestamp() <= 7 * 24 * 3600 + 1


@pytest.mark.parametrize("way", ["confirm", "reset", "log in"])
def test_who_confirms_or_logs_in_stays(way: str, mailoutbox: Any, settings: Any, table: Table) -> None:
    """Nothing of the account expires any more."""
    settings.ACCOUNTS = {"UNCONFIRMED_MAY_LOG_IN": way == "log in"}
    sign_up(Client())
    if way == "confirm":
        Client().post(link(mailoutbox[0]))
    elif way == "reset":
        browser = Client()
        browser.post("/accounts/password_reset/", {"email": "user1@example.com"})
        address = next(line for line in mailoutbox[-1].body.split() if "/accounts/reset/" in line)
        page = browser.get(address.removeprefix("http://testserver"), follow=True)
        passwords = {"new_password1": "Other-Good-9", "new_password2": "Other-Good-9"}
        browser.post(page.request["PATH_INFO"], passwords)
    else:
        assert is_in(Client(), "Mike")
    with moved_time(timedelta(days=400)):
        assert User.objects.get_by_identifier("Mike").expires is None
    items = table.send(Request("Scan"))["Items"]
    assert not [item for item in items if item["pk"]["S"].startswith(("USER#", "UNIQUE#")) and "expiresAt" in item]


def test_what_is_left_is_in_order(mailoutbox: Any) -> None:
    """An account that expired, and one that took its name, are as they should be to the check of the table."""
    sign_up(Client())
    with moved_time(timedelta(days=8)):
        sign_up(Client())
        call_command("dynamo_verify")


def test_they_can_be_kept(settings: Any) -> None:
    """None keeps them for ever, as they were."""
    settings.ACCOUNTS = {"UNCONFIRMED_LIFETIME": None}
    sign_up(Client())
    with moved_time(timedelta(days=400)):
        assert User.objects.get_by_natural_key("Mike").expires is None


def test_a_link_does_not_outlive_its_account(settings: Any) -> None:
    """The setting is refused."""
    settings.ACCOUNTS = {"UNCONFIRMED_LIFETIME": 3600}
    with pytest.raises(ConfigurationError, match="'UNCONFIRMED_LIFETIME'] is 3600 seconds, less than"):
        sign_up(Client())
