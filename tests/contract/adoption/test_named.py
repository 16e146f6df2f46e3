"""A table with its own names of keys, indexes, type and expiry: requests, items and reads."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db.models import F

from dynamo_single import models
from dynamo_single.exceptions import TableMismatch, UniqueViolation
from dynamo_single.table import Table, capture_requests, schema
from dynamo_single.table.table import translator_of
from dynamo_single.testing import assert_requests
from tests.contract.adoption.foreign import ALIAS, Foreign, foreign_table, stored
from tests.unit.declaring import declare, forgotten

SHOP = {
    "PARTITION_KEY": "PK",
    "SORT_KEY": "SK",
    "TYPE_ATTRIBUTE": "_type",
    "TTL_ATTRIBUTE": "ttl",
    "INDEXES": {
        "gs1": {"name": "GSI1", "partition": "GSI1PK", "sort": "GSI1SK"},
        "inverted": {"name": "GSI2", "partition": "SK", "sort": "PK"},
    },
}
TEXT, NUMBER = models.UnicodeAttribute, models.IntegerAttribute
ORDER = stored(PK="CUSTOMER#jane", SK="ORDER#1", _type="Order", customer="jane", number="1", total=7)
ORDER |= stored(GSI1PK="ORDERS", GSI1SK="1")


@pytest.fixture(scope="module")
def order(engine: Table) -> Iterator[tuple[Any, Foreign]]:
    """A model, and its table."""
    with foreign_table(**SHOP) as table, forgotten():
        model = declare(
            "Order",
            ("CUSTOMER#{customer}", "ORDER#{number}"),
            {"by_number": models.IndexKey("gs1", "ORDERS", "{number}")},
            options={"table": ALIAS},
            customer=models.UnicodeAttribute(),
            number=models.UnicodeAttribute(),
            total=models.IntegerAttribute(default=0),
            ends=models.TTLAttribute(null=True),
            code=models.UnicodeAttribute(null=True, unique=True),
        )
        yield model, table


@pytest.fixture
def shop(order: tuple[Any, Foreign]) -> tuple[Any, Foreign]:
    """Return the shop with an empty table that has one order of another program."""
    model, table = order
    schema.recreate(table.table)
    table.put(ORDER)
    return model, table


def test_item_of_another_program_is_read(shop: tuple[Any, Foreign]) -> None:
    model, _ = shop
    for found in (
        model.objects.get(customer="jane", number="1"),
        *model.objects.filter(customer="jane"),
        *model.objects.filter(number="1"),
        *model.objects.in_bulk(["jane~~1"]).values(),
        *model.objects.allow_scan(),
    ):
        assert (found.pk, found.total) == ("jane~~1", 7)
    assert [*model.objects.filter(customer="jane").values_list("number", "total")] == [("1", 7)]


def test_save_of_a_read_object_keeps_the_item(shop: tuple[Any, Foreign]) -> None:
    model, table = shop
    (found,) = model.objects.filter(customer="jane")
    with assert_requests(0):
        found.save()
    found.total = 8
    found.save()
    assert table.items() == [{**ORDER, "total": {"N": "8"}}]


def test_new_item_has_the_names_of_the_table(shop: tuple[Any, Foreign]) -> None:
    model, table = shop
    model.objects.create(customer="jane", number="2", total=1, ends=datetime(2030, 1, 1, tzinfo=UTC))
    assert table.get(PK="CUSTOMER#jane", SK="ORDER#2") == {
        **stored(PK="CUSTOMER#jane", SK="ORDER#2", _type="Order", customer="jane", number="2", total=1),
        **stored(GSI1PK="ORDERS", GSI1SK="2", ttl=1893456000),
    }


def test_bulk_insert_has_the_names_of_the_table(shop: tuple[Any, Foreign]) -> None:
    _, table = shop
    with forgotten():
        line = declare(
            "Line", ("CUSTOMER#{customer}", "LINE#{n}"), options={"table": ALIAS}, customer=TEXT(), n=NUMBER()
        )
        with assert_requests(["BatchExecuteStatement", "BatchExecuteStatement"]):
            line.objects.bulk_create(line(customer="jo", n=n) for n in range(30))
        assert (
            sum(item["PK"] == {"S": "CUSTOMER#jo"} and item["_type"] == {"S": "Line"} for item in table.items()) == 30
        )


def test_claims_and_updates_work_under_other_names(shop: tuple[Any, Foreign]) -> None:
    model, table = shop
    model.objects.create(customer="jo", number="1", code="x")
    with pytest.raises(UniqueViolation):
        model.objects.create(customer="jo", number="2", code="x")
    assert model.objects.get(code="x").customer == "jo"
    assert model.objects.filter(customer="jane", number="1").update(total=F("total") + 1) == 1
    assert model.objects.get(customer="jane", number="1").total == 8
    assert [item["PK"]["S"] for item in table.items() if "_type" in item and item["_type"] == {"S": "UniqueClaim"}]


def test_deleted_item_is_gone(shop: tuple[Any, Foreign]) -> None:
    model, table = shop
    model.objects.get(customer="jane", number="1").delete()
    assert table.items() == []


def test_pages_by_cursor(shop: tuple[Any, Foreign]) -> None:
    model, _ = shop
    model.objects.bulk_create(model(customer="jo", number=f"{n}") for n in range(5))
    page = model.objects.filter(customer="jo").order_by("-number").page(size=2)
    after = model.objects.filter(customer="jo").order_by("-number").page(size=2, cursor=page.next_cursor)
    assert [[each.number for each in found] for found in (page.items, after.items)] == [["4", "3"], ["2", "1"]]


def test_explain_names_the_keys_of_the_table(shop: tuple[Any, Foreign]) -> None:
    model, _ = shop
    text = model.objects.filter(customer="jane").explain()
    assert "PK = 'CUSTOMER#jane'" in text
    assert "'#a0': 'PK'" in text
    assert "IndexName: GSI1" in model.objects.filter(number="1").explain()


def test_request_is_heard_as_it_is_sent(shop: tuple[Any, Foreign]) -> None:
    model, table = shop
    with capture_requests() as sent:
        model.objects.get(customer="jane", number="1")
    assert sent[0].params["Key"] == stored(PK="CUSTOMER#jane", SK="ORDER#1")
    translator = translator_of(table.table.name)
    assert translator is not None
    assert translator.pair(sent[0].params["Key"]) == ("CUSTOMER#jane", "ORDER#1")


def test_pickle_has_the_apps_own_names(shop: tuple[Any, Foreign]) -> None:
    model, _ = shop
    (found,) = model.objects.filter(customer="jane")
    assert type(vars(found)["_stored"]) is bytes
    state = vars(pickle.loads(pickle.dumps(found)))["_stored"]
    assert state["pk"] == {"S": "CUSTOMER#jane"}
    assert state == found._stored


def test_wrong_keys_name_the_settings(shop: tuple[Any, Foreign]) -> None:
    _, table = shop
    with foreign_table(PARTITION_KEY="other"), pytest.raises(TableMismatch, match="the settings require 'PK'"):
        schema.refuse(table.table.settings, schema.differences(table.table.settings, schema.observe(table.table)))
    schema.recreate(table.table)
