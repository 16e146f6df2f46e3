"""``move()`` changes the primary key of a stored object, and everything that depends on it, in one transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db.models.signals import post_save, pre_save

from dynamo_single import transactions
from dynamo_single.exceptions import (
    AlreadyExists,
    EmptyKeyPart,
    InvalidValue,
    NotSupported,
    RequestFailed,
    StaleObject,
    UniqueViolation,
)
from dynamo_single.table import Request
from dynamo_single.table.http.faults import refusal
from dynamo_single.table.table import Table
from dynamo_single.testing import assert_requests, intercept, refuse
from project.directory.models import Company, Person
from tests.catalog.boards import Board, Card, Label, Note, Task
from tests.catalog.chat import ChatMembership, ChatServer, ChatUser
from tests.catalog.models import Coupon, Entry, Member, Order, Sample
from tests.catalog.seats import Essay, EssayWord, Seat
from tests.catalog.stocks import Ledger
from tests.contract.tables import assert_consistent, claims, stored

pytestmark = pytest.mark.usefixtures("table")
MOMENT = datetime(2024, 1, 1, tzinfo=UTC)


def member(**values: Any) -> Member:
    """A stored member."""
    return Member.objects.create(**{"member_id": "a", "email": "a@example.org", "badge": 1, "name": "Anna", **values})


def pairs(table: Table) -> set[tuple[str, str]]:
    """The key of every stored item."""
    return {(item["pk"]["S"], item["sk"]["S"]) for item in table.send(Request("Scan"))["Items"]}


# what moves


def test_a_move_is_one_transaction(table: Table) -> None:
    """The new item exists, the old one does not, and every index has the object's new keys."""
    order = Order.objects.create(customer="anna", number=1, placed_at=MOMENT, coupon="X", total=5)
    with assert_requests(["TransactWriteItems"]) as sent:
        order.move(customer="berta")
    assert [[*entry] for entry in sent[0].params["TransactItems"]] == [["Put"], ["Delete"]]
    assert pairs(table) == {("CUSTOMER#berta", "ORDER#p5001")}
    assert order.pk == Order.objects.get(coupon="X").pk
    assert [each.customer for each in Order.objects.filter(placed_at__gte=MOMENT)] == ["berta"]
    order.total = 6
    with assert_requests(["UpdateItem"]):
        order.save()
    assert Order.objects.get(pk=order.pk).total == 6


def test_unsaved_changes_go_along() -> None:
    """The move stores unsaved values and the arguments, and sets the update time."""
    person = Person.objects.create(company_id="c1", person_id="p", name="Anna")
    created, updated = person.created_at, person.updated_at
    person.name = "Berta"
    person.move(company_id="c2", role="manager")
    found = Person.objects.get(person_id="p")
    assert (found.company_id, found.name, found.role, found.created_at) == ("c2", "Berta", "manager", created)
    assert found.updated_at >= updated
    assert person.updated_at == found.updated_at


def test_a_reference_is_set_to_an_object() -> None:
    """The related object is cached with the reference."""
    other = Company.objects.create(company_id="c2", name="Beta")
    person = Person.objects.create(company_id="c1", name="Anna")
    person.move(company=other)
    with assert_requests(0):
        assert person.company is other


def test_claims_change_their_owner(table: Table) -> None:
    """Unchanged values belong to the new item, changed ones are claimed, and old ones are released."""
    obj = member()
    with assert_requests(["TransactWriteItems"]):
        obj.move(member_id="b", badge=2)
    assert claims(table) == {
        "UNIQUE#Member#badge#p5002": "MEMBER#b",
        "UNIQUE#Member#email#a@example.org": "MEMBER#b",
    }
    with pytest.raises(UniqueViolation):
        Member.objects.create(email="a@example.org")
    obj.hard_delete()
    assert stored(table) == {}


def test_a_claim_expires_with_its_new_owner(table: Table) -> None:
    """The claim of an expiring item keeps its expiry."""
    coupon = Coupon.objects.create(code="a", email="a@example.org", expires_at=datetime(2100, 1, 1, tzinfo=UTC))
    coupon.move(code="b")
    assert claims(table) == {"UNIQUE#Coupon#email#a@example.org": "COUPON#b"}
    assert stored(table)["UNIQUE#Coupon#email#a@example.org"]["expiresAt"] == stored(table)["COUPON#b"]["expiresAt"]


def test_an_object_in_the_trash_moves_within_it(table: Table) -> None:
    """The object stays deleted, and can be restored under its new key."""
    obj = member()
    obj.delete()
    obj.move(member_id="b")
    assert [each.pk for each in Member.deleted_objects.all()] == ["b"]
    assert claims(table) == {}
    obj.restore()
    assert Member.objects.get(pk="b").email == "a@example.org"


def test_attributes_that_the_model_does_not_know_go_along(table: Table) -> None:
    """Another program's attributes are kept."""
    member()
    key = {"pk": {"S": "MEMBER#a"}, "sk": {"S": "#METADATA"}}
    values = {":v": {"M": {"x": {"N": "1"}}}}
    update = {"UpdateExpression": "SET elsewhere = :v", "ExpressionAttributeValues": values}
    table.send(Request("UpdateItem", {"Key": key, **update}))
    Member.objects.get(pk="a").move(member_id="b")
    assert stored(table)["MEMBER#b"]["elsewhere"] == {"M": {"x": {"N": "1"}}}


def test_an_object_that_was_read_in_part_is_read_whole_first() -> None:
    """The new item has everything."""
    member()
    found = Member.objects.only("email").get(pk="a")
    with assert_requests(["GetItem", "TransactWriteItems"]):
        found.move(member_id="b")
    assert Member.objects.get(pk="b").name == "Anna"


def test_the_key_that_it_has_is_a_save() -> None:
    """A move to the same key only saves changes."""
    obj = member()
    with assert_requests(["UpdateItem"]):
        obj.move(member_id="a", name="Berta")
    with assert_requests(0):
        obj.move()
    assert Member.objects.get(pk="a").name == "Berta"


def test_signals_are_those_of_a_save() -> None:
    """Handlers before and after the move see the new key."""
    told: list[tuple[Any, ...]] = []

    def note(signal: Any, instance: Any, **arguments: Any) -> None:
        told.append((signal, instance.pk, arguments.get("created")))

    obj = member()
    for signal in (pre_save, post_save):
        signal.connect(note, sender=Member)
    try:
        obj.move(member_id="b")
    finally:
        for signal in (pre_save, post_save):
            signal.disconnect(note, sender=Member)
    assert told == [(pre_save, "b", None), (post_save, "b", False)]


def test_the_twin_moves_too() -> None:
    """``amove()`` does the same from asynchronous code."""
    obj = member()
    asyncio.run(obj.amove(member_id="b"))
    assert Member.objects.get(pk="b").email == "a@example.org"


def test_a_move_within_a_block(table: Table) -> None:
    """The block sends the move, and a discarded block does not change the object."""
    obj = member()
    with assert_requests(["TransactWriteItems"]), transactions.atomic():
        obj.move(member_id="b")
        Order.objects.create(customer="c", number=1)
    assert Member.objects.get(pk="b").name == "Anna"
    with assert_requests(0), pytest.raises(KeyError), transactions.atomic():
        obj.move(member_id="c", name="Cleo")
        raise KeyError
    assert (obj.pk, obj.name) == ("b", "Anna")
    obj.name = "Berta"
    obj.save()
    assert Member.objects.get(pk="b").name == "Berta"


def test_derived_objects_follow(table: Table) -> None:
    """Derived items are written again for the new key, without references to the old one."""
    essay = Essay.objects.create(essay_id="a", title="on moving house")
    with assert_requests(["TransactWriteItems"]):
        essay.move(essay_id="b", title="on moving")
    assert [word.essay_id for word in EssayWord.objects.filter(word="moving")] == ["b"]
    assert len(pairs(table)) == 3
    assert_consistent()


def test_a_version_counts_the_move() -> None:
    """A move increments the version, and an outdated object does not move."""
    ledger = Ledger.objects.create(code="a", serial=1)
    old = Ledger.objects.get(pk="a")
    ledger.move(code="b")
    assert (ledger.version, Ledger.objects.get(pk="b").version) == (2, 2)
    with pytest.raises(StaleObject):
        old.move(code="c")
    assert_consistent()


def test_counters_and_copies_follow() -> None:
    """The move updates both parents' counters, and copies come from the new source."""
    one, two = (ChatServer.objects.create(server_id=name, name=name) for name in ("one", "two"))
    anna, ben = (ChatUser.objects.create(user_id=name, username=name.title()) for name in ("anna", "ben"))
    membership = ChatMembership.objects.create(server=one, user=anna)
    with assert_requests(["TransactWriteItems"]):
        membership.move(server=two)
    with assert_requests(["GetItem", "TransactWriteItems"]):
        membership.move(user=ben)
    assert (membership.username, ChatMembership.objects.get(server=two).username) == ("Ben", "Ben")
    for server, expected in ((one, 0), (two, 1)):
        server.refresh_from_db()
        assert server.member_count == expected
    assert_consistent()
    with pytest.raises(NotSupported, match=r"catalog\.ChatMembership objects refer to it by user"):
        ben.move(user_id="other")


def test_values_that_are_unique_together_move_with_their_owner() -> None:
    """Every kind of claim changes its owner, and a condition decides again."""
    seat = Seat.objects.create(seat_id="a", hall="h", row=1, guest="Anna", code="x", status="taken")
    seat.move(seat_id="b", row=2)
    assert_consistent()
    seat.move(seat_id="c", status="free")
    assert_consistent()


# what is in the way


def test_nothing_is_overwritten(table: Table) -> None:
    """An object with the new key is kept, and the object does not move."""
    member(member_id="b", email="b@example.org", badge=2)
    obj = member()
    before = stored(table)
    with pytest.raises(AlreadyExists, match=r"catalog\.Member with pk 'b' already exists. Nothing was written"):
        obj.move(member_id="b", name="Berta")
    assert stored(table) == before
    assert (obj.pk, obj.name) == ("a", "Anna")


def test_what_another_writer_changed_is_not_lost(table: Table) -> None:
    """The move requires every attribute of the old item to be unchanged."""
    obj = member()
    Member.objects.filter(pk="a").update(name="Other")
    with pytest.raises(StaleObject, match=r"pk 'a' was changed by another process since it was read \(name\)"):
        obj.move(member_id="b")
    assert [each.name for each in Member.objects.all()] == ["Other"]
    obj.refresh_from_db()
    obj.move(member_id="b")
    assert [each.pk for each in Member.objects.all()] == ["b"]


def test_an_object_that_is_gone_does_not_move(table: Table) -> None:
    """A deletion is not undone."""
    obj = member()
    Member.objects.get(pk="a").hard_delete()
    with pytest.raises(StaleObject, match="pk 'a' was deleted since it was read"):
        obj.move(member_id="b")
    assert stored(table) == {}


def test_a_unique_value_of_another_object_stops_it(table: Table) -> None:
    """The claims are part of the transaction."""
    member(member_id="c", email="c@example.org", badge=3)
    obj = member()
    before = stored(table)
    with pytest.raises(UniqueViolation, match=r"Another catalog\.Member has badge 3"):
        obj.move(member_id="b", badge=3)
    assert stored(table) == before


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"nonsense": 1}, TypeError, "Member.move() got an unexpected keyword argument 'nonsense'"),
        ({"member_id": None}, (InvalidValue, EmptyKeyPart), "member_id"),
        ({"member_id": "b", "badge": "x"}, InvalidValue, "badge"),
    ],
)
def test_what_is_wrong_is_told_before_anything_is_sent(
    changes: dict[str, Any], error: type[Exception], message: str
) -> None:
    """The object is as it was afterwards."""
    obj = member()
    with assert_requests(0), pytest.raises(error) as raised:
        obj.move(**changes)
    assert message in str(raised.value)
    assert (obj.pk, obj.badge) == ("a", 1)


def test_an_object_that_is_not_stored_does_not_move() -> None:
    """There is nothing to move yet."""
    with assert_requests(0), pytest.raises(ValueError, match="can't be moved because it is not stored"):
        Member(member_id="a").move(member_id="b")


def test_a_save_with_another_key_names_move() -> None:
    """``save()`` never copies an object in silence."""
    obj = member()
    obj.member_id = "b"
    with assert_requests(0), pytest.raises(NotSupported, match=r"move\(member_id=\.\.\.\) does"):
        obj.save()
    obj.move()
    assert [each.pk for each in Member.objects.all()] == ["b"]


# objects that refer to it


def test_each_reference_is_asked_for_once() -> None:
    """One Query for one item per kind of referring object is enough."""
    board = Board.objects.create(board_id="a", name="A")
    with assert_requests(["Query"] * 4 + ["TransactWriteItems"]) as sent:
        board.move(board_id="b")
    assert {request.params.get("Limit") for request in sent[:4]} <= {1, None}
    assert Board.objects.get(pk="b").name == "A"


@pytest.mark.parametrize(
    "make",
    [
        lambda board: Card.objects.create(board=board, card_id="x", status="closed"),
        lambda board: Task.objects.create(board=board, number=1),
        lambda board: Label.objects.create(board=board, label_id="x", text="x"),
        lambda board: Note.objects.create(board=board),
    ],
    ids=["hidden by its manager", "in the partition", "in two keys", "by an index"],
)
def test_an_object_that_others_refer_to_does_not_move(make: Any, table: Table) -> None:
    """The error names the referring objects, which would otherwise have an invalid reference."""
    board = Board.objects.create(board_id="a", name="A")
    child = make(board)
    before = pairs(table)
    with pytest.raises(NotSupported, match=f"{child._meta.label} objects refer to it by board"):
        board.move(board_id="b")
    assert pairs(table) == before
    assert board.pk == "a"
    child.delete()
    board.move(board_id="b")


def test_an_object_in_the_trash_refers_too() -> None:
    """A deleted child can be restored, and then needs its parent."""
    company = Company.objects.create(company_id="a", name="A")
    person = Person.objects.create(company=company, name="Anna")
    person.delete()
    with pytest.raises(NotSupported, match=r"directory\.Person objects refer to it by company"):
        company.move(company_id="b")
    person.hard_delete()
    company.move(company_id="b")
    assert Company.objects.get().pk == "b"


# crashes


def test_a_failure_leaves_everything_as_it_was(table: Table) -> None:
    """There is one request, so there is no half of a move; the object can try again."""
    obj = member()
    before = stored(table)
    with refuse("InternalServerError", operation="TransactWriteItems"), pytest.raises(RequestFailed):
        obj.move(member_id="b", name="Berta")
    assert stored(table) == before
    assert (obj.pk, obj.name) == ("a", "Anna")
    obj.move(member_id="b", name="Berta")
    assert Member.objects.get(pk="b").name == "Berta"


def test_a_move_whose_answer_was_lost_is_recognised(table: Table) -> None:
    """The move was executed. Another attempt recognizes its own result and succeeds."""
    obj = member()

    def interceptor(operation: str, params: Mapping[str, Any]) -> None:
        if operation == "TransactWriteItems":
            table_client(operation, params)
            raise refusal(operation, "InternalServerError")

    table_client = table.call
    sending: list[bool] = []

    def once(operation: str, params: Mapping[str, Any]) -> None:
        if not sending:
            sending.append(True)
            interceptor(operation, params)

    with intercept(once), pytest.raises(RequestFailed):
        obj.move(member_id="b", badge=2)
    assert obj.pk == "a"
    after = stored(table)
    obj.move(member_id="b", badge=2)
    assert (obj.pk, obj.badge, obj._stored) == ("b", 2, after["MEMBER#b"])
    assert stored(table) == after


@pytest.mark.parametrize("refused", [False, True])
def test_a_move_that_another_writer_made_is_not_this_ones(table: Table, refused: bool) -> None:
    """The item is the same, but this object never sent the request, or it was rejected."""
    member()
    obj, other = Member.objects.get(pk="a"), Member.objects.get(pk="a")
    if refused:
        Member.objects.create(member_id="b", email="b@example.org")
        with pytest.raises(AlreadyExists):
            obj.move(member_id="b")
        Member.objects.get(pk="b").hard_delete()
    other.move(member_id="b")
    before = stored(table)
    with pytest.raises(AlreadyExists):
        obj.move(member_id="b")
    assert obj.pk == "a"
    assert stored(table) == before


def test_a_move_elsewhere_is_not_the_one_without_an_answer(table: Table) -> None:
    """A lost response does not apply to another move of the object."""
    obj, other = member(), Member.objects.get(pk="a")
    with refuse("InternalServerError", operation="TransactWriteItems"), pytest.raises(RequestFailed):
        obj.move(member_id="c")
    other.move(member_id="b")
    with pytest.raises(AlreadyExists):
        obj.move(member_id="b")


def test_an_item_of_somebody_else_is_not_taken_for_the_moved_one() -> None:
    """The old item still exists, so the item with the new key is another object."""
    obj = Sample.objects.create(sample_id="a", text="same")
    Sample.objects.create(sample_id="b", text="same")
    with pytest.raises(AlreadyExists):
        obj.move(sample_id="b")
    assert Sample.objects.count() == 2


def test_everything_of_a_wide_item_is_compared() -> None:
    """Sets, maps, numbers and missing attributes are conditions like any other."""
    values: dict[str, Any] = {"words": {"a", "b"}, "data": {"x": [1, {"y": None}]}, "decimal": "1.50", "blob": b"x"}
    obj = Sample.objects.create(sample_id="a", **values)
    Sample.objects.get(pk="a").move(sample_id="b")
    with pytest.raises(StaleObject):
        obj.move(sample_id="c")
    found = Sample.objects.get()
    assert (found.pk, found.words, found.data) == ("b", {"a", "b"}, {"x": [1, {"y": None}]})


def test_expired_items_are_not_in_the_way() -> None:
    """An expired item that DynamoDB has not removed yet does not conflict."""
    Entry.objects.create(shelf="s", slot=2, expires_at=datetime(2020, 1, 1, tzinfo=UTC))
    entry = Entry.objects.create(shelf="s", slot=1, title="x")
    entry.move(slot=2)
    assert [(each.slot, each.title) for each in Entry.objects.filter(shelf="s")] == [(2, "x")]
