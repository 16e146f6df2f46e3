"""Counters of children on the real engine: exact after every way to write, and however many write at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.core import serializers

from dynamo_single import transactions
from dynamo_single.exceptions import DynamoSingleError, MissingReference, NotSupported, ParentInTrash, StaleObject
from dynamo_single.table import Request, Table, get_table
from dynamo_single.testing import assert_requests, refuse
from tests.catalog.chat import ChatChannel, ChatMembership, ChatServer, ChatUser
from tests.catalog.library import Aisle, Volume

pytestmark = pytest.mark.usefixtures("table")


@pytest.fixture
def server(table: Table) -> ChatServer:
    """A server without channels."""
    return ChatServer.objects.create(server_id="s", name="Gaming")


def count(name: str = "s") -> int:
    """Return the stored counter."""
    found: int = ChatServer.objects.consistent().get(pk=name).channel_count
    return found


def exact(table: Table) -> bool:
    """Return whether both counters of each server equal the number of stored live items."""
    items = table.send(Request("Scan"))["Items"]
    return all(
        int(server[name]["N"])
        == sum(
            item["itemType"]["S"] == kind
            and item.get(reference, {}).get("S") == server["serverId"]["S"]
            and "deletedAt" not in item
            for item in items
        )
        for server in items
        if server["itemType"]["S"] == "ChatServer"
        for name, kind, reference in (
            ("channelCount", "ChatChannel", "server_id"),
            ("memberCount", "ChatMembership", "serverId"),
        )
    )


def test_children_are_counted_in_their_own_transactions(server: ChatServer) -> None:
    """A creation adds one and a deletion subtracts one; the object shows the new number after a refresh."""
    with assert_requests(["TransactWriteItems", "TransactWriteItems"]):
        first = ChatChannel.objects.create(server=server)
        ChatChannel.objects.create(server=server)
    assert (server.channel_count, count()) == (0, 2)
    with assert_requests(["TransactWriteItems"]):
        first.delete()
    server.refresh_from_db()
    assert server.channel_count == 1


def test_other_changes_count_nothing(server: ChatServer) -> None:
    """A save of the child and one of the parent are one UpdateItem each, and leave the counter."""
    channel = ChatChannel.objects.create(server=server)
    channel.topic = "Chess"
    server.name = "Games"
    with assert_requests(["UpdateItem", "UpdateItem"]):
        channel.save()
        server.save()
    assert count() == 1


def test_a_child_that_changes_its_parent_is_counted_there(server: ChatServer) -> None:
    """One transaction moves the count from the old parent to the new one; no parent means no count."""
    ChatServer.objects.create(server_id="t", name="Other")
    channel = ChatChannel.objects.create(server=server)
    channel.server_id = "t"
    with assert_requests(["TransactWriteItems"]) as sent:
        channel.save()
    assert len(sent[0].params["TransactItems"]) == 3
    assert (count("s"), count("t")) == (0, 1)
    ChatChannel.objects.filter(pk=channel.pk).update(server=None)
    assert (count("s"), count("t")) == (0, 0)
    channel.refresh_from_db()
    channel.server = server
    channel.save()
    assert (count("s"), count("t")) == (1, 0)


def test_two_writers_who_give_a_child_away_count_it_once(server: ChatServer, table: Table) -> None:
    """The write requires the loaded reference, so that the right counter loses the child."""
    for name in ("t", "u"):
        ChatServer.objects.create(server_id=name, name=name)
    channel = ChatChannel.objects.create(server=server)
    late = ChatChannel.objects.get(pk=channel.pk)
    channel.server_id, late.server_id = "t", "u"
    channel.save()
    with pytest.raises(StaleObject):
        late.save()
    with pytest.raises(StaleObject):
        ChatChannel.from_item(late._stored).delete()
    assert exact(table)


def test_the_trash_is_not_counted(server: ChatServer, table: Table) -> None:
    """A deleted child counts no more, a restored one again; from the trash it goes uncounted."""
    user = ChatUser.objects.create(user_id="1", username="John")
    member = ChatMembership.objects.create(server=server, user=user)
    steps = {"delete": 0, "restore": 1, "hard_delete": 0}
    for step in ("delete", "delete", "restore", "restore", "delete", "hard_delete"):
        getattr(member, step)()
        assert ChatServer.objects.get(pk="s").member_count == steps[step]
    assert exact(table)


@pytest.mark.parametrize("write", ["delete", "hard_delete", "update"])
def test_querysets_count(write: str, server: ChatServer, table: Table) -> None:
    """Every write path adds up."""
    for _ in range(5):
        ChatChannel.objects.create(server=server)
    queryset = ChatChannel.objects.filter(server=server)
    if write == "update":
        queryset.update(server=None)
    else:
        getattr(queryset, write)()
    assert count() == 0
    assert exact(table)


def test_children_that_are_made_in_bulk_are_counted(server: ChatServer, table: Table) -> None:
    """Each object takes its own transaction, in several threads, which also fills copies."""
    ChatChannel.objects.bulk_create([ChatChannel(server=server) for _ in range(30)])
    users = [ChatUser(user_id=str(number), username=f"User {number}") for number in range(10)]
    ChatUser.objects.bulk_create(users)
    members = ChatMembership.objects.bulk_create([ChatMembership(server=server, user=user) for user in users])
    assert [member.username for member in members] == [user.username for user in users]
    found = ChatServer.objects.get(pk="s")
    assert (found.channel_count, found.member_count) == (30, 10)
    assert exact(table)


def test_a_child_that_moves_to_another_key_is_counted_where_it_goes(server: ChatServer, table: Table) -> None:
    """The membership's key has its server in it."""
    ChatServer.objects.create(server_id="t", name="Other")
    member = ChatMembership.objects.create(server=server, user=ChatUser.objects.create(user_id="1", username="John"))
    member.move(server_id="t")
    assert [ChatServer.objects.get(pk=name).member_count for name in ("s", "t")] == [0, 1]
    assert exact(table)


def test_several_children_in_one_block_are_one_sum(server: ChatServer) -> None:
    """A block adds to each counter once, and to a parent that it makes itself."""
    with assert_requests(["TransactWriteItems"]) as sent, transactions.atomic():
        other = ChatServer.objects.create(server_id="t", name="Other")
        for _ in range(3):
            ChatChannel.objects.create(server=server)
            ChatChannel.objects.create(server=other)
    assert len(sent[0].params["TransactItems"]) == 8
    assert (count("s"), count("t")) == (3, 3)


def test_a_parent_that_goes_with_its_children_in_one_block(server: ChatServer, table: Table) -> None:
    """There is nothing left to count."""
    channel = ChatChannel.objects.create(server=server)
    with transactions.atomic():
        channel.delete()
        server.delete()
    assert table.send(Request("Scan"))["Items"] == []


def test_a_child_of_nobody_is_refused_by_name(server: ChatServer) -> None:
    """A parent that is not stored cannot count a child, and the child is not written."""
    with pytest.raises(MissingReference) as raised:
        ChatChannel.objects.create(channel_id="c", server_id="nobody")
    assert "catalog.ChatChannel with pk 'c' is counted by an object that is not stored, pk='SERVER#nobody'" in str(
        raised.value
    )
    assert not ChatChannel.objects.filter(pk="c").exists()


def test_a_child_whose_parent_is_gone_can_be_deleted_and_given_away(server: ChatServer, table: Table) -> None:
    """The second transaction requires that the parent does not exist."""
    first, second = (ChatChannel.objects.create(server=server) for _ in range(2))
    other = ChatServer.objects.create(server_id="t", name="Other")
    server.delete()
    with assert_requests(["TransactWriteItems", "TransactWriteItems"]):
        first.delete()
    second.server = other
    second.save()
    assert count("t") == 1
    assert exact(table)


def test_block_refuses_child_of_missing_parent(server: ChatServer) -> None:
    """The fix in the message works: the object can be deleted without the block."""
    channel = ChatChannel.objects.create(server=server)
    server.delete()
    with pytest.raises(MissingReference, match=r"outside the atomic\(\) block"), transactions.atomic():
        channel.delete()
    channel.delete()
    assert not ChatChannel.objects.filter(pk=channel.pk).exists()


def test_a_counter_cannot_be_set(server: ChatServer) -> None:
    """You cannot set a counter on the object or through a queryset."""
    attempts: list[Callable[[], Any]] = [
        lambda: setattr(server, "channel_count", 7),
        lambda: ChatServer(name="x", channel_count=7),
        lambda: ChatServer.objects.filter(pk="s").update(channel_count=7),
        lambda: server.save(update_fields=["channel_count"]),
    ]
    for attempt in attempts:
        with pytest.raises(NotSupported, match="channels"):
            attempt()
    server.full_clean()
    assert count() == 0


def test_a_counter_is_asked_for_as_a_number(server: ChatServer) -> None:
    """You can compare a counter like any number."""
    ChatChannel.objects.create(server=server)
    assert ChatServer.objects.filter(pk="s", channel_count__gte=1).exists()
    assert not ChatServer.objects.filter(pk="s", channel_count=0).exists()


def test_a_conflict_is_tried_again(server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Transactions on one counter get in each other's way; that is no error."""
    monkeypatch.setattr("dynamo_single.table.table.LONGEST_PAUSE", 0.0)
    reasons = [{"Code": "None"}, {"Code": "TransactionConflict"}]
    with refuse("TransactionCanceledException", operation="TransactWriteItems", times=6, CancellationReasons=reasons):
        ChatChannel.objects.create(server=server)
    assert count() == 1


def test_fifty_writers_at_once_are_counted_exactly(server: ChatServer, table: Table) -> None:
    """Fifty threads create, give away and delete channels of the same two servers; both counters are exact."""
    ChatServer.objects.create(server_id="t", name="Other")
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            channel = ChatChannel.objects.create(server=server)
            if number % 3 == 0:
                channel.server_id = "t"
                channel.save()
            if number % 5 == 0:
                channel.delete()
        except DynamoSingleError as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert (count("s"), count("t")) == (27, 13)
    assert exact(table)


def test_fixtures_count_whichever_comes_first(server: ChatServer, table: Table) -> None:
    """A child without its parent is loaded uncounted, and the parent counts its stored children."""
    channels = [ChatChannel.objects.create(server=server) for _ in range(2)]
    data = serializers.serialize("json", [*channels, server])
    assert "channel_count" not in data
    for order in (1, -1):
        for obj in (*channels, server):
            type(obj).objects.get(pk=obj.pk).delete()
        for found in list(serializers.deserialize("json", data))[::order]:
            found.save()
        assert count() == 2
        assert exact(table)


def test_a_child_is_not_restored_into_a_parent_that_is_in_the_trash() -> None:
    """The parent's count does not replace the check that the parent exists and is live."""
    aisle = Aisle.objects.create(aisle_id="a", name="north")
    volume = Volume.objects.create(aisle=aisle, number=1, title="one")
    aisle.delete()
    with pytest.raises(ParentInTrash, match="which is in the trash"):
        Volume.deleted_objects.get(pk=volume.pk).restore()
    assert Volume.deleted_objects.count() == 1
    aisle.restore()
    volume = Volume.objects.get(pk=volume.pk)
    volume.delete()
    get_table().send(Request("DeleteItem", {"Key": {"pk": {"S": "AISLE#a"}, "sk": {"S": "#METADATA"}}}))
    with pytest.raises(MissingReference, match="which counts it, is not stored"):
        volume.restore()
    assert Volume.deleted_objects.count() == 1
