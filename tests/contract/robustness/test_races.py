"""Several processes write in parallel: DynamoDB's conditions decide, and the result is consistent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from accounts.models import User
from dynamo_single.contrib.doctor import verify
from dynamo_single.table import Table
from tests.catalog.chat import ChatChannel, ChatMembership, ChatServer, ChatUser
from tests.catalog.models import Member, Order
from tests.catalog.seats import Seat
from tests.catalog.servers import GameFan, GameGuild, GamePlayer, GameServer, GameTag
from tests.catalog.stocks import Ledger, Stock
from tests.contract.robustness.race_processes import FANS, SUMS, WANTED, answer, started, tell
from tests.contract.tables import assert_consistent, claims
from tests.deep import examples

PROCESSES = examples(4, 8)
#: As in ``race_worker``, which sets Django up.
WAYS = {"LOGIN_WITH": ["email", "phone", "google"]}


class Racers:
    """Processes that wait for the name of a race, started once for all tests, and restarted after a failure."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.start()

    def start(self) -> None:
        """Start the processes, and wait until each is ready."""
        self.processes = [started(self.table, number) for number in range(PROCESSES)]
        for process in self.processes:
            assert answer(process) == "ready\n"

    def run(self, race: str) -> list[Any]:
        """Start every process at the same time; return their results."""
        for process in self.processes:
            tell(process, race)
        try:
            return [json.loads(answer(process)) for process in self.processes]
        except AssertionError:
            # The other processes still write, and one is missing, so later tests would fail too.
            self.end()
            self.start()
            raise

    def end(self) -> None:
        """Let the processes end."""
        for process in self.processes:
            process.close(30)


@pytest.fixture(scope="module")
def racers(engine: Table) -> Iterator[Racers]:
    """The processes, which write to this worker's engine."""
    found = Racers(engine)
    yield found
    found.end()


def test_one_value_is_created_once_however_often_it_is_tried(racers: Racers, table: Table) -> None:
    """There is one object with one claim, and all other writers get an error."""
    assert sum(racers.run("same_value")) == 1
    (member,) = Member.objects.all()
    assert claims(table) == {"UNIQUE#Member#email#same@example.org": member.partition_key}
    assert_consistent()


def test_a_unique_value_is_created_once_whoever_is_first(racers: Racers, table: Table) -> None:
    """Each value has exactly one holder, and each claim belongs to a stored object."""
    won = [number for outcome in racers.run("many_values") for number in outcome]
    members = list(Member.objects.all())
    assert sorted(won) == sorted(int(member.email.split("@")[0]) for member in members) == list(range(20))
    assert claims(table) == {f"UNIQUE#Member#email#{each.email}": each.partition_key for each in members}
    assert_consistent()


def test_renames_that_cross_both_fail(racers: Racers, table: Table) -> None:
    """Neither object can take the other one's value, for any number of attempts."""
    for name in "ab":
        Member.objects.create(member_id=name, email=f"{name}@example.org")
    assert sum(racers.run("crossing")) == 0
    assert {each.pk: each.email for each in Member.objects.all()} == {"a": "a@example.org", "b": "b@example.org"}
    assert_consistent()


def test_renames_within_a_few_values(racers: Racers, table: Table) -> None:
    """Objects that take each other's former values never hold one value twice, nor lose a claim."""
    for number in range(8):
        Member.objects.create(member_id=str(number), email=f"start{number}@example.org")
    assert sum(racers.run("rotating")) > 0
    members = list(Member.objects.all())
    badges = [each.badge for each in members if each.badge is not None]
    assert len(members) == len({each.email for each in members}) == 8
    assert len(badges) == len({*badges})
    assert len(claims(table)) == 8 + len(badges)
    assert_consistent()


def test_a_rename_against_a_deletion(racers: Racers, table: Table) -> None:
    """In any order, a permanently deleted object leaves no claim, and one in the trash holds none."""
    Member.objects.create(member_id="a", email="a@example.org")
    assert sum(racers.run("renamed_and_deleted")) > 0
    assert Member.all_objects.filter(pk="a").count() == 0
    assert claims(table) == {}
    assert_consistent()


def test_a_restoration_against_a_creation(racers: Racers, table: Table) -> None:
    """A value that a deletion freed goes to the object that comes back, or to a new one, never to both."""
    for number in range(15):
        Member.objects.create(member_id=f"old{number}", email=f"{number}@example.org").delete()
    created = [number for outcome in racers.run("restored_and_created") for number in outcome]
    live = {each.email: each.pk for each in Member.objects.all()}
    assert len(live) == Member.objects.count() == 15
    assert len(set(created)) == len(created)
    assert {number for number in range(15) if live[f"{number}@example.org"] != f"old{number}"} == {*created}
    assert_consistent()


def test_concurrent_sums_are_exact(racers: Racers, table: Table) -> None:
    """Additions of querysets, objects and transactions are all counted."""
    Stock.objects.create(code="s", qty=5)
    added = sum(racers.run("counted"))
    assert Stock.objects.get(code="s").qty == 5 + added == 5 + SUMS * PROCESSES
    assert_consistent()


def test_concurrent_additions_to_lists_and_sets_are_complete(racers: Racers, table: Table) -> None:
    """Every appended element exists once, in the order of its writer."""
    Stock.objects.create(code="s")
    outcomes = racers.run("appended")
    stock = Stock.objects.get(code="s")
    assert sorted(stock.tags) == sorted(mark for marks in outcomes for mark in marks)
    assert all([tag for tag in stock.tags if tag in marks] == marks for marks in outcomes)
    assert stock.labels == {*stock.tags}


def test_counters_of_children_are_exact(racers: Racers, table: Table) -> None:
    """Creations, deletions, restorations and changes of the parent count once each."""
    for number in "12":
        ChatServer.objects.create(server_id=number, name="A")
    for process in range(PROCESSES):
        for number in range(8):
            ChatUser.objects.create(user_id=f"{process}-{number}", username="John")
    ChatChannel.objects.create(channel_id="shared", server_id="1")
    live = sum(racers.run("children_counted"))
    one, two = (ChatServer.objects.get(pk=number) for number in "12")
    assert one.member_count == ChatMembership.objects.filter(server="1").count() == live
    assert one.channel_count + two.channel_count == 1
    assert_consistent()


def test_a_checked_relation_leaves_no_edges(racers: Racers, table: Table) -> None:
    """Fans join guilds that others delete and recreate: each edge belongs to a guild that has counted it."""
    for process in range(PROCESSES):
        for number in range(4):
            GameFan.objects.create(fan_id=f"{process}-{number}")
    for guild in "01":
        GameGuild.objects.create(guild_id=guild)
    assert all(racers.run("joined_and_deleted"))
    assert [str(finding) for finding in verify()] == []
    for guild in GameGuild.objects.all():
        guild.hard_delete()
    assert GameGuild.fans.through.objects.allow_scan().count() == 0
    assert_consistent()


def test_counts_of_edges_are_exact(racers: Racers, table: Table) -> None:
    """All processes add and remove the same edges in transactions and batches; then any of them clears the rest."""
    GameGuild.objects.create(guild_id="0")
    server = GameServer.objects.create(server_id="0", name="Gaming")
    for number in range(FANS):
        pk = f"{number:03}"
        GameFan.objects.create(fan_id=pk)
        GamePlayer.objects.create(player_id=pk, username=f"name {number}")
        GameTag.objects.create(word=pk)
    done = racers.run("edges_changed")
    assert sum(done) > PROCESSES
    guild = GameGuild.objects.consistent().get(pk="0")
    numbers = {name: value["N"] for name, value in guild._stored.items() if name.startswith("refs:")}
    assert numbers == {} or [*numbers.values()] == [str(guild.fans.count())]
    assert_consistent()
    for manager in (guild.fans, server.players, server.tags):
        manager.clear()
        assert manager.count() == 0
    assert_consistent()


def test_a_version_prevents_lost_updates(racers: Racers, table: Table) -> None:
    """Slower writers get an error, every saved addition is in the sum, and the version counts the writes."""
    created = Ledger.objects.create(code="l")
    done, refused = map(sum, zip(*racers.run("versioned"), strict=True))
    ledger = Ledger.objects.get(code="l")
    assert (ledger.total, ledger.version) == (done, created.version + done)
    assert done == 20 * PROCESSES
    assert refused > 0


def test_a_condition_keeps_a_number_from_falling_below_zero(racers: Racers, table: Table) -> None:
    """Exactly the available number is taken."""
    Stock.objects.create(code="s", qty=50)
    assert sum(racers.run("conditional")) == 50
    assert Stock.objects.get(code="s").qty == 0


def test_an_object_moves_to_one_place(racers: Racers, table: Table) -> None:
    """Exactly one of the processes with different new keys succeeds."""
    for number in range(10):
        Order.objects.create(customer="start", number=number)
    won = [number for outcome in racers.run("moved") for number in outcome]
    assert sorted(won) == list(range(10))
    assert Order.objects.filter(customer="start").count() == 0
    assert sum(Order.objects.filter(customer=f"to{process}").count() for process in range(PROCESSES)) == 10
    assert_consistent()


def test_one_object_moves_to_a_place(racers: Racers, table: Table) -> None:
    """Exactly one of the objects moves to the key, and the others stay in place."""
    for process in range(PROCESSES):
        for number in range(10):
            Order.objects.create(customer=f"from{process}", number=number, total=process)
    outcomes = racers.run("moved_to_one")
    arrived = {each.number: int(each.total) for each in Order.objects.filter(customer="one")}
    assert arrived == {number: process for process, numbers in enumerate(outcomes) for number in numbers}
    assert sorted(arrived) == list(range(10))
    left = sum(Order.objects.filter(customer=f"from{process}").count() for process in range(PROCESSES))
    assert left == 10 * (PROCESSES - 1)
    assert_consistent()


def test_copies_follow_a_source_that_is_renamed_while_holders_are_made(racers: Racers, table: Table) -> None:
    """In the end every copy is the source's name."""
    ChatUser.objects.create(user_id="1", username="start")
    assert sum(racers.run("source_and_holders")) > 0
    (name,) = {each.username for each in ChatMembership.objects.filter(user="1")}
    assert name == ChatUser.objects.get(pk="1").username != "start"
    assert ChatMembership.objects.filter(user="1").count() == 10 * PROCESSES // 2
    assert_consistent()


def test_what_is_unique_under_a_condition(racers: Racers, table: Table) -> None:
    """Two processes that change different parts of a condition do not leave a wrong claim."""
    for number in range(6):
        Seat.objects.create(seat_id=str(number), hall="h", row=number)
    assert sum(racers.run("seats_taken")) > 0
    taken = [each.guest for each in Seat.objects.filter(hall="h") if each.status == "taken"]
    assert len(taken) == len({*taken})
    assert_consistent()


def test_objects_that_several_create_in_bulk_are_created_once(racers: Racers, table: Table) -> None:
    """One process writes each object, and together they write all of them."""
    assert sum(racers.run("bulk_created")) == Member.objects.count() == 50
    assert_consistent()


def test_transactions_move_amounts_without_losing_any(racers: Racers, table: Table) -> None:
    """The sum over all objects stays what it was."""
    for name in "abc":
        Ledger.objects.create(code=name, total=100)
    assert sum(racers.run("swapped")) > 0
    assert sum(each.total for each in Ledger.objects.all()) == 300


def test_each_identifier_that_users_want_at_once_is_one_users(racers: Racers, table: Table, settings: Any) -> None:
    """Each address, external account and telephone number belongs to the user that was told so, with its login."""
    settings.ACCOUNTS = WAYS
    outcomes = racers.run("ways_wanted")
    won = {identifier: f"racer{process}" for process, outcome in enumerate(outcomes) for identifier in outcome}
    assert sum(map(len, outcomes)) == len(won) == 2 * WANTED + 2
    for identifier, name in won.items():
        if identifier.isdigit():
            assert User.objects.get_by_identity("google", identifier).username == name
        else:
            assert User.objects.get_by_identifier(identifier).username == name
    assert_consistent()


def test_ways_that_are_removed_at_once_leave_one_each(racers: Racers, table: Table, settings: Any) -> None:
    """Each process removes one of a user's three methods, and every user keeps one."""
    settings.ACCOUNTS = WAYS
    for number in range(20):
        user = User.objects.create_user(f"u{number}", f"{number}@example.org", "x", user_id=f"{number}")
        user.logins.add("phone", f"+155501{number:02}")
        user.logins.add("google", f"{number}")
    racers.run("ways_removed")
    users = User.objects.consistent().in_bulk([f"{number}" for number in range(20)])
    assert [len(user.ways) for user in users.values()] == [1] * 20
    assert_consistent()
