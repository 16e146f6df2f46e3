"""An addition to a number takes one request, and no addition is lost."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import LoginFailures, User
from dynamo_single import counters, exceptions, testing
from dynamo_single.table import SentRequest, Table
from tests.catalog.models import Member, Order, Sample, Ticket
from tests.contract.damage import items_of, store

Sent = list[SentRequest]


def failures(number: int, scope: str = "a", **changes: Any) -> LoginFailures:
    """So many more."""
    now = timezone.now()
    values = {"last_failure": now, "expires": now + timedelta(hours=1), **changes}
    return LoginFailures(scope=scope, failures=number, **values)


def operations(sent: Sent) -> list[str]:
    """Return the operations sent."""
    return [request.operation for request in sent]


def test_the_first_addition_makes_the_item(sent: Sent) -> None:
    """One UpdateItem creates a missing object, or adds to an existing one."""
    first = counters.add(failures(2), "failures")
    assert first.failures == 2
    second = counters.add(failures(3), "failures")
    assert second.failures == 5
    assert operations(sent) == ["UpdateItem", "UpdateItem"]
    stored = LoginFailures.objects.get(pk="a")
    assert (stored.failures, stored.last_failure) == (5, second.last_failure)
    assert stored._stored == second._stored


def test_numbers_of_every_kind(table: Table) -> None:
    """One call adds to several integers, floats and decimals, and sets other values."""
    counters.add(Sample(sample_id="1", integer=1, number=0.5, decimal=Decimal("1.10"), text="x"), "integer", "decimal")
    found = counters.add(
        Sample(sample_id="1", integer=-3, number=2.5, decimal=Decimal("0.05"), text="y"), "integer", "decimal"
    )
    assert (found.integer, found.decimal, found.number, found.text) == (-2, Decimal("1.15"), 2.5, "y")
    assert [sample.pk for sample in Sample.objects.order_by("sample_id")] == ["1"]


def test_nothing_is_lost(table: Table) -> None:
    """Many additions at once are all there in the end."""
    threads = [threading.Thread(target=counters.add, args=(failures(1), "failures")) for _ in range(25)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert LoginFailures.objects.get(pk="a").failures == 25


def test_an_expired_number_begins_anew(sent: Sent) -> None:
    """An expired item counts as missing even before DynamoDB removes it: a second request replaces it."""
    counters.add(failures(7, expires=timezone.now() - timedelta(minutes=1)), "failures")
    sent.clear()
    assert counters.add(failures(1), "failures").failures == 1
    assert operations(sent) == ["UpdateItem", "PutItem"]
    assert counters.add(failures(1), "failures").failures == 2


def test_an_expired_number_that_another_began_anew(sent: Sent) -> None:
    """If another process replaces the expired number between the two requests, the addition uses the new number."""
    counters.add(failures(7, expires=timezone.now() - timedelta(minutes=1)), "failures")
    begun: list[bool] = []

    def faster(operation: str, params: Any) -> None:
        if operation == "PutItem" and not begun:
            begun.append(True)
            counters.add(failures(10), "failures")

    with testing.intercept(faster):
        assert counters.add(failures(1), "failures").failures == 11


def test_of_many_who_saw_one_number_one_gets_through(sent: Sent) -> None:
    """``seen`` requires the number that was read."""
    seen = counters.add(failures(5), "failures")
    sent.clear()
    assert counters.add(failures(1), "failures", seen=seen).failures == 6
    assert operations(sent) == ["UpdateItem"]
    with pytest.raises(exceptions.StaleObject, match="another process counted"):
        counters.add(failures(1), "failures", seen=seen)
    LoginFailures.objects.get(pk="a").delete()
    with pytest.raises(exceptions.StaleObject):
        counters.add(failures(1), "failures", seen=seen)
    assert not LoginFailures.objects.filter(pk="a").exists()


@pytest.mark.parametrize(
    ("obj", "names", "error", "said"),
    [
        (Sample(sample_id="1", text="x"), ("text",), exceptions.InvalidValue, "catalog.Sample.text is not a number"),
        (Sample(sample_id="1"), ("no",), exceptions.InvalidValue, "catalog.Sample.no is not a number"),
        (Sample(sample_id="1"), ("moment",), exceptions.InvalidValue, "catalog.Sample.moment is not a number"),
        (Sample(sample_id="1"), ("integer",), exceptions.InvalidValue, "catalog.Sample.integer is None"),
        (Sample(sample_id="1"), (), exceptions.InvalidValue, "Name the attributes of catalog.Sample"),
        (Ticket(code="1"), ("expires_at",), exceptions.InvalidValue, "catalog.Ticket.expires_at is not a number"),
        (Order(number=1), ("number",), exceptions.NotSupported, "catalog.Order.number is part of a key"),
        (Member(badge=1), ("badge",), exceptions.NotSupported, "catalog.Member has unique attributes"),
        (User(username="x"), ("no",), exceptions.InvalidValue, "accounts.User.no is not a number"),
    ],
)
def test_what_cannot_be_added_to(
    sent: Sent, obj: Any, names: tuple[str, ...], error: type[Exception], said: str
) -> None:
    """Keys, unique values and non-numeric attributes raise an error before any request is sent."""
    with pytest.raises(error, match=said):
        counters.add(obj, *names)
    assert sent == []


def test_a_table_that_does_not_answer_is_an_error(table: Table) -> None:
    """A failed addition always raises an error."""
    with testing.refuse("ProvisionedThroughputExceededException"), pytest.raises(exceptions.Throttled):
        counters.add(failures(1), "failures")


def test_a_bound_is_kept_by_many_at_once(table: Table) -> None:
    """Additions succeed until the limit, and rejected ones are not written."""
    results: list[str] = []

    def count() -> None:
        try:
            counters.add(failures(1), "failures", at_most=7)
        except exceptions.ConditionNotMet:
            results.append("full")
        else:
            results.append("counted")

    threads = [threading.Thread(target=count) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == ["counted"] * 7 + ["full"] * 13
    assert LoginFailures.objects.get(pk="a").failures == 7


def test_what_a_bound_refuses(sent: Sent) -> None:
    """The error contains the stored values; a sum that can never fit does not send a request."""
    counters.add(failures(3), "failures", at_most=4)
    with pytest.raises(exceptions.ConditionNotMet, match="would count past 4") as refused:
        counters.add(failures(2), "failures", at_most=4)
    assert refused.value.current.failures == 3
    sent.clear()
    with pytest.raises(exceptions.ConditionNotMet):
        counters.add(failures(5), "failures", at_most=4)
    with pytest.raises(exceptions.NotSupported, match="not both"):
        counters.add(failures(1), "failures", at_most=4, seen=failures(1))
    assert operations(sent) == []


def test_a_bound_begins_anew_after_an_expiry(sent: Sent) -> None:
    """An expired number takes no room."""
    counters.add(failures(4, expires=timezone.now() - timedelta(seconds=1)), "failures")
    sent.clear()
    assert counters.add(failures(1), "failures", at_most=4).failures == 1
    assert operations(sent) == ["UpdateItem", "PutItem"]


@pytest.mark.parametrize(
    "stored", [{"failures": {"S": "many"}}, {"itemType": {"S": "Other"}}, {"expiresAt": {"S": "x"}}]
)
def test_replace_begins_a_damaged_counter_again(table: Table, sent: Sent, stored: dict[str, Any]) -> None:
    counters.add(failures(3), "failures")
    item = sent[-1].params["Key"] | items_of(table, "LoginFailures")[0] | stored
    store(table, item)
    sent.clear()
    assert counters.replace(failures(0)).failures == 0
    assert asyncio.run(counters.areplace(failures(1))).failures == 1
    assert operations(sent) == ["PutItem", "PutItem"]
    assert counters.add(failures(1), "failures").failures == 2


def test_replace_refuses_what_other_items_follow(table: Table) -> None:
    with testing.assert_requests([]), pytest.raises(exceptions.NotSupported, match="unique attributes"):
        counters.replace(User(username="Ann"))
