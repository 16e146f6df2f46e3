"""``in_bulk()``: by primary key, by another unique attribute, and of a whole queryset."""

from __future__ import annotations

from typing import Any

import pytest
from django.db.models import Count

from dynamo_single.testing import assert_requests
from tests.catalog.boards import Label
from tests.catalog.models import Coupon, Member, Order

pytestmark = pytest.mark.usefixtures("members")


@pytest.fixture
def members(table: Any) -> None:
    """Three members."""
    for key, email, badge in [
        ("m1", "Anna@example.com", 1),
        ("m2", "ben@example.com", None),
        ("m3", "c@example.com", 3),
    ]:
        Member.objects.create(member_id=key, email=email, badge=badge)


def test_by_primary_key() -> None:
    """Objects are found by ``pk``, including composite ones, and missing ones are omitted."""
    with assert_requests(["BatchGetItem"]):
        assert {key: each.email for key, each in Member.objects.in_bulk(["m3", "m1", "m9"]).items()} == {
            "m3": "c@example.com",
            "m1": "Anna@example.com",
        }
    Order.objects.create(customer="a", number=1)
    with assert_requests(["GetItem"]):
        assert list(Order.objects.in_bulk(["a~~1"])) == ["a~~1"]
    with assert_requests([]):
        assert Member.objects.in_bulk([]) == {}


def test_an_order_of_the_model_costs_nothing() -> None:
    """``Meta.ordering``, which single items do not have, does not turn one request into several."""
    keys = [Label.objects.create(board_id="b", label_id=label_id, text="t").pk for label_id in "321"]
    with assert_requests(["BatchGetItem"]):
        assert list(Label.objects.in_bulk(keys)) == keys


def test_by_another_unique_attribute() -> None:
    """Objects are found by the exact stored value, with one request for claims and one for objects."""
    with assert_requests(["BatchGetItem", "BatchGetItem"]):
        found = Member.objects.in_bulk(["Anna@example.com", "BEN@example.com"], field_name="email")
    assert {key: each.pk for key, each in found.items()} == {"Anna@example.com": "m1"}
    with assert_requests(["BatchGetItem", "BatchGetItem"]):
        assert {key: each.pk for key, each in Member.objects.in_bulk([1, 3], field_name="badge").items()} == {
            1: "m1",
            3: "m3",
        }
    with assert_requests(["GetItem"]):
        assert Coupon.objects.in_bulk(["x@example.com"], field_name="email") == {}


def test_what_in_bulk_refuses() -> None:
    """Slices, rows and non-unique attributes raise an error, as in Django."""
    with pytest.raises(TypeError, match="'limit' or 'offset'"):
        Member.objects.all()[:2].in_bulk(["m1"])
    with pytest.raises(TypeError, match="values"):
        Member.objects.values("name").annotate(n=Count("pk")).in_bulk(["m1"])
    with pytest.raises(ValueError, match="unique field but 'name' isn't"):
        Member.objects.in_bulk(["x"], field_name="name")


def test_rows_by_key() -> None:
    """The key is read with the rows, but is not part of them, as in Django 6.1."""
    emails = dict(Member.objects.values_list("pk", "email"))
    with assert_requests(["BatchGetItem"]):
        found = Member.objects.values("email").in_bulk(["m1", "m3"])
    assert found == {pk: {"email": emails[pk]} for pk in ("m1", "m3")}


def test_rows_by_another_unique_attribute() -> None:
    found = Member.objects.values_list("pk", flat=True).in_bulk([1, 3], field_name="badge")
    assert sorted(found.items()) == [(1, "m1"), (3, "m3")]


def test_of_everything() -> None:
    """Without a list it is the whole queryset by key."""
    with assert_requests(["Query"]):
        assert sorted(Member.objects.in_bulk()) == ["m1", "m2", "m3"]
