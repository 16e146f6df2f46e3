"""The process ends between any two requests of a write, and another process does the same again."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest
from django.core.management import call_command
from django.db.models import F

from dynamo_single import models, transactions
from dynamo_single.contrib.doctor import verify
from dynamo_single.exceptions import AlreadyExists
from dynamo_single.table import Table
from tests.catalog.chat import ChatChannel, ChatMembership, ChatUser
from tests.catalog.clubs import Club
from tests.catalog.models import Member, Order, Resident
from tests.catalog.seats import Essay, Seat
from tests.catalog.stocks import Ledger, Stock
from tests.contract.clubs import club
from tests.contract.clubs import items as items_of
from tests.contract.robustness.crashing import (
    MANY,
    Crash,
    Items,
    Step,
    Verifier,
    crash_behind,
    ends_of,
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
from tests.deep import examples

pytestmark = pytest.mark.usefixtures("table", "small_transactions")

#: Members for bulk writes: more than run in parallel.
BULK = [f"m{number:02}" for number in range(examples(10, 14))]
#: Orders that a queryset writes, one by one: likewise more than at the same time.
ORDERS = examples(10, 30)


@dataclass(frozen=True, slots=True)
class Case:
    """A write: the data before it, the write with loaded objects, and its completion.

    ``done`` contains the errors of a repetition that has nothing left to do. ``once`` marks a write that must not be
    repeated after its execution, such as an addition.
    """

    name: str
    make: Step
    write: Step
    done: tuple[type[Exception], ...] = ()
    once: bool = False


def block() -> None:
    """Several writes that are one."""
    with transactions.atomic():
        saved(member("a"), email="new@example.org")
        member("b").delete()
        Member.objects.create(member_id="n", email="n@example.org")


def new_members(**options: Any) -> None:
    """Create members, some of which may exist."""
    Member.objects.bulk_create(not_stored(set()), **options)


def not_stored(there: set[str]) -> list[Member]:
    """The members of the bulk that are not there, as new objects."""
    return [
        Member(member_id=name, email=f"{name}@example.org", badge=100 + number)
        for number, name in enumerate(BULK)
        if name not in there
    ]


def rest_of_members() -> None:
    """Create the missing members."""
    Member.objects.bulk_create(not_stored({each.pk for each in Member.objects.filter(pk__in=BULK).consistent()}))


def updated_members() -> None:
    """Give each of the members another unique value and another name."""
    objects = list(Member.objects.filter(pk__in=BULK).consistent())
    for each in objects:
        each.email = each.email.replace("@", ".new@") if ".new@" not in each.email else each.email
        each.name = "new"
    Member.objects.bulk_update(objects, ["email", "name"])


def orders() -> None:
    """Orders of one customer."""
    Order.objects.bulk_create([Order(customer="c", number=number, coupon="x") for number in range(ORDERS)])


def residents() -> None:
    """A resident, found without regard to case."""
    Resident.objects.create(resident_id="r", last_name="Öz", nickname="Oz")


CASES = [
    Case("a creation with claims", some_members, lambda: Member.objects.create(member_id="n", email="n@x.org", badge=9),
         done=(AlreadyExists,)),
    Case("a creation that is counted, with a copy", servers,
         lambda: ChatMembership.objects.create(server_id="2", user_id="1"), done=(AlreadyExists,)),
    Case("a creation with derived objects", seats, lambda: Essay.objects.create(essay_id="f", title="four five"),
         done=(AlreadyExists,)),
    Case("get_or_create", some_members,
         lambda: Member.objects.get_or_create(pk="n", defaults={"email": "n@x.org"})),
    Case("update_or_create", some_members,
         lambda: Member.objects.update_or_create(pk="a", defaults={"email": "n@x.org"})),
    Case("a rename of a unique value", some_members, lambda: saved(member(), email="new@example.org", badge=7)),
    Case("a unique value that is emptied", some_members, lambda: saved(member(), badge=None)),
    Case("a change of what is unique together", seats,
         lambda: saved(Seat.objects.get(pk="1"), hall="i", row=2, guest="j")),
    Case("a change of what is derived", seats, lambda: saved(Essay.objects.get(pk="e"), title="two four")),
    Case("a change of a folded copy", residents, lambda: saved(Resident.objects.get(pk="r"), last_name="Ähm")),
    Case("a change of a reference that is counted and copied", servers,
         lambda: saved(ChatChannel.objects.get(pk="c"), server_id="2")),
    Case("a versioned change", stock, lambda: saved(Ledger.objects.get(code="l"), serial=2, note="n")),
    Case("a soft delete", some_members, lambda: member().delete()),
    Case("a restoration", some_members, lambda: member("t").restore()),
    Case("a hard delete", some_members, lambda: Member.all_objects.filter(pk="a").hard_delete()),
    Case("a hard delete of what is in the trash", some_members,
         lambda: Member.all_objects.filter(pk="t").hard_delete()),
    Case("a deletion of a child that is counted", servers,
         lambda: ChatMembership.all_objects.get(pk="1~~1").delete()),
    Case("a soft delete with few children", lambda: club(5), lambda: Club.all_objects.get(pk="c").delete()),
    Case("a soft delete with many children", lambda: club(MANY), lambda: Club.all_objects.get(pk="c").delete()),
    Case("a restoration of few children", lambda: club(5).delete(), lambda: Club.all_objects.get(pk="c").restore()),
    Case("a restoration of many children", lambda: club(MANY).delete(),
         lambda: Club.all_objects.get(pk="c").restore()),
    Case("a hard delete of few children", lambda: club(5),
         lambda: Club.all_objects.filter(pk="c").hard_delete()),
    Case("a hard delete of many children", lambda: club(MANY),
         lambda: Club.all_objects.filter(pk="c").hard_delete()),
    Case("bulk_create", some_members, rest_of_members),
    Case("bulk_create that leaves out what there is", some_members, lambda: new_members(ignore_conflicts=True)),
    Case("bulk_create in transactions", some_members,
         lambda: new_members(in_transactions=True, batch_size=4, ignore_conflicts=True)),
    Case("bulk_create that updates what there is", some_members, lambda: new_members(update_conflicts=True)),
    Case("bulk_create of whole items", lambda: None,
         lambda: Order.objects.bulk_create(
             [Order(customer="c", number=number) for number in range(60)], update_conflicts=True)),
    Case("bulk_update", new_members, updated_members),
    Case("an update in transactions", new_members,
         lambda: Member.objects.filter(pk__in=BULK).in_transactions().update(name="new")),
    Case("a soft delete in transactions", new_members,
         lambda: Member.objects.filter(pk__in=BULK).in_transactions().delete()),
    Case("a queryset's update", orders, lambda: Order.objects.filter(customer="c").update(coupon="y", status="new")),
    Case("a queryset's update of one object", stock, lambda: Stock.objects.filter(code="s").update(qty=9)),
    Case("a queryset's soft delete", new_members, lambda: Member.objects.filter(email__startswith="m").delete()),
    Case("a queryset's hard delete", orders, lambda: Order.objects.filter(customer="c").delete()),
    Case("a queryset's restoration", lambda: (new_members(), Member.objects.filter(email__startswith="m").delete()),
         lambda: Member.deleted_objects.filter(badge__gte=100).allow_scan().restore()),
    Case("a move", orders, lambda: [each.move(customer="d") for each in Order.objects.filter(customer="c", number=1)]),
    Case("a move with claims", some_members,
         lambda: [each.move(member_id="z") for each in Member.objects.filter(pk="a")]),
    Case("a rename of a source with few copies", lambda: user(5),
         lambda: saved(ChatUser.objects.get(pk="1"), username="Jack")),
    Case("a rename of a source with many copies", lambda: user(MANY),
         lambda: saved(ChatUser.objects.get(pk="1"), username="Jack")),
    Case("a queryset's rename of a source", lambda: user(MANY),
         lambda: ChatUser.objects.filter(pk="1").update(username="Jack")),
    Case("an addition", stock, lambda: saved(Stock.objects.get(code="s"), qty=F("qty") + 1), once=True),
    Case("an addition that a key depends on", stock, lambda: saved(Stock.objects.get(code="s"), rank=F("rank") + 1),
         once=True),
    Case("a queryset's addition", stock, lambda: Stock.objects.filter(code="s").update(qty=F("qty") + 1), once=True),
    Case("something appended", stock, lambda: saved(Stock.objects.get(code="s"), tags=models.Append(["a"])), once=True),
    Case("an atomic block", some_members, block, once=True),
]  # fmt: skip


def completed(case: Case, before: Items, wanted: Items, table: Table) -> None:
    """Repeat the write, like a process without knowledge of the first one."""
    if case.once:
        # The transaction was executed completely or not at all.
        assert timeless(items_of(table)) in (before, wanted)
        if timeless(items_of(table)) == wanted:
            return
    with suppress(*case.done):
        case.write()


# get_or_create() creates within Django's transaction.atomic(), which the crash rolls back.
@pytest.mark.filterwarnings("ignore::dynamo_single.exceptions.NotRolledBackWarning")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_a_crash_leaves_is_completed_by_the_same_write(table: Table, case: Case) -> None:
    """Wherever the process ends, doing it again leaves what one undisturbed write leaves."""
    case.make()
    findings = Verifier()
    stored = items_of(table)
    before = timeless(stored)
    with crash_behind(None) as asked:
        case.write()
    wanted = timeless(there := items_of(table))
    assert wanted != before
    assert findings(there) == []
    for number in ends_of(len(asked)):
        put_back(stored)
        with pytest.raises(Crash), crash_behind(number):
            case.write()
        between = {finding.kind for finding in findings(items_of(table))}
        assert between <= {"copies due", "copy"}, f"after {number} requests"
        assert "copy" not in between or "copies due" in between, f"nobody knows of it, after {number} requests"
        completed(case, before, wanted, table)
        assert timeless(there := items_of(table)) == wanted, f"after {number} requests"
        assert findings(there) == [], f"after {number} requests"


@pytest.mark.parametrize("case", [each for each in CASES if "copies" in each.name], ids=lambda case: case.name)
def test_what_a_crash_leaves_of_copies_is_completed_by_a_command(table: Table, case: Case) -> None:
    """If no process repeats a rename, the checker reports the due copies, and dynamo_rebuild completes it."""
    case.make()
    findings = Verifier()
    stored = items_of(table)
    before = timeless(stored)
    with crash_behind(None) as asked:
        case.write()
    wanted = timeless(items_of(table))
    for number in ends_of(len(asked)):
        put_back(stored)
        with pytest.raises(Crash), crash_behind(number):
            case.write()
        call_command("dynamo_rebuild", verbosity=0)
        assert timeless(there := items_of(table)) in (before, wanted), f"after {number} requests"
        assert findings(there) == []


def test_a_bulk_creation_that_is_repeated_whole_tells_what_is_there() -> None:
    """Nothing is overwritten: the errors are of objects that the first process has written, and name them."""
    with pytest.raises(Crash), crash_behind(7):
        new_members()
    there = {each.pk for each in Member.objects.filter(pk__in=BULK).consistent()}
    assert len(there) == 7
    with pytest.raises(AlreadyExists) as raised:
        new_members()
    assert "'m00'" in str(raised.value)
    rest_of_members()
    assert Member.objects.count() == len(BULK)
    assert [*verify()] == []
