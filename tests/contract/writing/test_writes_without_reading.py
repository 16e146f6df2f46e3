"""Queryset writes ignore the order, and take one request for a complete primary key without dependent items."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

import pytest
from django.db.models.signals import post_delete
from django.utils import timezone

from dynamo_single import models, transactions
from dynamo_single.exceptions import InvalidValue, NoAccessPattern, UnexpectedItem
from dynamo_single.table import Request, Table, get_table
from dynamo_single.testing import assert_requests, intercept, refusal
from tests.other_names import typed
from tests.unit.declaring import declare, forgotten


@pytest.fixture(params=[True, False], ids=["expiring", "lasting"])
def notes(request: pytest.FixtureRequest, table: Table) -> Iterator[Any]:
    """Return notes of two topics with an order that no key supports. Expiring ones need planned writes."""
    more = {"expires_at": models.TTLAttribute()} if request.param else {}
    with forgotten():
        model: Any = declare(
            "OrderedNote",
            ("NOTE#{topic}", "{number}"),
            options={"ordering": ("-text",)},
            topic=models.UnicodeAttribute(),
            number=models.IntegerAttribute(),
            text=models.UnicodeAttribute(default="t"),
            **more,
        )
        for number in range(3):
            model.objects.create(topic="a", number=number, text=f"t{number}")
        yield model.objects


def test_an_order_of_the_model_does_not_count(notes: Any) -> None:
    """No key supports this order, but all objects are updated and deleted."""
    with pytest.raises(NoAccessPattern):
        list(notes.filter(topic="a"))
    with assert_requests(["Query", *["UpdateItem"] * 3]):
        assert notes.filter(topic="a").update(text="u") == 3
    with assert_requests(["Query", *["DeleteItem"] * 3]):
        assert notes.filter(topic="a").order_by("text").reverse().delete()[0] == 3


def test_one_key_is_one_request(notes: Any) -> None:
    with assert_requests(["UpdateItem"]):
        assert notes.filter(pk="a~~1").update(text="u") == 1
    with assert_requests(["DeleteItem"]):
        assert notes.filter(pk="a~~1").delete() == (1, {"catalog.OrderedNote": 1})
    with assert_requests(["DeleteItem"]):
        assert notes.filter(pk="a~~1").delete() == (0, {})


def test_a_coroutine_updates_by_one_request(notes: Any) -> None:
    with assert_requests(["UpdateItem"]):
        assert asyncio.run(notes.filter(topic="a", number=1).aupdate(text="u")) == 1


def test_condition_after_a_key_counts(notes: Any) -> None:
    """A further filter uses the key of the first one."""
    with assert_requests(["UpdateItem"]):
        assert notes.filter(pk="a~~1").filter(text="other").update(text="u") == 0


def test_an_update_reads_the_results_again(notes: Any) -> None:
    """An evaluated queryset returns the current values after an update."""
    one = notes.filter(pk="a~~1")
    assert [note.text for note in one] == ["t1"]
    one.update(text="u")
    assert [note.text for note in one] == ["u"]


def test_wrong_value_of_a_key_is_reported_by_filter(notes: Any) -> None:
    with pytest.raises(InvalidValue):
        notes.filter(topic="a", number="one")


def test_a_coroutine_deletes_by_one_request(notes: Any) -> None:
    with assert_requests(["DeleteItem"]):
        assert asyncio.run(notes.filter(pk="a~~1").adelete()) == (1, {"catalog.OrderedNote": 1})


@pytest.mark.parametrize("notes", [True], indirect=True)
def test_conditions_go_with_the_deletion(notes: Any) -> None:
    """Objects that do not meet the conditions, or have expired, are kept and not counted."""
    notes.filter(pk="a~~2").update(expires_at=timezone.now() - timedelta(hours=1))
    with assert_requests(["DeleteItem", "DeleteItem"]):
        assert notes.filter(pk="a~~1", text="other").delete() == (0, {})
        assert notes.filter(pk="a~~2").delete() == (0, {})
    with assert_requests(["DeleteItem"]):
        assert notes.filter(pk="a~~1", text="t1").delete() == (1, {"catalog.OrderedNote": 1})


@typed
def test_another_models_item_is_not_deleted(notes: Any, table: Table) -> None:
    item = {"pk": {"S": "NOTE#b"}, "sk": {"S": "p5001"}, "itemType": {"S": "Other"}}
    table.send(Request("PutItem", {"Item": item}))
    with pytest.raises(UnexpectedItem):
        notes.filter(pk="b~~1").delete()
    assert table.send(Request("GetItem", {"Key": {name: item[name] for name in ("pk", "sk")}}))["Item"] == item


def test_a_deletion_whose_answer_is_lost_counts(notes: Any) -> None:
    """The second attempt does not find the object, which the first one has deleted."""
    left = ["DeleteItem"]

    def lost(operation: str, params: Mapping[str, Any]) -> None:
        if left and operation == left[0]:
            left.clear()
            get_table().call(operation, params)
            again = {"RetryAttempts": 1}  # botocore's next attempt finds no item
            raise refusal(operation, "ConditionalCheckFailedException", ResponseMetadata=again)

    with intercept(lost):
        assert notes.filter(pk="a~~1").delete() == (1, {"catalog.OrderedNote": 1})
    assert notes.filter(topic="a").order_by().count() == 2


def test_a_signal_gets_the_object(notes: Any) -> None:
    """If a signal has receivers, the object is read first."""
    found: list[str] = []

    def told(instance: Any, **_: object) -> None:
        found.append(instance.text)

    post_delete.connect(told, sender=notes.model)
    try:
        with assert_requests(["GetItem", "DeleteItem"]):
            notes.filter(pk="a~~1").delete()
    finally:
        post_delete.disconnect(told, sender=notes.model)
    assert found == ["t1"]


def test_a_block_reads_and_joins(notes: Any) -> None:
    with assert_requests(["GetItem", "DeleteItem"]), transactions.atomic():
        notes.filter(pk="a~~1").delete()


def test_an_update_joins_its_block(notes: Any) -> None:
    with assert_requests(["GetItem", "UpdateItem"]), transactions.atomic():
        notes.filter(pk="a~~1").update(text="u")


def test_progress_is_told(notes: Any) -> None:
    steps: list[tuple[int, int | None]] = []
    notes.filter(pk="a~~1").on_progress(lambda done, total: steps.append((done, total))).delete()
    assert steps == [(1, 1)]
