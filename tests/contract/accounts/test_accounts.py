"""Users as items: stored items, requests and unique values."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.db import IntegrityError

from accounts.models import Login, User
from dynamo_single import exceptions, testing
from dynamo_single.auth import UserExists
from dynamo_single.table import Request, SentRequest, Table

Sent = list[SentRequest]


def operations(sent: Sent) -> list[str]:
    """Return the operations sent, in order."""
    return [request.operation for request in sent]


def actions(request: SentRequest) -> list[str]:
    """Return the actions of a transaction and their items."""
    found = []
    for action in request.params["TransactItems"]:
        ((kind, described),) = action.items()
        key = described.get("Key") or described["Item"]
        found.append(f"{kind} {key['pk']['S']} {key['sk']['S']}")
    return found


def stored(table: Table) -> dict[tuple[str, str], dict[str, Any]]:
    """Everything in the table, by key, without the keys' own attributes."""
    items = table.send(Request("Scan", {}))["Items"]
    return {(item["pk"]["S"], item["sk"]["S"]): item for item in items}


@pytest.fixture
def mike(table: Table) -> User:
    """The scenario's user."""
    return User.objects.create_user("Mike", "user1@example.com", "a-good-password", user_id="1")


def test_the_projects_user_is_stored_in_dynamodb() -> None:
    """AUTH_USER_MODEL is a Django model and a PynamoDB model without any relation to SQL."""
    assert get_user_model() is User
    assert User._meta.pk.name == "user_id"
    assert all(hasattr(each, "kept_in") for each in User._meta.many_to_many)


def test_the_items_lie_as_in_the_pattern(mike: User, table: Table) -> None:
    """The user is at #METADATA, with an item and index keys for each login method, and the claims."""
    items = stored(table)
    assert sorted(items) == [
        ("UNIQUE#User#email#user1@example.com", "#CLAIM"),
        ("UNIQUE#User#username#mike", "#CLAIM"),
        ("USER#1", "#METADATA"),
        ("USER#1", "EMAIL#user1@example.com"),
        ("USER#1", "USERNAME#Mike"),
    ]
    user = items["USER#1", "#METADATA"]
    assert {name: user[name] for name in ("itemType", "userId", "email", "username")} == {
        "itemType": {"S": "User"},
        "userId": {"S": "1"},
        "email": {"S": "user1@example.com"},
        "username": {"S": "Mike"},
    }
    assert user["password"]["S"] == mike.password
    assert items["USER#1", "EMAIL#user1@example.com"] == {
        "pk": {"S": "USER#1"},
        "sk": {"S": "EMAIL#user1@example.com"},
        "gs1pk": {"S": "EMAIL#user1@example.com"},
        "gs1sk": {"S": "USER#1"},
        "itemType": {"S": "Login"},
        "userId": {"S": "1"},
        "kind": {"S": "EMAIL"},
        "identifier": {"S": "user1@example.com"},
    }
    assert items["USER#1", "USERNAME#Mike"] == {
        "pk": {"S": "USER#1"},
        "sk": {"S": "USERNAME#Mike"},
        "gs1pk": {"S": "USERNAME#mike"},
        "gs1sk": {"S": "USER#1"},
        "itemType": {"S": "Login"},
        "userId": {"S": "1"},
        "kind": {"S": "USERNAME"},
        "identifier": {"S": "Mike"},
    }
    for claim in ("UNIQUE#User#email#user1@example.com", "UNIQUE#User#username#mike"):
        assert items[claim, "#CLAIM"]["ownerPk"] == {"S": "USER#1"}
        assert items[claim, "#CLAIM"]["ownerSk"] == {"S": "#METADATA"}


def test_signing_up_is_one_transaction(sent: Sent) -> None:
    """A single transaction writes the user, both claims and both logins."""
    User.objects.create_user("Mike", "user1@example.com", "x", user_id="1")
    assert operations(sent) == ["TransactWriteItems"]
    assert actions(sent[0]) == [
        "Put USER#1 #METADATA",
        "Put UNIQUE#User#email#user1@example.com #CLAIM",
        "Put UNIQUE#User#username#mike #CLAIM",
        "Put USER#1 EMAIL#user1@example.com",
        "Put USER#1 USERNAME#Mike",
    ]


def test_an_identifier_is_made_on_creation(table: Table) -> None:
    """Without one a user gets user-<uuid>."""
    assert User.objects.create_user("Ann").pk.startswith("user-")


@pytest.mark.parametrize("email", [None, ""])
def test_a_user_without_an_address(table: Table, email: str | None) -> None:
    """Any number of users may have no e-mail address; there is no login and no claim for it."""
    User.objects.create_user("Ann", email, user_id="1")
    User.objects.create_user("Ben", email, user_id="2")
    assert [login.identifier for login in Login.objects.filter(user_id="1")] == ["Ann"]
    assert User.objects.get(pk="1").email == ""


def test_no_address_reads_as_text_and_is_not_stored(table: Table) -> None:
    """``email`` is always a string, as in Django's own user, but the item has no address."""
    user = User.objects.create_user("Ann", user_id="1")
    assert user.email == ""
    assert "email" not in stored(table)["USER#1", "#METADATA"]


def test_a_user_without_an_address_has_confirmed_none(table: Table) -> None:
    """Without an address, there is nothing to confirm."""
    user = User.objects.create_user("Ann", user_id="1")
    user.confirm_email()
    assert not user.has_confirmed_email


def test_the_identifier_of_a_user_reads_as_id(mike: User) -> None:
    """Code for Django's own user reads ``user.id``."""
    assert User.objects.get(pk="1").id == "1"


def test_an_email_change_is_one_transaction(mike: User, sent: Sent, table: Table) -> None:
    """User, claims and logins change together: the old address and the new one are never both valid, or neither."""
    mike.email = "new@example.com"
    mike.save()
    assert operations(sent) == ["TransactWriteItems"]
    assert actions(sent[0]) == [
        "Update USER#1 #METADATA",
        "Put UNIQUE#User#email#new@example.com #CLAIM",
        "Delete UNIQUE#User#email#user1@example.com #CLAIM",
        "Put USER#1 EMAIL#new@example.com",
        "Delete USER#1 EMAIL#user1@example.com",
    ]
    assert User.objects.get_by_identifier("new@example.com") == mike
    with pytest.raises(User.DoesNotExist):
        User.objects.get_by_identifier("user1@example.com")
    assert len(stored(table)) == 5


@pytest.mark.parametrize(("field", "value"), [("username", "MIKE"), ("email", "User1@Example.com")])
def test_changing_only_the_case_keeps_the_claim(mike: User, table: Table, field: str, value: str) -> None:
    """A change of case in a user's own name is stored as typed, and keeps the claim."""
    setattr(mike, field, value)
    mike.save()
    assert len(stored(table)) == 5
    assert getattr(User.objects.get(pk="1"), field) == value
    assert {login.identifier for login in mike.logins.all()} >= {value}
    assert User.objects.get_by_identifier(value.lower()) == mike


def test_other_changes_touch_the_user_only(mike: User, sent: Sent) -> None:
    """Setting a name or a password is one UpdateItem."""
    mike.first_name = "Michael"
    mike.set_password("another")
    mike.save()
    assert operations(sent) == ["UpdateItem"]


def test_a_change_of_address_on_top_of_another_is_refused(mike: User) -> None:
    """If two processes have loaded one user, the second change of address fails instead of adding a login."""
    other = User.objects.get(pk="1")
    mike.email = "first@example.com"
    mike.save()
    other.email = "USER1@example.com"
    with pytest.raises(exceptions.StaleObject):
        other.save()
    other = User.objects.get(pk="1")
    assert {login.identifier for login in other.logins.all()} == {"Mike", "first@example.com"}


def test_deleting_a_user_leaves_nothing(mike: User, sent: Sent, table: Table) -> None:
    """The user, the logins and the claims go in one transaction, and the names are free again."""
    mike.delete()
    assert operations(sent) == ["TransactWriteItems"]
    assert stored(table) == {}
    User.objects.create_user("Mike", "user1@example.com")


def test_a_users_logins_are_one_query(mike: User, sent: Sent) -> None:
    """Listing the ways in which a user logs in is one Query, and together with the user one too."""
    assert [(login.kind, login.identifier) for login in mike.logins.all()] == [
        ("EMAIL", "user1@example.com"),
        ("USERNAME", "Mike"),
    ]
    assert operations(sent) == ["Query"]
    sent.clear()
    user = User.objects.prefetch_related("logins").get(pk="1")
    assert [str(login) for login in user.logins.all()] == ["EMAIL user1@example.com", "USERNAME Mike"]
    assert operations(sent) == ["Query"]


def test_a_further_way_to_log_in_needs_no_new_index(mike: User, sent: Sent) -> None:
    """An account elsewhere is an item of another kind, found by the same index."""
    Login.objects.create(user=mike, kind="OAUTH", identifier="provider.example/12345")
    sent.clear()
    found = Login.objects.find("OAUTH", "provider.example/12345")
    assert found is not None
    assert found.user_id == "1"
    assert [(request.operation, request.params["IndexName"]) for request in sent] == [("Query", "gs1")]


def test_confirming_an_address_is_one_update(mike: User, sent: Sent) -> None:
    """A confirmed login stays confirmed while the user's other attributes change."""
    login = Login.objects.get(user=mike, kind="EMAIL", identifier="user1@example.com")
    sent.clear()
    login.confirmed = True
    login.save()
    assert operations(sent) == ["UpdateItem"]
    mike.username = "Michael"
    mike.save()
    assert Login.objects.get(user=mike, kind="EMAIL", identifier="user1@example.com").confirmed is True


@pytest.mark.parametrize(
    ("username", "email", "field"),
    [
        ("mike", "other@example.com", "username"),
        ("MIKE", None, "username"),
        ("Other", "USER1@EXAMPLE.COM", "email"),
        ("Other", " user1@example.com", "email"),
    ],
)
def test_a_duplicate_in_another_case_is_refused(
    mike: User, table: Table, username: str, email: str | None, field: str
) -> None:
    """For forms, commands and code, a taken name or address raises the same error before any write."""
    before = stored(table)
    with pytest.raises(UserExists) as caught:
        User.objects.create_user(username, email)
    assert isinstance(caught.value, IntegrityError)
    assert isinstance(caught.value, ValidationError)
    assert caught.value.field == field
    assert "already exists" in str(caught.value)
    assert stored(table) == before


def test_validation_finds_a_duplicate(mike: User) -> None:
    """full_clean() reports it on its field, with the field's message."""
    with pytest.raises(ValidationError) as caught:
        User(username="MIKE", email="USER1@example.com", password="x").full_clean()
    assert caught.value.message_dict == {
        "username": ["A user with that username already exists."],
        "email": ["A user with that email address already exists."],
    }


def test_only_one_of_many_gets_a_name(table: Table) -> None:
    """Concurrent sign-ups with one address create only one user."""
    results: list[str] = []

    def sign_up(number: int) -> None:
        address = "Race@example.com" if number % 2 else "race@EXAMPLE.com"
        try:
            User.objects.create_user(f"racer{number}", address)
        except (UserExists, exceptions.TransactionCancelled) as error:
            results.append(type(error).__name__)
        else:
            results.append("made")

    threads = [threading.Thread(target=sign_up, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results.count("made") == 1
    assert len(results) == 12
    assert len(stored(table)) == 5


@pytest.mark.parametrize("username", ["user1@example.com", "a@b", "@"])
def test_a_name_that_looks_like_an_address_is_refused(table: Table, username: str) -> None:
    """No user name contains an @, neither by validation nor in code."""
    with pytest.raises(exceptions.InvalidValue, match="contains an @"):
        User.objects.create_user(username)
    with pytest.raises(ValidationError) as caught:
        User(username=username, password="x").full_clean()
    assert "username" in caught.value.message_dict
    assert stored(table) == {}


def test_no_name_at_all_is_refused(table: Table) -> None:
    """A user needs a name, as in Django."""
    with pytest.raises(ValueError, match="username must be set"):
        User.objects.create_user("")


def test_the_natural_key_is_found_whatever_its_case(mike: User, sent: Sent) -> None:
    """Two consistent GetItems find even a new user; a missing one takes one GetItem."""
    assert User.objects.get_by_natural_key("MIKE") == mike
    assert operations(sent) == ["GetItem", "GetItem"]
    assert all(request.params["ConsistentRead"] for request in sent)
    sent.clear()
    with pytest.raises(User.DoesNotExist, match=r"No accounts\.User has username 'nobody'"):
        User.objects.get_by_natural_key("nobody")
    assert operations(sent) == ["GetItem"]
    assert asyncio.run(User.objects.aget_by_natural_key("mike")) == mike
    assert mike.natural_key() == ("Mike",)


@pytest.mark.parametrize("value", ["", " ", "x" * 5000, "lone\ud800surrogate", None])
@pytest.mark.parametrize("attribute", ["username", "email"])
def test_a_value_that_nobody_can_hold(mike: User, attribute: str, value: Any) -> None:
    """An invalid value does not raise another kind of error: it does not find a user."""
    with pytest.raises(User.DoesNotExist):
        User.objects.get_by_unique(attribute, value)


def test_users_are_listed_by_name(table: Table, sent: Sent) -> None:
    """All users are one Query, ordered by user name; a prefix narrows it."""
    for name in ("Cleo", "Ann", "Ben", "Anton"):
        User.objects.create_user(name)
    sent.clear()
    assert [user.username for user in User.objects.order_by("username")] == ["Ann", "Anton", "Ben", "Cleo"]
    assert [user.username for user in User.objects.filter(username__startswith="An")] == ["Ann", "Anton"]
    assert operations(sent) == ["Query", "Query"]


def test_the_managers_methods_are_asynchronous_too(table: Table) -> None:
    """acreate_user() and acreate_superuser() have the same effects as the synchronous methods."""

    async def use() -> None:
        ann = await User.objects.acreate_user("Ann", "ANN@Example.COM", "x")
        assert ann.email == "ANN@example.com"
        assert not ann.is_staff
        assert await ann.acheck_password("x")
        boss = await User.objects.acreate_superuser("Boss", None, "x")
        assert boss.is_staff
        assert boss.is_superuser
        with pytest.raises(UserExists):
            await User.objects.acreate_user("ANN")

    asyncio.run(use())


@pytest.mark.parametrize("flag", ["is_staff", "is_superuser"])
def test_a_superuser_cannot_be_less(table: Table, flag: str) -> None:
    """create_superuser() rejects a missing flag, as in Django."""
    with pytest.raises(ValueError, match=f"Superuser must have {flag}=True"):
        User.objects.create_superuser("Boss", **{flag: False})


def test_an_engine_that_does_not_answer_is_an_error(mike: User) -> None:
    """A failed lookup never looks like a missing user."""
    with testing.refuse("ProvisionedThroughputExceededException"), pytest.raises(exceptions.Throttled):
        User.objects.get_by_identifier("Mike")
