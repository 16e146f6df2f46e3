"""Users and servers of a chat, many-to-many: the stored items, and the requests of each query."""

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
SECOND, DAY = datetime.timedelta(seconds=1), datetime.timedelta(days=1)


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
    """Joining takes a read of the name and a transaction; the server has the number of members without a count."""
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
    """The user's few copies are updated; the thousands of members do not contain their server's name."""
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


# messages


@pytest.fixture
def messages(table: Table) -> list[ChatMessage]:
    """Four messages of one chat, two of them of one instant, sent in this order; and one of another chat."""
    moments = [NOON, NOON, NOON + SECOND, NOON + DAY]
    sent = [
        ChatMessage.objects.create(chat_id="1", sent_at=moment, text=text)
        for moment, text in zip(moments, "abcd", strict=True)
    ]
    ChatMessage.objects.create(chat_id="2", sent_at=NOON, text="x")
    return sent


def read(queryset: Any) -> str:
    """Return the strings of one Query, which reads only them."""
    with assert_requests(["Query"]) as sent:
        found = [message.text for message in queryset]
    assert sent[0].response is not None
    assert sent[0].response["ScannedCount"] == len(found)
    return "".join(found)


def test_a_message_lies_in_its_chat_under_its_time_and_identifier(table: Table) -> None:
    """Time, identifier and chat are attributes too, so no key is parsed."""
    with assert_requests(["PutItem"]):
        message = ChatMessage.objects.create(chat_id="1", sent_at=NOON, text="Hi")
    ((key, item),) = everything(table).items()
    assert key == ("CHAT#1", f"MSG#2025-01-31T12:00:00.000Z#{message.message_id}")
    assert {name: value for name, value in item.items() if name not in ("pk", "sk")} == {
        "itemType": {"S": "ChatMessage"},
        "gs1pk": {"S": f"MSG#{message.message_id}"},
        "gs1sk": {"S": "1"},
        "chatId": {"S": "1"},
        "msgId": {"S": message.message_id},
        "timestamp": {"N": "1738324800000"},
        "text": {"S": "Hi"},
    }


@pytest.mark.usefixtures("chat")
def test_messages_of_one_instant_keep_apart_and_in_order(table: Table) -> None:
    """The sort key contains the time as a sortable string, followed by the identifier."""
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


@pytest.mark.usefixtures("messages")
def test_messages_of_one_instant_are_read_in_the_order_in_which_they_were_sent() -> None:
    """The identifier follows the time, and sorts by its creation."""
    assert read(ChatMessage.objects.filter(chat_id="1")) == "abcd"
    assert read(ChatMessage.objects.filter(chat_id="1", sent_at=NOON)) == "ab"


@pytest.mark.usefixtures("messages")
def test_the_newest_come_first() -> None:
    """The requested number comes first, and older ones follow page by page during new messages."""
    newest_first = ChatMessage.objects.filter(chat_id="1").order_by("-sent_at", "-message_id")
    assert read(newest_first[:3]) == "dcb"
    page = newest_first.page(size=2)
    ChatMessage.objects.create(chat_id="1", sent_at=NOON + 2 * DAY, text="e")
    with assert_requests(["Query"]):
        older = newest_first.page(size=2, cursor=page.next_cursor)
    assert [[message.text for message in each] for each in (page, older)] == [["d", "c"], ["b", "a"]]


@pytest.mark.usefixtures("messages")
def test_since_before_and_by_day() -> None:
    """Each is a range of keys."""
    chat = ChatMessage.objects.filter(chat_id="1")
    assert read(chat.filter(sent_at__gt=NOON)) == "cd"
    assert read(chat.filter(sent_at__gte=NOON + SECOND)) == "cd"
    assert read(chat.filter(sent_at__lt=NOON + SECOND)) == "ab"
    assert read(chat.filter(sent_at__date=NOON.date())) == "abc"
    assert read(chat.filter(sent_at__range=(NOON + SECOND, NOON + DAY))) == "cd"


def test_a_message_is_found_by_its_identifier_alone(messages: list[ChatMessage]) -> None:
    """The index reads one item, whatever the number of messages and chats is."""
    with assert_requests(["Query"]) as sent:
        assert ChatMessage.objects.get(message_id=messages[2].message_id).text == "c"
    assert sent[0].params["IndexName"] == "gs1"
    assert sent[0].response is not None
    assert sent[0].response["ScannedCount"] == 1
    with assert_requests(["GetItem"]):
        assert ChatMessage.objects.get(pk=messages[2].pk).text == "c"
