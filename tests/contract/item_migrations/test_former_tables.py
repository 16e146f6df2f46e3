"""``migrate`` continues from each phase in which the former release's command can leave a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError

from dynamo_single import models
from dynamo_single.contrib.doctor import verify
from dynamo_single.orm.requests.compiler import item_key
from dynamo_single.orm.rollout import states
from dynamo_single.table import Request, Table
from tests.contract.item_migrations.former_tables import FormerTable, former_tables
from tests.contract.item_migrations.test_phases import CASES, PLAIN, Case, Code, attribute
from tests.deep import deep
from tests.histories.app import History, history

SHARDED: dict[str, Any] = {
    "primary": ("SHOP", "{shop_id}"),
    "made": models.TimestampAttribute(auto_now_add=True, immutable=True),
    "keys": {
        "shards": models.Shards("shop_id", at="made"),
        "listed": models.IndexKey("gs1", "SHOP", "{made}#{shop_id}", sharded=True),
    },
}
COUNTING: dict[str, Any] = {"members": models.Children("Member"), "member_count": models.CounterAttribute("members")}
MORE = {
    "two renames": Case(
        Code({**attribute(), "land": models.UnicodeAttribute(null=True)}, "town"),
        Code({"place": models.UnicodeAttribute(), "state": models.UnicodeAttribute(null=True)}, "place"),
        [],
        ("", ""),
    ),
    "counter": Case(PLAIN, Code(COUNTING), [], ("", "")),
    "checked reference": Case(PLAIN, PLAIN, [], ("", "")),
    "UpgradeItems": Case(PLAIN, Code({"name": None, "title": models.UnicodeAttribute()}, "title"), [], ("", "")),
    "ChangeShards": Case(Code(SHARDED), Code(SHARDED), [], ("", "")),
}
MEMBERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "counter": ({}, {}),
    "checked reference": ({"on_delete": models.PROTECT}, {"on_delete": models.PROTECT, "checked": True}),
}
#: The function of ``Meta.upgrades``, which this release needs in the migration that upgrades items.
UPGRADES = "to=2, upgrades={1: titled}"
FUNCTION = """

def titled(item):
    return {"title": item["name"], "name": None}


class"""
TABLES = former_tables()
#: Cases without remaining changes: the former release can still read the state.
ENDED = [each for each in TABLES if each.is_ended or each.operation == "ChangeShards"]


def usual(tables: Sequence[FormerTable]) -> list[Any]:
    """Return all tables; a normal run tests one per operation, stopped within a pass if possible."""
    chosen: dict[str, FormerTable] = {}
    for each in tables:
        if "after item" in each.stop or each.operation not in chosen:
            chosen[each.operation] = each
    return [each if chosen[each.operation] is each else pytest.param(each, marks=deep) for each in tables]


@pytest.fixture
def app(tmp_path: Path, table: Table) -> Iterator[History]:
    """The app without models."""
    with history(tmp_path) as found:
        yield found


class Found:
    """A table as a command of the former release left it, and the app with the code of one side."""

    def __init__(self, app: History, table: Table, former: FormerTable) -> None:
        self.app, self.table, self.former = app, table, former
        self.case = (CASES | MORE)[former.operation]
        former.restore(table, app.folder)
        for path in app.folder.glob("0003_upgrade.py"):
            path.write_text(path.read_text().replace("to=2", UPGRADES).replace("\n\nclass", FUNCTION))
        self.model: Any = self.declare("after")

    def declare(self, side: str) -> Any:
        """The models as the code of a side has them."""
        code = self.case.after if side == "after" else self.case.before
        for name in {self.case.before.name, self.case.after.name}:
            self.app.forget(name)
        given = {"name": models.UnicodeAttribute(), **code.declared}
        given = {name: each for name, each in given.items() if each is not None}
        found = self.app.model(code.name, bases=(models.SoftDeleteModel,), **given)
        if self.former.operation in MEMBERS:
            options = MEMBERS[self.former.operation][side == "after"]
            home = models.ReferenceAttribute("histories.Shop", **options)
            keys = {"by_home": models.IndexKey("gs2", "HOME#{home_id}", "{shop_id}")}
            self.app.model("Member", keys=keys, bases=(models.SoftDeleteModel,), home=home)
        self.app.start()
        return found

    def state(self) -> dict[str, Any]:
        """The state item."""
        item: dict[str, Any] = self.table.send(Request("GetItem", {"Key": item_key(states.STATE_KEY)}))["Item"]
        return item

    def look(self, side: str) -> None:
        """Check that all acknowledged items are read and listed, and no others exist."""
        code = self.case.after if side == "after" else self.case.before
        model: Any = self.model
        alive = {pk: value for pk, value in self.former.values.items() if value is not None}
        found = {pk: str(getattr(model.objects.get(pk=pk), code.subject)) for pk in alive}
        assert {pk: text.removesuffix("0000") for pk, text in found.items()} == alive
        trashed = sorted(pk for pk, value in self.former.values.items() if value is None)
        assert [model.deleted_objects.get(pk=pk).pk for pk in trashed] == trashed
        if code.listing is not None and not code.listed:
            listed = trashed if self.former.operation == "AlterTrashIndex" else alive
            assert sorted(each.pk for each in code.listing(model)) == sorted(listed)
        # Reverted, an attribute that may be missing stays in the items.
        assert {each.kind for each in verify()} <= ({"attribute left over"} if side == "before" else set())
        assert self.app.phases() == {}
        if not self.former.is_ended:
            assert [item for item in self.items() if item["sk"]["S"].startswith("WORK#")] == []

    def items(self) -> list[dict[str, Any]]:
        """Return all stored items."""
        return [item for page in self.table.pages(Request("Scan", {"ConsistentRead": True})) for item in page["Items"]]


@pytest.mark.parametrize("former", TABLES, ids=str)
def test_migrate_goes_on_from_each_phase(app: History, table: Table, former: FormerTable) -> None:
    """Acknowledged items of the former release are kept, and its layout is gone."""
    found = Found(app, table, former)
    app.migrate(force=True)
    found.look("after")
    assert ("forms" in found.state()) == (former in ENDED)


@pytest.mark.parametrize("former", usual([each for each in TABLES if each not in ENDED]), ids=str)
def test_former_table_is_changed_only_if_forced(app: History, table: Table, former: FormerTable) -> None:
    """The first run warns about invisible old processes, and changes nothing until it is repeated."""
    found = Found(app, table, former)
    before = found.items()
    with pytest.raises(CommandError, match=r"was migrated by an earlier release.*repeat the command with --force"):
        app.migrate()
    by_key = {(item["pk"]["S"], item["sk"]["S"]): item for item in found.items()}
    assert by_key == {(item["pk"]["S"], item["sk"]["S"]): item for item in before}


#: A conversion without a reverse function cannot be reverted, and neither can an upgrade.
REVERTED = [each for each in TABLES if each.is_applied and each.operation not in ("AlterAttribute", "UpgradeItems")]


@pytest.mark.parametrize("former", usual(REVERTED), ids=str)
def test_revert_from_each_phase(app: History, table: Table, former: FormerTable) -> None:
    """Acknowledged items are kept, and old code continues."""
    found = Found(app, table, former)
    app.migrate("0001", force=True)
    found.model = found.declare("before")
    found.look("before")
