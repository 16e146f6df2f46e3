"""Copies of other objects' attributes on the real engine: filled, updated, and never left outdated silently."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from django.core import serializers
from django.db.models import F

from dynamo_single import transactions
from dynamo_single.exceptions import (
    CopiesDue,
    DynamoSingleError,
    MissingReference,
    NotSupported,
    PendingWrite,
    SourceChanged,
    StaleObject,
)
from dynamo_single.table import Request
from dynamo_single.table.http.faults import refusal
from dynamo_single.table.redirects import intercept
from dynamo_single.table.table import Table
from dynamo_single.testing import assert_requests
from tests.catalog.chat import ChatInvitation, ChatMembership, ChatProfile, ChatServer, ChatUser
from tests.contract.robustness.crashing import ROOM, lower_limits
from tests.deep import deep, examples

pytestmark = pytest.mark.usefixtures("table")

#: Copies that three transactions of ``ROOM`` actions write.
MANY = examples(34, 220)
assert 2 < MANY / (ROOM - 1) < 3

#: The requests of a user's rename before and after its write: live and deleted memberships, invitations, profiles.
LOOKS = ["Query"] * 4
LOOKS_AGAIN = ["Query"] * 3


@pytest.fixture
def john(table: Table) -> ChatUser:
    """A user without memberships."""
    return ChatUser.objects.create(user_id="1", username="John", mood="good")


def join(user: ChatUser, *servers: str) -> list[ChatMembership]:
    """Memberships on new servers."""
    return [
        ChatMembership.objects.create(server=ChatServer.objects.create(server_id=name, name=name), user=user)
        for name in servers
    ]


def profiles(user: ChatUser, number: int) -> None:
    """So many profiles of a user, without looking at each."""
    made = [ChatProfile(user_id=user.pk, kind=f"{place:04d}") for place in range(number)]
    ChatProfile.objects.bulk_create(made, in_transactions=True)


def items(table: Table) -> dict[str, dict[str, Any]]:
    """Every item by its sort key and partition key."""
    found: dict[str, dict[str, Any]] = {}
    params: dict[str, Any] = {}
    while True:
        answer = table.send(Request("Scan", params))
        found |= {f"{item['pk']['S']} {item['sk']['S']}": item for item in answer["Items"]}
        if "LastEvaluatedKey" not in answer:
            return found
        params = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}


def copied(table: Table) -> set[str]:
    """Return the stored copies of the name."""
    types = ("ChatMembership", "ChatProfile")
    return {item["username"]["S"] for item in items(table).values() if item["itemType"]["S"] in types}


# filling


def test_a_copy_is_filled_on_creation(john: ChatUser) -> None:
    """One GetItem reads the source, and the transaction checks it."""
    server = ChatServer.objects.create(server_id="s", name="Gaming")
    with assert_requests(["GetItem", "TransactWriteItems"]) as sent:
        membership = ChatMembership.objects.create(server=server, user=john)
    assert membership.username == "John"
    assert [next(iter(action)) for action in sent[1].params["TransactItems"]] == ["Put", "ConditionCheck", "Update"]
    assert ChatMembership.objects.get(pk=membership.pk).username == "John"


def test_two_copies_of_one_source_take_one_reading_and_one_check(john: ChatUser) -> None:
    """One check covers both values."""
    with assert_requests(["GetItem", "TransactWriteItems"]) as sent:
        profile = ChatProfile.objects.create(user=john, kind="k")
    assert len(sent[1].params["TransactItems"]) == 2
    assert (profile.username, profile.mood) == ("John", "good")


def test_a_source_that_is_not_stored_is_refused_by_name() -> None:
    """A copy of nothing would be wrong from its birth."""
    with pytest.raises(MissingReference) as raised, assert_requests(["GetItem"]):
        ChatProfile.objects.create(user_id="nobody", kind="k")
    assert "ChatProfile.username is copied from catalog.ChatUser with pk 'nobody', which is not stored" in str(
        raised.value
    )


def test_a_copy_cannot_be_set(john: ChatUser) -> None:
    """The constructor, assignments, querysets and ``update_fields`` reject a copy."""
    profile = ChatProfile.objects.create(user=john, kind="k")
    attempts: list[Callable[[], Any]] = [
        lambda: ChatProfile(user=john, kind="x", username="Else"),
        lambda: setattr(profile, "username", "Else"),
        lambda: ChatProfile.objects.filter(user=john).update(username="Else"),
        lambda: profile.save(update_fields=["username"]),
    ]
    for attempt in attempts:
        with pytest.raises(NotSupported, match=r"user\.username"):
            attempt()


def test_a_new_reference_brings_its_own_copy(table: Table) -> None:
    """Changing the reference reads the new source; no reference is no copy."""
    ann, bob = (ChatUser.objects.create(user_id=name, username=name) for name in ("ann", "bob"))
    with assert_requests(["PutItem"]):
        invitation = ChatInvitation.objects.create(invitation_id="1")
    assert invitation.username is None
    invitation.user = ann
    with assert_requests(["GetItem", "TransactWriteItems"]):
        invitation.save()
    ChatInvitation.objects.filter(pk="1").update(user=bob)
    found = ChatInvitation.objects.get(username="bob")
    assert items(table)["INVITATION#1 #METADATA"]["gs2sk"] == {"S": "bob#1"}
    found.user = None
    found.save()
    assert "username" not in items(table)["INVITATION#1 #METADATA"]


def test_a_source_that_changes_between_reading_and_writing_is_read_again(john: ChatUser, table: Table) -> None:
    """The check fails and the creation is retried, so a new copy is never outdated."""
    with (
        changed_before("TransactWriteItems", lambda: rename_behind_backs(table, "Jack")),
        assert_requests(["GetItem", "UpdateItem", "TransactWriteItems", "GetItem", "TransactWriteItems"]),
    ):
        profile = ChatProfile.objects.create(user=john, kind="k")
    assert profile.username == "Jack"
    assert copied(table) == {"Jack"}


def test_a_source_that_is_changed_all_the_time_is_read_again_and_again(
    john: ChatUser, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seven renames that are faster do not make a creation fail."""
    monkeypatch.setattr("dynamo_single.table.table.LONGEST_AMONG_WRITERS", 0.0)
    numbers = iter(range(7))
    with changed_before("TransactWriteItems", lambda: rename_behind_backs(table, f"Jack {next(numbers)}"), times=7):
        ChatProfile.objects.create(user=john, kind="k")
    assert copied(table) == {"Jack 6"}


def rename_behind_backs(table: Table, name: str, pk: str = "USER#1", sk: str = "#METADATA#CHAT") -> None:
    """Another writer's rename that meets no copies."""
    key = {"pk": {"S": pk}, "sk": {"S": sk}}
    values = {":n": {"S": name}}
    update = "SET username = :n"
    table.send(Request("UpdateItem", {"Key": key, "UpdateExpression": update, "ExpressionAttributeValues": values}))


@contextmanager
def changed_before(operation: str, change: Callable[[], Any], times: int = 1) -> Iterator[None]:
    """Let something happen once, right before the first request of a kind, or before each of the first ones."""
    left = [change] * times

    def interceptor(asked: str, params: Mapping[str, Any]) -> None:
        if asked == operation and left:
            left.pop()()

    with intercept(interceptor):
        yield
    assert not left


# following


def test_a_rename_takes_its_copies_along(john: ChatUser, table: Table) -> None:
    """Queries find the copies, and one transaction writes the user, the copies and their keys."""
    join(john, "a", "b")
    john.username = "Jack"
    with assert_requests([*LOOKS, "TransactWriteItems", *LOOKS_AGAIN]) as sent:
        john.save()
    assert len(sent[4].params["TransactItems"]) == 3
    assert copied(table) == {"Jack"}
    assert items(table)["SERVER#a USER#1"]["gs2sk"] == {"S": "Jack#1"}
    assert "copiesDue" not in items(table)["USER#1 #METADATA#CHAT"]


def test_what_is_not_copied_is_written_alone(john: ChatUser) -> None:
    """A save without changes or of another attribute does not look for copies; a server's name has none."""
    (membership,) = join(john, "a")
    server = ChatServer.objects.get(pk="a")
    server.name = "Else"
    membership.role = "Admin"
    with assert_requests(["UpdateItem", "UpdateItem"]):
        server.save()
        membership.save()
        john.save()


@pytest.mark.parametrize(
    "rename",
    [
        lambda: ChatUser.objects.filter(pk="1").update(username="Jack"),
        lambda: ChatUser.objects.bulk_update([loaded(username="Jack")], ["username"]),
        lambda: ChatUser.objects.bulk_create(
            [ChatUser(user_id="1", username="Jack")],
            update_conflicts=True,
            update_fields=["username"],
            unique_fields=["user_id"],
        ),
        lambda: loaded(username="Jack").save(update_fields=["username"]),
        lambda: loaded(username=F("mood")).save(),
    ],
)
def test_every_way_to_write_takes_the_copies_along(rename: Callable[[], Any], john: ChatUser, table: Table) -> None:
    """Through a queryset, in bulk, by name and computed."""
    join(john, "a")
    ChatUser.objects.filter(pk="1").update(mood="Jack")
    rename()
    assert items(table)["USER#1 #METADATA#CHAT"]["username"] == {"S": "Jack"}
    assert copied(table) == {"Jack"}


def loaded(**values: Any) -> ChatUser:
    """Return the stored user with changed attributes."""
    user = ChatUser.objects.get(pk="1")
    for name, value in values.items():
        setattr(user, name, value)
    return user


def test_deleted_holders_follow_too(john: ChatUser, table: Table) -> None:
    """A restored object has the current name."""
    _, gone = join(john, "a", "b")
    gone.delete()
    john.username = "Jack"
    john.save()
    assert copied(table) == {"Jack"}
    gone.refresh_from_db()
    gone.restore()
    assert ChatMembership.objects.get(pk=gone.pk).username == "Jack"
    assert items(table)["SERVER#b USER#1"]["gs2sk"] == {"S": "Jack#1"}


def test_a_removed_value_removes_its_copies(john: ChatUser, table: Table) -> None:
    """``None`` is copied too, and removes the copy."""
    ChatProfile.objects.create(user=john, kind="k")
    john.mood = None
    john.save()
    assert "mood" not in items(table)["PROFILES#1 k"]


def test_a_rename_within_a_block_is_one_transaction(john: ChatUser, table: Table) -> None:
    """The copies are part of the block; a block that fails leaves everything."""
    join(john, "a")
    john.username = "Jack"
    with assert_requests([*LOOKS, "TransactWriteItems", *LOOKS_AGAIN]), transactions.atomic():
        john.save()
    assert copied(table) == {"Jack"}


def test_a_holder_and_its_source_in_one_block(table: Table) -> None:
    """The copy uses the pending source without a request; a later rename in the block raises an error."""
    with assert_requests(["TransactWriteItems"]), transactions.atomic():
        user = ChatUser.objects.create(user_id="9", username="Nine")
        ChatProfile.objects.create(user=user, kind="k")
    assert copied(table) == {"Nine"}
    with pytest.raises(PendingWrite), transactions.atomic():
        ChatProfile.objects.create(user=user, kind="l")
        user.username = "Ten"
        user.save()


def test_a_stale_source_does_not_overwrite_anothers_rename(john: ChatUser, table: Table) -> None:
    """The second of two renames with the same loaded source fails, so copies and source agree."""
    ChatProfile.objects.create(user=john, kind="k")
    late = loaded()
    john.username = "Jack"
    john.save()
    late.username = "Jim"
    with pytest.raises(StaleObject):
        late.save()
    assert copied(table) == {"Jack"}


def test_a_holder_that_is_made_during_a_rename_is_found_behind_it(john: ChatUser, table: Table) -> None:
    """The holder was created with the old name after the search for copies; a second search finds it."""
    ChatProfile.objects.create(user=john, kind="k")
    john.username = "Jack"
    with changed_before("TransactWriteItems", lambda: ChatProfile.objects.create(user_id="1", kind="late")):
        john.save()
    assert copied(table) == {"Jack"}


def test_a_holder_that_changes_during_a_rename_is_read_again(john: ChatUser, table: Table) -> None:
    """The rename is retried with the current membership."""
    (membership,) = join(john, "a")
    john.username = "Jack"
    with changed_before("TransactWriteItems", membership.delete):
        john.save()
    assert copied(table) == {"Jack"}
    assert "deletedAt" in items(table)["SERVER#a USER#1"]


def test_holders_that_are_changed_all_the_time_follow_in_the_end(
    john: ChatUser, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of the copies outside the transaction changes eleven times before its write."""
    monkeypatch.setattr("dynamo_single.table.table.LONGEST_AMONG_WRITERS", 0.0)
    profiles(john, 120)
    john.username = "Jack"
    numbers = iter(range(11))
    with changed_before(
        "TransactWriteItems", lambda: rename_behind_backs(table, f"{next(numbers)}", "PROFILES#1", "0000"), times=11
    ):
        john.save()
    assert copied(table) == {"Jack"}
    assert "copiesDue" not in items(table)["USER#1 #METADATA#CHAT"]


# batches


def test_many_copies_follow_in_batches(john: ChatUser, table: Table) -> None:
    """The source gets a marker, transactions of up to 99 copies check it, and the last write removes it."""
    profiles(john, 250)
    john.username = "Jack"
    looks = ["Query"] * 3  # the profiles are too many already
    batches = ["TransactWriteItems"] * 3
    with assert_requests([*looks, "UpdateItem", *looks, *batches, "Query", "UpdateItem"]) as sent:
        john.save()
    assert sent[3].params["ExpressionAttributeValues"][":v1"] == {
        "SS": ["ChatInvitation.username", "ChatMembership.username", "ChatProfile.username"]
    }
    assert [len(each.params["TransactItems"]) for each in sent[7:10]] == [100, 100, 53]
    assert copied(table) == {"Jack"}
    assert "copiesDue" not in items(table)["USER#1 #METADATA#CHAT"]
    with assert_requests(0):
        john.save()


def test_too_many_for_a_block_are_refused(john: ChatUser) -> None:
    """A block is all or nothing, so the copies have to fit into it."""
    profiles(john, 120)
    john.username = "Jack"
    with pytest.raises(NotSupported, match="at least 101 actions"), transactions.atomic():
        john.save()


class Crash(Exception):
    """The process dies."""


@contextmanager
def crash_at(number: int, *, sent: bool) -> Iterator[list[int]]:
    """Stop at a request, before it is sent or after it was executed without a response."""
    seen = [0]

    def interceptor(operation: str, params: Mapping[str, Any]) -> None:
        seen[0] += 1
        if (seen[0] == number and not sent) or (seen[0] == number + 1 and sent):
            raise Crash

    with intercept(interceptor):
        yield seen


@pytest.mark.parametrize(
    ("number_of_copies", "sent"), [(5, False), (5, True), pytest.param(MANY, False, marks=deep), (MANY, True)]
)
def test_a_crash_is_completed_by_saving_again(
    number_of_copies: int, john: ChatUser, table: Table, monkeypatch: pytest.MonkeyPatch, *, sent: bool
) -> None:
    """After a stop at any request, the same rename by another process corrects every copy and removes the marker."""
    lower_limits(monkeypatch)
    profiles(john, number_of_copies)
    name = 0
    crashed = True
    while crashed:
        name += 1
        with crash_at(name, sent=sent):
            try:
                loaded(username=f"John {name}").save()
                crashed = False
            except Crash:
                pass
        user = items(table)["USER#1 #METADATA#CHAT"]
        stale = copied(table) != {user["username"]["S"]}
        assert not stale or "copiesDue" in user, "a stale copy has to be marked"
        loaded(username=f"John {name}").save()
        assert copied(table) == {f"John {name}"}
        assert "copiesDue" not in items(table)["USER#1 #METADATA#CHAT"]
    assert name > 6


def test_a_failure_while_copies_follow_says_that_the_source_is_saved(john: ChatUser, table: Table) -> None:
    """The error names the completed steps and the next one, and the object knows its marker."""
    profiles(john, 120)
    john.username = "Jack"
    with refused_transactions(), pytest.raises(CopiesDue) as raised:
        john.save()
    assert str(raised.value).startswith(
        "catalog.ChatUser with pk '1' is saved, but some copies of it are not updated yet:"
    )
    assert copied(table) == {"John"}
    john.save()
    assert copied(table) == {"Jack"}


@contextmanager
def refused_transactions() -> Iterator[None]:
    """Make DynamoDB reject all transactions."""

    def interceptor(operation: str, params: Mapping[str, Any]) -> None:
        if operation == "TransactWriteItems":
            raise refusal(operation, "AccessDeniedException")

    with intercept(interceptor):
        yield


def test_a_second_rename_takes_over_from_one_that_is_under_way(john: ChatUser, table: Table) -> None:
    """The first one's batches stop at their check, the second one's name wins everywhere."""
    profiles(john, 120)
    john.username = "Jack"
    with changed_before("TransactWriteItems", lambda: loaded(username="Jim").save()):
        john.save()
    assert items(table)["USER#1 #METADATA#CHAT"]["username"] == {"S": "Jim"}
    assert copied(table) == {"Jim"}
    assert "copiesDue" not in items(table)["USER#1 #METADATA#CHAT"]


def test_renames_race_with_new_holders(john: ChatUser, table: Table) -> None:
    """Several threads rename a user and create profiles for it: in the end, every copy has the same name."""
    profiles(john, 20)
    failures: list[BaseException] = []

    def run(work: Callable[[int], Any]) -> None:
        for number in range(12):
            try:
                work(number)
            except (StaleObject, DynamoSingleError) as error:
                if not isinstance(error, StaleObject):
                    failures.append(error)

    def rename(number: int) -> None:
        loaded(username=f"{threading.current_thread().name}-{number}").save()

    def add(number: int) -> None:
        ChatProfile.objects.create(user_id="1", kind=f"{threading.current_thread().name}-{number}")

    threads = [threading.Thread(target=run, args=(work,)) for work in (rename, rename, add, add)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert copied(table) == {items(table)["USER#1 #METADATA#CHAT"]["username"]["S"]}


# fixtures, and reading


def test_fixtures_leave_copies_out_and_loading_fills_them(john: ChatUser, table: Table) -> None:
    """The order of source and holder does not matter."""
    profile = ChatProfile.objects.create(user=john, kind="k")
    data = serializers.serialize("json", [profile, john])
    assert data.count("John") == 1
    for order in (1, -1):
        profile.hard_delete()
        john.hard_delete()
        for found in list(serializers.deserialize("json", data))[::order]:
            found.save()
        assert copied(table) == {"John"}
        profile, john = ChatProfile.objects.get(pk=profile.pk), loaded()


def test_a_copy_is_asked_for_as_its_source(john: ChatUser) -> None:
    """A copy supports the lookups of its source, and uses a key that contains it."""
    join(john, "a")
    with assert_requests(["Query"]) as sent:
        found = ChatMembership.objects.filter(server="a", username__startswith="Jo").values_list("username", flat=True)
        assert list(found) == ["John"]
    assert sent[0].params["IndexName"] == "gs2"
    assert not ChatMembership.objects.filter(server="a", username__gt="K").exists()


def test_pynamodbs_writers_are_refused(john: ChatUser) -> None:
    """They know neither the copies of a source nor what a holder copies."""
    profile = ChatProfile.objects.create(user=john, kind="k")
    for model, obj in ((ChatUser, john), (ChatProfile, profile)):
        with pytest.raises(NotSupported, match="username"), model.batch_write() as batch:
            batch.save(obj)


def test_the_errors_are_integrity_and_staleness() -> None:
    """Code that catches Django's errors catches these."""
    assert issubclass(SourceChanged, StaleObject)
