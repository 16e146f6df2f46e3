"""Case-insensitive unique strings are equal by their canonical form, as in the key or the claim."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db.models import Q

from dynamo_single import models
from dynamo_single.testing import assert_requests
from tests.catalog.models import Member
from tests.unit.declaring import declare, forgotten

pytestmark = pytest.mark.usefixtures("table")


@pytest.fixture
def account() -> Iterator[Any]:
    """A model whose primary key has the canonical form of an address."""
    with forgotten():
        yield declare(
            "Account",
            ("ACCOUNT#{email:canonical}", "#METADATA"),
            email=models.EmailAttribute(),
            name=models.UnicodeAttribute(default=""),
        )


@pytest.mark.parametrize("name", ["email", "pk"])
def test_a_primary_key_is_got_in_another_case(account: Any, name: str) -> None:
    """A single GetItem is enough, and the object keeps its original spelling."""
    account.objects.create(email="Ann@x.org")
    with assert_requests(["GetItem"]):
        assert account.objects.get(**{name: "ANN@X.org"}).email == "Ann@x.org"


def test_get_or_create_gets_what_is_there_in_another_case(account: Any) -> None:
    """In the past, get() did not find the object that create() conflicted with, so AlreadyExists was raised."""
    account.objects.create(email="Ann@x.org", name="Ann")
    found, created = account.objects.get_or_create(email="ANN@x.org")
    assert (found.name, created) == ("Ann", False)


def test_update_or_create_updates_what_is_there_in_another_case(account: Any) -> None:
    """The existing object is updated."""
    account.objects.create(email="Ann@x.org", name="Ann")
    found, created = account.objects.update_or_create(email="ANN@x.org", defaults={"name": "Anna"})
    assert (found.pk, created) == ("Ann@x.org", False)
    assert account.objects.get(pk="ann@x.org").name == "Anna"


def test_a_unique_value_is_found_in_another_case() -> None:
    """By the key that has its canonical form; get_or_create() meets no claim."""
    Member.objects.create(member_id="m1", email="Ann@x.org")
    with assert_requests(["Query"]):
        assert Member.objects.get(email="ANN@x.org").pk == "m1"
    assert Member.objects.get_or_create(email="ann@X.ORG")[1] is False


def test_a_whole_key_and_a_value_in_another_case_fit_together() -> None:
    """The value is compared after the read."""
    Member.objects.create(member_id="m1", email="Ann@x.org")
    with assert_requests(["GetItem"]):
        assert Member.objects.filter(pk="m1", email="ANN@x.org").exists()


def test_alternatives_are_compared_alike() -> None:
    """Each side of a disjunction is an equality of its own."""
    account = Member.objects.create(member_id="m1", email="Ann@x.org")
    found = Member.objects.filter(Q(email="ANN@x.org") | Q(pk="m2"))
    assert list(found) == [account]


def test_an_exclusion_compares_the_text_itself(account: Any) -> None:
    """DynamoDB compares bytes in a filter, and an object is excluded by its own pk."""
    ann = account.objects.create(email="Ann@x.org")
    account.objects.create(email="bob@x.org")
    assert [each.pk for each in account.objects.allow_scan().exclude(pk=ann.pk)] == ["bob@x.org"]
