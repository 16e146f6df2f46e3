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


# renamed attributes of keys


def renaming(
    app: History, old: dict[str, Any], new: dict[str, Any], *, answers: tuple[str, ...] = (), **declared: Any
) -> Any:
    """Store an object with one attribute, rename the attribute, and return the model of the new name."""
    Shop = app.model(options={"table": ADOPTED}, **old, **declared.get("before", {}))
    app.make()
    app.migrate()
    Shop.objects.create(shop_id="s1", **{next(iter(old)): "A name!"})
    Shop = app.model(options={"table": ADOPTED}, **new, **declared.get("after", {}))
    app.make(answers=answers)
    app.migrate()
    return Shop


def test_renamed_attribute_of_a_raw_index_key_keeps_its_items(app: History, shaped: Table) -> None:
    def by(name: str) -> dict[str, Any]:
        return {"keys": {"found": models.IndexKey("gs1", "SHOPS", f"{{{name}}}")}}

    old, new = {"name": models.UnicodeAttribute()}, {"title": models.UnicodeAttribute()}
    Shop = renaming(app, old, new, answers=("y",), before=by("name"), after=by("title"))

    assert [each.shop_id for each in Shop.objects.filter(title="A name!")] == ["s1"]
    assert ("title" in raw(shaped)[0], "name" in raw(shaped)[0]) == (True, False)


def test_renamed_attribute_that_is_a_key_keeps_its_items(app: History, shaped: Table) -> None:
    """The stored name is the table's key, so that the rename is one of Python's only."""

    def stored() -> Any:
        return models.UnicodeAttribute(attr_name="GSI1SK")

    def by(name: str) -> dict[str, Any]:
        return {"keys": {"found": models.IndexKey("gs1", "SHOPS", f"{{{name}}}")}}

    Shop = renaming(app, {"name": stored()}, {"title": stored()}, before=by("name"), after=by("title"))

    assert [each.shop_id for each in Shop.objects.filter(title="A name!")] == ["s1"]
    assert raw(shaped)[0]["GSI1SK"] == {"S": "A name!"}
