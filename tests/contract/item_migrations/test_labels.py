"""The labels of a renamed model in the items of other models."""

from __future__ import annotations

from typing import Any

import pytest

from accounts.models import User
from dynamo_single import migrations as items
from dynamo_single.evolution.backfill import Options, Work, run_work
from dynamo_single.evolution.snapshots import Snapshot
from dynamo_single.table import Table
from tests.catalog.tags import Animal, Emblem


def changed(table: Table, model: Any, name: str, old: str, new: str) -> None:
    """Run the operation twice, as after an interruption."""
    snapshot = Snapshot.of(model)
    operation = items.ChangeItems(model.__name__, items.RenamedLabels(name, old, new), repeat=True)
    for task in operation.passes(snapshot, snapshot)["fill"]:
        for number in range(2):
            run_work(Work("catalog", "0002", number, "open", "Labels", task), table, Options(segments=1, page=3))


def test_generic_relation_follows_new_label(table: Table) -> None:
    """The key of the index changes with the label; objects of other models stay."""
    lion = Animal.objects.create(animal_id="a", name="Lion")
    for kind in ("catalog.formeranimal", "catalog.mineral"):
        Emblem.objects.create(tag_id=kind, word=kind, content_type_id=kind, object_id="a")
    changed(table, Emblem, "content_type_id", "catalog.formeranimal", "catalog.animal")
    assert [each.word for each in lion.tags.all()] == ["catalog.formeranimal"]


def test_permissions_follow_new_label(table: Table) -> None:
    """Those of ``Meta.permissions`` keep their names, and so do those of other models."""
    held = {"catalog.view_formeranimal", "catalog.ship_formeranimal", "shop.view_formeranimal"}
    User.objects.create_user("Ann", user_id="1", permissions=held)
    changed(table, User, "permissions", "catalog.formeranimal", "catalog.animal")
    assert User.objects.get(pk="1").permissions == {
        "catalog.view_animal",
        "catalog.ship_formeranimal",
        "shop.view_formeranimal",
    }


@pytest.mark.parametrize(
    "line",
    [
        "catalog.Emblem: ChangeItems('Emblem', RenamedLabels('content_type_id', 'catalog.beast', 'catalog.animal'))",
        "accounts.User: ChangeItems('User', RenamedLabels('permissions', 'catalog.beast', 'catalog.animal'))",
    ],
)
def test_rename_lists_the_operations(line: str) -> None:
    assert line in items.RenameModel("Beast", "Animal").left_to_do("catalog")
