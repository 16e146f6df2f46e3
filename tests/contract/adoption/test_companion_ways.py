"""The other ways to write to an adopted table, its commands, and its errors."""

from __future__ import annotations

import io
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.core.management import call_command

from dynamo_single import models
from dynamo_single.admin.secrets import Masks
from dynamo_single.contrib.doctor import verify
from dynamo_single.contrib.table_admin import item_view
from dynamo_single.exceptions import BulkIntegrityError, TableNotFound
from dynamo_single.orm.schema import secrecy
from dynamo_single.orm.schema.keys.secret_values import MASK
from dynamo_single.table import Request, Table, get_table
from dynamo_single.table.shown_keys import key_text
from tests.contract.adoption.conftest import ADOPTED, keys, types
from tests.contract.adoption.test_companion_claims import CLAIM, person
from tests.unit.declaring import declare


def many(count: int) -> Any:
    """A model with so many objects."""
    Person = person()
    Person.objects.bulk_create(Person(name=f"n{number}", email=f"n{number}@b.c") for number in range(count))
    return Person


def assert_consistent() -> None:
    """Both tables fit each other."""
    assert [str(each) for alias in (ADOPTED, "default") for each in verify(alias)] == []


def test_bulk_create_takes_claims_in_the_companion(adopted: Table) -> None:
    many(60)

    assert (types(adopted), types(get_table())) == ({"Person": 60}, {"UniqueClaim": 60})
    assert_consistent()


def test_bulk_create_refuses_a_taken_value(adopted: Table) -> None:
    Person = many(1)

    with pytest.raises(BulkIntegrityError):
        Person.objects.bulk_create([Person(name="x", email="x@b.c"), Person(name="y", email="n0@b.c")])

    assert_consistent()


def test_bulk_update_moves_claims(adopted: Table) -> None:
    Person = many(3)
    found = [*Person.objects.filter(pk__in=["n0", "n1", "n2"])]
    for each in found:
        each.email = f"new-{each.email}"

    Person.objects.bulk_update(found, ["email"])

    assert Person.objects.get(email="new-n1@b.c").name == "n1"
    assert_consistent()


def test_queryset_update_moves_a_claim(adopted: Table) -> None:
    Person = many(1)

    assert Person.objects.filter(pk="n0").update(email="new@b.c") == 1

    assert keys(get_table()) == [("COMPANION#shop#UNIQUE#Person#email#new@b.c", "#CLAIM")]


def test_queryset_delete_releases_claims(adopted: Table) -> None:
    Person = many(5)

    Person.objects.filter(pk__in=[f"n{number}" for number in range(5)]).delete()

    assert (types(adopted), types(get_table())) == ({}, {})


def test_asynchronous_calls_write_both_tables(adopted: Table) -> None:
    Person = person()

    async def work() -> Any:
        await Person.objects.acreate(name="ann", email="ann@example.com")
        return await Person.objects.aget(email="ann@example.com")

    assert async_to_sync(work)().name == "ann"
    assert keys(get_table()) == [CLAIM]


def test_expiry_of_an_object_is_that_of_its_claim(adopted: Table) -> None:
    from datetime import UTC, datetime

    Person = declare(
        "Person",
        ("PERSON#{name}", "#METADATA"),
        options={"table": ADOPTED},
        name=models.UnicodeAttribute(),
        email=models.UnicodeAttribute(unique=True, null=True),
        ends=models.TTLAttribute(null=True),
    )
    Person.objects.create(name="ann", email="ann@example.com", ends=datetime(2040, 1, 1, tzinfo=UTC))

    (claim,) = get_table().send(Request("Scan"))["Items"]
    assert claim["expiresAt"] == {"N": "2208988800"}


@pytest.mark.parametrize("command", ["dynamo_verify", "dynamo_rebuild", "dynamo_status"])
def test_commands_read_both_tables(adopted: Table, command: str) -> None:
    many(2)
    out = io.StringIO()

    call_command(command, "--alias", ADOPTED, stdout=out, stderr=out, no_color=True)

    assert "Traceback" not in out.getvalue()
    assert_consistent()


def test_rebuild_writes_missing_claims(adopted: Table) -> None:
    many(1)
    key = ("COMPANION#shop#UNIQUE#Person#email#n0@b.c", "#CLAIM")
    get_table().send(Request("DeleteItem", {"Key": {"pk": {"S": key[0]}, "sk": {"S": key[1]}}}))

    call_command("dynamo_rebuild", "--alias", ADOPTED, stdout=io.StringIO())

    assert keys(get_table()) == [key]


def test_missing_companion_is_named(adopted: Table) -> None:
    get_table().send(Request("DeleteTable"))

    with pytest.raises(TableNotFound, match=r"its companion 'single-table' does not exist: then run"):
        person().objects.create(name="ann", email="ann@example.com")


# secrets


def vault() -> Any:
    """Declare a model of the adopted table with a unique secret."""
    return declare(
        "Vault",
        ("VAULT#{name}", "#VAULT"),
        options={"table": ADOPTED},
        name=models.UnicodeAttribute(),
        pin=models.UnicodeAttribute(unique=True, secret=True),
    )


def secret_claim() -> dict[str, Any]:
    """The claim of an object with a secret, as it is in the companion."""
    vault().objects.create(name="v1", pin="swordfish")
    (found,) = get_table().send(Request("Scan"))["Items"]
    return dict(found)


def test_secrets_in_claims_of_a_companion_are_masked(adopted: Table) -> None:
    claim = secret_claim()
    key = claim["pk"]["S"], claim["sk"]["S"]

    assert "swordfish" in key[0]
    assert "swordfish" not in key_text(None, key)
    assert secrecy.masked_key("default", *key)[0] == f"COMPANION#shop#UNIQUE#Vault#pin#{MASK}"


@pytest.mark.parametrize("alias", ["default", ADOPTED])
def test_table_pages_mask_secrets_in_claims_of_a_companion(adopted: Table, alias: str) -> None:
    claim = secret_claim()

    found = item_view.shown(alias, claim, (), Masks())

    assert "swordfish" not in repr(found)


def test_rights_of_the_owner_decide_about_its_claim(adopted: Table) -> None:
    """A user who may not see an object sees its claim neither in the adopted table nor in the companion."""
    claim = secret_claim()

    assert [item_view.model_shown(alias, claim).__name__ for alias in ("default", ADOPTED)] == ["Vault", "Vault"]


def test_table_pages_link_to_owners_in_one_table(adopted: Table) -> None:
    person().objects.create(name="ann", email="ann@example.com")
    (claim,) = get_table().send(Request("Scan"))["Items"]

    links = {alias: [*item_view.links_of(alias, claim, Masks())] for alias in ("default", ADOPTED)}

    assert (links["default"], [each.relation for each in links[ADOPTED]]) == ([], ["owner"])


def test_values_of_unknown_aliases_are_masked(table: Table) -> None:
    assert "swordfish" not in key_text(None, ("COMPANION#gone#UNIQUE#Vault#pin#swordfish", "#CLAIM"))
