"""Unsupported features of a sharded primary key, and conflicts with other keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db.models import PROTECT

from dynamo_single import models
from dynamo_single.admin import DynamoAdminSite, DynamoModelAdmin
from dynamo_single.checks.admin import check_lists
from dynamo_single.checks.models import check_model
from tests.catalog.clubs import Club
from tests.catalog.service import Visit
from tests.unit.declaring import declare, forgotten, messages

NAME = models.UnicodeAttribute()
SHARDED: dict[str, Any] = {"shards": models.Shards("owner_id", at="made")}


@pytest.fixture(autouse=True)
def forget_models() -> Iterator[None]:
    """Remove the models that a test declares."""
    with forgotten():
        yield


def owner(primary: tuple[Any, ...] = ("OWNER", "ownerId#{owner_id}", True), **attributes: Any) -> Any:
    """A sharded model."""
    return declare(
        "Owner",
        primary,
        {**SHARDED, "listed": models.IndexKey("gs1", "OWNER", "{made}#{owner_id}", sharded=True)},
        owner_id=models.IdAttribute(),
        name=models.UnicodeAttribute(),
        made=models.TimestampAttribute(auto_now_add=True, immutable=True),
        **attributes,
    )


def pet(parent: Any, **attributes: Any) -> Any:
    """Return a model that refers to it."""
    return declare(
        "Pet",
        ("PET#{pet_id}", "#X"),
        {"by_owner": models.IndexKey("gs1", "PETS#{owner_id}", "{pet_id}")},
        pet_id=models.IdAttribute(),
        owner=models.ReferenceAttribute(parent, on_delete=models.DO_NOTHING),
        **attributes,
    )


def test_references_to_a_sharded_model_are_right() -> None:
    """The identity finds them."""
    model = owner()
    assert messages(pet(model)) == messages(model) == []


#: The common text of all messages, and their alternative.
WHY = (
    "to write such an object, its item and shard must be known, and the shard depends on a time that they do not have."
)
UNSHARDED = "Or let keys on indexes alone be sharded=True, and the primary key's partition have its identity."


def refused(model: Any) -> tuple[str, str]:
    """Return the rest of E024's message for a model, and its hint."""
    (found,) = [each for each in check_model(model) if each.id == "dynamo_single.E024"]
    said = found.msg.removeprefix("The primary key of catalog.Owner is sharded, and ").removesuffix(f": {WHY}")
    return said, found.hint.removesuffix(f" {UNSHARDED}")


def test_children_of_a_sharded_primary_key_are_refused() -> None:
    """E024 names the alternative."""
    model = owner(pets=models.Children("Pet", cascade=False))
    pet(model)
    assert refused(model) == ("pets are its children", "Remove the Children, and use the reference's manager.")


def test_copies_of_a_sharded_models_values_are_refused() -> None:
    """A copy follows its source in one transaction, which needs the source's key."""
    model = owner()
    pet(model, owner_name=models.CopiedAttribute("owner", "name"))
    assert refused(model) == ("catalog.Pet.owner_name is copied from it", "Read it along with select_related().")


def test_an_on_delete_towards_a_sharded_model_is_refused() -> None:
    """It would have to find the other object by its key."""
    model = owner()
    declare(
        "Pet",
        ("PET#{pet_id}", "#X"),
        {"by_owner": models.IndexKey("gs1", "PETS#{owner_id}", "{pet_id}")},
        pet_id=models.IdAttribute(),
        owner=models.ReferenceAttribute(model, on_delete=PROTECT),
    )
    hint = "Write on_delete=models.DO_NOTHING, and delete those objects by yourself."
    assert refused(model) == ("catalog.Pet.owner has an on_delete", hint)


def test_sharded_indexes_of_a_plain_primary_key_are_right() -> None:
    """The key finds its children and copies as usual."""
    model = owner(("OWNER#{owner_id}", "#X"), pets=models.Children("Pet", cascade=False))
    pet(model, owner_name=models.CopiedAttribute("owner", "name"))
    assert messages(model) == []


@pytest.mark.parametrize(
    ("partition", "expected"),
    [
        ("OWNER", ["dynamo_single.E007"]),
        ("OWNER!7", ["dynamo_single.E007"]),
        ("OWNER!{other_id}", ["dynamo_single.E007"]),
        ("OWNER#{other_id}", []),
        ("OWNER!", []),
    ],
)
def test_another_models_keys_among_the_shards_are_refused(partition: str, expected: list[str]) -> None:
    """E007 looks at every shard."""
    owner()
    other = declare("Other", (partition, "ownerId#{other_name}"), other_id=models.IdAttribute(), other_name=NAME)
    assert [id for id, _ in messages(other)] == expected


@pytest.mark.parametrize("model", [Visit, Club])
def test_lists_of_the_admin_are_checked_without_a_table(model: Any, settings: Any) -> None:
    """This includes sharded models and apps with migrations, so a deployment can be checked without a table."""
    settings.MIGRATION_MODULES = {"catalog": "tests.backend_project.shop.migrations"}
    site = DynamoAdminSite("checked")
    site.register(model, type("Registered", (DynamoModelAdmin,), {"ordering": ["pk"]}))
    assert [message.id for message in check_lists() if "Registered" in str(message.obj)] in ([], ["dynamo_single.W904"])
