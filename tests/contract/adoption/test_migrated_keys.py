"""Migrations write the keys of an existing table as the models write them: raw, and as numbers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dynamo_single import models
from dynamo_single.table import Table
from dynamo_single.testing import setup_table
from tests.contract.adoption.conftest import ADOPTED, adopted_table, raw
from tests.histories.app import History, history
from tests.unit.declaring import forgotten

SHAPE = {
    "PARTITION_KEY": "PK",
    "SORT_KEY": "SK",
    "RAW_KEYS": True,
    "INDEXES": {
        "gs1": {"name": "GSI1", "partition": "GSI1PK", "sort": "GSI1SK"},
        "views": {"name": "by-views", "partition": "SHELF", "sort": "RANK:N"},
    },
}


@pytest.fixture
def shaped(table: Table) -> Iterator[Table]:
    """An adopted table with raw keys, and a number as the sort key of an index."""
    with adopted_table(**SHAPE) as alias, forgotten():
        yield setup_table(alias)


@pytest.fixture
def app(tmp_path: Path) -> Iterator[History]:
    with history(tmp_path) as found:
        yield found


@pytest.mark.parametrize(
    "key",
    [
        models.IndexKey("gs1", "SHOPS", "{name}"),
        models.IndexKey("views", "{name}", "{rank}"),
    ],
    ids=["raw", "number"],
)
def test_backfilled_key_equals_key_of_new_object(app: History, shaped: Table, key: Any) -> None:
    attributes: dict[str, Any] = {"name": models.UnicodeAttribute(), "rank": models.IntegerAttribute()}
    Shop = app.model(options={"table": ADOPTED}, **attributes)
    app.make()
    app.migrate()
    Shop.objects.create(shop_id="s1", name="A name, with spaces!", rank=-3)
    attributes = {"name": models.UnicodeAttribute(), "rank": models.IntegerAttribute()}
    Shop = app.model(options={"table": ADOPTED}, keys={"found": key}, **attributes)
    app.make()

    app.migrate()

    Shop.objects.create(shop_id="s2", name="A name, with spaces!", rank=-3)
    old, new = sorted(raw(shaped), key=lambda item: str(item["PK"]))
    own = {"PK", "SK", "shop_id"}
    assert {name: value for name, value in old.items() if name not in own} == {
        name: value for name, value in new.items() if name not in own
    }
    assert {"GSI1SK", "RANK"} & old.keys()
