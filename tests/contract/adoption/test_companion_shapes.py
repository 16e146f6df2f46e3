"""Claims of tables with names and keys of their own: the companion keeps the app's names."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from dynamo_single import models
from dynamo_single.contrib.doctor import verify
from dynamo_single.exceptions import DynamoSingleError, UniqueViolation
from dynamo_single.orm.reading.single import stored_items
from dynamo_single.orm.requests.actions import key_of
from dynamo_single.orm.requests.compiler import compile_reads
from dynamo_single.table import Request, Table, get_table
from dynamo_single.table.flow import run
from dynamo_single.testing import assert_requests, setup_table
from tests.contract.adoption.conftest import ADOPTED, adopted_table, keys
from tests.unit.declaring import declare, forgotten

NAMES = {"PARTITION_KEY": "PK", "SORT_KEY": "SK", "INDEXES": {}}
#: The settings of each table, and the attributes that a stored person has there.
SHAPES: dict[str, tuple[dict[str, Any], set[str]]] = {
    "other names": ({**NAMES, "TYPE_ATTRIBUTE": "_type"}, {"PK", "SK", "_type", "name", "age", "email"}),
    "without a type": ({**NAMES, "TYPE_ATTRIBUTE": None, "RAW_KEYS": True}, {"PK", "SK", "name", "age", "email"}),
    "a partition key alone": (
        {"PARTITION_KEY": "name", "SORT_KEY": None, "INDEXES": {}, "TYPE_ATTRIBUTE": None, "RAW_KEYS": True},
        {"name", "age", "email"},
    ),
    "a number": (
        {"PARTITION_KEY": "PK", "SORT_KEY": "age:N", "INDEXES": {}, "TYPE_ATTRIBUTE": None, "RAW_KEYS": True},
        {"PK", "age", "name", "email"},
    ),
}
KEYS = {"a partition key alone": ("{name}", "-"), "a number": ("PERSON#{name}", "{age}")}


@pytest.fixture(params=SHAPES)
def person(request: Any, table: Table) -> Iterator[tuple[Any, set[str]]]:
    """A model with a unique address, and the names of its stored attributes."""
    shape, stored = SHAPES[request.param]
    with adopted_table(**shape) as alias, forgotten():
        setup_table(alias)
        model = declare(
            "Person",
            KEYS.get(request.param, ("PERSON#{name}", "METADATA")),
            options={"table": ADOPTED},
            name=models.UnicodeAttribute(),
            age=models.IntegerAttribute(default=7),
            email=models.UnicodeAttribute(unique=True, null=True),
        )
        yield model, stored


def adopted_items() -> list[dict[str, Any]]:
    """The items of the adopted table, by its own names."""
    place = get_table(ADOPTED)
    found: list[dict[str, Any]] = place.call("Scan", {"TableName": place.name})["Items"]
    return found


def claim(email: str) -> tuple[str, str]:
    """The key of a claim."""
    return f"COMPANION#shop#UNIQUE#Person#email#{email}", "#CLAIM"


def test_object_and_claim_have_the_names_of_their_tables(person: Any) -> None:
    model, stored = person
    model.objects.create(name="ann", email="a@b.c")

    raw = Table(get_table(ADOPTED).settings).send(Request("Scan"))["Items"]
    assert [set(item) for item in raw] == [stored]
    assert keys(get_table()) == [claim("a@b.c")]


def test_taken_value_is_refused_and_found(person: Any) -> None:
    model, _ = person
    model.objects.create(name="ann", email="a@b.c")

    with pytest.raises(UniqueViolation):
        model.objects.create(name="bob", email="a@b.c")
    assert model.objects.get(email="a@b.c").name == "ann"


def test_changed_and_deleted_values_are_free(person: Any) -> None:
    model, _ = person
    ann = model.objects.create(name="ann", email="a@b.c")
    ann.email = "b@b.c"
    ann.save()
    assert keys(get_table()) == [claim("b@b.c")]

    ann.delete()
    assert (adopted_items(), keys(get_table())) == ([], [])


def test_both_tables_are_consistent(person: Any) -> None:
    model, _ = person
    model.objects.create(name="ann", email="a@b.c")
    get_table().send(
        Request("DeleteItem", {"Key": dict(zip(("pk", "sk"), ({"S": x} for x in claim("a@b.c")), strict=True))})
    )

    assert [each.kind for each in verify(ADOPTED)] == ["missing claim"]
    assert [each.kind for each in verify()] == []


def test_one_transaction_reads_both_tables(person: Any) -> None:
    model, _ = person
    ann = model.objects.create(name="ann", email="a@b.c")
    key = key_of(ann._stored)
    place = get_table(ADOPTED)

    answer = place.send(compile_reads([key, claim("a@b.c")], place.name))

    mine, taken = (each["Item"] for each in answer["Responses"])
    assert (key_of(mine), mine["itemType"], key_of(taken)) == (key, {"S": "Person"}, claim("a@b.c"))
    assert (taken["ownerPk"]["S"], taken["ownerSk"]["S"]) == key


def test_one_batch_reads_both_tables(person: Any) -> None:
    model, _ = person
    ann = model.objects.create(name="ann", email="a@b.c")
    wanted = [key_of(ann._stored), claim("a@b.c"), claim("nobody")]

    found = run(stored_items(get_table(ADOPTED), wanted))

    assert found.keys() == {*wanted[:2]}


@pytest.fixture
def raw_person(table: Table) -> Iterator[Any]:
    """A model whose raw partition key is a value that users choose."""
    shape = {"PARTITION_KEY": "name", "SORT_KEY": "sort", "INDEXES": {}, "TYPE_ATTRIBUTE": None, "RAW_KEYS": True}
    with adopted_table(**shape) as alias, forgotten():
        setup_table(alias)
        yield declare(
            "Person",
            ("{name}", "{sort}"),
            options={"table": ADOPTED},
            name=models.UnicodeAttribute(),
            sort=models.UnicodeAttribute(),
        )


FORGED = {"name": "COMPANION#shop#MIGRATIONS", "sort": "#STATE"}


@pytest.mark.parametrize(
    "call",
    [
        lambda model: model.objects.create(**FORGED),
        lambda model: model(**FORGED).save(),
        lambda model: model.objects.bulk_create([model(**FORGED)]),
        lambda model: model.objects.get(**FORGED),
        lambda model: [*model.objects.filter(**FORGED)],
        lambda model: [*model.objects.filter(name=FORGED["name"])],
        lambda model: model.objects.filter(**FORGED).update(name="x"),
        lambda model: model.objects.filter(**FORGED).delete(),
    ],
)
def test_raw_values_reach_no_item_of_the_companion(raw_person: Any, call: Any) -> None:
    state = {"pk": {"S": FORGED["name"]}, "sk": {"S": FORGED["sort"]}, "itemType": {"S": "MigrationState"}}
    get_table().send(Request("PutItem", {"Item": state}))

    with assert_requests(0), contextlib.suppress(DynamoSingleError, raw_person.DoesNotExist):
        assert not call(raw_person)

    assert get_table().send(Request("Scan"))["Items"] == [state]
