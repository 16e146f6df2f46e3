"""The user service: users and e-mail addresses over shards, with stored items and requests."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db.models import Count, Exists, OuterRef, Subquery
from django.test import override_settings

from dynamo_single import clock
from dynamo_single.exceptions import AlreadyExists
from dynamo_single.orm.rollout import knowledge, shard_record
from dynamo_single.orm.schema import registry
from dynamo_single.table import Table, get_table
from dynamo_single.testing import assert_requests, frozen_time, setup_table
from tests.catalog.service import Beneficiary, ServiceEmail, ServiceUser
from tests.contract.tables import assert_consistent, everything

ID = "wf5yU_5f63gqauSOLpP5O"
#: The creation times of the scenario's user and its address.
CREATED = datetime.fromtimestamp(1726824079, tz=UTC)
ADDED = datetime.fromtimestamp(1726824178, tz=UTC)


@pytest.fixture
def service(table: Table, settings: Any) -> Iterator[Table]:
    """The service's own table, empty."""
    declared = deepcopy(settings.DYNAMO_SINGLE)
    place = {**declared["default"], "TABLE_NAME": "service", "INDEXES": ["gs1", "gs2", "gs3"]}
    with override_settings(DYNAMO_SINGLE={**declared, "service": place}):
        yield setup_table("service")


@pytest.fixture
def user(service: Table) -> ServiceUser:
    """The scenario's user with its address, in one shard."""
    with frozen_time(CREATED) as time:
        Beneficiary.objects.create(beneficiary_id="b1")
        user = ServiceUser.objects.create(
            user_id=ID, beneficiary_id="b1", first_name="Inés", last_name="Gómez-Juárez-Álvarez"
        )
        time.move(ADDED - CREATED)
        ServiceEmail.objects.create(email="me@example.org", user=user)
    return user


def sharded() -> None:
    """Eight shards from an hour after the beginning on."""
    for model in (ServiceUser, ServiceEmail):
        shard_record.grow(get_table("service"), registry.layout_of(model), 8, clock.instant() + timedelta(hours=1))


@pytest.mark.usefixtures("user")
def test_relations_and_subqueries_read_shards_of_another_table() -> None:
    """The user and its address are in one table, and their shards in several partitions."""
    with frozen_time(ADDED) as time:
        sharded()
        time.move(timedelta(days=1))
        other = ServiceUser.objects.create(user_id="u2", beneficiary_id="b1", first_name="A", last_name="B")
        users = ServiceUser.objects.allow_in_memory()
        addressed = Exists(ServiceEmail.objects.filter(user=OuterRef("pk")))
        assert [each.pk for each in users.filter(~addressed)] == [other.pk]
        assert [each.pk for each in users.filter(emails__email="me@example.org")] == [ID]
        assert {each.pk: each.n for each in users.annotate(n=Count("emails"))} == {ID: 1, other.pk: 0}


@pytest.mark.usefixtures("user")
def test_subquery_reads_a_model_of_another_table(table: Table) -> None:
    found = Beneficiary.objects.filter(pk="b1").allow_in_memory()
    newest = ServiceUser.objects.filter(beneficiary=OuterRef("pk")).order_by("-created").values("first_name")[:1]
    assert [each.x for each in found.annotate(x=Subquery(newest))] == ["Inés"]


def test_the_items_lie_as_the_scenario_says(service: Table, user: ServiceUser) -> None:
    """The range key has the unique property's name and value; times are in seconds; an address has no ``updated``."""
    found = everything(service)
    assert found["user", f"userId#{ID}"] == {
        "pk": {"S": "user"},
        "sk": {"S": f"userId#{ID}"},
        "itemType": {"S": "User"},
        "gs1pk": {"S": "user"},
        "gs1sk": {"S": f"2024-09-20T09:21:19.000Z#{ID}"},
        "gs2pk": {"S": "user#b1"},
        "gs2sk": {"S": f"2024-09-20T09:21:19.000Z#{ID}"},
        "gs3pk": {"S": "user"},
        "gs3sk": {"S": f"gomezjuarezalvarez#{ID}"},
        "userId": {"S": ID},
        "beneficiaryId": {"S": "b1"},
        "created": {"N": "1726824079"},
        "firstName": {"S": "Inés"},
        "firstNameCanonical": {"S": "ines"},
        "lastName": {"S": "Gómez-Juárez-Álvarez"},
        "lastNameCanonical": {"S": "gomezjuarezalvarez"},
        "updated": {"N": "1726824079"},
    }
    assert found["email", "email#me@example.org"] == {
        "pk": {"S": "email"},
        "sk": {"S": "email#me@example.org"},
        "itemType": {"S": "Email"},
        "gs1pk": {"S": f"email#{ID}"},
        "gs1sk": {"S": "2024-09-20T09:22:58.000Z#me@example.org"},
        "email": {"S": "me@example.org"},
        "userId": {"S": ID},
        "created": {"N": "1726824178"},
    }


def test_generated_keys_are_short_and_safe_in_addresses(service: Table) -> None:
    """21 letters, digits, ``_`` and ``-``."""
    ids = {ServiceUser().user_id for _ in range(50)}
    assert len(ids) == 50
    assert all(len(each) == 21 and set(each.replace("_", "a").replace("-", "a")) <= set(ALPHANUMERIC) for each in ids)


ALPHANUMERIC = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


@pytest.mark.usefixtures("user")
def test_each_question_is_one_request() -> None:
    """In one shard; never a scan."""
    with frozen_time(CREATED + timedelta(hours=1)):
        with assert_requests(["GetItem"]):
            user = ServiceUser.objects.get(pk=ID)
        with assert_requests(["Query"]):
            assert [*ServiceUser.objects.filter(created__gte=CREATED - timedelta(days=1))] == [user]
        with assert_requests(["Query"]):
            assert [*ServiceUser.objects.filter(beneficiary="b1").order_by("-created")] == [user]
        with assert_requests(["Query"]):
            assert [*ServiceUser.objects.filter(last_name__istartswith="gomez").order_by("last_name_canonical")] == [
                user
            ]
        with assert_requests(["Query"]):
            assert [email.email for email in user.emails.all()] == ["me@example.org"]
        with assert_requests(["GetItem", "GetItem"]):
            assert ServiceEmail.objects.select_related("user").get(email="me@example.org").user == user


@pytest.mark.usefixtures("user")
def test_an_address_belongs_to_one_user() -> None:
    """Each is unique in the system, since it is the key."""
    with pytest.raises(AlreadyExists):
        ServiceEmail.objects.create(email="me@example.org", user_id="another")


def test_the_same_over_shards(service: Table, user: ServiceUser) -> None:
    """After a growth, queries without a time read old and new shards; with a time, only the shards of that time."""
    with frozen_time(ADDED) as time:
        sharded()
        time.move(timedelta(hours=2))
        made = [
            ServiceUser.objects.create(
                user_id=f"u{number}", beneficiary_id="b1", first_name="Bo", last_name=f"Li {number}"
            )
            for number in range(4)
        ]
        ServiceEmail.objects.create(email="bo@example.org", user=made[0])
        knowledge.schedule(registry.layout_of(ServiceEmail))
        found = everything(service)
        assert {key[0] for key in found if key[1].startswith("userId#u")} == {"user!2", "user!4", "user!7"}
        assert found["user", f"userId#{ID}"]["gs1pk"] == {"S": "user"}
        with assert_requests(["BatchGetItem", "GetItem"]):
            assert ServiceUser.objects.get(pk=ID) == user
            assert ServiceUser.objects.get(pk=ID, created=CREATED) == user
        with assert_requests(["Query"] * 8):
            assert {*ServiceUser.objects.filter(created__gte=clock.instant() - timedelta(hours=1))} == {*made}
        with assert_requests(["Query"]):
            assert [*ServiceUser.objects.filter(created__lt=ADDED).order_by("created")] == [user]
        with assert_requests(["Query"] * 9):
            assert [*ServiceUser.objects.filter(beneficiary="b1").order_by("created", "user_id")] == [user, *made]
        with assert_requests(["Query"] * 9):
            names = ServiceUser.objects.order_by("-last_name_canonical").values_list("last_name_canonical", flat=True)
            assert [*names] == ["li3", "li2", "li1", "li0", "gomezjuarezalvarez"]
        with assert_requests(["Query"] * 9):
            assert ServiceUser.objects.count() == 5
        with assert_requests(["Query"] * (9 + 5 * 9)):  # a Query for each shard of each user's addresses
            users = ServiceUser.objects.filter(beneficiary="b1").order_by("created").prefetch_related("emails")
            assert [len(each.emails.all()) for each in users] == [1, 1, 0, 0, 0]
        assert_consistent("service")


@pytest.mark.usefixtures("user")
def test_every_write_over_shards_is_one_request() -> None:
    """A creation is a transaction once several keys are possible; changes know where their object is."""
    with frozen_time(ADDED) as time:
        sharded()
        time.move(timedelta(hours=2))
        knowledge.schedule(registry.layout_of(ServiceUser))
        with assert_requests(["TransactWriteItems"]):
            user = ServiceUser.objects.create(user_id="u1", beneficiary_id="b1", first_name="Bo", last_name="Li")
        user.last_name = "Núñez"
        with assert_requests(["UpdateItem"]):
            user.save()
        with assert_requests(["BatchGetItem", "UpdateItem"]):
            assert ServiceUser.objects.filter(pk="u1").update(last_name="Ørsted") == 1
        with assert_requests(["Query"] * 9):
            assert ServiceUser.objects.filter(last_name_canonical="ørsted").get() == user
        with assert_requests(["BatchGetItem"]):
            user = ServiceUser.objects.get(pk="u1")
        with assert_requests(["UpdateItem"]):
            user.delete()
        with assert_requests(["Query"] * 9):
            assert [*ServiceUser.deleted_objects.order_by("deleted_at")] == [user]
        with assert_requests(["UpdateItem"]):
            user.restore()
        with assert_requests(["DeleteItem"]):
            user.hard_delete()
        assert_consistent("service")
