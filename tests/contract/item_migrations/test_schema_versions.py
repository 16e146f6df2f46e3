"""Items of earlier schema versions, which an earlier release upgraded in reads: a migration upgrades all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError
from django.db.migrations.exceptions import IrreversibleError
from django.db.migrations.optimizer import MigrationOptimizer

from dynamo_single import migrations as items
from dynamo_single import models
from dynamo_single.checks.migrations import check_tables
from dynamo_single.checks.models import check_model
from dynamo_single.contrib.doctor import verify
from dynamo_single.evolution.snapshots import Snapshot
from dynamo_single.exceptions import ConfigurationError, FormNotApplied
from dynamo_single.orm.rollout import knowledge
from dynamo_single.table import Request, Table
from dynamo_single.table.flow import run
from tests.contract.tables import everything
from tests.histories.app import Beginning, History, history
from tests.unit.declaring import declare, forgotten, messages

#: The output of an earlier release's ``makemigrations`` for a model with ``Meta.schema_version = 2``.
RAISED = """
    operations = [
        items.RaiseSchemaVersion(
            model_name='Shop',
            to=2,
            changes=['first', 'last', 'name'],
            attributes={
                'first': items.StoredAttribute('UnicodeAttribute', 'first'),
                'last': items.StoredAttribute('UnicodeAttribute', 'last'),
            },
        ),
        items.RemoveAttribute(model_name='Shop', name='name', drop=False),
    ]
"""
UPGRADED = "    operations = [items.UpgradeItems('Shop', to=2, upgrades={1: split_name})]\n"
#: The same as an earlier release had it, with the functions in ``Meta.upgrades``.
FORMER = "    operations = [items.UpgradeItems('Shop', to=2)]\n"
SPLIT = """
def split_name(item):
    first, _, last = item["name"].partition(" ")
    return {"first": first, "last": last or first, "name": None}
"""
OLD = {"name": "Ada A", "town": "Bern"}
NEW = {"first": "Ada", "last": "A", "town": "Bern", "schemaVersion": "2"}


@Beginning
def begin(app: History) -> None:
    """The first migration, what code has written after it, and the migration that raised the version."""
    before = old(app)
    app.make()
    app.migrate()
    for name in ("a", "b", "c"):
        before.objects.create(shop_id=name, name=f"Ada {name.upper()}", town="Bern")
    write(app, "0002_raised", RAISED)
    app.migrate()


@pytest.fixture
def app(tmp_path: Path, table: Table) -> Iterator[History]:
    """The app, whose table may have items of two versions."""
    with history(tmp_path) as found:
        begin(found)
        new(found)
        yield found


def old(app: History, **more: Any) -> Any:
    """The model at its first version."""
    named = {"name": models.UnicodeAttribute(), "town": models.UnicodeAttribute()}
    return app.model(bases=(models.SoftDeleteModel,), **named, **more)


def new(app: History, keys: dict[str, Any] | None = None, **more: Any) -> Any:
    """Return the model with two names instead of one."""
    named = {name: models.UnicodeAttribute() for name in ("first", "last", "town")}
    return app.model(keys=keys, bases=(models.SoftDeleteModel,), **{**named, **more})


def write(app: History, name: str, operations: str, functions: str = "") -> None:
    """Write a migration by hand."""
    (app.folder / f"{name}.py").write_text(
        "from django.db import migrations\n"
        f"from dynamo_single import migrations as items\n\n{functions}\n\n"
        "class Migration(migrations.Migration):\n"
        f"    dependencies = [('histories', '{app.files[-1]}')]\n{operations}"
    )


def upgrade(app: History, operations: str = UPGRADED, functions: str = SPLIT) -> None:
    """Write the migration that upgrades all items."""
    write(app, "0003_upgrade", operations, functions)


def upgrade_all(app: History) -> None:
    """Upgrade all items."""
    upgrade(app)
    app.migrate()


def put(table: Table, shop_id: str, name: str, **more: Any) -> None:
    """Store a shop as a process of the old code does."""
    key = {"pk": {"S": f"SHOP#{shop_id}"}, "sk": {"S": "#METADATA"}, "itemType": {"S": "Shop"}}
    values = {"shop_id": {"S": shop_id}, "name": {"S": name}, "town": {"S": "Bern"}}
    table.send(Request("PutItem", {"Item": {**key, **values, **more}}))


def item(table: Table, shop_id: str = "a") -> dict[str, Any]:
    """An item's values, without where it is."""
    found = everything(table)[f"SHOP#{shop_id}", "#METADATA"]
    return {k: next(iter(v.values())) for k, v in found.items() if k not in ("pk", "sk", "itemType", "shop_id")}


def versions(table: Table) -> tuple[int, int]:
    """Return the minimum version of the items and the latest one, from the state."""
    form = run(knowledge.state_of(table)).forms["Shop"]
    return form.version, form.raised_to


def test_a_former_migration_writes_no_items(app: History, table: Table) -> None:
    assert (item(table), versions(table)) == (OLD, (1, 2))


def test_items_of_earlier_versions_are_refused(app: History) -> None:
    with pytest.raises(FormNotApplied, match=r'versions 1 to 2.*UpgradeItems\("Shop", to=2, upgrades='):
        new(app).objects.get(pk="a")


def test_creation_is_refused_beside_earlier_versions(app: History, table: Table) -> None:
    with pytest.raises(FormNotApplied, match="Nothing was read or written"):
        new(app).objects.create(shop_id="d", first="Ada", last="D", town="Bern")
    assert ("SHOP#d", "#METADATA") not in everything(table)


def test_check_warns_of_earlier_versions(app: History) -> None:
    assert "dynamo_single.W908" in [each.id for each in check_tables(databases=["default"])]


def test_makemigrations_names_the_missing_operation(app: History) -> None:
    with pytest.raises(CommandError, match=r'UpgradeItems\("Shop", to=2, upgrades={1: function, ...}\)'):
        app.make()


def test_upgrade_rewrites_items_with_keys(app: History, table: Table) -> None:
    upgrade(app)
    assert "3 changed" in app.migrate()
    assert item(table) == NEW


@pytest.mark.parametrize(("until", "passed"), [(0, False), (1, False), (1, True)])
def test_items_are_refused_until_all_are_upgraded(app: History, until: int, *, passed: bool) -> None:
    upgrade(app)
    app.migrate(until=until, passed=passed)
    with pytest.raises(FormNotApplied):
        new(app).objects.get(pk="a")


def test_an_upgrade_reaches_what_old_code_wrote(app: History, table: Table) -> None:
    """Code of the earlier release is not blocked: its items are upgraded with the rest."""
    upgrade(app)
    app.migrate(until=1)
    put(table, "d", "Grace D")
    app.migrate()
    assert item(table, "d")["last"] == "D"


def test_items_are_read_after_the_upgrade(app: History, table: Table) -> None:
    upgrade_all(app)
    found = new(app).objects.filter(pk__in=["a", "b"], last="A")
    assert [each.first for each in found] == ["Ada"]
    assert versions(table) == (2, 2)


def test_migrations_agree_with_the_model_afterwards(app: History) -> None:
    upgrade_all(app)
    assert app.make() == "No changes detected in app 'histories'\n"


def test_an_upgrade_again_changes_nothing(app: History) -> None:
    upgrade_all(app)
    app.migrate("0002")
    assert "0 changed" in app.migrate()


def test_a_key_follows_the_upgrade(app: History, table: Table) -> None:
    upgrade_all(app)
    model = new(app, {"by_last": models.IndexKey("gs1", "SHOP", "{last}#{shop_id}")})
    app.make()
    app.migrate()
    assert [each.pk for each in model.objects.order_by("last")] == ["a", "b", "c"]


def test_items_in_the_trash_are_upgraded(app: History, table: Table) -> None:
    put(table, "d", "Ada D", deletedAt={"N": "1700000000000"})
    upgrade_all(app)
    assert new(app).all_objects.get(pk="d").last == "D"


def test_claims_follow_the_upgrade(tmp_path: Path, table: Table) -> None:
    with history(tmp_path) as app:
        model = app.model(email=models.UnicodeAttribute(unique=True))
        app.make()
        app.migrate()
        model.objects.create(shop_id="a", email="ADA@example.com")
        write(app, "0002_raised", "    operations = [items.RaiseSchemaVersion('Shop', to=2, changes=['email'])]\n")
        lower = "def split_name(item):\n    return {'email': item['email'].lower()}\n"
        upgrade(app, functions=lower)
        app.migrate()
        assert model.objects.get(email="ada@example.com").pk == "a"
        assert list(verify()) == []


def test_a_rehearsal_shows_the_upgrade(app: History, table: Table) -> None:
    upgrade(app)
    assert "last missing -> 'A'" in app.migrate("--rehearse")
    assert item(table) == OLD


def _created(model: Any) -> str:
    model.objects.create(shop_id="d", first="Ada", last="D", town="Bern")
    return "d"


def _bulk_created(model: Any) -> str:
    model.objects.bulk_create([model(shop_id="d", first="Ada", last="D", town="Bern")])
    return "d"


def _updated(model: Any) -> str:
    model.objects.filter(pk="a").update(town="Chur")
    return "a"


def _saved(model: Any) -> str:
    obj = model.objects.get(pk="a")
    obj.town = "Chur"
    obj.save()
    return "a"


def _trashed_and_restored(model: Any) -> str:
    obj = model.objects.get(pk="a")
    obj.delete()
    obj.restore()
    return "a"


WRITERS = (_created, _bulk_created, _updated, _saved, _trashed_and_restored)


@pytest.mark.parametrize("work", WRITERS, ids=lambda each: each.__name__)
def test_a_write_keeps_the_version(app: History, table: Table, work: Callable[[Any], str]) -> None:
    """Code of the earlier release reads an item without it as one of the first version, and would upgrade it again."""
    upgrade_all(app)
    assert item(table, work(new(app)))["schemaVersion"] == "2"


def test_pynamodb_keeps_the_version(app: History, table: Table) -> None:
    upgrade_all(app)
    model = app.model(**{name: models.UnicodeAttribute() for name in ("first", "last", "town")})
    with model.batch_write() as batch:
        batch.save(model(shop_id="e", first="Ada", last="E", town="Bern"))
    assert item(table, "e")["schemaVersion"] == "2"


def test_a_former_upgrade_passes_without_earlier_items(app: History, table: Table) -> None:
    for name in "abc":
        put(table, name, "", first={"S": "Ada"}, last={"S": name.upper()}, schemaVersion={"N": "2"})
    upgrade(app, FORMER, "")
    assert "0 changed" in app.migrate()
    assert versions(table) == (2, 2)


def test_a_former_upgrade_names_what_it_lacks(app: History, table: Table) -> None:
    upgrade(app, FORMER, "")
    with pytest.raises(CommandError, match=r'SHOP#a .*schema version 1.*UpgradeItems\("Shop", to=2, upgrades='):
        app.migrate()
    assert (item(table), versions(table)) == (OLD, (1, 2))


def test_functions_that_are_added_carry_it_out(app: History, table: Table) -> None:
    upgrade(app, FORMER, "")
    with pytest.raises(CommandError):
        app.migrate()
    (app.folder / "0003_upgrade.py").unlink()
    upgrade_all(app)
    assert (item(table), versions(table)) == (NEW, (2, 2))


def test_a_former_upgrade_that_has_ended_stays(app: History, table: Table) -> None:
    """A table that an earlier release upgraded, and a file without functions."""
    upgrade_all(app)
    (app.folder / "0003_upgrade.py").unlink()
    upgrade(app, FORMER, "")
    assert "No migrations to apply" in app.migrate()
    assert new(app).objects.get(pk="a").last == "A"


def test_a_failing_upgrade_names_the_item(app: History, table: Table) -> None:
    upgrade(app, functions=SPLIT.replace('partition(" ")', "partition({'Ada B': ''}.get(item['name'], ' '))"))
    with pytest.raises(CommandError, match=r"SHOP#b .*split_name\(\) raised ValueError: empty separator"):
        app.migrate()
    assert item(table, "c")["last"] == "C"


@pytest.mark.parametrize("name", ["pk", "sk", "itemType", "schemaVersion", "shop_id"])
def test_a_function_changes_no_key(app: History, name: str) -> None:
    upgrade(app, functions=f"def split_name(item):\n    return {{{name!r}: 'x'}}\n")
    with pytest.raises(CommandError, match=f"{name} cannot be changed by a function"):
        app.migrate()


def test_an_item_of_a_later_version_stays(app: History, table: Table) -> None:
    put(table, "z", "Zoe", schemaVersion={"N": "9"})
    upgrade_all(app)
    assert item(table, "z") == {"name": "Zoe", "town": "Bern", "schemaVersion": "9"}


def test_other_work_waits_for_the_upgrade(app: History) -> None:
    change = "    operations = [items.ChangeItems('Shop', towns)]\n"
    write(app, "0003_towns", change, "def towns(values):\n    return {'town': 'Chur'}\n")
    with pytest.raises(CommandError, match=r'Write migrations.UpgradeItems\("Shop", to=2'):
        app.migrate()


def test_a_raise_does_not_go_back(app: History) -> None:
    upgrade_all(app)
    app.migrate("0002")
    with pytest.raises(IrreversibleError, match=r"RaiseSchemaVersion .* is not reversible"):
        app.migrate("0001")


def test_former_migrations_run_on_a_new_table(tmp_path: Path, table: Table) -> None:
    with history(tmp_path) as app:
        old(app)
        app.make()
        write(app, "0002_raised", RAISED)
        upgrade(app, FORMER, "")
        app.migrate()
        model = new(app)
        model.objects.create(shop_id="a", first="Ada", last="A", town="Bern")
        assert (item(table), versions(table)) == (NEW, (2, 2))


def test_adopted_items_are_upgraded(tmp_path: Path, table: Table) -> None:
    """An app that had no migrations: ``AddModel`` gets the version by hand."""
    with history(tmp_path) as app:
        model = new(app)
        put(table, "a", "Ada A")
        put(table, "b", "", first={"S": "Ada"}, last={"S": "B"}, schemaVersion={"N": "2"})
        app.make()
        first = app.folder / f"{app.files[0]}.py"
        first.write_text(first.read_text().replace("name='Shop',", "name='Shop', schema_version=2,", 1))
        app.migrate("--fake-initial")
        write(app, "0002_upgrade", UPGRADED, SPLIT)
        app.migrate()
        assert [each.last for each in model.objects.filter(pk__in=["a", "b"])] == ["A", "B"]


def test_adoption_names_the_version_to_give(tmp_path: Path, table: Table) -> None:
    with history(tmp_path) as app:
        new(app)
        put(table, "b", "", first={"S": "Ada"}, last={"S": "B"}, schemaVersion={"N": "2"})
        app.make()
        with pytest.raises(CommandError, match="pass schema_version=2 to AddModel"):
            app.migrate("--fake-initial")


def add_model() -> items.AddModel:
    """The model at its first version."""
    with forgotten():
        return items.AddModel.of("Shop", Snapshot.of(declare("Shop", ("SHOP#{shop_id}", "#"), **shop())))


def shop() -> dict[str, Any]:
    """The attributes, which belong to one model."""
    return {"shop_id": models.IdAttribute(), "name": models.UnicodeAttribute()}


def split_name(item: Mapping[str, Any]) -> dict[str, Any]:
    """From version 1 to 2."""
    return {"first": item["name"]}


FIRST_NAME = {"first": items.StoredAttribute("UnicodeAttribute", "first")}


def squashed(*operations: Any) -> list[Any]:
    return MigrationOptimizer().optimize([add_model(), *operations], "shop")


def test_squashing_merges_former_operations() -> None:
    raised = items.RaiseSchemaVersion("Shop", to=2, changes=["first"], attributes=FIRST_NAME)
    (found,) = squashed(raised, items.UpgradeItems("Shop", to=2))
    assert (found.snapshot.schema_version, found.snapshot.oldest_version) == (2, 2)
    assert "first" in found.snapshot.attributes


def test_squashing_keeps_functions() -> None:
    raised = items.RaiseSchemaVersion("Shop", to=2, changes=["first"], attributes=FIRST_NAME)
    model, upgrade = squashed(raised, items.UpgradeItems("Shop", to=2, upgrades={1: split_name}))
    assert (model.snapshot.oldest_version, upgrade.upgrades) == (1, {1: split_name})


@pytest.mark.parametrize("upgrades", [{1: split_name}, dict.fromkeys(range(3), split_name), {2: "x"}])
def test_a_chain_with_a_gap_is_refused(upgrades: dict[int, Any]) -> None:
    with pytest.raises(ConfigurationError, match="one from each version up to 2"):
        items.UpgradeItems("Shop", to=3, upgrades=upgrades)


def test_the_last_functions_are_enough() -> None:
    assert items.UpgradeItems("Shop", to=3, upgrades={2: split_name}).upgrades == {2: split_name}


OPTIONS = {"schema_version": 2, "upgrades": {1: models.Upgrade(split_name, changes=["first"])}}


def test_check_names_the_operation_to_write(table: Table) -> None:
    with forgotten():
        model = declare("Shop", ("SHOP#{shop_id}", "#"), options=OPTIONS, **shop())
        (found,) = check_model(model)
    assert found.id == "dynamo_single.E023"
    assert 'migrations.UpgradeItems("Shop", to=2, upgrades={1: split_name})' in (found.hint or "")


def test_check_of_the_first_version_asks_to_delete_it(table: Table) -> None:
    with forgotten():
        model = declare("Shop", ("SHOP#{shop_id}", "#"), options={"schema_version": 1}, **shop())
        ((identifier, _),) = messages(model)
    assert identifier == "dynamo_single.E023"


def test_a_model_with_upgrades_is_not_used(table: Table) -> None:
    with forgotten():
        model = declare("Shop", ("SHOP#{shop_id}", "#"), options=OPTIONS, **shop())
        text = r'UpgradeItems\("Shop", to=2, upgrades={1: split_name}\)'
        with pytest.raises(ConfigurationError, match=text):
            model.objects.get(pk="a")
