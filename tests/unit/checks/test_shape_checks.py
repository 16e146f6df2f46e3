"""Models of tables with a shape of their own: what the checks refuse."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from django.db.models import Q
from django.test import override_settings

from dynamo_single import models
from tests.unit.declaring import declare, forgotten, messages

TEXT = models.UnicodeAttribute
TABLE = {
    "TABLE_NAME": "threads",
    "ENDPOINT_URL": "http://127.0.0.1:1",
    "PARTITION_KEY": "PK",
    "SORT_KEY": "SK",
    "TYPE_ATTRIBUTE": None,
    "TTL_ATTRIBUTE": "ttl",
    "RAW_KEYS": True,
    "OWNS": False,
    "INDEXES": {
        "gs1": {"partition": "GSI1PK", "sort": "GSI1SK"},
        "status": {"partition": "status"},
        "inverted": {"partition": "SK", "sort": "PK"},
    },
}


@pytest.fixture(autouse=True)
def tables() -> Iterator[None]:
    """A table of another program."""
    declared = {**settings.DYNAMO_SINGLE, "threads": TABLE}
    with override_settings(DYNAMO_SINGLE=declared), forgotten():
        yield


def found(label: str = "Thread", key: tuple[str, str] = ("T#{id}", "#T"), **options: Any) -> list[str]:
    """The numbers of the messages about a model of the table."""
    bases, keys = options.pop("bases", (models.Model,)), options.pop("keys", {})
    attributes = {"id": TEXT(attr_name="tid"), **options}
    model = declare(label, key, keys, bases=bases, options={"table": "threads"}, **attributes)
    return [number.removeprefix("dynamo_single.") for number, _ in messages(model)]


def test_a_usual_model_has_no_message() -> None:
    keys = {"a": models.IndexKey("gs1", "A#{id}", "#"), "b": models.IndexKey("status", "{status}")}
    assert found(keys=keys, status=TEXT()) == []


@pytest.mark.parametrize("stored", ["ttl", "PK", "SK"])
def test_an_attribute_cannot_have_the_name_of_a_key_or_the_expiry(stored: str) -> None:
    assert found(other=TEXT(attr_name=stored)) == ["E002"]


def test_a_condition_cannot_remove_an_attribute() -> None:
    key = models.IndexKey("status", "{status}", condition=Q(status="open"))
    assert found(keys={"open": key}, status=TEXT()) == ["E047"]
    key = models.IndexKey("inverted", "#T", "T#{id}", condition=Q(status="open"))
    assert found("Other", ("O#{id}", "#T"), keys={"open": key}, status=TEXT()) == ["E047"]
    key = models.IndexKey("gs1", "{status}", "#", condition=Q(status="open"))
    assert found("Third", ("X#{id}", "#T"), keys={"open": key}, status=TEXT()) == []


def test_the_trash_needs_an_index_with_keys_of_its_own() -> None:
    trashed = {"bases": (models.SoftDeleteModel,), "status": TEXT()}
    assert found(keys={"a": models.IndexKey("status", "{status}")}, **trashed) == ["E047"]
    assert found("Other", ("O#{id}", "#"), keys={"a": models.IndexKey("gs1", "A", "{status}")}, **trashed) == []


def test_a_part_in_the_key_alone_is_part_of_the_primary_key() -> None:
    assert found(other=TEXT(in_key_only=True)) == ["E047"]
    assert found("Other", ("O#{other}", "#"), other=TEXT(in_key_only=True)) == []


def test_items_without_types_need_keys_that_differ() -> None:
    """Choices and prefixes of identifiers are not enforced, so only the templates count."""
    assert found("One", ("T#{kind}", "#"), kind=TEXT(choices=[("a", "a")])) == []
    assert found("Two", ("T#{kind}", "#"), kind=TEXT(choices=[("b", "b")])) == ["E007"]


@pytest.mark.parametrize(
    ("key", "found_by"),
    [
        (models.IndexKey("status", "{status}", sharded=True), ["E047"]),
        (models.IndexKey("gs1", "S#{status}", "{created}", sharded=True), ["E047"]),
        (models.IndexKey("gs1", "S#{status}#", "{created}", sharded=True), []),
        (models.IndexKey("gs1", "S", "{created}", sharded=True), []),
    ],
    ids=["attribute", "ends with a value", "ends with a literal", "literal"],
)
def test_the_number_of_a_shard_needs_a_place(key: models.IndexKey, found_by: list[str]) -> None:
    created = models.TimestampAttribute(auto_now_add=True, immutable=True)
    keys = {"shards": models.Shards("id", at="created"), "listed": key}
    found_ids = found(keys=keys, status=TEXT(), created=created)
    assert [each for each in found_ids if each != "E045"] == found_by


def test_a_key_of_numbers_has_no_room_for_claims() -> None:
    """Also in a table that the app owns, until a companion stores them."""
    for companion, expected in (({}, ["E045"]), ({"OWNS": False, "COMPANION": "default"}, [])):
        table = {**TABLE, "OWNS": True, "PARTITION_KEY": "forum", "SORT_KEY": "number:N", "INDEXES": [], **companion}
        default = {**settings.DYNAMO_SINGLE, "default": {"TABLE_NAME": "own", "ENDPOINT_URL": TABLE["ENDPOINT_URL"]}}
        with override_settings(DYNAMO_SINGLE={**default, "threads": table}):
            attributes = {"forum": TEXT(), "number": models.IntegerAttribute(), "code": TEXT(unique=True)}
            model = declare(f"P{len(companion)}", ("{forum}", "{number}"), options={"table": "threads"}, **attributes)
            numbers = [number.removeprefix("dynamo_single.") for number, _ in messages(model)]
            assert [each for each in numbers if each != "E007"] == expected
