"""Users and servers of a chat, many to many: the items as they lie in the table, and the requests of each question."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from dynamo_single import transactions
from dynamo_single.table import Table
from dynamo_single.testing import assert_requests
from tests.catalog.chat import ChatMembership, ChatMessage, ChatServer, ChatUser
from tests.contract.tables import assert_consistent, everything

NOON = datetime.datetime(2025, 1, 31, 12, tzinfo=datetime.UTC)


@pytest.fixture
def chat(table: Table) -> None:
    """Two users, two servers, three memberships."""
    for pk, name in (("1", "John"), ("2", "Ann")):
        ChatUser.objects.create(user_id=pk, username=name)
    for pk, name in (("1", "Gaming"), ("2", "Chess")):
        ChatServer.objects.create(server_id=pk, name=name)
    for server, user in (("1", "1"), ("1", "2"), ("2", "1")):
        ChatMembership.objects.create(server_id=server, user_id=user)


@pytest.mark.usefixtures("chat")
def test_the_items_lie_as_the_pattern_says(table: Table) -> None:
    """A membership is in its server's partition and has the user's name, not the server's."""
    found = everything(table)
    assert set(found) == {
        ("USER#1", "#METADATA#CHAT"),
        ("USER#2", "#METADATA#CHAT"),
        ("SERVER#1", "#METADATA"),
        ("SERVER#2", "#METADATA"),
        ("SERVER#1", "USER#1"),
        ("SERVER#1", "USER#2"),
        ("SERVER#2", "USER#1"),
    }
    assert found["SERVER#1", "USER#1"] == {
        "pk": {"S": "SERVER#1"},
        "sk": {"S": "USER#1"},
        "itemType": {"S": "ChatMembership"},
        "gs1pk": {"S": "MEMBERSHIPS#1"},
        "gs1sk": {"S": "1"},
        "gs2pk": {"S": "MEMBERS#1"},
        "gs2sk": {"S": "John#1"},
        "serverId": {"S": "1"},
        "userId": {"S": "1"},
        "role": {"S": "Member"},
        "username": {"S": "John"},
    }
    assert found["SERVER#1", "#METADATA"]["memberCount"] == {"N": "2"}


@pytest.mark.usefixtures("chat")
def test_a_servers_members_and_their_names_are_one_query() -> None:
    """In the order of their names by the index, or with the server itself out of its partition."""
    with assert_requests(["Query"]):
        members = ChatMembership.objects.filter(server="1").order_by("username")
        assert [member.username for member in members] == ["Ann", "John"]
    with assert_requests(["Query"]):
        server = ChatServer.objects.prefetch_related("members").get(pk="1")
        assert {member.username for member in server.members.all()} == {"Ann", "John"}


@pytest.mark.usefixtures("chat")
def test_a_users_servers_are_one_query_and_one_batch() -> None:
    """The index gives the memberships, a BatchGetItem the servers' names."""
    with assert_requests(["Query", "BatchGetItem"]):
        memberships = ChatMembership.objects.filter(user="1").select_related("server")
        assert [membership.server.name for membership in memberships] == ["Gaming", "Chess"]


@pytest.mark.usefixtures("chat")
def test_joining_and_leaving_keep_the_count() -> None:
    """One reading of the name and one transaction; the server's number of members is there without counting."""
    with assert_requests(["GetItem", "TransactWriteItems"]):
        member = ChatMembership.objects.create(server_id="2", user_id="2")
    with assert_requests(["GetItem"]):
        assert ChatServer.objects.get(pk="2").member_count == 2
    with assert_requests(["TransactWriteItems"]):
        member.delete()
    assert ChatServer.objects.get(pk="2").member_count == 1
    assert_consistent()


@pytest.mark.usefixtures("chat")
def test_renaming_a_user_is_one_transaction_and_renaming_a_server_one_item(table: Table) -> None:
    """The user's few copies go along; the thousands of members know nothing of their server's name."""
    john = ChatUser.objects.get(pk="1")
    john.username = "Jack"
    looks = ["Query"] * 4  # memberships, live and in the trash; invitations; profiles
    with assert_requests([*looks, "TransactWriteItems", "Query", "Query", "Query"]) as sent:
        john.save()
    assert len(sent[4].params["TransactItems"]) == 3
    assert {each["username"]["S"] for each in everything(table).values() if "username" in each} == {"Jack", "Ann"}
    server = ChatServer.objects.get(pk="1")
    server.name = "Games"
    with assert_requests(["UpdateItem"]):
        server.save()
    assert_consistent()


@pytest.mark.usefixtures("chat")
def test_messages_of_one_instant_keep_apart_and_in_order(table: Table) -> None:
    """The time stands in the sort key as text that sorts, with the identifier after it."""
    moments: list[tuple[Any, str]] = [(NOON, "b"), (NOON + datetime.timedelta(seconds=1), "c"), (NOON, "a")]
    with transactions.atomic():
        for sent_at, name in moments:
            ChatMessage.objects.create(chat_id="1", message_id=name, sent_at=sent_at, text=name)
    keys = sorted(item["sk"]["S"] for item in everything(table).values() if item["pk"]["S"] == "CHAT#1")
    assert keys == [
        "MSG#2025-01-31T12:00:00.000Z#a",
        "MSG#2025-01-31T12:00:00.000Z#b",
        "MSG#2025-01-31T12:00:01.000Z#c",
    ]
    with assert_requests(["Query"]):
        latest = ChatMessage.objects.filter(chat_id="1", sent_at__gte=NOON).order_by("-sent_at", "-message_id")[:2]
        assert [message.text for message in latest] == ["c", "b"]
