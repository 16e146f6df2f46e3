"""Upgrades, copies, counts, key conditions and masks also work with extracted attributes."""

from __future__ import annotations

from typing import Any

import pytest
from django.db.models import Q

from dynamo_single import models, transactions
from dynamo_single.admin.secrets import Masks
from dynamo_single.table import Table
from dynamo_single.testing import assert_requests
from tests.contract.tables import assert_consistent, everything
from tests.unit.declaring import declare, forgotten

pytestmark = pytest.mark.usefixtures("table")


def moved(values: dict[str, Any]) -> dict[str, Any]:
    """Read version 1, which had the town next to the map."""
    return {"data": {**values.get("data", {}), "town": values["place"]}, "place": None}


def errand(keys: dict[str, models.IndexKey] | None = None) -> Any:
    """Return a model that extracts its status from its document."""
    return declare(
        "Errand",
        ("ERRAND#{errand_id}", "#METADATA"),
        keys,
        errand_id=models.IdAttribute(),
        data=models.MapAttribute(default=dict),
        status=models.ExtractedAttribute("data__status"),
    )


def test_copies_and_counts_follow_what_is_extracted(table: Table) -> None:
    with forgotten():
        shelf = declare(
            "Rack",
            ("RACK#{rack_id}", "#METADATA"),
            rack_id=models.IdAttribute(),
            data=models.MapAttribute(default=dict),
            title=models.ExtractedAttribute("data__label"),
            tins=models.Children("catalog.Tin"),
            red=models.CounterAttribute("tins", condition=Q(colour="red")),
        )
        tin = declare(
            "Tin",
            ("RACK#{rack_id}", "TIN#{tin_id}"),
            tin_id=models.IdAttribute(),
            rack=models.ReferenceAttribute(shelf, on_delete=models.DO_NOTHING),
            rack_label=models.CopiedAttribute("rack", "title"),
            data=models.MapAttribute(default=dict),
            colour=models.ExtractedAttribute("data__colour"),
        )
        rack = shelf.objects.create(rack_id="r", data={"label": "A"})
        one = tin.objects.create(tin_id="t", rack=rack, data={"colour": "red"})
        assert (one.rack_label, shelf.objects.get(pk="r").red) == ("A", 1)
        shelf.objects.filter(pk="r").update(data__label="B")
        tin.objects.filter(pk=one.pk).update(data__colour="blue")
        assert (tin.objects.get(pk=one.pk).rack_label, shelf.objects.get(pk="r").red) == ("B", 0)
        assert_consistent()


def test_the_condition_of_a_key_follows_what_is_extracted(table: Table) -> None:
    with forgotten():
        job = errand({"open": models.IndexKey("gs1", "ERRAND", "{errand_id}", condition=Q(status="open"))})
        one = job.objects.create(errand_id="1", data={"status": "open"})
        with assert_requests(["Query"]):
            assert [each.pk for each in job.objects.filter(status="open")] == ["1"]
        job.objects.filter(pk=one.pk).update(data__status="done")
        assert not job.objects.filter(status="open").exists()
        assert_consistent()


def test_several_changes_of_a_block_are_one_transaction(table: Table) -> None:
    with forgotten():
        model = errand()
        for number in "12":
            model.objects.create(errand_id=number, data={"status": "open"})
        with assert_requests(["GetItem", "GetItem", "TransactWriteItems"]), transactions.atomic():
            for number in "12":
                model.objects.filter(pk=number).update(data__status="done")
        assert {item["status"]["S"] for item in everything(table).values()} == {"done"}


def test_what_is_extracted_from_a_secret_place_is_a_secret() -> None:
    with forgotten():
        model = declare(
            "Vault",
            ("VAULT#{vault_id}", "#METADATA"),
            vault_id=models.IdAttribute(),
            data=models.MapAttribute(default=dict),
            hint=models.ExtractedAttribute("data__password"),
            town=models.ExtractedAttribute("data__town"),
        )
        assert Masks().attributes(model) == {"hint"}


def test_whole_items_that_are_put_over_others_have_what_is_extracted(table: Table) -> None:
    with forgotten():
        model = errand()
        model.objects.create(errand_id="1", data={"status": "open"})
        with assert_requests(["BatchWriteItem"]):
            model.objects.bulk_create([model(errand_id="1", data={"status": "done"})], update_conflicts=True)
        with model.batch_write() as batch:
            batch.save(model(errand_id="2", data={"status": "new"}))
        assert {item["status"]["S"] for item in everything(table).values()} == {"done", "new"}
