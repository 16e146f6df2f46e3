"""S4, several ways to log in, with the accounts as they are: the scenario's items, and the requests of each operation.

Decisions 7, 28 and 35 explain the differences from the scenario's table: the password is stored once with the user,
unless a method has a separate secret; the user has more attributes; claims make each identifier unique.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import pytest
from django.contrib.auth import authenticate
from django.contrib.auth.hashers import MD5PasswordHasher

from accounts.models import Login, User
from dynamo_single import testing
from dynamo_single.contrib.accounts.ways import LastWay
from dynamo_single.exceptions import UniqueViolation
from dynamo_single.table import Table
from dynamo_single.testing import assert_requests
from tests.contract.tables import assert_consistent, everything

PASSWORD = "a-good-password"
#: The login item through the index, and the user that it names.
LOGIN = ["Query", "GetItem"]
#: Neither a login item in the index nor a user's claim matches the input.
NOBODY = ["Query", "GetItem"]
OLD, NEW = "user1@example.com", "new@example.com"


@pytest.fixture(autouse=True)
def _ways(settings: Any) -> None:
    """Every kind is a way to log in."""
    settings.ACCOUNTS = {"LOGIN_WITH": ["email", "username", "phone", "google"]}


@pytest.fixture
def mike(table: Table) -> User:
    """Return the scenario's user with a confirmed address."""
    mike = User.objects.create_user("Mike", OLD, PASSWORD, user_id="1")
    mike.confirm_email()
    mike.save()
    return mike


def own(table: Table) -> dict[tuple[str, str], dict[str, Any]]:
    """The items of user 1, without types and times."""
    hidden = {"pk", "sk", "itemType", "dateJoined", "confirmedAt"}
    return {
        key: {name: value for name, value in item.items() if name not in hidden}
        for key, item in everything(table).items()
        if key[0] == "USER#1"
    }


def opens(typed: str, password: str = PASSWORD) -> bool:
    """Return whether a login succeeds."""
    return authenticate(username=typed, password=password) is not None


@contextmanager
def sends(requests: list[str], hashes: int = 0) -> Iterator[None]:
    """Assert the requests of a block, and how many passwords it hashes."""
    encode = MD5PasswordHasher.encode
    hashing = mock.patch.object(MD5PasswordHasher, "encode", autospec=True, side_effect=encode)
    with hashing as hashed, assert_requests(requests):
        yield
    assert hashed.call_count == hashes


def test_the_items_equal_the_scenarios_table(mike: User, table: Table) -> None:
    """The user has the scenario's three items with their attributes, so that keys are never parsed."""
    found = own(table)
    assert found.keys() == {("USER#1", "#METADATA"), ("USER#1", f"EMAIL#{OLD}"), ("USER#1", "USERNAME#Mike")}
    user = found["USER#1", "#METADATA"]
    assert {name: user[name] for name in ("userId", "email", "username", "password")} == {
        "userId": {"S": "1"},
        "email": {"S": OLD},
        "username": {"S": "Mike"},
        "password": {"S": mike.password},
    }
    assert found["USER#1", f"EMAIL#{OLD}"] == {
        "userId": {"S": "1"},
        "kind": {"S": "EMAIL"},
        "identifier": {"S": OLD},
        "confirmed": {"BOOL": True},
        "gs1pk": {"S": f"EMAIL#{OLD}"},
        "gs1sk": {"S": "USER#1"},
    }
    assert found["USER#1", "USERNAME#Mike"] == {
        "userId": {"S": "1"},
        "kind": {"S": "USERNAME"},
        "identifier": {"S": "Mike"},
        "gs1pk": {"S": "USERNAME#mike"},
        "gs1sk": {"S": "USER#1"},
    }


def test_what_lies_besides_are_claims_on_what_is_unique(mike: User, table: Table) -> None:
    others = {key for key in everything(table) if key[0] != "USER#1"}
    assert others == {(f"UNIQUE#User#email#{OLD}", "#CLAIM"), ("UNIQUE#User#username#mike", "#CLAIM")}


def test_each_further_way_is_an_item_of_the_same_form_and_needs_no_new_index(mike: User, table: Table) -> None:
    mike.logins.add("phone", "+15550100")
    mike.logins.add("email", "second@example.com")
    mike.logins.add("google", "1089")
    found = own(table)
    assert {sort for _, sort in found} == {
        *("#METADATA", f"EMAIL#{OLD}", "EMAIL#second@example.com", "USERNAME#Mike", "PHONE#+15550100", "GOOGLE#1089")
    }
    assert all({"gs1pk", "gs1sk"} <= item.keys() and "gs2pk" not in item for item in found.values())


def test_a_way_with_a_secret_of_its_own_has_its_hash_as_the_scenario_has_it(
    mike: User, table: Table, settings: Any
) -> None:
    """The secret opens only this method, and one transaction sets it."""
    settings.ACCOUNTS = {"LOGIN_WITH": ["email", "username"], "SECRETS": {"username": 6}}
    with sends(["TransactWriteItems"], hashes=1):
        mike.logins.set_secret("username", "471100")
    assert own(table)["USER#1", "USERNAME#Mike"]["password"] == {"S": mike.username_secret}
    assert (opens("Mike", "471100"), opens("Mike"), opens(OLD), opens(OLD, "471100")) == (True, False, True, False)


def test_all_addresses_share_a_secret_of_their_own(mike: User, table: Table, settings: Any) -> None:
    settings.ACCOUNTS = {"LOGIN_WITH": ["email", "username"], "SECRETS": {"email": 6}}
    mike.logins.add("email", "second@example.com")
    with sends(["TransactWriteItems"], hashes=1):
        mike.logins.set_secret("email", "471100")
    stored = {sort: item.get("password") for (_, sort), item in own(table).items()}
    assert stored[f"EMAIL#{OLD}"] == stored["EMAIL#second@example.com"] == {"S": mike.email_secret}
    assert stored["USERNAME#Mike"] is None
    for typed in (OLD, "second@example.com"):
        with sends(LOGIN, hashes=1):
            assert opens(typed, "471100")
        assert not opens(typed)
    assert (opens("Mike"), opens("Mike", "471100")) == (True, False)
    assert_consistent()


def test_a_new_password_removes_the_secret_of_addresses(mike: User, table: Table, settings: Any) -> None:
    settings.ACCOUNTS = {"LOGIN_WITH": ["email", "username"], "SECRETS": {"email": 6}}
    mike.logins.set_secret("email", "471100")
    mike.set_password("another-password")
    mike.save()
    assert (opens(OLD, "471100"), opens(OLD, "another-password")) == (False, True)
    assert "password" not in own(table)["USER#1", f"EMAIL#{OLD}"]


@pytest.mark.parametrize("given", [None, "471100"])
def test_the_secret_of_addresses_is_a_last_way(mike: User, settings: Any, given: str | None) -> None:
    """A user without a password logs in with it: it cannot be removed, and the user name does not work."""
    settings.ACCOUNTS = {"LOGIN_WITH": ["email", "username"], "SECRETS": {"email": 6}}
    mike.logins.set_secret("email", "123456")
    User.objects.filter(pk="1").update(password="!unusable")
    mike.refresh_from_db()
    if given is None:
        with pytest.raises(LastWay):
            mike.logins.set_secret("email", None)
    else:
        mike.logins.set_secret("email", given)
    assert opens(OLD, given or "123456")


# A kind of a project's own: a provider without an issuer.


@pytest.fixture
def badges(settings: Any) -> None:
    settings.ACCOUNTS = {"LOGIN_WITH": ["email", "username", "badge"], "PROVIDERS": {"badge": None}}


@pytest.mark.usefixtures("badges")
def test_an_own_kind_is_found_by_two_reads(mike: User, table: Table) -> None:
    with sends(["TransactWriteItems"]):
        mike.logins.add("badge", "4711")
    assert ("USER#1", "BADGE#4711") in own(table)
    with sends(["GetItem", "GetItem"]):
        assert User.objects.get_by_identity("badge", "4711") == mike
    assert_consistent()


@pytest.mark.usefixtures("badges")
def test_an_own_kind_is_unique(mike: User) -> None:
    mike.logins.add("badge", "4711")
    eve = User.objects.create_user("Eve", "eve@example.com", PASSWORD)
    with pytest.raises(UniqueViolation):
        eve.logins.add("badge", "4711")
    assert User.objects.get_by_identity("badge", "4711") == mike


@pytest.mark.usefixtures("badges")
def test_an_own_kind_goes_with_its_user(mike: User, table: Table) -> None:
    mike.logins.add("badge", "4711")
    mike.delete()
    assert everything(table) == {}


@pytest.mark.usefixtures("badges")
def test_an_own_kind_counts_as_a_way(mike: User, settings: Any) -> None:
    settings.ACCOUNTS = {"LOGIN_WITH": ["email", "badge"], "PROVIDERS": {"badge": None}}
    mike.logins.add("badge", "4711")
    mike.logins.remove("email")
    with pytest.raises(LastWay):
        mike.logins.remove("badge", "4711")


def test_signing_up_is_one_transaction(table: Table) -> None:
    with sends(["TransactWriteItems"], hashes=1):
        User.objects.create_user("Mike", OLD, PASSWORD)


@pytest.mark.parametrize("typed", [OLD, OLD.upper(), "Mike", "mIKE", "+15550100", "+1 (555) 0100"])
def test_a_login_by_any_way_reads_the_login_through_the_index_and_then_the_user(mike: User, typed: str) -> None:
    mike.logins.add("phone", "+15550100")
    with sends(LOGIN, hashes=1):
        assert authenticate(username=typed, password=PASSWORD) == mike


@pytest.mark.parametrize("typed", [OLD, "Mike", "+15550100"])
def test_a_wrong_password_takes_what_a_right_one_does(mike: User, typed: str) -> None:
    mike.logins.add("phone", "+15550100")
    with sends(LOGIN, hashes=1):
        assert not opens(typed, "wrong")


@pytest.mark.usefixtures("mike")
@pytest.mark.parametrize("typed", ["nobody@example.com", "Nobody", "+15550199"])
def test_what_is_nobodys_takes_as_much(typed: str) -> None:
    with sends(NOBODY, hashes=1):
        assert not opens(typed)


def test_an_account_elsewhere_is_two_reads_and_no_password(mike: User) -> None:
    mike.logins.add("google", "1089")
    with sends(["GetItem", "GetItem"]):
        assert User.objects.get_by_identity("google", "1089") == mike


def test_listing_the_ways_is_one_query(mike: User) -> None:
    mike.logins.add("phone", "+15550100")
    with sends(["Query"]):
        found = [(login.kind, login.identifier, login.confirmed) for login in mike.logins.all()]
    assert found == [("EMAIL", OLD, True), ("PHONE", "+15550100", None), ("USERNAME", "Mike", None)]


@pytest.mark.parametrize(
    ("kind", "identifier"), [("phone", "+15550100"), ("email", "second@example.com"), ("google", "1089")]
)
def test_adding_and_removing_a_way_is_one_transaction_each(
    mike: User, table: Table, kind: str, identifier: str
) -> None:
    before = everything(table)
    with sends(["TransactWriteItems"]):
        mike.logins.add(kind, identifier)
    assert User.logins.model.objects.find(kind.upper(), identifier).user_id == "1"
    assert_consistent()
    with sends(["TransactWriteItems"]):
        mike.logins.remove(kind, identifier)
    left = everything(table)
    assert left.keys() == before.keys()
    assert_consistent()


def test_confirming_an_address_is_one_transaction_of_the_user_and_the_login(table: Table) -> None:
    mike = User.objects.create_user("Mike", OLD, PASSWORD, user_id="1", confirmed=False)
    assert own(table)["USER#1", f"EMAIL#{OLD}"]["confirmed"] == {"BOOL": False}
    mike.confirm_email()
    with sends(["TransactWriteItems"]):
        mike.save()
    assert own(table)["USER#1", f"EMAIL#{OLD}"]["confirmed"] == {"BOOL": True}


def test_a_change_of_address_is_one_transaction(mike: User) -> None:
    mike.email = NEW
    with sends(["TransactWriteItems"]):
        mike.save()
    assert_consistent()


def test_at_each_moment_of_a_change_exactly_one_address_opens(mike: User, table: Table) -> None:
    """This holds before the single request, after it, and while the index is outdated."""
    seen = []

    def watching(operation: str, params: Any) -> None:
        if operation == "TransactWriteItems":
            with testing.intercept(lambda *_: None):
                seen.append((opens(OLD), opens(NEW)))

    old = Login.objects.find("EMAIL", OLD)
    mike.email = NEW
    with testing.intercept(watching):
        mike.save()
    seen.append((opens(OLD), opens(NEW)))

    def lagging(operation: str, params: Any) -> Any:
        if operation != "Query":
            return None
        items = [old._stored] if {"S": f"EMAIL#{OLD}"} in params["ExpressionAttributeValues"].values() else []
        return {"Items": items, "Count": len(items), "ScannedCount": len(items)}

    with testing.intercept(lagging):
        seen.append((opens(OLD), opens(NEW)))
    assert seen == [(True, False), (False, True), (False, True)]


def test_a_change_that_is_refused_leaves_the_old_address(mike: User) -> None:
    User.objects.create_user("Eve", NEW, "another-password")
    mike.email = NEW
    with pytest.raises(UniqueViolation), sends(["TransactWriteItems"]):
        mike.save()
    assert (opens(OLD), opens(NEW)) == (True, False)


def test_the_last_way_stays(mike: User, settings: Any) -> None:
    settings.ACCOUNTS = {"LOGIN_WITH": ["email"]}
    with pytest.raises(LastWay), sends([]):
        mike.logins.remove("email")
    assert opens(OLD)


def test_all_ways_go_with_the_user_in_one_transaction(mike: User, table: Table) -> None:
    mike.logins.add("phone", "+15550100")
    mike.logins.add("google", "1089")
    with sends(["TransactWriteItems"]):
        mike.delete()
    assert everything(table) == {}
