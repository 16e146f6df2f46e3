"""Helpers for tests of crashes: the data before a write, an end at any request, and comparisons."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import pytest

from dynamo_single.contrib.doctor import Finding, verify
from dynamo_single.orm.effects import copy_updates
from dynamo_single.orm.write import cascade
from dynamo_single.table import get_table
from dynamo_single.table.request import MAX_ACTIONS
from dynamo_single.test_tables import contents
from dynamo_single.testing import intercept
from tests.catalog.chat import ChatChannel, ChatMembership, ChatProfile, ChatServer, ChatUser
from tests.catalog.models import Member
from tests.catalog.seats import Essay, Seat
from tests.catalog.stocks import Ledger, Stock
from tests.deep import examples

Items = dict[tuple[str, str], dict[str, Any]]
Step = Callable[[], Any]

#: How many actions a transaction takes: in a normal run fewer than DynamoDB's hundred, so that fewer objects are many.
ROOM = examples(15, MAX_ACTIONS)
#: More holders, or children, than one transaction takes.
MANY = examples(20, 130)
#: How many of the requests of one write a process ends after, in turn.
ENDS = examples(8, 1000)


def lower_limits(patch: pytest.MonkeyPatch) -> None:
    """Start a new transaction of deletions, restorations and copies after ``ROOM`` actions."""
    along = copy_updates.MAX_ACTIONS - copy_updates.MAX_COPY_ACTIONS
    patch.setattr(cascade, "MAX_ACTIONS", ROOM)
    patch.setattr(copy_updates, "MAX_ACTIONS", ROOM)
    patch.setattr(copy_updates, "MAX_COPY_ACTIONS", ROOM - along)


def ends_of(requests: int) -> list[int]:
    """Return after how many requests of a write to end: all numbers, or ``ENDS`` from the first to the last."""
    if requests <= ENDS:
        return list(range(requests))
    return [number * (requests - 1) // (ENDS - 1) for number in range(ENDS)]


class Crash(BaseException):
    """The end of the process: no later request is executed."""


@contextmanager
def crash_behind(number: int | None) -> Iterator[list[str]]:
    """Allow a number of requests and no others; yield the requested operations."""
    asked: list[str] = []
    lock = threading.Lock()

    def interceptor(operation: str, params: Mapping[str, Any]) -> None:
        with lock:
            asked.append(operation)
            if number is not None and len(asked) > number:
                raise Crash

    with intercept(interceptor):
        yield asked


def member(pk: str = "a") -> Any:
    """Return a stored member, live or in the trash."""
    return Member.all_objects.consistent().get(pk=pk)


def saved(obj: Any, **values: Any) -> None:
    """Set attributes and save."""
    for name, value in values.items():
        setattr(obj, name, value)
    obj.save()


def some_members() -> None:
    """Create three members with both unique values, and one in the trash."""
    for number, name in enumerate("abc"):
        Member.objects.create(member_id=name, email=f"{name}@example.org", badge=number, name=name)
    Member.objects.create(member_id="t", email="t@example.org").delete()


def user(profiles: int) -> None:
    """Return a user whose name is copied."""
    ChatUser.objects.create(user_id="1", username="John", mood="glad")
    made = [ChatProfile(user_id="1", kind=f"{number:03}") for number in range(profiles)]
    ChatProfile.objects.bulk_create(made, in_transactions=True)


def servers() -> None:
    """Two servers with a channel and a membership."""
    user(0)
    for number in "12":
        ChatServer.objects.create(server_id=number, name="A")
    ChatChannel.objects.create(channel_id="c", server_id="1")
    ChatMembership.objects.create(server_id="1", user_id="1")


def stock() -> None:
    """Something to count."""
    Stock.objects.create(code="s", qty=3, rank=1)
    Ledger.objects.create(code="l", serial=1)


def seats() -> None:
    """A place, and an essay with its words."""
    Seat.objects.create(seat_id="1", hall="h", row=1, guest="g", status="taken", code="c")
    Essay.objects.create(essay_id="e", title="one two three")


#: A datetime in a key or in an attribute, in milliseconds.
_MOMENT = re.compile(r'(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)|"(\d{13})"')


class Verifier:
    """The results of ``verify()``, cached for tables that differ only in datetimes.

    A crash before the first write leaves what there was, and the same write again what it leaves undisturbed.
    """

    def __init__(self) -> None:
        self._known: dict[str, list[Finding]] = {}

    def __call__(self, found: Items) -> list[Finding]:
        """The findings in the default table, which holds these items."""
        numbers: dict[int, int] = {}

        def numbered(match: re.Match[str]) -> str:
            written, stored = match.groups()
            moment = round(datetime.fromisoformat(written).timestamp() * 1000) if written else int(stored)
            return f"moment {numbers.setdefault(moment, len(numbers))}"

        text = _MOMENT.sub(numbered, json.dumps([found[key] for key in sorted(found)], sort_keys=True))
        if text not in self._known:
            self._known[text] = [*verify()]
        return self._known[text]


def put_back(found: Items) -> None:
    """Replace the table's contents by these items."""
    contents.restore(get_table(), found)


def timeless(found: Items) -> Items:
    """Return items without their times of creation, change and deletion; a shared deletion has one time."""
    batches = {(item["deletedWith"]["S"], item["deletedAt"]["N"]) for item in found.values() if "deletedWith" in item}
    assert len(batches) == len({mark for mark, _ in batches})
    hidden = {"createdAt", "updatedAt", "deletedAt"}
    kept = {}
    for key, item in found.items():
        in_trash = "deletedAt" in item
        kept[key] = {
            name: value
            for name, value in item.items()
            if name not in hidden and not (in_trash and name.startswith("gs") and name.endswith("sk"))
        }
        kept[key]["in trash"] = in_trash
    return kept
