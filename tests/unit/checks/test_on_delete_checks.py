"""E030: references whose ``on_delete`` cannot work, and valid models."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from dynamo_single import models
from tests.unit.declaring import declare, forgotten, messages


@pytest.fixture(autouse=True)
def _declared() -> Iterator[None]:
    with forgotten():
        yield


def pair(
    on_delete: Any = models.PROTECT,
    *,
    keys: dict[str, Any] | None = None,
    primary: tuple[str, str] = ("SHIRT#{shirt_id}", "#METADATA"),
    target: dict[str, Any] | None = None,
    bases: tuple[type, ...] = (models.Model,),
    options: dict[str, Any] | None = None,
    **reference: Any,
) -> Any:
    """A shirt that refers to its owner."""
    owner = declare("Owner", ("OWNER#{owner_id}", "#METADATA"), owner_id=models.IdAttribute(), **(target or {}))
    return declare(
        "Shirt",
        primary,
        BY_OWNER if keys is None else keys,
        bases=bases,
        options=options,
        shirt_id=models.IdAttribute(),
        owner=models.ReferenceAttribute(owner, on_delete=on_delete, **reference),
    )


def derived() -> dict[str, Any]:
    """Derive the objects of a model from users."""
    return {
        "user": models.ReferenceAttribute("accounts.User", on_delete=models.DO_NOTHING, related_name="+"),
        "derived_by": "user",
    }


BY_OWNER = {"by_owner": models.IndexKey("gs1", "OWNED#{owner_id}", "{shirt_id}")}
IN_OWNER = ("OWNER#{owner_id}", "SHIRT#{shirt_id}")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"keys": {}, "primary": IN_OWNER},
        {"on_delete": models.DO_NOTHING, "keys": {}},
        {"on_delete": models.SET_NULL, "null": True},
        {"on_delete": models.SET_DEFAULT, "default": "nobody"},
        {"bases": (models.SoftDeleteModel,)},
        {"target": {"expires_at": models.TTLAttribute(provisional=True)}},
    ],
)
def test_references_that_a_key_finds_are_fine(options: dict[str, Any]) -> None:
    assert messages(pair(**options)) == []


def test_users_may_be_referred_to_with_an_on_delete() -> None:
    """Only unconfirmed sign-ups expire."""
    keys = {"by_user": models.IndexKey("gs1", "USERS-SHIRTS#{user_id}", "{shirt_id}")}
    shirt = declare(
        "Shirt",
        ("SHIRT#{shirt_id}", "#METADATA"),
        keys,
        shirt_id=models.IdAttribute(),
        user=models.ReferenceAttribute("accounts.User", on_delete=models.CASCADE, related_name="+"),
    )
    assert messages(shirt) == []


def test_a_many_to_many_relation_to_users_needs_no_edge_model() -> None:
    """Generated edges are deleted with a user and with the other side."""
    club = declare(
        "Guild",
        ("GUILD#{guild_id}", "#METADATA"),
        guild_id=models.IdAttribute(),
        people=models.ManyToMany("accounts.User", related_name="+"),
    )
    assert messages(club) + messages(club.people.through) == []


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"keys": {}}, "requires a query for the objects that refer to it, but no key of catalog.Shirt lists them."),
        (
            {"keys": {}, "primary": IN_OWNER, "bases": (models.SoftDeleteModel,)},
            None,
        ),
        (
            {"target": {"expires_at": models.TTLAttribute()}},
            "refers to catalog.Owner, whose objects expire: DynamoDB deletes them and does not notify the app.",
        ),
        (
            {
                "target": {
                    "bases": (models.SoftDeleteModel,),
                    "options": {"purge_after": timedelta(days=1)},
                    "keys": {"listed": models.IndexKey("gs1", "OWNER", "{owner_id}")},
                }
            },
            "refers to catalog.Owner, whose objects expire: DynamoDB deletes them and does not notify the app.",
        ),
        (
            {"options": {"table": "kinds"}},
            "refers to catalog.Owner, which is in another table: a transaction of this app has one table.",
        ),
        (
            {"target": {"shirts": models.Children("catalog.Shirt", cascade=True)}},
            "and catalog.Owner.shirts = Children(..., cascade=True) contradict each other.",
        ),
        (
            {"target": derived()},
            None,
        ),
        (
            {"target": derived(), "checked": True},
            "is checked, and catalog.Owner objects are derived from others: each change of those replaces them, with "
            "the number of objects that refer to them.",
        ),
        (
            {"on_delete": models.SET_NULL, "null": True, "immutable": True},
            "would change a reference that is immutable or part of the primary key.",
        ),
    ],
)
def test_what_could_not_be_carried_out_is_found(options: dict[str, Any], text: str | None) -> None:
    model = pair(**options)
    name = options.get("on_delete", models.PROTECT).__name__
    wanted = [] if text is None else [("dynamo_single.E030", f"owner: on_delete={name} {text}")]
    assert [each for each in messages(model) if each[0] == "dynamo_single.E030"] == wanted


def test_django_itself_refuses_what_cannot_be_null_or_has_no_default() -> None:
    found = [message.id for message in pair(models.SET_NULL).check()]
    assert found == ["fields.E320"]


def test_a_default_is_asked_for() -> None:
    assert [message.id for message in pair(models.SET_DEFAULT).check()] == ["fields.E321"]
