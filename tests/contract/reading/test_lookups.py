"""A unique value finds its object: first the claim, then the owner."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import Q

from dynamo_single import clock, models, transactions
from dynamo_single.exceptions import NoAccessPattern, PendingWrite, UnexpectedItem
from dynamo_single.table import Request, Table, intercept
from dynamo_single.testing import assert_requests, moved_time
from tests.catalog.models import Coupon, Member
from tests.catalog.seats import Seat, Voucher
from tests.unit.declaring import declare, forgotten

FOUND = ["GetItem", "GetItem"]
NOT_FOUND = ["GetItem"]
SEVERAL = ["BatchGetItem", "BatchGetItem"]


@pytest.fixture
def coupon(table: Table) -> Coupon:
    """Return a model with a unique address and no key that lists it."""
    return Coupon.objects.create(code="c1", email="anna@example.com")


@pytest.fixture
def members(table: Table) -> list[Member]:
    """Create three members, two of them with badges."""
    given = [("m1", "Anna@example.com", 1), ("m2", "ben@example.com", 2), ("m3", "cleo@example.com", None)]
    return [Member.objects.create(member_id=pk, email=email, badge=badge) for pk, email, badge in given]


@pytest.mark.parametrize(
    ("read", "expected"),
    [
        (lambda asked: asked.get().pk, "c1"),
        (lambda asked: [each.pk for each in asked], ["c1"]),
        (lambda asked: asked.exists(), True),
        (lambda asked: asked.count(), 1),
        (lambda asked: asked.first().pk, "c1"),
        (lambda asked: asked.last().pk, "c1"),
        (lambda asked: asked.order_by("code").first().pk, "c1"),
        (lambda asked: asked.consistent().get().pk, "c1"),
        (lambda asked: list(asked.values_list("code", flat=True)), ["c1"]),
        (lambda asked: asked.only("code").get().code, "c1"),
        (lambda asked: [each.pk for each in asked.page(5)], ["c1"]),
        (lambda asked: asyncio.run(asked.aget()).pk, "c1"),
        (lambda asked: asyncio.run(asked.aexists()), True),
        (lambda asked: asyncio.run(asked.acount()), 1),
        (lambda asked: asyncio.run(asked.afirst()).pk, "c1"),
    ],
    ids=lambda value: None if callable(value) else repr(value),
)
def test_one_object_is_two_consistent_requests(coupon: Coupon, read: Callable[[Any], Any], expected: Any) -> None:
    """The plan does not depend on the method."""
    with assert_requests(FOUND) as sent:
        assert read(Coupon.objects.filter(email="anna@example.com")) == expected
    assert all(each.params["ConsistentRead"] for each in sent)


def test_what_nobody_has_is_one_request(coupon: Coupon) -> None:
    with assert_requests(NOT_FOUND), pytest.raises(Coupon.DoesNotExist):
        Coupon.objects.get(email="nobody@example.com")
    with assert_requests(NOT_FOUND):
        assert not Coupon.objects.filter(email="nobody@example.com").exists()


def test_what_no_key_can_hold_sends_nothing(coupon: Coupon) -> None:
    """No object can have it."""
    with assert_requests([]):
        assert not Coupon.objects.filter(email="x" * 5000).exists()


def test_an_object_is_got_or_created_by_what_is_unique(coupon: Coupon) -> None:
    with assert_requests(FOUND):
        assert Coupon.objects.get_or_create(email="anna@example.com", defaults={"code": "c2"}) == (coupon, False)
    with assert_requests([*NOT_FOUND, "TransactWriteItems"]):
        made, created = Coupon.objects.get_or_create(email="ben@example.com", defaults={"code": "c2"})
    assert (made.pk, created) == ("c2", True)
    later = clock.now() + timedelta(days=1)
    with assert_requests([*FOUND, "TransactWriteItems"]):
        Coupon.objects.update_or_create(email="ben@example.com", defaults={"expires_at": later})
    made.refresh_from_db()
    assert made.expires_at is not None


def test_whoever_was_faster_is_got(coupon: Coupon) -> None:
    """The claim is read consistently, so a second look finds its new owner."""
    done = False

    def take(operation: str, params: Any) -> None:
        nonlocal done
        if operation == "TransactWriteItems" and not done:
            done = True
            with ThreadPoolExecutor(1) as other:
                other.submit(Coupon.objects.create, code="c2", email="ben@example.com").result()

    with intercept(take):
        found, created = Coupon.objects.get_or_create(email="ben@example.com", defaults={"code": "c3"})
    assert (found.pk, created) == ("c2", False)


def test_writes_through_a_queryset_find_their_object_so(coupon: Coupon) -> None:
    with assert_requests([*FOUND, "TransactWriteItems"]):
        assert Coupon.objects.filter(email="anna@example.com").delete()[0] == 1


def test_further_conditions_are_asked_of_the_owner(members: list[Member]) -> None:
    """The claim does not contain other values."""
    with assert_requests(FOUND):
        assert not Member.objects.filter(badge=2, name="Ben").exists()
    with assert_requests(FOUND):
        assert Member.objects.get(badge=2, name="", email__startswith="ben").pk == "m2"


def test_a_claim_comes_before_a_key_that_lists_the_whole_model(members: list[Member]) -> None:
    text = Member.objects.filter(badge=2).explain()
    assert "GetItem on the claim on badge, and then on the object that holds it" in text
    assert "badge is unique, so that a claim names the object" in text
    assert "2, strongly consistent; 1 if nothing holds it" in text
    assert "listed (gs1) 'MEMBER' / '{email:canonical}': it would read more than single items" in text


def test_a_key_that_finds_the_one_item_comes_before_a_claim(members: list[Member]) -> None:
    """The key takes one request and was declared for this; a consistent read uses the claim."""
    with assert_requests(["Query"]):
        assert Member.objects.get(email="ANNA@example.com").pk == "m1"
    with assert_requests(FOUND):
        assert Member.objects.consistent().get(email="ANNA@example.com").pk == "m1"


@pytest.mark.parametrize("lookup", ["iexact", "canonical"])
def test_without_regard_to_case_where_the_rule_is_so(members: list[Member], lookup: str) -> None:
    with assert_requests(FOUND):
        assert Member.objects.consistent().get(**{f"email__{lookup}": "BEN@EXAMPLE.com"}).pk == "m2"


def test_a_folded_copy_is_as_good_as_the_text(table: Table) -> None:
    """``iexact`` uses the copy, and the claim has the same form."""
    with forgotten():
        model: Any = declare(
            "Reader",
            ("READER#{reader_id}", "#METADATA"),
            reader_id=models.UnicodeAttribute(),
            name=models.UnicodeAttribute(unique=True, canonical=True),
            name_folded=models.CanonicalAttribute(source="name"),
        )
        model.objects.create(reader_id="r", name="Straße")
        with assert_requests(FOUND):
            assert model.objects.get(name__iexact="STRASSE").pk == "r"


@pytest.mark.parametrize(
    "condition", [{"badge": None}, {"badge__isnull": True}, {"badge__gt": 1}, {"email__startswith": "b"}]
)
def test_other_questions_are_no_lookups(members: list[Member], condition: Any) -> None:
    """Missing values are not claimed, and a claim contains one value."""
    with assert_requests(["Query"]):
        list(Member.objects.filter(**condition))


def test_an_empty_text_is_not_claimed(table: Table) -> None:
    """Any number of objects can have an empty string, so no claim identifies one."""
    Seat.objects.create(seat_id="s1", hall="A")
    with assert_requests(["Query"]):
        assert Seat.objects.filter(hall="A", code="").count() == 1
    with pytest.raises(NoAccessPattern):
        list(Coupon.objects.filter(email=""))


def test_the_trash_holds_no_claims(members: list[Member]) -> None:
    """The trash, and queries that include it, use its key."""
    members[1].delete()
    with assert_requests(NOT_FOUND):
        assert not Member.objects.filter(badge=2).exists()
    with assert_requests(["Query"]):
        assert Member.deleted_objects.get(badge=2).pk == "m2"
    with assert_requests([*FOUND, "Query"]):
        assert [each.pk for each in Member.all_objects.filter(badge=1)] == ["m1"]


def test_several_attributes_together(table: Table) -> None:
    """All of them are required; the owner is compared with further values."""
    Seat.objects.create(seat_id="s1", hall="A", row=7)
    with assert_requests(FOUND):
        assert Seat.objects.get(hall="A", row=7).pk == "s1"
    with assert_requests(FOUND):
        assert not Seat.objects.filter(hall="A", row=7, status="taken").exists()
    with pytest.raises(NoAccessPattern):
        list(Seat.objects.filter(row=7))


def test_a_rule_with_a_condition_answers_where_the_question_implies_it(table: Table) -> None:
    Seat.objects.create(seat_id="s1", hall="A", guest="Mike", status="taken")
    Seat.objects.create(seat_id="s2", hall="A", guest="Mike")
    with assert_requests(FOUND):
        assert Seat.objects.get(guest="Mike", status="taken").pk == "s1"
    with assert_requests(FOUND):
        assert Seat.objects.get(guest__iexact="MIKE", status="taken").pk == "s1"
    for condition in ({}, {"status": "free"}, {"status__in": ["taken", "free"]}, {"status__startswith": "taken"}):
        with pytest.raises(NoAccessPattern):
            list(Seat.objects.filter(guest="Mike", **condition))


def test_several_values_are_two_batches(members: list[Member]) -> None:
    with assert_requests(SEVERAL):
        assert [each.pk for each in Member.objects.filter(badge__in=[2, 9, 1])] == ["m2", "m1"]
    with assert_requests(SEVERAL):
        assert {badge: each.pk for badge, each in Member.objects.in_bulk([1, 2], field_name="badge").items()} == {
            1: "m1",
            2: "m2",
        }


def test_each_hundred_values_are_two_batches(table: Table) -> None:
    Member.objects.bulk_create([Member(member_id=f"m{n}", email=f"{n}@example.com", badge=n) for n in range(102)])
    with assert_requests([*SEVERAL, *SEVERAL]):
        assert len(Member.objects.in_bulk(list(range(102)), field_name="badge")) == 102


def test_several_unique_values_are_sorted_in_memory(table: Table) -> None:
    """Claims have no order, so objects are sorted after the read, and pages raise an error."""
    addresses = [f"{letter}@example.com" for letter in "ba"]
    for email in addresses:
        Coupon.objects.create(code=email, email=email)
    several = Coupon.objects.filter(email__in=[*addresses, *(f"{n}@example.com" for n in range(25))]).order_by("email")
    with assert_requests(SEVERAL):
        assert [each.pk for each in several] == ["a@example.com", "b@example.com"]
    with pytest.raises(NoAccessPattern, match=r"remove the order .* so that what is unique supports it"):
        several.page(2)


def test_alternatives_are_a_lookup_each(members: list[Member]) -> None:
    with assert_requests([*FOUND, "Query"]):
        found = Member.objects.filter(Q(badge=1) | Q(email="ben@example.com"))
        assert sorted(each.pk for each in found) == ["m1", "m2"]


def test_pages_of_what_is_claimed(members: list[Member]) -> None:
    """A cursor counts claims, whatever becomes of their owners."""
    asked = Member.objects.filter(badge__in=[1, 2, 3, 4])
    members[2].badge = 4
    members[2].save()
    first = asked.page(1)
    members[0].delete()
    second = asked.page(1, first.next_cursor)
    third = asked.page(1, second.next_cursor)
    assert [each.pk for page in (first, second, third) for each in page] == ["m1", "m2", "m3"]
    assert third.next_cursor is None
    assert [each.pk for each in asked.page(1, asked.cursor_for(members[1]))] == ["m3"]


def test_what_has_expired_holds_nothing(table: Table) -> None:
    """The claim expires with it, although both are still stored."""
    Voucher.objects.create(voucher_id="v", shop="s", number=1, expires_at=clock.now() + timedelta(hours=1))
    assert Voucher.objects.get(shop="s", number=1).pk == "v"
    with moved_time(timedelta(hours=2)), assert_requests(NOT_FOUND):
        assert not Voucher.objects.filter(shop="s", number=1).exists()


def _between(work: Callable[[], object]) -> Any:
    """Call a function once after the first request."""
    left = 2

    def interceptor(operation: str, params: Any) -> None:
        nonlocal left
        if operation == "GetItem" and left:
            left -= 1
            if not left:
                work()

    return intercept(interceptor)


def test_a_value_that_changes_hands_in_between_is_found_at_its_new_owner(coupon: Coupon) -> None:
    """The claim of the first request names an object that does not hold it at the second one."""

    def change() -> None:
        Coupon.objects.filter(pk="c1").update(email="other@example.com")
        Coupon.objects.create(code="c2", email="anna@example.com")

    with _between(change):
        assert Coupon.objects.get(email="anna@example.com").pk == "c2"


def test_a_value_that_is_released_in_between_is_nobodys(coupon: Coupon) -> None:
    with _between(lambda: Coupon.objects.filter(pk="c1").delete()):
        assert not Coupon.objects.filter(email="anna@example.com").exists()


def test_a_claim_without_its_owner_is_reported_after_a_second_look(coupon: Coupon, table: Table) -> None:
    """A taken value without an owner raises an error instead of DoesNotExist."""
    table.send(Request("DeleteItem", {"Key": {"pk": {"S": "COUPON#c1"}, "sk": {"S": "#METADATA"}}}))
    with assert_requests([*FOUND, *FOUND]), pytest.raises(UnexpectedItem, match=r"does not hold it.*dynamo_verify"):
        Coupon.objects.get(email="anna@example.com")


def test_a_pending_claim_is_not_read(coupon: Coupon) -> None:
    """Within a block the table does not have it yet as the block means it."""
    with transactions.atomic():
        Coupon.objects.create(code="c2", email="ben@example.com")
        with pytest.raises(PendingWrite):
            Coupon.objects.get(email="ben@example.com")
        assert Coupon.objects.get(email="anna@example.com") == coupon
