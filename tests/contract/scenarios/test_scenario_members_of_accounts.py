"""S5 with ``accounts.User`` as its users: the memberships of a chat next to the login methods."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from django import forms
from django.contrib.auth import authenticate
from django.core import serializers
from django.db.models.signals import m2m_changed
from django.test import Client

from accounts.models import Login, User
from dynamo_single import models
from dynamo_single.checks.models import check_model
from dynamo_single.contrib.doctor import verify
from dynamo_single.exceptions import UniqueViolation
from dynamo_single.table import Table
from dynamo_single.testing import assert_requests
from tests.contract.accounts.account_pages import PASSWORD, is_in, link, sign_up
from tests.contract.robustness.crashing import Crash, crash_behind
from tests.contract.tables import assert_consistent, everything
from tests.unit.declaring import declare, forgotten

pytestmark = [pytest.mark.usefixtures("table"), pytest.mark.urls("project.urls")]

JOHN, ANN = "john@example.com", "ann@example.com"


@pytest.fixture(scope="module")
def declared() -> Iterator[Any]:
    """The models as the scenario's user writes them."""
    with forgotten():
        server = declare(
            "Guild",
            ("SERVER#{server_id}", "#METADATA"),
            server_id=models.IdAttribute(),
            name=models.UnicodeAttribute(),
            users=models.ManyToMany("accounts.User", through="catalog.GuildMember", related_name="servers"),
        )
        member = declare(
            "GuildMember",
            ("SERVER#{server_id}", "USER#{user_id}"),
            {"by_user": models.IndexKey("gs1", "USER#{user_id}", "SERVER#{server_id}")},
            server=models.ReferenceAttribute(server, on_delete=models.CASCADE),
            user=models.ReferenceAttribute("accounts.User", on_delete=models.CASCADE, related_name="memberships"),
            username=models.CopiedAttribute("user", "username"),
            role=models.UnicodeAttribute(default="member"),
        )
        yield server, member
    for name in ("servers", "memberships"):
        delattr(User, name)
    User._meta._expire_cache()


@pytest.fixture
def gaming(declared: Any, table: Table) -> Any:
    """Return a server without users."""
    return declared[0].objects.create(server_id="1", name="Gaming")


@pytest.fixture
def john(declared: Any, table: Table) -> User:
    """A user on no server."""
    return User.objects.create_user("John", JOHN, PASSWORD, user_id="1")


@pytest.fixture
def ann(declared: Any, table: Table) -> User:
    """Return another user."""
    return User.objects.create_user("Ann", ANN, PASSWORD, user_id="2")


def roles(member: Any, server: Any) -> dict[str, str]:
    """Return the names and roles of a server's members, in one Query."""
    with assert_requests(["Query"]):
        return {each.username: each.role for each in member.objects.filter(server=server)}


def test_the_declaration_passes_the_checks(declared: Any) -> None:
    """The model checks pass; other test models also use the scenario's keys."""
    assert [message for model in (*declared, User) for message in check_model(model)] == []


def test_the_items_equal_the_scenarios_table(declared: Any, gaming: Any, john: User, table: Table) -> None:
    """Its three items, and the index's keys; the ways to log in and the claims lie as without servers."""
    before = everything(table)
    with assert_requests(["GetItem", "TransactWriteItems"]):
        gaming.users.add(john, through_defaults={"role": "admin"})
    after = everything(table)
    assert after["USER#1", "#METADATA"] == before["USER#1", "#METADATA"]
    assert after["USER#1", "#METADATA"]["username"] == {"S": "John"}
    assert {key: after[key] for key in after.keys() - {("USER#1", "#METADATA")}} == {
        **{key: item for key, item in before.items() if key != ("USER#1", "#METADATA")},
        ("SERVER#1", "USER#1"): {
            "pk": {"S": "SERVER#1"},
            "sk": {"S": "USER#1"},
            "gs1pk": {"S": "USER#1"},
            "gs1sk": {"S": "SERVER#1"},
            "itemType": {"S": "GuildMember"},
            "server_id": {"S": "1"},
            "user_id": {"S": "1"},
            "username": {"S": "John"},
            "role": {"S": "admin"},
        },
    }
    assert after["SERVER#1", "#METADATA"]["name"] == {"S": "Gaming"}
    assert_consistent()


def test_the_issues_user_code_from_both_sides(declared: Any, gaming: Any, john: User, ann: User) -> None:
    server, member = declared
    chess = server.objects.create(server_id="2", name="Chess")
    gaming.users.add(john, through_defaults={"role": "admin"})
    ann.servers.add(gaming, chess)
    with assert_requests(["Query", "BatchGetItem"]):
        assert [each.name for each in ann.servers.all()] == ["Gaming", "Chess"]
    with assert_requests(["Query", "BatchGetItem"]):
        assert [each.username for each in gaming.users.all()] == ["John", "Ann"]
    with assert_requests(["Query"]):
        assert ann.servers.count() == 2
    assert roles(member, gaming) == {"John": "admin", "Ann": "member"}
    assert [each.username for each in gaming.users.filter(is_staff=False, username__startswith="J")] == ["John"]
    assert gaming.users.filter(pk="2").exists()
    assert not chess.users.filter(pk="1").exists()
    assert gaming.users.get(username="Ann") == ann


def test_edges_are_removed_set_and_cleared(declared: Any, gaming: Any, john: User, ann: User) -> None:
    member = declared[1]
    gaming.users.add(john, through_defaults={"role": "admin"})
    with assert_requests(["Query", "GetItem", "TransactWriteItems"]):
        gaming.users.set([john, ann])
    assert roles(member, gaming) == {"John": "admin", "Ann": "member"}
    with assert_requests(["GetItem", "DeleteItem"]):
        ann.servers.remove(gaming)
    gaming.users.set([ann], clear=True, through_defaults={"role": "guest"})
    assert roles(member, gaming) == {"Ann": "guest"}
    with assert_requests(["Query", "DeleteItem"]):
        ann.servers.clear()
    assert roles(member, gaming) == {}
    assert User.objects.count() == 2


def test_a_user_is_created_on_a_server_with_claims_and_logins(gaming: Any) -> None:
    made = gaming.users.create(username="Zoe", email="zoe@example.com", through_defaults={"role": "admin"})
    assert Login.objects.find("EMAIL", "zoe@example.com").user_id == made.pk
    assert [server.name for server in made.servers.all()] == ["Gaming"]
    assert gaming.users.get_or_create(username="Zoe") == (made, False)


def test_a_member_who_is_already_there_is_not_changed(declared: Any, gaming: Any, john: User) -> None:
    gaming.users.add(john, through_defaults={"role": "admin"})
    gaming.users.add(john, "1", through_defaults={"role": "guest"})
    assert roles(declared[1], gaming) == {"John": "admin"}


def test_nobody_joins_who_is_not_stored(gaming: Any, table: Table) -> None:
    before = everything(table)
    with pytest.raises(User.DoesNotExist, match=r"No accounts\.User has pk 'nobody'\. Nothing was written"):
        gaming.users.add("nobody")
    assert everything(table) == before


def test_both_sides_are_prefetched(declared: Any, gaming: Any, john: User, ann: User) -> None:
    gaming.users.add(john, ann)
    with assert_requests(["BatchGetItem", "Query", "Query", "GetItem"]):
        users = list(User.objects.filter(pk__in=["1", "2"]).prefetch_related("servers"))
        assert [[server.name for server in user.servers.all()] for user in users] == [["Gaming"], ["Gaming"]]
    with assert_requests(["GetItem", "Query", "BatchGetItem"]):
        (found,) = declared[0].objects.filter(pk="1").prefetch_related("users")
        assert {user.username for user in found.users.all()} == {"John", "Ann"}


def test_a_new_name_is_copied_with_its_claim_and_its_login(
    declared: Any, gaming: Any, john: User, table: Table
) -> None:
    """A transaction writes the user, the claims, the login and the memberships, or fails if the name is taken."""
    gaming.users.add(john)
    User.objects.create_user("Mike")
    john.username = "Mike"
    before = everything(table)
    with pytest.raises(UniqueViolation, match=r"Another accounts\.User has username"):
        john.save()
    assert everything(table) == before
    john.username = "Jack"
    with assert_requests(["Query", "TransactWriteItems", "Query"]):
        john.save()
    assert roles(declared[1], gaming) == {"Jack": "member"}
    assert (authenticate(username="John", password=PASSWORD), authenticate(username="jack", password=PASSWORD)) == (
        None,
        john,
    )
    User.objects.create_user("John")
    assert_consistent()


def test_a_deleted_user_takes_memberships_logins_and_claims_along(
    declared: Any, gaming: Any, john: User, ann: User, table: Table
) -> None:
    gaming.users.add(john, ann)
    with assert_requests(["Query", "TransactWriteItems", "Query"]):
        assert john.delete()[1]["catalog.GuildMember"] == 1
    assert not [key for key in everything(table) if "USER#1" in key or "john" in "".join(key).lower()]
    assert roles(declared[1], gaming) == {"Ann": "member"}
    assert list(verify()) == []


def test_a_deletion_of_a_user_that_is_killed_is_completed_when_it_is_called_again(
    declared: Any, john: User, table: Table
) -> None:
    """More memberships than one transaction takes."""
    guilds = declared[0].objects.bulk_create([declared[0](server_id=f"{number}", name="x") for number in range(120)])
    john.servers.add(*guilds)
    with crash_behind(2), pytest.raises(Crash):
        john.delete()
    assert 0 < declared[1].objects.filter(user="1").count() < 120
    User.objects.get(pk="1").delete()
    assert {item["itemType"]["S"] for item in everything(table).values()} == {"Guild"}
    assert list(verify()) == []


def test_a_deleted_server_leaves_its_users(declared: Any, gaming: Any, john: User) -> None:
    gaming.users.add(john)
    assert gaming.delete()[1] == {"catalog.Guild": 1, "catalog.GuildMember": 1}
    assert john.servers.count() == 0
    assert authenticate(username="John", password=PASSWORD) == john


def test_listeners_hear_of_users(declared: Any, gaming: Any, john: User) -> None:
    heard = []

    def receive(action: str, reverse: bool, model: Any, pk_set: Any, **_: Any) -> None:
        heard.append((action, reverse, model.__name__, pk_set))

    m2m_changed.connect(receive, sender=declared[1])
    try:
        gaming.users.add(john)
        john.servers.remove(gaming)
    finally:
        m2m_changed.disconnect(receive, sender=declared[1])
    assert heard == [
        *(("pre_add", False, "User", {"1"}), ("post_add", False, "User", {"1"})),
        *(("pre_remove", True, "Guild", {"1"}), ("post_remove", True, "Guild", {"1"})),
    ]


def test_the_asynchronous_twins_do_the_same(gaming: Any, john: User, ann: User) -> None:
    async def steps() -> list[Any]:
        await gaming.users.aadd(john, through_defaults={"role": "admin"})
        await ann.servers.aset([gaming])
        found = [await gaming.users.acount(), [user.username async for user in gaming.users.all()]]
        await gaming.users.aremove(john)
        await ann.servers.aclear()
        return [*found, await gaming.users.acount()]

    assert asyncio.run(steps()) == [2, ["John", "Ann"], 0]


def test_a_form_offers_the_users(gaming: Any, john: User, ann: User) -> None:
    field = forms.ModelMultipleChoiceField(queryset=User.objects.all())
    assert [label for _, label in field.choices] == ["Ann", "John"]
    assert {user.pk for user in field.clean(["1", "2"])} == {"1", "2"}
    with pytest.raises(forms.ValidationError, match=r"Select a valid choice\. 3 is not"):
        field.clean(["3"])


def test_users_and_members_are_carried_by_a_fixture(declared: Any, gaming: Any, john: User, table: Table) -> None:
    gaming.users.add(john)
    before = everything(table)
    text = serializers.serialize("json", [gaming, john, *declared[1].objects.filter(server=gaming)])
    gaming.delete()
    john.delete()
    assert everything(table) == {}
    for each in serializers.deserialize("json", text):
        each.save()
    assert everything(table) == before


def test_who_signed_up_joins_once_confirmed(declared: Any, gaming: Any, mailoutbox: Any) -> None:
    """A confirmation, a login and a new password write the user, and leave the memberships as they are."""
    browser = Client()
    sign_up(browser, "Mike", "mike@example.com")
    browser.post(link(mailoutbox[-1]))
    mike = User.objects.get_by_identifier("Mike")
    gaming.users.add(mike)
    assert is_in(browser, "Mike")
    mike.refresh_from_db()
    mike.set_password("Another-Good-9")
    with assert_requests(["UpdateItem"]):
        mike.save()
    assert roles(declared[1], gaming) == {"Mike": "member"}
    assert_consistent()
