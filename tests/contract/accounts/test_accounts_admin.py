"""Users in the admin, through HTTP: Django's own user pages, with the requests that they send."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Permission

from accounts.models import User
from tests.contract.conftest import Pages, text_of

USERS = "accounts/user/"
PASSWORD = "Quite-Good-9"
#: The user is read and changed, the log is written, and Django gives the user's own session a new key.
SET_PASSWORD = ["GetItem", "UpdateItem", "PutItem", "TransactWriteItems", "PutItem"]


def change_data(user: User, **values: Any) -> dict[str, Any]:
    """Return the data of the change form."""
    data = {
        "username": user.username,
        "email": user.email or "",
        "first_name": user.first_name,
        "last_name": user.last_name,
        "is_active": "on",
        "user_permissions": [each.pk for each in user.user_permissions.all()],
        "groups": sorted(user.group_ids or ()),
    }
    return data | values


@pytest.fixture
def mike(pages: Pages) -> User:
    """Return a user to manage."""
    return User.objects.create_user("Mike", "user1@example.com", PASSWORD)


def test_users_are_listed_by_name(pages: Pages, mike: User) -> None:
    """The list, its filters and its search are Queries of the index of user names."""
    text = text_of(pages.get(USERS, sends=["Query"]))
    assert "Mike" in text
    assert "user1@example.com" in text
    assert "user1@example.com" not in text_of(pages.get(f"{USERS}?is_superuser__exact=1"))
    assert "user1@example.com" in text_of(pages.get(f"{USERS}?q=Mi"))
    assert "user1@example.com" in text_of(pages.get(f"{USERS}?q=user1"))


def test_adding_a_user(pages: Pages, mike: User) -> None:
    """A BatchGetItem finds duplicates, a transaction writes, the log gets an entry, and the change page follows."""
    pages.get(f"{USERS}add/")
    data = {
        "username": "Ann",
        "email": "ann@example.com",
        "usable_password": "true",
        "password1": PASSWORD,
        "password2": PASSWORD,
    }
    response = pages.post(f"{USERS}add/", data, sends=["BatchGetItem", "TransactWriteItems"])
    ann = User.objects.get_by_identifier("ann@example.com")
    assert response.headers["Location"] == f"/admin/{USERS}{ann.pk}/change/"
    assert ann.check_password(PASSWORD)
    text = text_of(pages.post(f"{USERS}add/", data | {"username": "MIKE"}))
    assert "A user with that username already exists." in text
    assert "A user with that email address already exists." in text


def test_changing_a_user(pages: Pages, mike: User) -> None:
    """The change page lists the groups and keeps the password; a new address is one transaction."""
    page = text_of(pages.get(f"{USERS}{mike.pk}/change/", sends=["GetItem", "Query"]))
    assert "Raw passwords are not stored" in page
    view = Permission.objects.get(codename="view_company").pk
    data = change_data(mike, email="new@example.com", user_permissions=[view])
    response = pages.post(f"{USERS}{mike.pk}/change/", data)
    assert response.status_code == 302, text_of(response)
    mike = User.objects.get_by_identifier("new@example.com")
    assert mike.permissions == {"directory.view_company"}
    assert mike.check_password(PASSWORD)


def test_a_duplicate_is_an_error_on_its_field(pages: Pages, mike: User) -> None:
    """The form rejects another user's address."""
    User.objects.create_user("Ann", "ann@example.com")
    response = pages.post(f"{USERS}{mike.pk}/change/", change_data(mike, email="ANN@example.com"))
    assert "A user with that email address already exists." in text_of(response)
    assert User.objects.get(pk=mike.pk).email == "user1@example.com"


def test_setting_a_password(pages: Pages, mike: User) -> None:
    """The password has a page of its own, which can also take it away."""
    address = f"{USERS}{mike.pk}/password/"
    pages.get(address, sends=["GetItem"])
    data = {"usable_password": "true", "password1": "Another-Good-9", "password2": "Another-Good-9"}
    response = pages.post(address, data | {"set-password": "1"}, sends=SET_PASSWORD)
    assert response.headers["Location"] == f"/admin/{USERS}{mike.pk}/change/"
    assert User.objects.get(pk=mike.pk).check_password("Another-Good-9")
    pages.post(address, {"usable_password": "false", "unset-password": "1"})
    assert not User.objects.get(pk=mike.pk).has_usable_password()


def test_deleting_a_user(pages: Pages, mike: User) -> None:
    """The user goes with logins and claims, in one transaction."""
    pages.get(f"{USERS}{mike.pk}/delete/")
    response = pages.post(f"{USERS}{mike.pk}/delete/", {"post": "yes"})
    assert response.headers["Location"] == f"/admin/{USERS}"
    User.objects.create_user("Mike", "user1@example.com")


def test_all_addresses_are_shown(pages: Pages, mike: User) -> None:
    """Also where people log in with addresses and names only."""
    assert "Login methods" not in text_of(pages.get(f"{USERS}{mike.pk}/change/"))
    mike.logins.add("email", "second@example.com")
    page = text_of(pages.get(f"{USERS}{mike.pk}/change/", sends=["GetItem", "Query"]))
    assert "email user1@example.com, username Mike, email second@example.com" in page


def test_an_address_that_waits_for_its_confirmation_is_shown_so(pages: Pages) -> None:
    ann = User.objects.create_user("Ann", "ann@example.com", PASSWORD, confirmed=False)
    page = text_of(pages.get(f"{USERS}{ann.pk}/change/"))
    assert "email ann@example.com (not confirmed), username Ann" in page
