"""The user service over shards: stored items, and the requests of each query and write after a growth.

One user and one address are in one shard; four users, two of them with two addresses each, are in eight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from dynamo_single import clock
from dynamo_single.exceptions import AlreadyExists, NoAccessPattern
from dynamo_single.orm.rollout import knowledge, shard_record
from dynamo_single.orm.schema import registry
from dynamo_single.table import Table, get_table
from dynamo_single.testing import assert_requests, frozen_time
from tests.catalog.service import Beneficiary, ServiceEmail, ServiceUser
from tests.contract.scenarios.test_scenario_service import ADDED, ID, service, user
from tests.contract.tables import assert_consistent, everything

__all__ = ["service", "user"]

#: One Query in the shard of before, and one in each of the eight.
ALL_SHARDS = ["Query"] * 9


@pytest.fixture
def grown(service: Table, user: ServiceUser) -> Iterator[Any]:
    """Move the clock to two hours after the growth, with users and addresses in eight shards."""
    with frozen_time(ADDED) as time:
        for model in (ServiceUser, ServiceEmail):
            shard_record.grow(get_table("service"), registry.layout_of(model), 8, clock.instant() + timedelta(hours=1))
        time.move(timedelta(hours=2))
        for number in range(4):
            made = ServiceUser.objects.create(
                user_id=f"u{number}", beneficiary_id="b1", first_name="Bo", last_name=f"Li {number}"
            )
            for each in range(2 if number < 2 else 0):
                ServiceEmail.objects.create(email=f"bo{number}{each}@example.org", user=made)
        knowledge.schedule(registry.layout_of(ServiceEmail))
        knowledge.schedule(registry.layout_of(ServiceUser))
        yield time
    assert_consistent("service")


def test_items_of_a_shard_lie_as_those_of_one_with_its_number(service: Table, grown: Any) -> None:
    """The number is only at the end of each partition; earlier items are unchanged."""
    found = everything(service)
    made = found["user!4", "userId#u0"]
    assert {name: value for name, value in made.items() if name.startswith(("pk", "sk", "gs"))} == {
        "pk": {"S": "user!4"},
        "sk": {"S": "userId#u0"},
        "gs1pk": {"S": "user!4"},
        "gs1sk": {"S": "2024-09-20T11:22:58.000Z#u0"},
        "gs2pk": {"S": "user#b1!4"},
        "gs2sk": {"S": "2024-09-20T11:22:58.000Z#u0"},
        "gs3pk": {"S": "user!4"},
        "gs3sk": {"S": "li0#u0"},
    }
    assert found["email!5", "email#bo00@example.org"] == {
        "pk": {"S": "email!5"},
        "sk": {"S": "email#bo00@example.org"},
        "itemType": {"S": "Email"},
        "gs1pk": {"S": "email#u0!5"},
        "gs1sk": {"S": "2024-09-20T11:22:58.000Z#bo00@example.org"},
        "email": {"S": "bo00@example.org"},
        "userId": {"S": "u0"},
        "created": {"N": "1726831378"},
    }
    assert found["user", f"userId#{ID}"]["gs2pk"] == {"S": "user#b1"}


def bo() -> ServiceUser:
    """Return the first user of the eight shards without reading it."""
    return ServiceUser(user_id="u0")


def of_these_minutes() -> dict[str, Any]:
    """Return the times with eight shards, up to now."""
    return {"created__gte": clock.instant() - timedelta(minutes=5), "created__lte": clock.instant()}


EMAILS, USERS = ServiceEmail.objects, ServiceUser.objects
TWO = ["bo00@example.org", "bo01@example.org"]
#: Each query, its results and its requests.
QUESTIONS: dict[str, tuple[Callable[[], object], object, list[str]]] = {
    "an address": (lambda: EMAILS.get(email="me@example.org").user_id, ID, ["BatchGetItem"]),
    "an address with its user": (
        lambda: EMAILS.select_related("user").get(email=TWO[0]).user.last_name,
        "Li 0",
        ["BatchGetItem"] * 2,
    ),
    "addresses of a user": (lambda: [e.email for e in bo().emails.all()], TWO, ALL_SHARDS),
    "the latest first": (lambda: [e.email for e in bo().emails.order_by("-created")], TWO[::-1], ALL_SHARDS),
    "those of these minutes": (
        lambda: [e.email for e in EMAILS.filter(user=bo(), **of_these_minutes())],
        TWO,
        ["Query"] * 8,
    ),
    "how many addresses": (lambda: bo().emails.count(), 2, ALL_SHARDS),
    "addresses with their users": (
        lambda: [e.user.last_name for e in EMAILS.filter(user__in=["u0", "u1"]).prefetch_related("user")],
        ["Li 0", "Li 0", "Li 1", "Li 1"],
        [*ALL_SHARDS * 2, "BatchGetItem"],
    ),
    "addresses joined with their users": (
        lambda: [e.user.last_name for e in EMAILS.filter(user=bo()).select_related("user")],
        ["Li 0", "Li 0"],
        [*ALL_SHARDS, "BatchGetItem"],
    ),
    "users with their addresses": (
        lambda: [len(u.emails.all()) for u in USERS.filter(pk__in=["u0", ID]).prefetch_related("emails")],
        [2, 1],
        ["BatchGetItem", *ALL_SHARDS * 2],
    ),
    "users of a beneficiary": (
        lambda: [u.pk for u in USERS.filter(beneficiary="b1").order_by("created", "user_id")],
        [ID, "u0", "u1", "u2", "u3"],
        ALL_SHARDS,
    ),
    "users of a beneficiary of these minutes": (
        lambda: USERS.filter(beneficiary="b1", **of_these_minutes()).count(),
        4,
        ["Query"] * 8,
    ),
    "a page of them": (
        lambda: [u.pk for u in USERS.filter(beneficiary="b1").order_by("created").page(size=2)],
        [ID, "u0"],
        ALL_SHARDS,
    ),
    "a beneficiary with its users": (
        lambda: [len(b.serviceuser_set.all()) for b in Beneficiary.objects.filter(pk="b1")],
        [5],
        ["GetItem", *ALL_SHARDS],
    ),
    "users by canonical last name": (
        lambda: [u.pk for u in USERS.filter(last_name__iexact="GÓMEZ-JUÁREZ-ALVAREZ")],
        [ID],
        ALL_SHARDS,
    ),
    "users by its beginning": (
        lambda: [u.pk for u in USERS.filter(last_name_canonical__startswith="li").order_by("last_name_canonical")],
        ["u0", "u1", "u2", "u3"],
        ALL_SHARDS,
    ),
    "users by several ids": (
        lambda: sorted(USERS.in_bulk(["u0", ID, "none"])),
        sorted(["u0", ID]),
        ["BatchGetItem"],
    ),
    "whether a user is there": (lambda: USERS.filter(pk=ID).exists(), True, ["BatchGetItem"]),
}


@pytest.mark.usefixtures("grown")
@pytest.mark.parametrize("name", QUESTIONS)
def test_what_a_question_gives_and_sends(name: str) -> None:
    """By an identity one BatchGetItem, by anything else a Query in each shard that the time leaves; never a scan."""
    question, expected, requests = QUESTIONS[name]
    with assert_requests(requests):
        found = question()
    assert found == expected


@pytest.mark.usefixtures("grown")
def test_an_address_of_before_the_growth_is_taken_for_ever() -> None:
    """By every way to create one."""
    with assert_requests(["TransactWriteItems"]), pytest.raises(AlreadyExists):
        EMAILS.create(email="me@example.org", user=bo())
    with assert_requests(["TransactWriteItems"]), pytest.raises(AlreadyExists):
        bo().emails.create(email="me@example.org")
    with assert_requests(["TransactWriteItems"]), pytest.raises(AlreadyExists):
        EMAILS.bulk_create([ServiceEmail(email="me@example.org", user=bo())])
    with assert_requests(["BatchGetItem"]):
        assert EMAILS.get_or_create(email="me@example.org", defaults={"user": bo()})[1] is False


@pytest.mark.usefixtures("grown")
def test_what_querysets_write_over_shards_is_one_request_an_object() -> None:
    """After the reading that finds them."""
    with assert_requests([*ALL_SHARDS, *["UpdateItem"] * 5]):
        assert USERS.filter(beneficiary="b1").update(phone="+15550100") == 5
    with assert_requests([*ALL_SHARDS, "UpdateItem"]):
        assert USERS.filter(last_name_canonical="li0").delete()[0] == 1
    with assert_requests(ALL_SHARDS):
        assert [u.pk for u in ServiceUser.deleted_objects.order_by("-deleted_at").page(size=2)] == ["u0"]
    with assert_requests([*ALL_SHARDS, "UpdateItem"]):
        assert ServiceUser.deleted_objects.all().restore()[0] == 1
    with assert_requests([*ALL_SHARDS, *["DeleteItem"] * 2]):
        assert bo().emails.all().delete()[0] == 2


@pytest.mark.usefixtures("grown")
def test_a_growth_later_a_creation_checks_three_keys() -> None:
    """In one transaction: the item, and each other place that the schedule gives the identity."""
    layout = registry.layout_of(ServiceEmail)
    shard_record.grow(get_table("service"), layout, 13, clock.instant() + timedelta(hours=1))
    knowledge.schedule(layout)
    with assert_requests(["TransactWriteItems"]) as sent:
        EMAILS.create(email="three@example.org", user=bo())
    keys = [
        (kind, action.get("Key", action.get("Item"))["pk"]["S"])
        for each in sent[0].params["TransactItems"]
        for kind, action in each.items()
    ]
    assert keys == [("Put", "email!0"), ("ConditionCheck", "email"), ("ConditionCheck", "email!12")]


def test_partitions_of_many_shards_are_read_within_a_bound(service: Table) -> None:
    """Each shard of each partition takes a Query, 10,000 at most; the error contains the limit of partitions."""
    shard_record.record_first(service, registry.layout_of(ServiceEmail), 64)
    users = [f"u{number}" for number in range(157)]
    found = ServiceEmail.objects.using_index("by_user")
    assert found.filter(user__in=users[:156]).explain().endswith("and 9981 more like these")
    with assert_requests(0), pytest.raises(NoAccessPattern) as raised:
        list(found.filter(user__in=users))
    assert "it would read 157 partitions of 64 shards, and the limit is 10000 shards; query 156" in str(raised.value)
