"""Responses that are lost while the process continues, and killed processes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from django.core.management import call_command

from dynamo_single.contrib.doctor import verify
from dynamo_single.exceptions import CopiesDue, RequestFailed
from dynamo_single.table import Table, get_table
from dynamo_single.testing import intercept, refusal
from tests.catalog.chat import ChatChannel, ChatUser
from tests.catalog.clubs import Club
from tests.catalog.seats import Essay
from tests.catalog.stocks import Stock
from tests.contract.clubs import club
from tests.contract.clubs import items as items_of
from tests.contract.robustness.crashing import (
    MANY,
    Verifier,
    crash_behind,
    member,
    put_back,
    saved,
    seats,
    servers,
    some_members,
    stock,
    timeless,
    user,
)
from tests.contract.robustness.race_processes import answer, processes
from tests.deep import examples

#: The number of random writes of each process before it is killed.
ROUNDS = examples(2, 4)
WRITES = {"PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems"}


@contextmanager
def answer_lost(number: int) -> Iterator[None]:
    """Execute a write, and let DynamoDB return an error."""
    seen: list[str] = []
    inside: list[None] = []

    def interceptor(operation: str, params: Mapping[str, Any]) -> None:
        if inside or operation not in WRITES:
            return
        seen.append(operation)
        if len(seen) == number:
            inside.append(None)
            get_table().call(operation, params)
            inside.clear()
            raise refusal(operation, "InternalServerError")

    with intercept(interceptor):
        yield


LOST = {
    "a rename": (some_members, member, lambda obj: saved(obj, email="new@example.org")),
    "a plain change": (stock, lambda: Stock.objects.get(code="s"), lambda obj: saved(obj, note="n")),
    "a soft delete": (some_members, member, lambda obj: obj.delete()),
    "a restoration": (some_members, lambda: member("t"), lambda obj: obj.restore()),
    "a hard delete": (some_members, member, lambda obj: obj.hard_delete()),
    "a hard delete of a plain object": (stock, lambda: Stock.objects.get(code="s"), lambda obj: obj.delete()),
    "a soft delete of many": (lambda: club(MANY), lambda: Club.objects.get(pk="c"), lambda obj: obj.delete()),
    "a restoration of many": (
        lambda: club(MANY).delete(),
        lambda: Club.deleted_objects.get(pk="c"),
        lambda obj: obj.restore(),
    ),
    "a hard delete of many": (lambda: club(MANY), lambda: Club.objects.get(pk="c"), lambda obj: obj.hard_delete()),
    "a rename of many copies": (
        lambda: user(MANY),
        lambda: ChatUser.objects.get(pk="1"),
        lambda obj: saved(obj, username="Jack"),
    ),
    "a change of derived objects": (
        seats,
        lambda: Essay.objects.get(pk="e"),
        lambda obj: saved(obj, title="two four"),
    ),
    "a change of a counted child": (
        servers,
        lambda: ChatChannel.objects.get(pk="c"),
        lambda obj: saved(obj, server_id="2"),
    ),
}


@pytest.mark.usefixtures("small_transactions")
@pytest.mark.parametrize("name", LOST)
def test_a_write_whose_answer_is_lost_is_repeated_by_the_same_object(table: Table, name: str) -> None:
    """The object can repeat the write after any lost response, without doing anything twice."""
    make, load, write = LOST[name]
    make()
    findings = Verifier()
    stored = items_of(table)
    with crash_behind(None) as asked:
        write(load())
    wanted = timeless(items_of(table))
    for number in range(1, sum(operation in WRITES for operation in asked) + 1):
        put_back(stored)
        obj = load()
        with answer_lost(number), pytest.raises((RequestFailed, CopiesDue)):
            write(obj)
        write(obj)
        assert timeless(there := items_of(table)) == wanted, f"the answer of write {number}"
        assert findings(there) == []


def test_processes_that_are_killed(table: Table) -> None:
    """Whenever they end, the checker finds only copies that are due, and dynamo_rebuild repairs them."""
    club(40)
    user(130)  # the processes write transactions of DynamoDB's size
    some_members()
    with processes(table, "endless", 3) as racers:
        for _ in range(ROUNDS):
            for racer in racers:
                assert answer(racer) == "still here\n"
        for racer in racers:
            racer.kill()
    assert {finding.kind for finding in verify()} <= {"copies due", "copy"}
    call_command("dynamo_rebuild", verbosity=0)
    assert [*verify()] == []
