"""Copies and counters that the checker finds and ``dynamo_rebuild`` repairs."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.core.serializers import deserialize

from dynamo_single.contrib.doctor import repair, verify
from dynamo_single.exceptions import StaleObject
from dynamo_single.orm.schema.keys.values import item_size
from dynamo_single.table import Request, Table, intercept, names
from dynamo_single.table.request import MAX_ITEM_SIZE
from dynamo_single.testing import assert_requests, refuse
from tests.catalog.chat import ChatChannel, ChatMembership, ChatProfile, ChatServer, ChatUser
from tests.catalog.clubs import Trophy
from tests.catalog.models import Resident
from tests.contract.tables import assert_consistent, everything

pytestmark = pytest.mark.usefixtures("table")


@pytest.fixture
def john(table: Table) -> ChatUser:
    """A user on one server, with a profile and a channel there."""
    user = ChatUser.objects.create(user_id="1", username="John")
    server = ChatServer.objects.create(server_id="s", name="Gaming")
    ChatMembership.objects.create(server=server, user=user)
    ChatChannel.objects.create(server=server, channel_id="c")
    ChatProfile.objects.create(user=user, kind="k")
    return user


def change(table: Table, partition: str, sort: str, expression: str, **values: Any) -> None:
    """Change an item behind the app's back."""
    params: dict[str, Any] = {"Key": {"pk": {"S": partition}, "sk": {"S": sort}}, "UpdateExpression": expression}
    if "#name" in expression:
        params["ExpressionAttributeNames"] = {"#name": "name"}
    if values:
        params["ExpressionAttributeValues"] = {f":{name}": value for name, value in values.items()}
    table.send(Request("UpdateItem", params))


def rebuild(*models: str) -> str:
    """Run the command."""
    out = io.StringIO()
    call_command("dynamo_rebuild", *models, stdout=out)
    return out.getvalue()


def item(table: Table, partition: str, sort: str) -> dict[str, Any]:
    """Return one stored item."""
    answer = table.send(Request("GetItem", {"Key": {"pk": {"S": partition}, "sk": {"S": sort}}}))
    found: dict[str, Any] = answer["Item"]
    return found


def test_a_healthy_table_has_no_findings(john: ChatUser) -> None:
    """Copies and counters are as they should be after every way to write them."""
    john.username = "Jack"
    john.save()
    assert list(verify()) == []
    assert rebuild().endswith("0 written again.\n")


def test_a_stale_copy_is_found_and_written_with_its_keys(john: ChatUser, table: Table) -> None:
    """The source determines the right value, and the repair is conditional on it."""
    change(table, "USER#1", "#METADATA#CHAT", "SET username = :name", name={"S": "Jack"})
    found = {finding.key: finding for finding in verify()}
    assert set(found) == {("SERVER#s", "USER#1"), ("PROFILES#1", "k")}
    assert str(found["SERVER#s", "USER#1"]) == (
        "copy: SERVER#s / USER#1: username differs from user.username of USER#1 / #METADATA#CHAT."
    )
    change(table, "USER#1", "#METADATA#CHAT", "SET username = :name", name={"S": "Jim"})
    assert not repair(found["PROFILES#1", "k"])
    assert rebuild().endswith("2 written again.\n")
    assert item(table, "SERVER#s", "USER#1")["gs2sk"] == {"S": "Jim#1"}
    assert_consistent()


def test_a_missing_copy_is_filled(john: ChatUser, table: Table) -> None:
    """Items that are older than the copy get it, and its keys."""
    change(table, "SERVER#s", "USER#1", "REMOVE username, gs2pk, gs2sk")
    rebuild("catalog.ChatMembership")
    assert item(table, "SERVER#s", "USER#1")["gs2sk"] == {"S": "John#1"}
    assert_consistent()


def test_a_copy_whose_source_is_gone_is_nobodys_mistake(john: ChatUser) -> None:
    """References are not checked in DynamoDB, so the last name stays."""
    john.delete()
    assert list(verify()) == []


@pytest.mark.parametrize("number", ["0", "7"])
def test_a_wrong_counter_is_counted_anew(number: str, john: ChatUser, table: Table) -> None:
    """Two COUNT Queries make sure that it is wrong; the repair counts by two more, under a mark."""
    change(table, "SERVER#s", "#METADATA", "SET channelCount = :number", number={"N": number})
    (finding,) = verify()
    assert str(finding) == f"counter: SERVER#s / #METADATA: channel_count is {number}, but there are 1 channels."
    with assert_requests(["UpdateItem", "Query", "Query", "UpdateItem"]):
        assert repair(finding)
    assert ChatServer.objects.get(pk="s").channel_count == 1
    assert names.COUNTING not in item(table, "SERVER#s", "#METADATA")
    assert_consistent()


def test_a_counter_that_changed_since_is_counted_with_that(john: ChatUser, table: Table) -> None:
    """The count of the finding is not written."""
    change(table, "SERVER#s", "#METADATA", "SET channelCount = :number", number={"N": "7"})
    (finding,) = verify()
    ChatChannel.objects.create(server_id="s", channel_id="d")
    assert repair(finding)
    assert ChatServer.objects.get(pk="s").channel_count == 2
    assert_consistent()


class Visitor:
    """A channel that comes before each Query and goes after it, as often as there are ``visits``.

    Its server therefore shows the same number at each read, and a Query finds one more.
    """

    def __init__(self, visits: int) -> None:
        self.visits, self.channel = visits, None

    def __call__(self, operation: str, params: Any) -> None:
        """Come, or go."""
        if operation == "Query" and self.visits and self.channel is None:
            self.visits -= 1
            self.channel = ChatChannel.objects.create(server_id="s", channel_id="visitor")
        elif operation in {"GetItem", "UpdateItem"} and self.channel is not None:
            channel, self.channel = self.channel, None
            channel.delete()


def test_a_counter_that_only_seemed_wrong_is_said_to_be_right(john: ChatUser) -> None:
    """A channel came and went during the check, whose other reads were the same."""
    with intercept(Visitor(3)):
        said = rebuild()
    assert (
        "channel_count is 1, but there are 2 channels. It is correct: no other process changed the counted objects"
        in said
    )
    assert said.endswith(", 0 written again.\n")
    assert ChatServer.objects.get(pk="s").channel_count == 1
    assert_consistent()


def test_what_only_seemed_wrong_is_no_finding_of_a_repair(john: ChatUser) -> None:
    """``dynamo_verify --repair`` ends well."""
    out = io.StringIO()
    with intercept(Visitor(3)):
        call_command("dynamo_verify", "--repair", stdout=out)
    assert "It is correct: no other process changed the counted objects during the recount." in out.getvalue()
    assert out.getvalue().endswith(", 0 findings, 0 repaired.\n")


def test_a_repaired_counter_is_not_that_of_who_came_and_went(john: ChatUser, table: Table) -> None:
    """Other processes remove the marker during the count, so it is repeated."""
    change(table, "SERVER#s", "#METADATA", "SET channelCount = :number", number={"N": "7"})
    (finding,) = verify()
    visitor = Visitor(2)
    with intercept(visitor):
        assert repair(finding)
    assert (visitor.visits, visitor.channel) == (0, None)
    assert ChatServer.objects.get(pk="s").channel_count == 1
    assert_consistent()


def test_a_counter_that_never_stands_still_is_left(john: ChatUser, table: Table) -> None:
    """The command reports it and exits with an error; it is repaired at a quieter time."""
    change(table, "SERVER#s", "#METADATA", "SET channelCount = :number", number={"N": "7"})
    (finding,) = verify()
    visitor = Visitor(100)
    with intercept(visitor):
        assert not repair(finding)
    assert visitor.visits == 95
    rebuild()
    assert_consistent()


@pytest.mark.parametrize("command", [("dynamo_rebuild",), ("dynamo_verify", "--repair")])
def test_an_item_that_takes_no_mark_does_not_end_it(command: Any, john: ChatUser, table: Table) -> None:
    """Its size is at the maximum: it is skipped with the reason, and the others are repaired."""
    ChatServer.objects.create(server_id="z", name="Other")
    for server in "sz":
        change(table, f"SERVER#{server}", "#METADATA", "SET channelCount = :number", number={"N": "7"})
    size = item_size(item(table, "SERVER#s", "#METADATA"))
    long = {"S": "x" * (MAX_ITEM_SIZE - size - 20)}
    change(table, "SERVER#s", "#METADATA", "SET filling = :long", long=long)
    out = io.StringIO()
    with pytest.raises(CommandError, match=r"1 left|2 findings, 1 repaired"):
        call_command(*command, stdout=out)
    assert re.search(r"counter: SERVER#s .* (Not done\.|Not repaired:) .*400 KB", out.getvalue())
    assert item(table, "SERVER#z", "#METADATA")["channelCount"] == {"N": "0"}


def test_the_counter_of_something_gone_is_no_more_counted(john: ChatUser, table: Table) -> None:
    """Its repair makes no item."""
    change(table, "SERVER#s", "#METADATA", "SET channelCount = :number", number={"N": "7"})
    (finding,) = verify()
    table.send(Request("DeleteItem", {"Key": {"pk": {"S": "SERVER#s"}, "sk": {"S": "#METADATA"}}}))
    with assert_requests(["UpdateItem"]):
        assert not repair(finding)
    assert ("SERVER#s", "#METADATA") not in everything(table)


def test_an_interrupted_rename_is_completed(john: ChatUser, table: Table) -> None:
    """The marker is found, the copies are updated, and the marker is removed."""
    for number in range(120):
        ChatProfile.objects.create(user=john, kind=f"{number:03d}")
    john.username = "Jack"
    with refuse("AccessDeniedException", operation="TransactWriteItems"), pytest.raises(Exception, match="is saved"):
        john.save()
    kinds = [finding.kind for finding in verify()]
    assert kinds.count("copies due") == 1
    assert kinds.count("copy") == 122
    assert "copies due: USER#1" in rebuild()
    assert {each["username"]["S"] for each in everything(table).values() if "username" in each} == {"Jack"}
    assert "copiesDue" not in item(table, "USER#1", "#METADATA#CHAT")
    assert_consistent()


def test_a_mark_that_is_left_without_need_is_taken_away(john: ChatUser, table: Table) -> None:
    """All copies have followed, and the writer died before its last request."""
    change(table, "USER#1", "#METADATA#CHAT", "SET copiesDue = :due", due={"SS": ["ChatProfile.username"]})
    (finding,) = verify()
    assert finding.text == "All copies contain its last change, but its marker was not removed."
    assert repair(finding)
    assert_consistent()


def test_everything_else_is_rebuilt_too(table: Table) -> None:
    """Folded copies and the keys that name them, as after a new declaration."""
    Resident.objects.create(resident_id="r", last_name="Ünal")
    change(table, "RESIDENT#r", "#METADATA", "REMOVE lastNameCanonical, gs1pk, gs1sk")
    assert "2 written again" in rebuild("catalog.Resident")
    assert item(table, "RESIDENT#r", "#METADATA")["gs1sk"] == {"S": "unal#r"}


def test_what_cannot_be_rebuilt_is_told(table: Table) -> None:
    """An item of no model stays, and the command ends with an error."""
    table.send(Request("PutItem", {"Item": {"pk": {"S": "X"}, "sk": {"S": "X"}, "itemType": {"S": "Nobody"}}}))
    with pytest.raises(CommandError, match="1 left"):
        rebuild()


def test_child_without_parent_is_kept(table: Table) -> None:
    """Only ``dynamo_verify --repair`` deletes objects."""
    Trophy.objects.create(club_id="gone", year=1990)
    with pytest.raises(CommandError, match="0 written again, 1 left"):
        rebuild("catalog.Trophy")
    assert Trophy.objects.filter(club_id="gone").count() == 1


def test_an_unreadable_item_does_not_end_it(john: ChatUser, table: Table) -> None:
    """An unreadable item with a counter is reported once and skipped, and the rest is rebuilt."""
    ChatServer.objects.create(server_id="z", name="Other")
    for server in "sz":
        change(table, f"SERVER#{server}", "#METADATA", "SET channelCount = :number", number={"N": "7"})
    change(table, "SERVER#s", "#METADATA", "SET #name = :number", number={"N": "7"})
    found = [(finding.kind, finding.key[0]) for finding in verify() if finding.key[1] == "#METADATA"]
    assert sorted(found) == [("counter", "SERVER#z"), ("unreadable item", "SERVER#s")]
    with pytest.raises(CommandError, match="1 written again, 1 left"):
        rebuild()
    assert item(table, "SERVER#z", "#METADATA")["channelCount"] == {"N": "0"}


def test_an_unreadable_holder_of_copies_does_not_end_it(john: ChatUser, table: Table) -> None:
    """The marker stays, and both are reported."""
    change(table, "USER#1", "#METADATA#CHAT", "SET copiesDue = :due", due={"SS": ["ChatProfile.username"]})
    (key,) = [each for each, held in everything(table).items() if held["itemType"]["S"] == "ChatProfile"]
    change(table, *key, "SET kind = :number", number={"N": "7"})
    kinds = [finding.kind for finding in verify()]
    assert "unreadable item" in kinds
    with pytest.raises(CommandError, match="left"):
        rebuild()
    assert "copiesDue" in item(table, "USER#1", "#METADATA#CHAT")


def test_an_item_that_is_deleted_while_it_is_looked_at_is_no_finding(john: ChatUser, table: Table) -> None:
    """Its counter is counted, and the item is missing at the second read."""
    change(table, "SERVER#s", "#METADATA", "SET channelCount = :number", number={"N": "7"})
    removed = []

    def remove(operation: str, params: Any) -> None:
        if (
            operation == "GetItem"
            and params["Key"] == {"pk": {"S": "SERVER#s"}, "sk": {"S": "#METADATA"}}
            and not removed
        ):
            removed.append(params)
            table.send(Request("DeleteItem", {"Key": params["Key"]}))

    with intercept(remove):
        found = [finding.key[0] for finding in verify() if finding.kind == "counter"]
    assert removed
    assert found == []


def load(visitor: Visitor) -> None:
    """Load a channel and then its server, like fixtures, while a visitor comes and goes."""
    fixture = [
        {"model": "catalog.chatchannel", "pk": "c", "fields": {"server": "s"}},
        {"model": "catalog.chatserver", "pk": "s", "fields": {"name": "Gaming"}},
    ]
    channel, server = deserialize("python", fixture)
    channel.save()
    with intercept(visitor):
        server.save()


def test_a_parent_that_is_loaded_after_its_children_counts_who_stays(table: Table) -> None:
    """A channel comes and goes during the count, and the number is right."""
    visitor = Visitor(2)
    load(visitor)
    assert visitor.channel is None
    assert (ChatServer.objects.get(pk="s").channel_count, visitor.visits) == (1, 0)
    assert_consistent()


def test_a_parent_that_is_loaded_while_its_children_never_stand_still_is_an_error(table: Table) -> None:
    """The parent is stored, and a rebuild counts its children."""
    with pytest.raises(StaleObject, match=r"pk 's' is stored, but channelCount is not counted yet.*dynamo_rebuild"):
        load(Visitor(100))
    rebuild()
    assert ChatServer.objects.get(pk="s").channel_count == 1
    assert_consistent()
