"""Records that another program deletes by its own ``deletedAt``: they are in the trash for every way to read."""

from __future__ import annotations

import io
from typing import Any

import pytest
from django.core.management import call_command

from dynamo_single.table import Request, Table
from dynamo_single.testing import assert_requests, setup_table
from tests.contract.scenarios.conftest import product
from tests.contract.tables import assert_consistent, single_key_table
from tests.unit.declaring import forgotten


def deleted_by_another(kept: Table, identifier: str) -> None:
    """Set ``deletedAt`` like a program without knowledge of index keys."""
    update = {"UpdateExpression": "SET deletedAt = :t", "ExpressionAttributeValues": {":t": {"N": "1763800000000"}}}
    Table(kept.settings).send(Request("UpdateItem", {"Key": {"id": {"S": identifier}}, **update}))


@pytest.fixture
def goods(engine: Table) -> Any:
    """Return two products by ``id``, and their table; another program has deleted the first product."""
    with single_key_table() as alias, forgotten():
        kept = setup_table(alias)
        model = product(alias)
        for name in ("product-1", "product-2"):
            model.objects.create(id=name, data={"author": "a"})
        deleted_by_another(kept, "product-1")
        yield model


READS = {
    "all": lambda model: [each.pk for each in model.objects.all()],
    "filter": lambda model: [each.pk for each in model.objects.filter(author="a")],
    "pages": lambda model: [each.pk for each in model.objects.page(10)],
    "values": lambda model: [*model.objects.filter(author="a").values_list("pk", flat=True)],
    "in_bulk": lambda model: [*model.objects.in_bulk(["product-1", "product-2"])],
    "by key": lambda model: [each for each in ("product-1", "product-2") if model.objects.filter(pk=each).exists()],
    "iterator": lambda model: [each.pk for each in model.objects.iterator()],
    "count": lambda model: ["product-2"] * model.objects.filter(author="a").count(),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_lists_leave_it_out_as_get_does(goods: Any, read: Any) -> None:
    assert read(goods) == ["product-2"]


def test_a_list_is_still_one_query(goods: Any) -> None:
    with assert_requests(["Query"]):
        assert len(goods.objects.filter(author="a")) == 1


def test_it_is_read_among_all_and_restored(goods: Any) -> None:
    found = goods.all_objects.get(pk="product-1")
    assert found.deleted_at is not None
    found.restore()
    assert {each.pk for each in goods.objects.filter(author="a")} == {"product-1", "product-2"}
    assert_consistent(goods._options.alias)


def test_rebuilding_lists_it_in_the_trash(goods: Any) -> None:
    assert [*goods.deleted_objects.all()] == []
    call_command("dynamo_rebuild", goods._meta.label, "--alias", goods._options.alias, stdout=io.StringIO())
    assert [each.pk for each in goods.deleted_objects.all()] == ["product-1"]
    assert_consistent(goods._options.alias)
