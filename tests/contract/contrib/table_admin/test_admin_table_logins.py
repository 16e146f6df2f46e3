"""The login items of a user in the pages that show the table: linked to and fro, and without what opens an account."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib import admin

from accounts.models import User
from dynamo_single.table import Table
from tests.contract.conftest import Pages, text_of
from tests.contract.tables import everything

TABLE = "dynamo_single.view_table"
PHONE, EMAIL = "+15550100", "mike@example.com"
#: Items derived from the user, by key.
MADE = {
    ("USER#1", "USERNAME#Mike"),
    ("USER#1", f"EMAIL#{EMAIL}"),
    ("USER#1", f"PHONE#{PHONE}"),
    ("USER#1", "GOOGLE#77"),
    ("IDENTITY#google#77", "#METADATA"),
}


@pytest.fixture
def mike(table: Table, settings: Any) -> User:
    """Create a user with four login methods, a separate secret for the number, and an external account."""
    settings.ACCOUNTS = {
        "LOGIN_WITH": ["email", "username", "phone", "google"],
        "SECRETS": {"phone": 6},
        "PROVIDERS": {"google": "https://accounts.google.com"},
    }
    mike = User.objects.create_user("Mike", EMAIL, "a-good-password", user_id="1")
    mike.logins.add("phone", PHONE)
    mike.logins.set_secret("phone", "471100")
    mike.logins.add("google", "77")
    return mike


def item_of(pages: Pages, pk: str, sk: str) -> Any:
    """The page of an item."""
    return pages.get(f"dynamodb/item/?{urlencode({'pk': pk, 'sk': sk})}", sends=["GetItem"])


def made(shown: Any) -> dict[Any, str]:
    """Return the items derived from an item, with their URLs."""
    return {link.key: url for _, link, url in shown.context["links"] if link.relation == "derived"}


def test_a_user_leads_to_the_logins(pages: Pages, mike: User) -> None:
    """This includes all derived items, also the items of external accounts."""
    assert {*made(item_of(pages, "USER#1", "#METADATA"))} == MADE


def test_the_page_says_so(pages: Pages, mike: User) -> None:
    """In words."""
    assert f"Derived item: USER#1 / EMAIL#{EMAIL}" in text_of(item_of(pages, "USER#1", "#METADATA"))


@pytest.mark.parametrize("key", sorted(MADE))
def test_a_login_is_there_and_leads_back(pages: Pages, mike: User, key: tuple[str, str]) -> None:
    """The link opens the item, whose reference is the user."""
    address = made(item_of(pages, "USER#1", "#METADATA"))[key]
    shown = pages.client.get(address)
    links = [link.key for _, link, _ in shown.context["links"] if link.relation == "reference"]
    assert links == [("USER#1", "#METADATA")]


def test_what_opens_an_account_is_in_no_page(pages: Pages, mike: User, table: Table) -> None:
    """The hash of the password, or of the number's secret, is not shown with the user or the login."""
    user, login = (everything(table)["USER#1", sort] for sort in ("#METADATA", f"PHONE#{PHONE}"))
    hashes = {user["password"]["S"], user["phoneSecret"]["S"], login["password"]["S"]}
    shown = pages.get("dynamodb/table/?pk=USER%231").content.decode()
    shown += "".join(item_of(pages, *key).content.decode() for key in [("USER#1", "#METADATA"), *MADE])
    assert len(hashes) == 2
    assert [each for each in hashes if each in shown] == []


def test_who_may_not_view_logins_is_not_led_there(staff: Any, mike: User) -> None:
    """Their number is hidden too."""
    shown = item_of(staff(TABLE, "accounts.view_user"), "USER#1", "#METADATA")
    assert made(shown) == {}


def test_who_may_view_logins_is_led_there(staff: Any, mike: User) -> None:
    """This permission is enough, because no admin class is registered for them."""
    shown = item_of(staff(TABLE, "accounts.view_user", "accounts.view_login"), "USER#1", "#METADATA")
    assert {*made(shown)} == MADE - {("IDENTITY#google#77", "#METADATA")}


def test_what_a_site_says_is_a_secret_is_no_link(pages: Pages, mike: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """A login's key has the identifier in it."""
    monkeypatch.setattr(admin.site, "is_secret", lambda model, name: name in {"identifier", "subject", "identities"})
    shown = pages.get("dynamodb/item/?pk=USER%231&sk=%23METADATA")
    assert made(shown) == {}
    assert "GOOGLE#77" not in text_of(shown)
    assert "GOOGLE#77" not in text_of(pages.get("dynamodb/table/?pk=USER%231"))
