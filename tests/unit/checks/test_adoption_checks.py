"""Checks of models in a table that the app does not own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest
from django.conf import settings
from django.test import override_settings

from dynamo_single import models
from dynamo_single.checks import adoption
from tests.unit.declaring import declare, forgotten, messages

URL = "dynamodb://127.0.0.1:1/{}?region=us-east-1&indexes=gs1,gs2,gs3"


@pytest.fixture(params=[None, "default"], ids=["alone", "with a companion"])
def companion(request: Any) -> Iterator[str | None]:
    """The companion of the adopted table, if it has one."""
    shop = URL.format("adopted") + "&owns=false"
    with (
        forgotten(),
        override_settings(
            DYNAMO_SINGLE={
                **settings.DYNAMO_SINGLE,
                "default": URL.format("single-table"),
                "shop": shop if request.param is None else f"{shop}&companion={request.param}",
            }
        ),
    ):
        yield request.param


def thing(key: str = "THING#{name}", **attributes: Any) -> Any:
    """Declare a model of the adopted table."""
    options = {"table": "shop", **attributes.pop("options", {})}
    return declare("Thing", (key, "#THING"), options=options, name=models.UnicodeAttribute(), **attributes)


def test_unique_values_need_a_companion(companion: str | None) -> None:
    found = messages(thing(email=models.UnicodeAttribute(unique=True)))

    ids = [id for id, _ in found]
    assert ids == ([] if companion else ["dynamo_single.E045"])
    assert companion or "has claims for unique values of email" in found[0][1]


def test_shards_need_a_companion(companion: str | None) -> None:
    Thing = declare(
        "Thing",
        ("THING#{name}", "#THING"),
        {"listed": models.IndexKey("gs1", "THING", "{name}", sharded=True), "shards": models.Shards("name", at="made")},
        options={"table": "shop"},
        name=models.UnicodeAttribute(),
        made=models.TimestampAttribute(auto_now_add=True, immutable=True),
    )

    assert [id for id, _ in messages(Thing)] == ([] if companion else ["dynamo_single.E045"])


def test_migrations_need_a_companion(companion: str | None) -> None:
    with mock.patch.object(adoption, "has_migrations", lambda app: app == "catalog"):
        found = messages(thing())

    assert [id for id, _ in found] == ([] if companion else ["dynamo_single.E045"])


def test_a_plain_model_needs_no_companion(companion: str | None) -> None:
    assert messages(thing()) == []


@pytest.mark.parametrize("key", ["COMPANION#shop#UNIQUE#{name}", "COMPANION#shop#MIGRATIONS"])
def test_keys_of_items_in_the_companion_are_reserved(companion: str | None, key: str) -> None:
    Thing = declare("Thing", (key, "{name}"), options={"table": "shop"}, name=models.UnicodeAttribute())

    assert [id for id, _ in messages(Thing)] == ([] if companion is None else ["dynamo_single.E007"])


def test_keys_like_claims_are_free_in_an_adopted_table(companion: str | None) -> None:
    Thing = declare(
        "Thing",
        ("UNIQUE#{kind}#email#{name}", "#CLAIM"),
        options={"table": "shop"},
        kind=models.UnicodeAttribute(),
        name=models.UnicodeAttribute(),
    )

    assert messages(Thing) == []
