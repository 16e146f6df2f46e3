"""Unique values of a table that the app does not own: the claims are in its companion, in one transaction."""

from __future__ import annotations

from threading import Barrier, Thread
from typing import Any
from uuid import uuid4

import pytest

from dynamo_single import models, transactions
from dynamo_single.exceptions import IntegrityError, NotSupported, OutcomeUnknown, UniqueViolation
from dynamo_single.table import Table, capture_requests, get_table
from dynamo_single.testing import assert_requests, fault, refuse
from tests.contract.adoption.conftest import ADOPTED, keys, types
from tests.unit.declaring import declare

CLAIM = ("COMPANION#shop#UNIQUE#Person#email#ann@example.com", "#CLAIM")


def person(label: str = "Person", **options: Any) -> Any:
    """Declare a person of the adopted table with a unique address."""
    return declare(
        label,
        ("PERSON#{name}", "#METADATA"),
        options={"table": ADOPTED, **options},
        name=models.UnicodeAttribute(),
        email=models.UnicodeAttribute(unique=True, null=True),
    )


def test_create_writes_the_claim_to_the_companion(adopted: Table) -> None:
    with assert_requests(["TransactWriteItems"]):
        person().objects.create(name="ann", email="ann@example.com")

    assert types(adopted) == {"Person": 1}
    assert keys(get_table()) == [CLAIM]


def test_a_taken_value_is_refused_by_the_claim(adopted: Table) -> None:
    Person = person()
    Person.objects.create(name="ann", email="ann@example.com")

    with pytest.raises(UniqueViolation, match=r"Another catalog\.Person has email 'ann@example\.com'"):
        Person.objects.create(name="bob", email="ann@example.com")

    assert types(adopted) == {"Person": 1}


def test_get_by_unique_value_reads_both_tables(adopted: Table) -> None:
    Person = person()
    Person.objects.create(name="ann", email="ann@example.com")

    with capture_requests() as sent:
        assert Person.objects.get(email="ann@example.com").name == "ann"

    assert [each.params["TableName"] for each in sent] == [get_table().name, adopted.name]


def test_values_of_many_claims_are_found(adopted: Table) -> None:
    Person = person()
    for name in ("ann", "bob"):
        Person.objects.create(name=name, email=f"{name}@example.com")

    found = Person.objects.filter(email__in=["ann@example.com", "bob@example.com", "cy@example.com"])

    assert sorted(each.name for each in found) == ["ann", "bob"]


def test_delete_releases_the_claim(adopted: Table) -> None:
    found = person().objects.create(name="ann", email="ann@example.com")

    found.delete()

    assert (types(adopted), keys(get_table())) == ({}, [])


def test_a_value_moves_within_a_block(adopted: Table) -> None:
    Person = person()
    ann = Person.objects.create(name="ann", email="ann@example.com")
    bob = Person.objects.create(name="bob")

    with transactions.atomic():
        ann.email, bob.email = None, "ann@example.com"
        bob.save()
        ann.save()

    assert Person.objects.get(email="ann@example.com").name == "bob"


def test_one_type_in_two_tables_has_separate_claims(adopted: Table) -> None:
    person(item_type="Customer").objects.create(name="ann", email="ann@example.com")
    own = person("OwnPerson", table="default", item_type="Customer")

    own.objects.create(name="ann", email="ann@example.com")

    assert types(get_table()) == {"Customer": 1, "UniqueClaim": 2}


def test_a_transaction_of_both_tables_has_one_limit(adopted: Table) -> None:
    Person = person()

    with pytest.raises(NotSupported, match="a transaction takes 100"), transactions.atomic():
        for number in range(51):
            Person.objects.create(name=f"n{number}", email=f"n{number}@example.com")

    assert (types(adopted), types(get_table())) == ({}, {})


def test_a_lost_answer_is_recognized_as_success(adopted: Table) -> None:
    Person = person()

    with fault("lost answer", operation="TransactWriteItems", times=1, alias=ADOPTED), pytest.raises(OutcomeUnknown):
        Person.objects.create(name="ann", email="ann@example.com")

    assert (types(adopted), types(get_table())) == ({"Person": 1}, {"UniqueClaim": 1})


def test_a_token_repeats_a_block_of_both_tables_once(adopted: Table) -> None:
    Person, token = person(), uuid4().hex

    for _ in range(2):
        with transactions.atomic(token=token):
            Person.objects.create(name="ann", email="ann@example.com")

    assert (types(adopted), types(get_table())) == ({"Person": 1}, {"UniqueClaim": 1})


def test_nothing_is_written_if_the_transaction_is_refused(adopted: Table) -> None:
    refused = refuse("TransactionCanceledException", operation="TransactWriteItems", CancellationReasons=[{}, {}])

    with refused, pytest.raises(Exception, match="cancelled"):
        person().objects.create(name="ann", email="ann@example.com")

    assert (types(adopted), types(get_table())) == ({}, {})


def test_one_of_many_racing_writers_gets_the_value(adopted: Table) -> None:
    Person, start = person(), Barrier(8)
    won: list[str] = []

    def take(name: str) -> None:
        start.wait()
        try:
            Person.objects.create(name=name, email="ann@example.com")
        except IntegrityError:
            return
        won.append(name)

    threads = [Thread(target=take, args=(f"n{number}",)) for number in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert len(won) == 1
    assert Person.objects.get(email="ann@example.com").name == won[0]
    assert (types(adopted), types(get_table())) == ({"Person": 1}, {"UniqueClaim": 1})


def test_without_a_companion_a_unique_value_is_refused(lone: Table) -> None:
    with pytest.raises(Exception, match=r"Set DYNAMO_SINGLE\['shop'\]\['COMPANION'\]"), assert_requests(0):
        person().objects.create(name="ann", email="ann@example.com")
