"""A schema version that is raised: migrations that know of it, and one that finishes what reads have begun."""

from __future__ import annotations

import importlib
import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db.migrations.exceptions import IrreversibleError

from dynamo_single import models, transactions
from dynamo_single.checks.migrations import check_tables
from dynamo_single.exceptions import FormNotApplied, KeyNotFilled, SchemaVersionError
from dynamo_single.orm.rollout import knowledge
from dynamo_single.table import Request, Table
from dynamo_single.table.flow import run
from tests.contract.tables import everything
from tests.histories.app import Beginning, History, history


def split_name(item: Mapping[str, Any]) -> dict[str, Any]:
    """From version 1 to 2: one name becomes two."""
    first, _, last = item["name"].partition(" ")
    return {"first": first, "last": last or first, "name": None}


SPLIT = models.Upgrade(split_name, changes=["name", "first", "last"])
BY_LAST = {"by_last": models.IndexKey("gs1", "SHOP", "{last}#{shop_id}")}
RAISED: dict[str, Any] = {
    "first": models.UnicodeAttribute,
    "last": models.UnicodeAttribute,
    "options": {"schema_version": 2, "upgrades": {1: SPLIT}},
}


@Beginning
def begin(app: History) -> None:
    """The first migration, and what code has written after it."""
    before = old(app)
    app.make()
    app.migrate()
    for name in ("a", "b", "c"):
        before.objects.create(shop_id=name, name=f"Ada {name.upper()}", town="Bern")


@pytest.fixture
def app(tmp_path: Path, table: Table) -> Iterator[History]:
    """The app with a model of one name, and three items that its code has written."""
    with history(tmp_path) as found:
        begin(found)
        old(found)
        yield found


def old(app: History, **more: Any) -> Any:
    """The model at its first version."""
    named = {"name": models.UnicodeAttribute(), "town": models.UnicodeAttribute()}
    return app.model(bases=(models.SoftDeleteModel,), **named, **more)


def new(app: History, keys: dict[str, Any] | None = None, **options: Any) -> Any:
    """The model with two names in the place of one."""
    named = {name: models.UnicodeAttribute() for name in ("first", "last", "town")}
    given = {"schema_version": 2, "upgrades": {1: SPLIT}, **options}
    return app.model(keys=keys, bases=(models.SoftDeleteModel,), options=given, **named)


def upgrade(app: History, to: int = 2) -> None:
    """Write the migration that upgrades all items, as somebody does by hand."""
    number, last = len(app.files) + 1, app.files[-1]
    (app.folder / f"{number:04}_upgrade.py").write_text(
        "from django.db import migrations\n"
        "from dynamo_single import migrations as items\n\n\n"
        "class Migration(migrations.Migration):\n"
        f"    dependencies = [('histories', '{last}')]\n"
        f"    operations = [items.UpgradeItems('Shop', to={to})]\n"
    )


def upgrade_all(app: History) -> None:
    """Raise the version, and upgrade all items up to the finish, when old code has stopped."""
    app.make()
    app.migrate()
    upgrade(app)
    app.migrate()
    app.finish()


def put(table: Table, shop_id: str, name: str) -> None:
    """Store a shop as a process of the old code does, which knows nothing of versions."""
    key = {"pk": {"S": f"SHOP#{shop_id}"}, "sk": {"S": "#METADATA"}, "itemType": {"S": "Shop"}}
    values = {"shop_id": {"S": shop_id}, "name": {"S": name}, "town": {"S": "Bern"}}
    table.send(Request("PutItem", {"Item": {**key, **values}}))


def item(table: Table, shop_id: str = "a") -> dict[str, Any]:
    """An item's values, without where it is."""
    found = everything(table)[f"SHOP#{shop_id}", "#METADATA"]
    return {k: next(iter(v.values())) for k, v in found.items() if k not in ("pk", "sk", "itemType", "shop_id")}


def version(table: Table) -> int:
    """What the table says that every item has at least."""
    return run(knowledge.state_of(table)).forms["Shop"].schema_version


OLD = {"name": "Ada A", "town": "Bern"}
NEW = {"first": "Ada", "last": "A", "town": "Bern", "schemaVersion": "2"}


def test_a_raised_version_is_one_operation(app: History) -> None:
    """With the attributes that its upgrades change, which are neither asked about nor filled."""
    new(app)
    app.make()
    assert app.operations() == [
        "Raise schema version of Shop to 2: items are upgraded when they are read",
        "Remove attribute name from Shop; its values stay in the items",
    ]
    assert "changes=['first', 'last', 'name']" in app.text()
    assert app.make() == "No changes detected in app 'histories'\n"


def test_the_operation_that_rewrites_all_items_is_named(app: History) -> None:
    """It is the project's to write; nothing is printed where no version is raised."""
    new(app)
    assert "UpgradeItems('Shop', to=2)" in app.make()
    old = app.make("--empty")
    assert "UpgradeItems" not in old


def test_it_writes_nothing_to_the_items(app: History, table: Table) -> None:
    """They are read as upgraded, before the migration and after it."""
    model = new(app)
    assert model.objects.get(pk="a").last == "A"
    app.make()
    app.migrate()
    assert item(table) == OLD
    assert model.objects.get(pk="a").last == "A"
    assert version(table) == 1


def test_what_upgrades_change_is_asked_for_once_all_items_are_upgraded(app: History, table: Table) -> None:
    """Until the second look at the table is finished it is refused, as old code may write."""
    model = new(app)
    app.make()
    app.migrate()
    app.finish()
    upgrade(app)
    with pytest.raises(KeyNotFilled, match="UpgradeItems"):
        model.objects.filter(pk__in=["a", "b"], last="A").exists()
    assert "3 changed" in app.migrate()
    assert item(table) == NEW
    put(table, "d", "Grace D")
    with pytest.raises(KeyNotFilled):
        model.objects.filter(pk__in=["a", "d"], last="D").exists()
    assert "1 changed" in app.finish()
    assert [each.pk for each in model.objects.filter(pk__in=["a", "d"], last="D")] == ["d"]
    assert version(table) == 2


def test_the_functions_may_go_then(app: History) -> None:
    """Nothing changes, and old items that come again are errors by name."""
    new(app)
    upgrade_all(app)
    model = new(app, upgrades={})
    assert app.make() == "No changes detected in app 'histories'\n"
    assert [each.last for each in model.objects.filter(pk__in=["a", "b"])] == ["A", "B"]


def test_a_function_that_goes_too_early_is_missed(app: History, table: Table) -> None:
    """By ``makemigrations``, by ``check --database`` and by whoever reads."""
    new(app)
    app.make()
    app.migrate()
    model = new(app, upgrades={})
    with pytest.raises(CommandError, match=r"may be of schema version 1, and no upgrade in Meta.upgrades begins there"):
        app.make()
    assert [each.id for each in check_tables(databases=["default"])] == ["dynamo_single.W908", "dynamo_single.W905"]
    with pytest.raises(FormNotApplied, match=r"its items may be of schema version 1, and Meta.upgrades begin at 2"):
        model.objects.get(pk="a")


def test_a_raise_without_a_function_is_missed(app: History) -> None:
    """``makemigrations`` names the version that it has to begin with."""
    new(app, upgrades={})
    with pytest.raises(CommandError, match="Write the function from version 1 on"):
        app.make()


def test_a_version_is_not_lowered(app: History) -> None:
    """Items of the later one may be there."""
    new(app)
    app.make()
    old(app)
    with pytest.raises(CommandError, match="A version is only ever raised"):
        app.make()


def test_old_code_is_refused_once_all_items_are_upgraded(app: History) -> None:
    """A process of the former release, started again."""
    new(app)
    upgrade_all(app)
    before = old(app, options={"schema_version": 1})
    with pytest.raises(FormNotApplied, match="its items are of schema version 2, and it has 1"):
        before.objects.get(pk="a")


def test_code_without_versions_is_refused_once_one_was_raised(app: History) -> None:
    """It would write over items of the new version unnoticed; code of version 1 is refused only these."""
    new(app)
    app.make()
    app.migrate()
    before = old(app)
    with pytest.raises(FormNotApplied, match=r"may be of schema version 2, and it has no Meta.schema_version"):
        before.objects.get(pk="a")
    first = old(app, options={"schema_version": 1})
    assert first.objects.get(pk="a").name == "Ada A"


def test_a_key_of_what_upgrades_change(app: History, table: Table) -> None:
    """It is filled with the items that are upgraded, and refused until then."""
    model = new(app, BY_LAST)
    app.make()
    assert "Add key by_last to Shop on gs1" in app.operations()
    model.objects.create(shop_id="n", first="New", last="N", town="Bern")
    app.migrate()
    app.finish()
    assert item(table) == OLD
    with pytest.raises(KeyNotFilled):
        list(model.objects.order_by("last"))
    upgrade(app)
    app.migrate()
    app.finish()
    assert [each.pk for each in model.objects.order_by("last")] == ["a", "b", "c", "n"]
    assert item(table)["gs1sk"] == "A#a"


def test_a_later_key_is_written_into_items_that_are_upgraded_already(app: History) -> None:
    """Those that reads and writes have brought up to date before the key was declared."""
    model = new(app)
    app.make()
    app.migrate()
    app.finish()
    model.objects.get(pk="a").save(force_update=True)
    model = new(app, BY_LAST)
    app.make()
    assert "1 changed" in app.migrate()
    app.finish()
    upgrade(app)
    assert "2 changed" in app.migrate()
    app.finish()
    assert [each.pk for each in model.objects.order_by("last")] == ["a", "b", "c"]


def test_items_in_the_trash_are_upgraded(app: History, table: Table) -> None:
    """And stay there."""
    model = new(app)
    model.objects.get(pk="b")
    old(app).objects.get(pk="b").delete()
    model = new(app)
    upgrade_all(app)
    assert item(table, "b")["last"] == "B"
    assert model.all_objects.get(pk="b").is_deleted


def test_an_item_whose_upgrade_fails_is_named(app: History, table: Table) -> None:
    """The others are upgraded, and the command ends with an error."""
    new(app)
    app.make()
    app.migrate()
    upgrade(app)
    table.send(
        Request(
            "UpdateItem",
            {
                "Key": {"pk": {"S": "SHOP#b"}, "sk": {"S": "#METADATA"}},
                "UpdateExpression": "REMOVE #n",
                "ExpressionAttributeNames": {"#n": "name"},
            },
        )
    )
    with pytest.raises(CommandError, match=r"SHOP#b .*from schema version 1, split_name\(\), raised KeyError: 'name'"):
        app.migrate()
    assert item(table, "c")["last"] == "C"


def test_a_change_of_items_waits_for_upgrades(app: History) -> None:
    """It would be given what items do not have yet."""
    new(app)
    app.make()
    last = app.files[-1]
    (app.folder / "0003_towns.py").write_text(
        "from django.db import migrations\n"
        "from dynamo_single import migrations as items\n\n\n"
        "def towns(values):\n    return {'town': 'Chur'}\n\n\n"
        "class Migration(migrations.Migration):\n"
        f"    dependencies = [('histories', '{last}')]\n"
        "    operations = [items.ChangeItems('Shop', towns)]\n"
    )
    with pytest.raises(CommandError, match=r"Write UpgradeItems\('Shop', to=2\) before it"):
        app.migrate()


def test_an_attribute_that_no_upgrade_changes_is_filled_in_old_items(app: History, table: Table) -> None:
    """Their upgrade passes it on."""
    new(app)
    app.make()
    app.migrate()
    named = {name: models.UnicodeAttribute() for name in ("first", "last", "town")}
    model = app.model(
        bases=(models.SoftDeleteModel,),
        options={"schema_version": 2, "upgrades": {1: SPLIT}},
        country=models.UnicodeAttribute(default="CH"),
        **named,
    )
    app.make()
    app.migrate()
    app.finish()
    assert item(table) == {**OLD, "country": "CH"}
    assert [each.pk for each in model.objects.filter(pk__in=["a", "b"], country="CH")] == ["a", "b"]


def test_a_raise_does_not_go_back(app: History) -> None:
    """Items of the later version may be there; the upgrade of all items goes back to that."""
    new(app)
    upgrade_all(app)
    app.migrate("0002")
    with pytest.raises(IrreversibleError, match=r"RaiseSchemaVersion .* is not reversible"):
        app.migrate("0001")


def test_a_new_table_has_no_older_items(tmp_path: Path, table: Table) -> None:
    """Nothing is refused in it, whatever functions there are."""
    with history(tmp_path) as app:
        model = new(app, BY_LAST)
        app.make()
        assert "oldest_version" not in app.text()
        assert "schema_version=2" in app.text()
        app.migrate()
        model.objects.create(shop_id="a", first="Ada", last="A", town="Bern")
        assert [each.pk for each in model.objects.order_by("last")] == ["a"]
        assert version(table) == 2


def test_a_table_that_is_adopted_may_have_older_items(tmp_path: Path, table: Table) -> None:
    """They are looked at for their version, and upgraded as ever."""
    with history(tmp_path) as app:
        model = new(app)
        put(table, "a", "Ada A")
        model.objects.create(shop_id="b", first="Ada", last="B", town="Bern")
        app.make()
        app.migrate("--fake-initial")
        assert version(table) == 1
        with pytest.raises(KeyNotFilled):
            model.objects.filter(pk__in=["a", "b"], last="A").exists()


def test_the_commands_count_what_is_below_the_version(app: History, table: Table) -> None:
    """``dynamo_status --count`` and ``dynamo_verify``, for which it is no fault."""
    model = new(app, BY_LAST)
    model.objects.get(pk="a").save(force_update=True)
    said = app.run("dynamo_status", "--count")
    assert "Shop           3, 2 of them below the model's schema version" in said
    app.make()
    app.migrate()
    said = app.run("dynamo_verify")
    assert "histories.Shop: 2 items below schema version 2." in said
    assert "0 findings" in said


def test_the_commands_do_not_count_a_newer_version_as_below(app: History, table: Table) -> None:
    """An item of a later release cannot be read, which ``dynamo_verify`` reports; it needs no upgrade."""
    new(app, BY_LAST)
    app.make()
    app.migrate()
    update = {"UpdateExpression": "SET schemaVersion = :new", "ExpressionAttributeValues": {":new": {"N": "9"}}}
    table.send(Request("UpdateItem", {"Key": {"pk": {"S": "SHOP#a"}, "sk": {"S": "#METADATA"}}, **update}))
    assert "Shop           3, 2 of them below the model's schema version" in app.run("dynamo_status", "--count")
    out = io.StringIO()
    with pytest.raises(CommandError, match="1 findings"):
        call_command("dynamo_verify", stdout=out)
    assert "histories.Shop: 2 items below schema version 2." in out.getvalue()
    assert "was written at schema version 9" in out.getvalue()


def test_an_item_that_cannot_be_upgraded_is_a_finding(app: History, table: Table) -> None:
    """``dynamo_verify`` names it with what its upgrade says."""
    new(app)
    put(table, "x", "")
    table.send(
        Request(
            "PutItem",
            {
                "Item": {
                    "pk": {"S": "SHOP#y"},
                    "sk": {"S": "#METADATA"},
                    "itemType": {"S": "Shop"},
                    "shop_id": {"S": "y"},
                    "schemaVersion": {"N": "7"},
                }
            },
        )
    )
    out = io.StringIO()
    with pytest.raises(CommandError):
        call_command("dynamo_verify", stdout=out, stderr=out, no_color=True)
    assert "unreadable item: SHOP#y / #METADATA" in out.getvalue()
    assert "was written at schema version 7, and this code has version 2" in out.getvalue()


def test_upgrades_are_dropped_without_items_that_need_them(app: History, table: Table) -> None:
    """A migration of long ago passes a table whose items are all of the later version, without the functions."""
    model = new(app)
    app.make()
    app.migrate()
    for each in model.objects.filter(pk__in=["a", "b", "c"]):
        each.save(force_update=True)
    upgrade(app)
    new(app, upgrades={})
    assert "0 changed" in app.migrate()
    app.finish()
    assert version(table) == 2


def test_upgrades_that_are_gone_are_missed_by_items_that_need_them(app: History) -> None:
    """The error names the way out, and nothing is changed."""
    new(app)
    app.make()
    app.migrate()
    upgrade(app)
    new(app, upgrades={})
    with pytest.raises(CommandError, match="no model has upgrades that lead there any more"):
        app.migrate()


def test_the_version_of_upgraded_items_is_that_of_the_migrations_before(app: History) -> None:
    """Another one is a mistake in the file."""
    new(app)
    app.make()
    upgrade(app, to=3)
    importlib.invalidate_caches()
    with pytest.raises(CommandError, match="goes to schema version 3, and the migrations before it have version 2"):
        app.migrate()


def test_an_item_that_old_code_writes_after_the_finish_is_an_error(app: History, table: Table) -> None:
    """It was stated that it had stopped; nothing is left out in silence."""
    new(app)
    upgrade_all(app)
    model = new(app, upgrades={})
    put(table, "z", "Ada Z")
    with pytest.raises(SchemaVersionError, match="SHOP#z / #METADATA is of schema version 1"):
        model.objects.get(pk="z")


def test_a_dump_holds_upgraded_values_and_a_load_stores_them(app: History, table: Table, tmp_path: Path) -> None:
    """Over items of the old version as well."""
    new(app)
    dump = tmp_path / "dump.json"
    app.run("dumpdata", "histories", "-o", str(dump))
    rows = json.loads(dump.read_text())
    assert [row["fields"]["last"] for row in rows] == ["A", "B", "C"]
    for row in rows:
        row["fields"]["town"] = "Chur"
    dump.write_text(json.dumps(rows))
    app.run("loaddata", str(dump))
    assert item(table) == {**NEW, "town": "Chur"}


def test_related_objects_and_those_of_one_moment_are_upgraded(app: History) -> None:
    """However they are come by."""
    model = new(app)
    home = models.ReferenceAttribute("histories.Shop", on_delete=models.DO_NOTHING)
    visits = app.model("Visit", primary=("SHOP#{home_id}", "VISIT#{shop_id}"), home=home).objects
    visits.create(home_id="a", shop_id="v")
    found = visits.filter(home_id="a")
    for (visit,) in (found, found.select_related("home"), found.prefetch_related("home")):
        assert visit.home.last == "A"
    ((shop,),) = transactions.read(model.objects.filter(pk="a"))
    assert shop.last == "A"
