"""The labels of a renamed model in the items of other models."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.core.management import CommandError

from accounts.models import User
from dynamo_single import clock, models
from dynamo_single import migrations as items
from dynamo_single.admin.batch_actions.models import AdminJob
from dynamo_single.admin.log import LogEntry
from dynamo_single.evolution import drive
from dynamo_single.evolution.backfill import Options, Work, run_work
from dynamo_single.evolution.snapshots import Snapshot
from dynamo_single.exceptions import FormNotApplied
from dynamo_single.orm.rollout import knowledge
from dynamo_single.permission_fields import PermissionsAttribute
from dynamo_single.table import Request, Table
from tests.catalog.tags import Animal, Emblem
from tests.contract.item_migrations.stopped_project import project_for
from tests.contract.item_migrations.test_stopped import killed_at
from tests.histories.app import History, history
from tests.strict import IS_STRICT
from tests.unit.declaring import declare, forgotten


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


@pytest.fixture
def app(tmp_path: Path, table: Table) -> Iterator[History]:
    """An app in which a model is renamed, with the migration that has not been applied."""
    with history(tmp_path, beside=["django.contrib.contenttypes"]) as found:
        badge = declared(found, "Shop")
        found.make()
        found.migrate()
        for number in range(6):
            held = {"histories.view_shop", "histories.ship_shop", "histories.view_badge"}
            badge.objects.create(pk=str(number), kind="histories.shop", owner=str(number), rights=held)
        badge.objects.get(pk="5").delete()
        found.forget("Shop")
        declared(found, "Store")
        found.make(answers=["y"])
        yield found


def declared(app: History, name: str, **attributes: Any) -> Any:
    """Declare the model under a name, and the model whose objects refer to it."""
    app.model(name, primary=("SHOP#{shop_id}", "#METADATA"), options={"item_type": "Shop"})
    attributes = attributes or {"kind": models.ContentTypeAttribute()}
    kind = next(iter(attributes))
    return app.model(
        "Badge",
        keys={"by_owner": models.IndexKey("gs1", f"OWNER#{{{kind}}}#{{owner}}", "{shop_id}")},
        bases=(models.SoftDeleteModel,),
        owner=models.UnicodeAttribute(),
        rights=PermissionsAttribute(),
        **attributes,
    )


def labels(table: Table, name: str = "kind") -> list[tuple[str, str, list[str]]]:
    """The stored labels, the keys with them, and the permissions."""
    items = [item for item in table.send(Request("Scan"))["Items"] if item["pk"]["S"].startswith("BADGE#")]
    return sorted(
        (item[name]["S"], item["gs1pk"]["S"].partition("TRASH")[0], sorted(item["rights"]["SS"])) for item in items
    )


def wanted(name: str) -> list[tuple[str, str, list[str]]]:
    """What all of them are for a name of the model."""
    rights = sorted(["histories.ship_shop", "histories.view_badge", f"histories.view_{name}"])
    label = f"histories.{name}"
    return sorted((label, f"OWNER#{label}#{number}" if number < 5 else "", rights) for number in range(6))


def test_rename_changes_labels(app: History, table: Table) -> None:
    """References with their keys, and permissions, also in the trash."""
    app.migrate()
    assert labels(table) == wanted("store")


def test_rename_back_changes_labels_back(app: History, table: Table) -> None:
    app.migrate()
    app.migrate("0001")
    assert labels(table) == wanted("shop")


@pytest.mark.parametrize("number", [10, 20, 24])
def test_killed_rename_goes_on(app: History, table: Table, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    monkeypatch.setattr(knowledge, "LOCAL_LEASE", 0.05)
    with killed_at(number):
        app.migrate("--segments", "1")
    app.migrate("--segments", "1")
    assert (labels(table), app.phases()) == (wanted("store"), {})


@pytest.mark.parametrize("number", [10, 20, 24])
def test_killed_rename_can_be_reverted(
    app: History, table: Table, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr(knowledge, "LOCAL_LEASE", 0.05)
    with killed_at(number):
        app.migrate("--segments", "1")
    app.migrate("0001", "--segments", "1")
    app.migrate("0001", "--segments", "1")
    assert (labels(table), app.phases()) == (wanted("shop"), {})


@pytest.mark.parametrize("order", ["RenameModel first", "RenameAttribute first"])
def test_label_that_gets_another_name_in_the_same_run(app: History, table: Table, order: str) -> None:
    """One change waits for the other: a copy of the values would otherwise miss what the pass has changed."""
    declared(app, "Store", sort=models.ContentTypeAttribute())
    if order == "RenameAttribute first":
        (path,) = app.folder.glob("0002*.py")
        path.unlink()
    app.make(answers=["y"] if order == "RenameModel first" else ["y", "y"])
    app.migrate()
    assert labels(table, "sort") == wanted("store")


def test_rename_waits_for_a_later_migration(app: History, table: Table) -> None:
    """This code reads an attribute whose values are not there yet."""
    declared(app, "Store", sort=models.ContentTypeAttribute())
    app.make(answers=["y"])
    said = app.migrate("0002")
    assert "waits for later migrations of histories.badge: run migrate without the name of a migration." in said
    app.migrate()
    assert labels(table, "sort") == wanted("store")


def test_rename_is_not_reverted_by_later_code(app: History, table: Table) -> None:
    """It would not find the labels."""
    declared(app, "Store", sort=models.ContentTypeAttribute())
    app.make(answers=["y"])
    app.migrate()
    with pytest.raises(CommandError, match=r"Revert it with the code of histories\.0002"):
        app.migrate("0001")
    declared(app, "Store")
    app.migrate("0001")
    assert labels(table) == wanted("shop")


@pytest.mark.parametrize("phase", [0, 1])
def test_old_and_new_code_use_a_model_while_its_labels_change(app: History, phase: int) -> None:
    app.migrate(until=phase)
    new = apps.get_model("histories", "Store")
    new.objects.create(pk="new")
    app.forget("Store")
    declared(app, "Shop")
    with app.code_of("0001"):
        old = apps.get_model("histories", "Shop")
        assert old.objects.get(pk="new").pk == "new"


def another_shop(app: History) -> Any:
    """Declare another model under the name that the renamed one had, with labels in its items."""
    found = app.model(
        "Shop",
        primary=("ANOTHER#{shop_id}", "#METADATA"),
        options={"item_type": "Another"},
        kind=models.ContentTypeAttribute(null=True),
    )
    app.make()
    return found


@pytest.mark.parametrize("runs", ["one run", "two runs"])
def test_new_model_under_the_former_name(app: History, table: Table, runs: str) -> None:
    """It has a form of its own in the table's state."""
    if runs == "two runs":
        app.migrate()
    shop = another_shop(app)
    app.migrate()
    assert labels(table) == wanted("store")
    for model in (apps.get_model("histories", "Store"), shop):
        model.objects.create(pk="x")


def test_new_model_under_the_former_name_waits_for_the_rename(app: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own labels would be replaced as well. Old code is running here."""
    shop = another_shop(app)
    with monkeypatch.context() as patch:
        patch.setattr(drive, "_held_back", lambda table, ready, state, this: list(ready))
        with pytest.raises(CommandError, match=r"still replaces the label 'histories\.shop'.*Run migrate again"):
            app.migrate()
        app.start()
        with pytest.raises(FormNotApplied):
            shop.objects.create(pk="x")
    app.migrate()
    assert shop.objects.create(pk="x").pk == "x"


def test_renames_that_pass_a_name_on(tmp_path: Path, table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one waits for the first in the same migration. Old code is running here."""
    with history(tmp_path, beside=["django.contrib.contenttypes"]) as app:
        app.model("Inn")
        badge = declared(app, "Shop")
        app.make()
        app.migrate()
        for number, name in enumerate(("shop", "inn")):
            badge.objects.create(pk=str(number), kind=f"histories.{name}", owner="x", rights={"histories.view_badge"})
        app.forget("Inn")
        inn = app.model("Shop", primary=("INN#{shop_id}", "#METADATA"), options={"item_type": "Inn"})
        declared(app, "Store")
        (app.folder / "0002_passed_on.py").write_text(PASSED_ON)
        with monkeypatch.context() as patch:
            patch.setattr(drive, "_held_back", lambda table, ready, state, this: list(ready))
            with pytest.raises(CommandError, match="Rename model Inn to Shop' yet"):
                app.migrate()
            app.start()
            with pytest.raises(FormNotApplied):
                inn.objects.create(pk="x")
        app.migrate()
        assert [found for found, _, _ in labels(table)] == ["histories.shop", "histories.store"]


PASSED_ON = """
from django.db import migrations as django
from dynamo_single import migrations

class Migration(django.Migration):
    dependencies = [("histories", "0001_initial")]
    operations = [migrations.RenameModel("Shop", "Store"), migrations.RenameModel("Inn", "Shop")]
"""


def test_name_of_a_new_model_passes_to_one_with_items(tmp_path: Path, table: Table) -> None:
    """Items of the second model are converted, although the run added a model of its later name."""
    with history(tmp_path) as app:
        app.model("Inn").objects.create(pk="1")
        app.make()
        app.migrate("--fake-initial")
        app.forget("Inn")
        found = app.model(
            "Shop",
            primary=("INN#{shop_id}", "#METADATA"),
            options={"item_type": "Inn"},
            rooms=models.IntegerAttribute(default=7),
        )
        app.model("Store")
        (app.folder / "0002_new.py").write_text(NEW_AND_PASSED_ON)
        app.migrate()
        assert found.objects.get(pk="1").rooms == 9


NEW_AND_PASSED_ON = """
from django.db import migrations as django
from dynamo_single import migrations, models

class Migration(django.Migration):
    dependencies = [("histories", "0001_initial")]
    operations = [
        migrations.AddModel("Shop", "Store", models.Key("STORE#{shop_id}", "#METADATA"), {
            "shop_id": migrations.StoredAttribute("IdAttribute", "shop_id"),
        }),
        migrations.RenameModel("Shop", "Store"),
        migrations.RenameModel("Inn", "Shop"),
        migrations.AddAttribute("Shop", "rooms", migrations.StoredAttribute("IntegerAttribute", "rooms"), default=9),
    ]
"""
TOPICS = """
from dynamo_single.permission_fields import PermissionsAttribute

class TOPIC(models.Model):
    topic_id = models.IdAttribute()

    class Keys:
        primary = models.Key("TOPIC#{topic_id}", "#METADATA")

    class Meta:
        item_type = "Topic"

class Badge(models.Model):
    badge_id = models.UnicodeAttribute()
    rights = PermissionsAttribute()

    class Keys:
        primary = models.Key("BADGE#{badge_id}", "#METADATA")
"""
TOPIC_MIGRATION = """
from django.db import migrations as django
from dynamo_single import migrations, models

class Migration(django.Migration):
    dependencies = [("shop", "0001_initial")]
    operations = [
        migrations.AddModel("Topic", "Topic", models.Key("TOPIC#{topic_id}", "#METADATA"), {
            "topic_id": migrations.StoredAttribute("IdAttribute", "topic_id"),
        }),
    ]
"""
RENAMING = """
from django.db import migrations as django
from dynamo_single import migrations

class Migration(django.Migration):
    dependencies = [("shop", "0002_topics")]
    operations = [migrations.RenameModel("Topic", "Subject")]
"""


@pytest.mark.skipif(IS_STRICT, reason="the engine has a strict server in front of it")
def test_rename_waits_for_old_code(tmp_path: Path, table: Table) -> None:
    """Old code finds its labels as long as it runs; ``migrate`` names it, and carries on when it has ended."""
    with project_for(tmp_path, table, []) as project:
        for code, name in (("old", "Topic"), ("new", "Subject")):
            folder = tmp_path / code / "shop"
            (folder / "migrations/0002_second.py").unlink(missing_ok=True)
            (folder / "migrations/0002_topics.py").write_text(TOPIC_MIGRATION)
            with (folder / "models.py").open("a") as file:
                file.write(TOPICS.replace("TOPIC(", f"{name}("))
        (tmp_path / "new/shop/migrations/0003_subject.py").write_text(RENAMING)
        assert project.migrate("old").result(leaps=True)[0] == 0
        key = {"pk": {"S": "BADGE#1"}, "sk": {"S": "#METADATA"}}
        badge = {**key, "itemType": {"S": "Badge"}, "badge_id": {"S": "1"}, "rights": {"SS": ["shop.view_topic"]}}
        table.send(Request("PutItem", {"Item": badge}))
        worker = project.worker("old", "writer")
        worker.do("create")
        run = project.migrate("new")
        while run.is_running:
            worker.do("save")
        assert "1 process would not know the new values" in run.result()[1]
        assert table.send(Request("GetItem", {"Key": key}))["Item"]["rights"] == {"SS": ["shop.view_topic"]}
        worker.kill()
        assert project.migrate("new").result(leaps=True)[0] == 0
        assert table.send(Request("GetItem", {"Key": key}))["Item"]["rights"] == {"SS": ["shop.view_subject"]}


def left(label: str, primary: tuple[str, str], **options: str) -> str:
    """Return the remaining work after the rename of a model, next to a new model with labels in its items."""
    with forgotten():
        numbered = {"kind": models.ContentTypeAttribute(), "number": models.UnicodeAttribute()}
        declare(label, primary, options=options, **numbered)
        return items.RenameModel("Beast", "Animal").left_to_do("catalog")


def test_label_in_primary_key_is_named() -> None:
    found = left("Plaque", ("PLAQUE#{kind}", "{number}"))
    assert found.endswith("Change them: catalog.Plaque.kind is in the primary key: save such objects by move().")


def test_label_in_another_table_is_named() -> None:
    operation = "catalog.Plaque: ChangeItems('Plaque', RenamedLabels('kind', 'catalog.beast', 'catalog.animal'))"
    assert operation in left("Plaque", ("PLAQUE#{number}", "#METADATA"), table="kinds")


def test_usual_labels_are_all_replaced() -> None:
    assert items.RenameModel("Beast", "Animal").left_to_do("catalog") == ""


def test_log_entry_follows_new_label(table: Table) -> None:
    """The list by the object reads a key with the label."""
    lion = Animal.objects.create(animal_id="a", name="Lion")
    LogEntry.objects.log_actions("1", [lion], 1)
    snapshot = Snapshot.of(Animal)
    (task,) = items.RenameModel("Animal", "Beast").passes_in("catalog", snapshot, snapshot)["fill"]
    run_work(Work("catalog", "0002", 0, "fill", "Labels", task), table, Options(segments=1))
    assert LogEntry.objects.filter(object_type="catalog.beast", object_id="a").count() == 1


def test_job_of_the_admin_follows_new_label(table: Table) -> None:
    """Its objects would otherwise be those of a new model under the former name."""
    job = AdminJob.objects.create(
        user_key="1", label="catalog.animal", action="delete", keys=["a"], expires_at=clock.now() + timedelta(days=1)
    )
    snapshot = Snapshot.of(Animal)
    (task,) = items.RenameModel("Animal", "Beast").passes_in("catalog", snapshot, snapshot)["fill"]
    run_work(Work("catalog", "0002", 0, "fill", "Labels", task), table, Options(segments=1))
    assert AdminJob.objects.get(pk=job.pk).label == "catalog.beast"
