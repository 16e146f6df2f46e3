"""Bugs of other DynamoDB and soft-delete libraries, from their users' reports.

The numbers identify the reports.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError
from django.db.models import F, Q
from pynamodb.exceptions import PutError

from dynamo_single import models, transactions
from dynamo_single.exceptions import (
    AlreadyExists,
    BulkError,
    EmptyKeyPart,
    InvalidValue,
    NoAccessPattern,
    NotSupported,
    StaleObject,
    UniqueViolation,
)
from dynamo_single.table import Table
from dynamo_single.testing import assert_requests, intercept, refusal
from tests.catalog.boards import Card, Task
from tests.catalog.library import Meeting
from tests.catalog.models import Employee, Firm, Member, Order, Site, Ticket
from tests.catalog.seats import Seat
from tests.contract.tables import assert_consistent, claims, stored

pytestmark = pytest.mark.usefixtures("table")

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
#: A datetime in a key.
AT_NOON = "2026-03-01T12:00:00.000Z"


def keys(table: Table, meeting_id: str = "m") -> dict[str, str]:
    """The index keys of a stored meeting."""
    item = stored(table)[f"MEETING#{meeting_id}"]
    return {name: value["S"] for name, value in item.items() if name.startswith("gs")}


def meeting(**values: Any) -> Meeting:
    """A stored meeting."""
    given = {"meeting_id": "m", "team": "t", "host": "h", "starts_at": NOON, **values}
    return Meeting.objects.create(**given)


# several models in one table, with keys computed from attributes, on every write path


def test_models_in_one_partition_are_mixed_up() -> None:
    """PynamoDB 686, 977: each model gives its own objects only, whatever else is in the partition."""
    firm = Firm.objects.create(firm_id="f", name="Acme", stock="ACM")
    Employee.objects.create(firm=firm, employee_id="1", name="Ann")
    Site.objects.create(firm=firm, site_id="1")
    assert [type(each) for each in Employee.objects.filter(firm="f")] == [Employee]
    assert [type(each) for each in Site.objects.filter(firm="f")] == [Site]
    assert [type(each) for each in Employee.query("f", Employee.sort_key.startswith("people_"))] == [Employee]
    with pytest.raises(Employee.DoesNotExist):
        Employee.objects.get(firm="f", employee_id="2")
    assert not Card.objects.filter(board="f").exists()
    assert not Task.objects.filter(board="f").exists()


def create(**values: Any) -> None:
    """By ``create()``."""
    meeting(**values)


def bulk_create(**values: Any) -> None:
    """By ``bulk_create()``."""
    Meeting.objects.bulk_create([Meeting(meeting_id="m", team="t", host="h", **values)])


def upsert(**values: Any) -> None:
    """By a ``bulk_create()`` that updates."""
    Meeting.objects.bulk_create([Meeting(meeting_id="m", team="t", host="h", **values)], update_conflicts=True)


def update_or_create(**values: Any) -> None:
    """By ``update_or_create()``."""
    Meeting.objects.update_or_create(meeting_id="m", defaults={"team": "t", "host": "h", **values})


def in_a_transaction(**values: Any) -> None:
    """In a transaction."""
    with transactions.atomic():
        meeting(**values)


@pytest.mark.parametrize("write", [create, bulk_create, upsert, update_or_create, in_a_transaction])
def test_a_way_to_create_leaves_the_computed_keys_out(table: Table, write: Callable[..., None]) -> None:
    """PynamoDB 1200, dynamodb-toolbox 1138, ElectroDB 572: each of them writes every key of the model."""
    write(starts_at=NOON)
    assert keys(table) == {
        "gs1pk": "TEAM#t",
        "gs1sk": f"planned#{AT_NOON}#m",
        "gs2pk": "HOST#h",
        "gs2sk": f"{AT_NOON}#m",
    }
    assert_consistent()


def save(**values: Any) -> None:
    """Call ``save()`` on a loaded object."""
    obj = Meeting.objects.get(pk="m")
    for name, value in values.items():
        setattr(obj, name, value)
    obj.save()


def save_named(**values: Any) -> None:
    """By ``save(update_fields=...)``."""
    obj = Meeting.objects.get(pk="m")
    for name, value in values.items():
        setattr(obj, name, value)
    obj.save(update_fields=list(values))


def save_unread(**values: Any) -> None:
    """Call ``save(update_fields=...)`` on an object that was never loaded."""
    Meeting(meeting_id="m", **values).save(update_fields=list(values))


def save_in_part(**values: Any) -> None:
    """Call ``save()`` on a partially loaded object."""
    obj = Meeting.objects.only("meeting_id").get(pk="m")
    for name, value in values.items():
        setattr(obj, name, value)
    obj.save()


def update(**values: Any) -> None:
    """By a queryset's ``update()``."""
    assert Meeting.objects.filter(pk="m").update(**values) == 1


def update_many(**values: Any) -> None:
    """Call ``update()`` on a queryset that reads."""
    assert Meeting.objects.filter(team="t").allow_scan().update(**values) == 1


def bulk_update(**values: Any) -> None:
    """By ``bulk_update()``."""
    obj = Meeting.objects.get(pk="m")
    for name, value in values.items():
        setattr(obj, name, value)
    assert Meeting.objects.bulk_update([obj], list(values)) == 1


def upsert_some(**values: Any) -> None:
    """By a ``bulk_create()`` that updates some attributes."""
    obj = Meeting(meeting_id="m", team="t", **values)
    Meeting.objects.bulk_create([obj], update_conflicts=True, update_fields=list(values), unique_fields=["meeting_id"])


def update_in_a_transaction(**values: Any) -> None:
    """In a transaction."""
    obj = Meeting.objects.get(pk="m")
    with transactions.atomic():
        for name, value in values.items():
            setattr(obj, name, value)
        obj.save()


UPDATES = [
    save,
    save_named,
    save_unread,
    save_in_part,
    update,
    update_many,
    bulk_update,
    upsert_some,
    update_in_a_transaction,
]
LATER, AT_ONE = datetime(2026, 3, 1, 13, tzinfo=UTC), "2026-03-01T13:00:00.000Z"


@pytest.mark.parametrize("write", UPDATES)
def test_an_update_of_one_part_leaves_a_key_of_several_behind(table: Table, write: Callable[..., None]) -> None:
    """OneTable 301, 355, 508, 517: missing parts come from the stored item."""
    meeting()
    write(status="held")
    assert keys(table) == {
        "gs1pk": "TEAM#t",
        "gs1sk": f"held#{AT_NOON}#m",
        "gs2pk": "HOST#h",
        "gs2sk": f"{AT_NOON}#m",
    }
    assert_consistent()


@pytest.mark.parametrize("write", UPDATES)
def test_an_attribute_in_two_keys_is_updated_in_one_of_them(table: Table, write: Callable[..., None]) -> None:
    """dynamodb-toolbox 169, 205: both keys follow."""
    meeting()
    write(starts_at=LATER)
    assert (keys(table)["gs1sk"], keys(table)["gs2sk"]) == (f"planned#{AT_ONE}#m", f"{AT_ONE}#m")
    assert_consistent()


@pytest.mark.parametrize("write", UPDATES)
def test_an_update_of_something_else_makes_keys_of_undefined(table: Table, write: Callable[..., None]) -> None:
    """dynamodb-toolbox 169, 602, 678: a write that concerns no key leaves all of them as they are."""
    meeting()
    before = keys(table)
    write(topic="budget")
    assert keys(table) == before
    assert stored(table)["MEETING#m"]["topic"] == {"S": "budget"}


@pytest.mark.parametrize("write", UPDATES)
def test_two_writers_of_two_parts_leave_a_key_that_fits_neither(table: Table, write: Callable[..., None]) -> None:
    """OneTable 517: the slower writer computes the key again, or gets an error."""
    meeting()
    done: list[str] = []

    def interceptor(operation: str, params: Mapping[str, Any]) -> None:
        if operation in ("UpdateItem", "TransactWriteItems") and not done:
            done.append(operation)
            Meeting.objects.filter(pk="m").update(starts_at=LATER)

    with intercept(interceptor):
        try:
            write(status="held")
            status = "held"
        except StaleObject:
            status = "planned"
    assert done
    assert keys(table)["gs1sk"] == f"{status}#{AT_ONE}#m"
    assert_consistent()


def test_pynamodbs_update_leaves_keys_behind(table: Table) -> None:
    """PynamoDB 1200: it raises an error; the other writers write the keys, or raise an error too."""
    obj = meeting()
    with pytest.raises(NotSupported, match="does not maintain keys"):
        obj.update(actions=[Meeting.status.set("held")])
    with pytest.raises(NotSupported, match="do not keep what depends on room"):
        Meeting.batch_write()
    with Order.batch_write() as batch:
        batch.save(Order(customer="c", number=1, coupon="x"))
    assert stored(table)["CUSTOMER#c"]["gs2pk"] == {"S": "COUPON#x"}
    assert_consistent()


# unique fields, and a soft delete that frees them


def test_a_unique_attribute_needs_a_model_of_its_own(table: Table) -> None:
    """ElectroDB 385: ``unique=True`` is enough."""
    first = meeting(room="blue")
    with assert_requests(["TransactWriteItems"]), pytest.raises(IntegrityError) as raised:
        meeting(meeting_id="n", room="blue")
    assert isinstance(raised.value, UniqueViolation)
    assert (raised.value.label, raised.value.field, raised.value.value) == ("catalog.Meeting", "room", "blue")
    assert claims(table) == {"UNIQUE#Meeting#room#blue": first.partition_key}


def test_an_unrelated_update_reads_first(table: Table) -> None:
    """OneTable 129: only a change of a unique value is a transaction, without a read before it."""
    obj = meeting(room="blue")
    obj.topic = "budget"
    with assert_requests(["UpdateItem"]):
        obj.save()
    with assert_requests(["UpdateItem"]):
        Meeting.objects.filter(pk="m").update(topic="plan")
    obj.room = "red"
    with assert_requests(["TransactWriteItems"]):
        obj.save()


def test_a_transaction_is_sent_before_its_end(table: Table) -> None:
    """OneTable 134: the creation itself does not send a request, and stored times are times."""
    with assert_requests(["TransactWriteItems"]) as sent, transactions.atomic():
        meeting(room="blue")
        assert sent == []
    item = stored(table)["MEETING#m"]
    assert {*item["createdAt"]} == {*item["updatedAt"]} == {"N"}


def test_an_unchanged_value_is_its_own_conflict(table: Table) -> None:
    """OneTable 206: saving everything again is no violation."""
    obj = meeting(room="blue")
    obj.save(force_update=True)
    obj.save(update_fields=["room", "topic"])
    obj.room, obj.topic = "blue", "budget"
    obj.save()
    Meeting.objects.update_or_create(meeting_id="m", defaults={"room": "blue", "topic": "plan"})
    assert claims(table) == {"UNIQUE#Meeting#room#blue": "MEETING#m"}


def test_an_update_within_a_transaction_gives_less_back() -> None:
    """OneTable 245: the object has every stored attribute, including computed ones."""
    obj = meeting(room="blue", seats=3)
    obj.room, obj.seats = "red", F("seats") + 2
    obj.save()
    fresh = Meeting.objects.consistent().get(pk="m")
    assert (obj.room, obj.seats) == ("red", 5)
    assert obj._stored == fresh._stored
    assert obj.attribute_values == fresh.attribute_values


@pytest.mark.parametrize("room", [None, "blue"])
def test_an_object_without_its_unique_value_cannot_be_removed(table: Table, room: str | None) -> None:
    """OneTable 317, 314: with and without the value, an object can be updated, deleted, restored and removed."""
    obj = meeting(room=room)
    obj.delete()
    assert claims(table) == {}
    obj.restore()
    obj.room = None if room else "red"
    obj.save()
    assert len(claims(table)) == (0 if room else 1)
    obj.hard_delete()
    assert stored(table) == {}


@pytest.mark.parametrize("write", [upsert, update_or_create])
def test_a_second_upsert_is_a_violation(table: Table, write: Callable[..., None]) -> None:
    """OneTable 323: updating or creating the same object with its unique value works repeatedly."""
    for topic in ("one", "two", "three"):
        write(room="blue", topic=topic)
    assert Meeting.objects.get(pk="m").topic == "three"
    assert claims(table) == {"UNIQUE#Meeting#room#blue": "MEETING#m"}
    assert_consistent()


def test_a_scoped_value_can_be_taken_by_an_update(table: Table) -> None:
    """OneTable 528: an update has the same conflicts as a creation, moves the claim, and leaves no other traces."""
    for number, (hall, row) in enumerate([("a", 1), ("a", 2), ("b", 1)]):
        Seat.objects.create(seat_id=str(number), hall=hall, row=row)
    count = len(stored(table))
    second = Seat.objects.get(pk="1")
    second.row = 1
    with pytest.raises(UniqueViolation, match="row"):
        second.save()
    with pytest.raises(UniqueViolation):
        Seat.objects.filter(pk="1").update(row=1)
    assert Seat.objects.get(pk="1").row == 2
    assert len(stored(table)) == count
    Seat.objects.filter(pk="1").update(row=3)
    Seat.objects.create(seat_id="3", hall="a", row=2)
    assert_consistent()


@pytest.mark.parametrize("way", ["delete", "hard_delete", "queryset", "block"])
def test_a_removal_keeps_the_value(table: Table, way: str) -> None:
    """OneTable 83, 180, 509; django-safedelete 227: the value is free at once, whichever way the object goes."""
    obj = meeting(room="blue")
    if way == "queryset":
        Meeting.objects.filter(pk="m").delete()
    elif way == "block":
        with transactions.atomic():
            obj.delete()
    else:
        getattr(obj, way)()
    assert claims(table) == {}
    meeting(meeting_id="n", room="blue")
    assert_consistent()


def test_only_one_deleted_object_may_have_had_a_value(table: Table) -> None:
    """django-safedelete 227, 241: several deleted objects and a live one hold the value, and one at most comes back."""
    for number in range(3):
        meeting(meeting_id=str(number), room="blue").delete()
    live = meeting(meeting_id="live", room="blue")
    assert {each.room for each in Meeting.deleted_objects.all()} == {"blue"}
    with pytest.raises(UniqueViolation, match="room"):
        Meeting.deleted_objects.get(pk="1").restore()
    assert Meeting.deleted_objects.count() == 3
    live.delete()
    Meeting.deleted_objects.get(pk="1").restore()
    assert claims(table) == {"UNIQUE#Meeting#room#blue": "MEETING#1"}
    assert_consistent()


def test_an_upsert_of_a_deleted_object_makes_a_second_one(table: Table) -> None:
    """django-safedelete 98: the error explains that the object is in the trash, which stays unchanged."""
    meeting(room="blue").delete()
    before = stored(table)
    with pytest.raises(AlreadyExists, match="in the trash: restore it"):
        update_or_create(room="red")
    with pytest.raises(AlreadyExists, match="in the trash: restore it"):
        upsert(room="red")
    assert stored(table) == before


def test_a_form_does_not_know_of_a_conditional_constraint() -> None:
    """django-safedelete 203: unique values are validated, and values of deleted objects are free."""
    meeting(room="blue").delete()
    Meeting(meeting_id="n", team="t", room="blue").full_clean()
    meeting(meeting_id="n", room="blue")
    with pytest.raises(ValidationError) as raised:
        Meeting(meeting_id="o", team="t", room="blue").full_clean()
    assert {*raised.value.message_dict} == {"room"}
    Seat.objects.create(seat_id="1", hall="h", guest="Ann", status="taken")
    Seat(seat_id="2", hall="h", guest="Ann", status="free").full_clean()
    with pytest.raises(ValidationError, match="one_seat_each"):
        Seat(seat_id="3", hall="h", guest="ann", status="taken").full_clean()


# messages that name the missing part; no partial keys, no null or empty values in a key


def test_a_part_that_is_missing_is_not_named() -> None:
    """ElectroDB 406: a query names the key and its missing parts; a write names the attribute of the primary key."""
    with pytest.raises(NoAccessPattern) as raised:
        list(Meeting.objects.filter(status="held"))
    assert "by_team (gs1) 'TEAM#{team}' / '{status}#{starts_at}#{meeting_id}': the query does not set team." in str(
        raised.value
    )
    with pytest.raises(EmptyKeyPart, match="meeting_id"):
        Meeting.objects.create(meeting_id="", team="t")
    with pytest.raises(InvalidValue, match="meeting_id"):
        Meeting(team="t").save()


def test_an_update_asks_for_what_it_does_not_change(table: Table) -> None:
    """ElectroDB 406: a condition on one part and a change of another need nothing of the rest of the key."""
    meeting()
    assert Meeting.objects.filter(Q(topic__isnull=True), pk="m", status="planned").update(status="held") == 1
    assert keys(table)["gs1sk"] == f"held#{AT_NOON}#m"


def test_removing_an_attribute_asks_for_every_key(table: Table) -> None:
    """ElectroDB 182: one request removes an attribute of a stored object, without creating one."""
    meeting(topic="budget")
    with assert_requests(["UpdateItem"]):
        assert Meeting.objects.filter(pk="m").update(topic=models.REMOVE) == 1
    assert "topic" not in stored(table)["MEETING#m"]
    assert Meeting.objects.filter(pk="none").update(topic=models.REMOVE) == 0
    assert {*stored(table)} == {"MEETING#m"}


@pytest.mark.parametrize("write", UPDATES)
@pytest.mark.parametrize("missing", ["host", "starts_at"])
def test_a_partial_key_is_generated(table: Table, write: Callable[..., None], missing: str) -> None:
    """ElectroDB 372, 445: without a part there is no half key; with it there is a whole one, and without it none."""
    meeting(**{missing: None})
    pairs = {"gs1pk", "gs1sk"} if missing == "host" else set()
    assert {*keys(table)} == pairs
    write(topic="budget")
    assert {*keys(table)} == pairs
    write(**{missing: "h" if missing == "host" else NOON})
    assert {*keys(table)} == {"gs1pk", "gs1sk", "gs2pk", "gs2sk"}
    write(**{missing: None})
    assert {*keys(table)} == pairs
    assert_consistent()


@pytest.mark.parametrize("empty", [None, ""])
@pytest.mark.parametrize("write", UPDATES)
def test_an_empty_value_is_written_on_a_key(table: Table, write: Callable[..., None], empty: str | None) -> None:
    """Dynamoid 371, 679: the object leaves the index, without a request that DynamoDB rejects."""
    meeting()
    write(host=empty)
    assert {*keys(table)} == {"gs1pk", "gs1sk"}
    item = stored(table)["MEETING#m"]
    assert all("NULL" not in value for value in item.values())
    assert Meeting.objects.get(pk="m").host in (None, "")
    assert_consistent()


# complete batch writes with reports of failures


def left_out(kept: int, *, times: int) -> Any:
    """DynamoDB writes the first ``kept`` of each BatchWriteItem and leaves the others out, so many times."""
    answered: list[None] = []
    inside: list[None] = []

    def interceptor(operation: str, params: Mapping[str, Any]) -> dict[str, Any] | None:
        if operation != "BatchWriteItem" or len(answered) >= times or inside:
            return None
        answered.append(None)
        ((name, given),) = params["RequestItems"].items()
        inside.append(None)
        for write in given[:kept]:
            Ticket.from_item(write["PutRequest"]["Item"]).save(force_insert=True)
        inside.clear()
        return {"UnprocessedItems": {name: given[kept:]} if given[kept:] else {}}

    return intercept(interceptor)


def tickets(count: int) -> list[Ticket]:
    """Return unsaved tickets."""
    return [Ticket(code=f"{number:04}") for number in range(count)]


def test_items_of_a_batch_are_missing_without_an_error() -> None:
    """PynamoDB 1257, OneTable 470, 486: unprocessed items are sent again until they are written."""
    with left_out(7, times=12):
        result = Ticket.objects.bulk_create(tickets(120), update_conflicts=True)
    assert Ticket.objects.count() == len(result) == 120
    assert result.skipped == []


def test_pynamodbs_batch_drops_what_is_left_out() -> None:
    """PynamoDB 1257: its own writer on these models writes all, or raises."""
    with left_out(7, times=2), Ticket.batch_write() as batch:
        for each in tickets(60):
            batch.save(each)
    assert Ticket.objects.count() == 60


def test_pynamodbs_batch_ends_in_silence() -> None:
    """PynamoDB 1257: items that stay unprocessed raise an error."""
    with left_out(0, times=1000), pytest.raises(PutError), Ticket.batch_write() as batch:
        for each in tickets(30):
            batch.save(each)


def test_after_a_failure_nobody_knows_what_to_repeat() -> None:
    """PynamoDB 1046: the error names written and unwritten items and the reason, so only the rest is written again."""
    given = tickets(90)
    asked: list[str] = []

    def interceptor(operation: str, params: Mapping[str, Any]) -> None:
        if operation == "PutItem":
            asked.append(params["Item"]["code"]["S"])
            if len(asked) > 40:
                raise refusal(operation, "InternalServerError")

    with intercept(interceptor), pytest.raises(BulkError) as raised:
        Ticket.objects.bulk_create(given)
    error = raised.value
    there = {each.pk for each in Ticket.objects.all()}
    assert {*error.written} == there
    assert there | {*error.failed} | {*error.not_tried} == {each.pk for each in given}
    assert all(each._state.adding == (each.pk not in there) for each in given)
    Ticket.objects.bulk_create([each for each in given if each._state.adding])
    assert Ticket.objects.count() == 90


def test_one_key_twice_in_a_batch_fails_as_a_whole() -> None:
    """PynamoDB 1243: duplicates raise an error before any request, are skipped, or the last one wins, as requested."""
    given = [Ticket(code="a"), Ticket(code="b"), Ticket(code="a")]
    with assert_requests(0), pytest.raises(AlreadyExists, match=r"two catalog\.Ticket objects with pk 'a'"):
        Ticket.objects.bulk_create(given)
    Ticket.objects.bulk_create([*given], update_conflicts=True)
    assert Ticket.objects.count() == 2
    result = Ticket.objects.bulk_create([Ticket(code="c"), Ticket(code="c"), Ticket(code="a")], ignore_conflicts=True)
    assert len(result.skipped) == 2
    assert Member.objects.bulk_create([]) == []
