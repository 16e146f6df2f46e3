"""``loaddata`` writes 25 objects per request, with the same result as separate writes."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core import serializers
from django.core.management import call_command
from django.db import IntegrityError
from django.db.models.signals import post_save

from dynamo_single import transactions
from dynamo_single.exceptions import NotRolledBackWarning, Throttled
from dynamo_single.table import Table
from dynamo_single.test_tables import contents
from dynamo_single.testing import assert_requests, capture_requests, fault, refuse
from project.directory.models import Company
from tests.catalog.chat import ChatMembership, ChatServer, ChatUser
from tests.catalog.models import Member, Order
from tests.contract.inserting import INSERTS, answered, lose_next
from tests.contract.tables import assert_consistent
from tests.strict import in_front_of

pytestmark = pytest.mark.usefixtures("attempts_at_once")

READ, PUT = "BatchGetItem", "PutItem"


def orders(count: int, **values: Any) -> list[Order]:
    """Orders of one customer."""
    return [Order(customer="c", number=number, **values) for number in range(count)]


def companies(count: int, **values: Any) -> list[Company]:
    """Companies as a fixture has them: with their times."""
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    given = {"name": "New", "created_at": moment, "updated_at": moment, **values}
    return [Company(company_id=f"c{number:03d}", **given) for number in range(count)]


@pytest.fixture
def load(tmp_path: Path) -> Any:
    """Write objects, or rows, as a fixture and load it."""

    def write(*objects: Any) -> None:
        rows = [
            row
            for each in objects
            for row in ([each] if isinstance(each, dict) else json.loads(serializers.serialize("json", [each])))
        ]
        path = tmp_path / "fixture.json"
        path.write_text(json.dumps(rows))
        call_command("loaddata", str(path), verbosity=0)

    return write


def numbers() -> list[int]:
    """The stored orders."""
    return sorted(order.number for order in Order.objects.filter(customer="c"))


def test_objects_are_loaded_by_25(load: Any) -> None:
    """The fixture may contain several models of one table; it also sets the times."""
    given = [each for pair in zip(orders(30), companies(30), strict=True) for each in pair]
    with assert_requests([INSERTS] * 3):
        load(*given)
    assert numbers() == [*range(30)]
    assert {company.created_at.year for company in Company.objects.all()} == {2026}


def test_loaded_items_equal_saved_items(load: Any, table: Table) -> None:
    """Attribute by attribute, with the keys of indexes."""
    given = [*orders(5, coupon="x"), *companies(5, stock="N")]
    load(*given)
    loaded = contents.read(table)
    contents.empty(table, most=1000)
    for obj in given:
        obj.save_base(raw=True)
    assert contents.read(table) == loaded


def test_same_fixture_again_writes_nothing(load: Any) -> None:
    """Existing objects are read 25 at a time and compared."""
    load(*companies(30))
    with assert_requests([INSERTS, READ] * 2):
        load(*companies(30))


def test_changed_fixture_updates_what_differs(load: Any) -> None:
    """Each takes one conditional request; an object in the trash becomes live as in the fixture."""
    load(*companies(5))
    Company.objects.get(pk="c002").delete()
    changed = companies(5)
    changed[3].name = "Newer"
    with assert_requests([INSERTS, READ, "UpdateItem", "UpdateItem"]):
        load(*changed)
    assert [company.name for company in Company.objects.order_by("name")] == ["New"] * 4 + ["Newer"]


def test_later_row_replaces_earlier_row_of_same_object(load: Any) -> None:
    """The result is the same as for separate writes."""
    load(*companies(3), *companies(1, name="Later"))
    assert {company.pk: company.name for company in Company.objects.all()} == {
        "c000": "Later",
        "c001": "New",
        "c002": "New",
    }


def test_rows_before_mistake_are_stored(load: Any) -> None:
    """This includes invalid values, unreadable rows, and objects that cannot be written."""
    unreadable = {"model": "directory.company", "pk": "c9", "fields": {"name": "N", "created_at": "never"}}
    with pytest.warns(NotRolledBackWarning), pytest.raises(Exception, match="Problem installing fixture"):
        load(*orders(3), unreadable)
    assert numbers() == [0, 1, 2]
    nameless = {"model": "directory.company", "pk": "c9", "fields": {}}
    with (
        pytest.warns(NotRolledBackWarning),
        pytest.raises(IntegrityError, match=r"Could not load directory.Company\(pk=c9"),
    ):
        load(*orders(5)[3:], nameless, *orders(7)[5:])
    assert {3, 4} <= {*numbers()}


def test_receivers_of_signals_see_what_was_written_before(load: Any) -> None:
    """Objects are then written and announced separately."""
    seen: list[tuple[int, list[int]]] = []

    def note(instance: Any, raw: bool, **arguments: Any) -> None:
        assert raw
        seen.append((instance.number, numbers()))

    post_save.connect(note, sender=Order)
    try:
        load(*orders(3))
    finally:
        post_save.disconnect(note, sender=Order)
    assert seen == [(0, [0]), (1, [0, 1]), (2, [0, 1, 2])]


def test_dependent_objects_find_those_before_them(load: Any) -> None:
    """This includes copies, counters and unique values between objects of one load."""
    server, user = ChatServer(server_id="s", name="S"), ChatUser(user_id="u", username="U")
    rows = [*orders(2), user, server, *orders(4)[2:], ChatMembership(server=server, user=user)]
    load(*rows, Member(member_id="m", email="m@example.org"))
    assert numbers() == [0, 1, 2, 3]
    assert ChatMembership.objects.get(server=server, user=user).username == "U"
    assert ChatServer.objects.get(pk="s").member_count == 1
    assert_consistent()


def test_block_is_not_left(tmp_path: Path) -> None:
    """In ``atomic()``, the block sends the objects."""
    path = tmp_path / "fixture.json"
    path.write_text(serializers.serialize("json", orders(3)))
    with capture_requests() as sent, transactions.atomic():
        call_command("loaddata", str(path), verbosity=0)
        assert not [each for each in sent if each.operation in {INSERTS, PUT}]
    assert numbers() == [0, 1, 2]


def test_missing_right_loads_one_by_one(load: Any) -> None:
    """``bulk_create()`` does the same."""
    with refuse("AccessDeniedException", operation=INSERTS), assert_requests([INSERTS] + [PUT] * 30):
        load(*orders(30))


def test_throttled_statement_is_sent_again(load: Any) -> None:
    """After the last attempt the error names the object."""
    with answered({"c": "ThrottlingError"}):
        load(*orders(3))
    assert numbers() == [0, 1, 2]
    for_good = answered(*[{"c": "ThrottlingError"}] * 20)
    with for_good, pytest.warns(NotRolledBackWarning), pytest.raises(Throttled, match="2 statements"):
        load(Order(customer="c", number=8), Order(customer="c", number=9))


def test_lost_answer_leaves_no_difference(load: Any, table: Table) -> None:
    """This applies whether or not the request is retried."""
    with in_front_of(table) as server:
        lose_next(server)
        load(*orders(3))
    with fault("lost answer", operation=INSERTS, times=1):
        load(*orders(6))
    assert numbers() == [*range(6)]


def test_other_process_deletes_what_was_read(load: Any) -> None:
    """The object is created again."""
    load(*companies(2))
    moved = timedelta(days=1)
    changed = companies(2, updated_at=datetime(2026, 1, 1, tzinfo=UTC) + moved)
    with refuse("ConditionalCheckFailedException", operation="UpdateItem", times=1):
        load(*changed)
    assert {company.updated_at.day for company in Company.objects.all()} == {2}
