"""``migrate`` changes items, operation by operation, and back; ``test_phases`` shows the time in between."""

from __future__ import annotations

import re
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import BaseCommand, CommandError
from django.db.models import Q
from msgspec.structs import replace

from dynamo_single import models
from dynamo_single.contrib.doctor import verify
from dynamo_single.evolution.forms import form_of
from dynamo_single.evolution.snapshots import Snapshot
from dynamo_single.exceptions import FormNotApplied, KeyNotFilled, UniqueViolation
from dynamo_single.orm.rollout import knowledge
from dynamo_single.orm.rollout.states import StoredForm
from dynamo_single.table import Request, Table
from dynamo_single.table.flow import run
from dynamo_single.testing import assert_requests, setup_table
from tests.histories.app import Beginning, History, history

BY_NAME = {"by_name": models.IndexKey("gs1", "SHOP", "{name}")}


@Beginning
def begin(app: History) -> None:
    """Its first migration."""
    shop(app)
    app.make()
    app.migrate()


@pytest.fixture
def app(tmp_path: Path, table: Table) -> Iterator[History]:
    """The app with a model that has three shops, one of them in the trash, and its first migration applied."""
    with history(tmp_path) as found:
        begin(found)
        shop(found)
        yield found


def shop(app: History, keys: dict[str, Any] | None = None, **attributes: Any) -> Any:
    """Return the new declaration of the model."""
    bases = (models.SoftDeleteModel,)
    return app.model(keys=keys, bases=bases, **{"name": models.UnicodeAttribute(), **attributes})


def fill(model: Any, **values: Any) -> None:
    """Three shops, one of them in the trash."""
    for name in ("a", "b", "c"):
        model.objects.create(shop_id=name, name=name.upper(), **values)
    model.objects.get(shop_id="c").delete()


def item(shop_id: str = "a") -> dict[str, Any]:
    """Return a stored item without its key and type."""
    from dynamo_single.table import get_table

    key = {"pk": {"S": f"SHOP#{shop_id}"}, "sk": {"S": "#METADATA"}}
    found = get_table().send(Request("GetItem", {"Key": key}))["Item"]
    return {name: next(iter(value.values())) for name, value in found.items() if name not in ("pk", "sk", "itemType")}


def write(table: Table, shop_id: str, **values: str) -> None:
    """Write strings into an item like a process without the migration."""
    names = {f"#{name}": name for name in values}
    params = {
        "Key": {"pk": {"S": f"SHOP#{shop_id}"}, "sk": {"S": "#METADATA"}},
        "UpdateExpression": "SET " + ", ".join(f"#{name} = :{name}" for name in values),
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": {f":{name}": {"S": value} for name, value in values.items()},
    }
    table.send(Request("UpdateItem", params))


def form(table: Table, item_type: str = "Shop") -> StoredForm:
    """Return the model's state in the table."""
    return run(knowledge.state_of(table)).forms[item_type]


def change(app: History, *arguments: str, answers: Any = (), **declared: Any) -> Any:
    """Declare the model otherwise, write the migration and carry it out."""
    model = shop(app, **declared)
    app.make(*arguments, answers=answers)
    app.migrate()
    return model


def test_a_key_is_filled(app: History, table: Table) -> None:
    """Old code continues, and writes the key too."""
    old = shop(app)
    fill(old)
    new = shop(app, BY_NAME)
    app.make()
    said = app.migrate()
    assert "Add key by_name to Shop on gs1: " in said
    assert "2 changed" in said
    assert (item()["gs1pk"], item()["gs1sk"]) == ("SHOP", "A")
    old.objects.create(shop_id="d", name="D")
    assert [each.name for each in new.objects.order_by("name")] == ["A", "B", "D"]
    assert [each.name for each in new.deleted_objects.all()] == ["C"]
    assert form(table).opened == ()
    assert "Changing items" not in app.migrate()


def test_a_key_that_is_altered(app: History) -> None:
    """The items have the new one, and queries read by it."""
    fill(change(app, keys=BY_NAME))
    new = change(app, keys={"by_name": models.IndexKey("gs1", "SHOPS", "{name}#{shop_id}")})
    assert (item()["gs1pk"], item()["gs1sk"]) == ("SHOPS", "A#a")
    assert [each.name for each in new.objects.order_by("name")] == ["A", "B"]


def test_a_key_with_a_condition_is_filled_with_what_meets_it(app: History) -> None:
    """The other items do not have it."""
    model = shop(app)
    fill(model)
    cheap = {"early": models.IndexKey("gs2", "EARLY", "{name}", condition=Q(name__lt="B") | Q(name="Z"))}
    model = shop(app, cheap)
    app.make()
    assert app.make("--check") == "No changes detected in app 'histories'\n"
    with pytest.raises(KeyNotFilled):
        list(model.objects.filter(name__lt="A1"))
    app.migrate()
    with assert_requests(["GetItem", "Query"]):
        assert [each.pk for each in model.objects.filter(name__lt="A1")] == ["a"]
    assert [item(pk).get("gs2pk") for pk in "abc"] == ["EARLY", None, "TRASH#Shop"]
    app.migrate("0001")
    assert "gs2pk" not in item("a")


def test_a_key_that_is_removed(app: History) -> None:
    """No item has it any more, including the trash."""
    fill(change(app, keys=BY_NAME))
    change(app)
    assert "gs1pk" not in item()
    assert "gs1pk" not in item("c")


def test_an_attribute_with_a_default(app: History) -> None:
    """Missing values are written, including in the trash, and existing ones are kept."""
    old = shop(app)
    fill(old)
    new = shop(app, town=models.UnicodeAttribute(default="Bern"))
    app.make()
    app.migrate(until=1)
    new.objects.filter(shop_id="b").update(town="Basel")
    app.migrate()
    assert [item(name)["town"] for name in "abc"] == ["Bern", "Basel", "Bern"]


def test_an_attribute_that_may_be_missing_costs_nothing(app: History) -> None:
    """There is nothing to write."""
    fill(shop(app))
    new = shop(app, town=models.UnicodeAttribute(null=True))
    app.make()
    assert "Changing items" not in app.migrate()
    assert new.objects.get(shop_id="a").town is None


def test_an_attribute_with_an_answer_for_its_default(app: History) -> None:
    """The file and the items contain it."""
    fill(shop(app))
    change(app, size=models.IntegerAttribute(), answers=["1", "7"])
    assert item()["size"] == "7"


def test_a_folded_copy(app: History) -> None:
    """The app computes it from the string."""
    fill(shop(app))
    change(app, folded=models.CanonicalAttribute(source="name"))
    assert item()["folded"] == "a"


@pytest.mark.parametrize(("fold", "name", "folded"), [("letters", "Ä-b", "ab"), ("latin", "Ł-ø", "lo")])
def test_another_fold_writes_the_key_that_names_the_copy(app: History, fold: str, name: str, folded: str) -> None:
    keys = {"by_fold": models.IndexKey("gs1", "SHOP", "{folded}")}
    old = change(app, keys=keys, folded=models.CanonicalAttribute(source="name"))
    old.objects.create(shop_id="a", name=name)
    new = change(app, keys=keys, folded=models.CanonicalAttribute(source="name", fold=fold))
    assert (item()["folded"], item()["gs1sk"]) == (folded, folded)
    assert [each.pk for each in new.objects.filter(name__iexact=folded)] == ["a"]


def test_a_copy_is_read_from_its_source(app: History, table: Table) -> None:
    """This includes its key; without a stored source, nothing is written."""
    town = {"primary": ("TOWN#{town_id}", "#METADATA"), "town_id": models.IdAttribute()}
    towns = app.model("Town", name=models.UnicodeAttribute(), **town)
    shop(app, town=models.ReferenceAttribute(towns, on_delete=models.DO_NOTHING, null=True))
    app.make()
    app.migrate()
    towns.objects.create(shop_id="x", town_id="t", name="Bern")
    old = shop(app, town=models.ReferenceAttribute(towns, on_delete=models.DO_NOTHING, null=True))
    for name, at in (("a", "t"), ("b", None), ("c", "gone")):
        old.objects.create(shop_id=name, name=name.upper(), town_id=at)
    keys = {"by_town": models.IndexKey("gs1", "TOWN#{town_id}", "{shop_id}")}
    reference = models.ReferenceAttribute(towns, on_delete=models.DO_NOTHING, null=True)
    new = shop(app, keys, town=reference, town_name=models.CopiedAttribute("town", "name"))
    app.make()
    app.migrate(until=0)
    old.objects.create(shop_id="d", name="D", town_id="t")
    app.migrate(until=1, passed=True)
    with pytest.raises(KeyNotFilled):
        list(new.objects.filter(pk__in=["a", "b"], town_name="Bern"))
    app.migrate()
    assert item()["town_name"] == "Bern"
    assert not any("town_name" in item(name) for name in "bc")
    assert [each.pk for each in new.objects.filter(pk__in=["a", "b", "d"], town_name="Bern")] == ["a", "d"]


def test_copies_of_what_a_function_changes_are_named(app: History) -> None:
    """They do not follow, and the command is there that writes them."""
    fill(shop(app))
    shop(app)
    home = models.ReferenceAttribute("histories.Shop", on_delete=models.DO_NOTHING)
    copied = models.CopiedAttribute("home", "name")
    app.model("Member", primary=("SHOP#{home_id}", "MEMBER#{shop_id}"), home=home, home_name=copied)
    app.make()
    (app.folder / "0003_names.py").write_text(
        "from django.db import migrations\n"
        "from dynamo_single import migrations as items\n\n\n"
        "def names(values):\n    return {} if values['name'] == 'Z' else {'name': 'Z'}\n\n\n"
        "class Migration(migrations.Migration):\n"
        f"    dependencies = [('histories', '{app.files[-1]}')]\n"
        "    operations = [items.ChangeItems('Shop', names)]\n"
    )
    said = app.migrate()
    message = "This may have changed values copied to histories.Member, which the migration does not update."
    assert f"{message} Run manage.py dynamo_rebuild." in said


def test_what_follows_from_stored_objects_is_named(app: History) -> None:
    """This concerns a new model derived from stored objects; a new table has none."""
    fill(shop(app))
    shop(app)
    home = models.ReferenceAttribute("histories.Shop", on_delete=models.DO_NOTHING)
    app.model("Word", primary=("SHOP#{home_id}", "WORD#{shop_id}"), home=home, derived_by="home")
    app.make()
    said = "It is derived from histories.Shop: manage.py dynamo_rebuild histories.Shop writes its missing items."
    assert said in app.migrate()
    setup_table()
    assert "dynamo_rebuild" not in app.migrate()


def test_another_identity_of_what_others_refer_to_is_refused(app: History) -> None:
    """Every object would get a new ``pk``; the error names the references."""
    shop(app)
    app.model("Member", home=models.ReferenceAttribute("histories.Shop", on_delete=models.DO_NOTHING))
    app.make()
    app.forget("Shop")
    app.model(primary=("SHOP#{shop_id}", "{name}"), bases=(models.SoftDeleteModel,), name=models.UnicodeAttribute())
    with pytest.raises(CommandError, match=r"changes the pk of every object, and histories.Member.home would refer to"):
        app.make()


def test_a_rename_of_what_is_stored(app: History) -> None:
    """The items have only the new name, and old code continues with it."""
    old = shop(app)
    fill(old)
    app.forget("Shop")
    new = app.model(bases=(models.SoftDeleteModel,), title=models.UnicodeAttribute())
    app.make(answers=["y"])
    app.migrate()
    old.objects.filter(shop_id="b").update(name="Z")
    assert [new.objects.get(shop_id=name).title for name in "ab"] == ["A", "Z"]
    assert "name" not in item()


def test_a_rename_of_what_claims_follow_from_pauses_all_code(app: History) -> None:
    """Both names would have claims of their own, and two objects could have one value."""
    fill(shop(app))
    app.forget("Shop")
    new = app.model(bases=(models.SoftDeleteModel,), title=models.UnicodeAttribute(unique=True))
    app.make(answers=["y"])
    app.migrate(until=1)
    with pytest.raises(FormNotApplied, match=r"while histories\.0002.* converts its items"):
        new.objects.get(shop_id="a")
    app.migrate()
    assert new.objects.get(shop_id="a").title == "A"


def test_a_rename_in_python_alone(app: History) -> None:
    """No item is written."""
    fill(shop(app))
    app.forget("Shop")
    new = app.model(bases=(models.SoftDeleteModel,), title=models.UnicodeAttribute(attr_name="name"))
    app.make()
    assert "Changing items" not in app.migrate()
    assert new.objects.get(shop_id="a").title == "A"


def test_a_value_that_is_stored_otherwise(app: History) -> None:
    """A pause blocks code during the conversion."""
    fill(change(app, size=models.UnicodeAttribute(null=True)), size="7")
    new = shop(app, size=models.IntegerAttribute(null=True))
    app.make()
    app.migrate(until=0)
    with pytest.raises(FormNotApplied):
        new.objects.get(shop_id="a")
    app.migrate()
    assert new.objects.get(shop_id="a").size == 7


def test_an_attribute_that_is_removed(app: History) -> None:
    """Its values go from the items."""
    fill(change(app, town=models.UnicodeAttribute(null=True)), town="Bern")
    change(app)
    assert "town" not in item()


def test_an_attribute_that_may_have_been_renamed_keeps_its_values(app: History) -> None:
    """``--noinput`` cannot know."""
    fill(change(app, town=models.UnicodeAttribute(null=True)), town="Bern")
    change(app, "--noinput", place=models.UnicodeAttribute(null=True))
    assert item()["town"] == "Bern"


def test_a_unique_rule(app: History) -> None:
    """Its claims are written; then no other object can have the value."""
    old = shop(app)
    fill(old)
    new = shop(app, name=models.UnicodeAttribute(unique=True))
    app.make()
    app.migrate(until=0)
    old.objects.create(shop_id="d", name="D")
    app.migrate()
    for taken in "AD":
        with pytest.raises(UniqueViolation):
            new.objects.create(shop_id="x", name=taken)
    assert list(verify()) == []


@pytest.mark.parametrize("other", ["a", "d"])
@pytest.mark.parametrize("corrected", ["changed", "deleted"])
def test_two_that_have_one_value_are_named(app: History, other: str, corrected: str) -> None:
    """The migration ends with both names, and one has the claim; either one can be corrected."""
    old = shop(app)
    fill(old)
    old.objects.create(shop_id="d", name="A")
    new = shop(app, name=models.UnicodeAttribute(unique=True))
    app.make()
    with pytest.raises(CommandError, match=r"SHOP#[ad] / #METADATA: UNIQUE#Shop#name#A is held by SHOP#[ad]"):
        app.migrate()
    if corrected == "changed":
        new.objects.filter(shop_id=other).update(name="D")
    else:
        new.objects.get(shop_id=other).hard_delete()
    app.migrate()
    assert list(verify()) == []


def test_a_unique_rule_that_is_removed(app: History, table: Table) -> None:
    """Its claims go too."""
    fill(change(app, name=models.UnicodeAttribute(unique=True)))
    assert sum("UniqueClaim" in each for each in stored(table)) == 2
    change(app)
    assert sum("UniqueClaim" in each for each in stored(table)) == 0


def test_another_primary_key_and_type(app: History) -> None:
    """Items move with their claims, and new code is blocked until then."""
    fill(change(app, keys=BY_NAME, name=models.UnicodeAttribute(unique=True)))
    new = shop(
        app,
        keys=BY_NAME,
        name=models.UnicodeAttribute(unique=True),
        primary=("S#{shop_id}", "#"),
        options={"item_type": "S"},
    )
    app.make()
    app.migrate(until=0)
    with pytest.raises(FormNotApplied):
        new.objects.get(shop_id="a")
    app.migrate()
    assert [each.pk for each in new.objects.order_by("name")] == ["a", "b"]
    assert [each.pk for each in new.deleted_objects.all()] == ["c"]
    assert list(verify()) == []


def upper(values: Any) -> Any:
    """Apply a project's own step."""
    return None if values["name"] is None or values["name"].islower() else {"name": values["name"].lower()}


def test_a_function_over_items(app: History) -> None:
    """It runs once, and index keys are updated."""
    fill(change(app, keys=BY_NAME))
    app.make("--empty")
    file = app.folder / f"{app.files[-1]}.py"
    operation = f"dynamo_single.migrations.ChangeItems('Shop', {upper.__module__}.upper)"
    text = (
        file.read_text()
        .replace("operations = [", f"operations = [{operation}")
        .replace("from django.db", f"import {upper.__module__}\nimport dynamo_single.migrations\nfrom django.db")
    )
    file.write_text(text)
    assert "Change items of Shop by upper" in app.migrate()
    assert (item()["name"], item()["gs1sk"]) == ("a", "a")


@pytest.mark.parametrize(
    "declared",
    [
        {"keys": BY_NAME},
        {"town": models.UnicodeAttribute(default="Bern")},
        {"name": models.UnicodeAttribute(unique=True)},
        {"primary": ("S#{shop_id}", "#")},
        {"options": {"item_type": "S"}},
    ],
    ids=lambda each: next(iter(each)),
)
@pytest.mark.parametrize("until", [0, 1, None])
def test_going_back_leads_to_what_was(app: History, table: Table, declared: Any, until: int | None) -> None:
    """An open or completed change is reverted to the same items and the same state."""
    fill(shop(app))
    before = stored(table), form(table)
    shop(app, **declared)
    app.make()
    app.migrate(until=until)
    app.migrate("0001")
    assert (stored(table), form(table)) == before


def stored(table: Table) -> list[str]:
    """Return the items except those of migrations."""
    return sorted(
        str(sorted(each.items())) for each in table.send(Request("Scan"))["Items"] if each["pk"]["S"] != "MIGRATIONS"
    )


def test_a_new_table_has_nothing_to_be_filled(app: History, table: Table) -> None:
    """All migrations run on an empty table without reading items, and are complete."""
    change(app, keys=BY_NAME)
    setup_table()
    new = shop(app, BY_NAME)
    said = app.migrate()
    assert "items read" not in said
    assert "Changing items" not in said
    assert list(new.objects.order_by("name")) == []


def test_a_table_that_is_older_than_migrations(app: History, table: Table) -> None:
    """Its items are rejected, and adopted after a check of samples."""
    fill(change(app, keys=BY_NAME))
    for sort in ("#STATE", *(f"APPLIED#histories#{name}" for name in app.files)):
        table.send(Request("DeleteItem", {"Key": {"pk": {"S": "MIGRATIONS"}, "sk": {"S": sort}}}))
    for name in app.files:
        (app.folder / f"{name}.py").unlink()
    new = shop(app, BY_NAME)
    app.make()
    with pytest.raises(CommandError, match="migrate --fake-initial"):
        app.migrate()
    assert "all of which match the migration" in app.migrate("--fake-initial")
    assert [each.name for each in new.objects.order_by("name")] == ["A", "B"]


def test_items_that_are_not_as_the_migration_says_are_not_adopted(app: History, table: Table) -> None:
    """The error names them with the problem."""
    fill(shop(app))
    for sort in ("#STATE", "APPLIED#histories#0001_initial"):
        table.send(Request("DeleteItem", {"Key": {"pk": {"S": "MIGRATIONS"}, "sk": {"S": sort}}}))
    (app.folder / "0001_initial.py").unlink()
    shop(app, BY_NAME)
    app.make()
    with pytest.raises(CommandError, match=r"SHOP#a / #METADATA: gs1pk is missing and should be 'SHOP'"):
        app.migrate("--fake-initial")


def test_the_requests_are_printed(app: History) -> None:
    """``sqlmigrate`` does not send requests."""
    shop(app, BY_NAME)
    app.make()
    said = app.run("sqlmigrate", "histories", "0002")
    assert "-- migrate, phase 1 (fill): Scan {" in said


def test_a_plan_names_what_is_open(app: History) -> None:
    """The plan does not continue it."""
    shop(app, BY_NAME)
    app.make()
    app.migrate(until=0)
    assert "Left to do; run migrate again" in app.migrate("--plan")
    assert app.phases() == {"Add key by_name to Shop on gs1": 0, "Read the trash of Shop by gs1": 0}


def test_a_check_fails_while_something_is_open(app: History) -> None:
    """Status 1, for a deployment to wait for."""
    shop(app, BY_NAME)
    app.make()
    app.migrate(until=0)
    with pytest.raises(SystemExit) as ended:
        app.migrate("--check")
    assert ended.value.code == 1
    app.migrate()
    app.migrate("--check")


def test_the_former_option_says_what_to_run(app: History) -> None:
    with pytest.raises(CommandError, match=r"The option --finish was removed: manage\.py migrate"):
        app.migrate("--finish")


def test_a_migration_whose_file_is_gone_is_not_carried_out(app: History) -> None:
    """The error names the fix."""
    shop(app, BY_NAME)
    app.make()
    app.migrate(until=0)
    (app.folder / f"{app.files[-1]}.py").unlink()
    with pytest.raises(CommandError, match="Restore the file"):
        app.migrate()


def test_several_changes_are_carried_out_in_their_order(app: History, table: Table) -> None:
    """A key, a move, a rename of the model and another key, none of which had ended before the next one began."""
    fill(shop(app))
    shop(app, keys=BY_NAME)
    app.make()
    app.migrate(until=0)
    shop(app, keys=BY_NAME, primary=("S#{shop_id}", "#"), options={"item_type": "S"})
    app.make()
    app.migrate(until=0)
    app.forget("Shop")
    keys = {**BY_NAME, "by_town": models.IndexKey("gs2", "TOWN#{town}", "{shop_id}")}
    declared = {"name": models.UnicodeAttribute(), "town": models.UnicodeAttribute(default="Bern")}
    store = {"primary": ("S#{shop_id}", "#"), "bases": (models.SoftDeleteModel,), "options": {"item_type": "S"}}
    app.model("Store", keys=BY_NAME, name=models.UnicodeAttribute(), **store)
    app.make(answers=["y"])
    new = app.model("Store", keys=keys, **store, **declared)
    app.make()
    app.migrate(until=0)
    with pytest.raises(FormNotApplied):
        list(new.objects.order_by("name"))
    app.migrate()
    assert [each.name for each in new.objects.order_by("name")] == ["A", "B"]
    assert [each.name for each in new.objects.filter(town="Bern")] == ["A", "B"]
    assert [each.pk for each in new.deleted_objects.all()] == ["c"]
    found = replace(form(table, "S"), labels=(), required={}, changed={})
    assert found == form_of(Snapshot.of(new), "histories.store")
    assert list(verify()) == []


def test_a_rehearsal_shows_items_before_and_after(app: History, table: Table) -> None:
    """Neither new nor open migrations are written."""
    fill(shop(app))
    before = stored(table)
    shop(app, BY_NAME, town=models.UnicodeAttribute(default="Bern"))
    app.make()
    said = app.migrate("--rehearse")
    assert "2 of 3 items would change (all" in said
    assert "SHOP#a / #METADATA: gs1pk missing -> 'SHOP', gs1sk missing -> 'A'" in said
    assert "SHOP#a / #METADATA: town missing -> 'Bern'" in said
    assert stored(table) == before
    app.migrate(until=1, passed=True)
    assert "0 of 3 items would change" in app.migrate("--rehearse")
    assert len(form(table).opened) == 3


def test_a_rehearsal_names_those_that_have_one_value(app: History, table: Table) -> None:
    """No claims exist yet: the first object would get it, and the others are reported with it."""
    fill(shop(app))
    write(table, "b", name="A")
    before = stored(table)
    shop(app, name=models.UnicodeAttribute(unique=True))
    app.make()
    said = app.migrate("--rehearse")
    assert "1 of 3 items would change" in said
    assert "1 could not be changed:" in said
    first, second = ("b", "a") if "SHOP#b / #METADATA: UNIQUE" in said else ("a", "b")
    assert f"SHOP#{first} / #METADATA: UNIQUE#Shop#name#A is held by SHOP#{second} / #METADATA" in said
    assert stored(table) == before


def test_a_rehearsal_names_so_many_and_counts_the_others(
    app: History, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reads the requested number of items."""
    model = shop(app)
    for number in range(6):
        model.objects.create(shop_id=str(number), name="A")
    shop(app, name=models.UnicodeAttribute(unique=True))
    app.make()
    monkeypatch.setattr("dynamo_single.evolution.rehearse.MAX_REFUSED_SAMPLES", 2)
    said = app.migrate("--rehearse")
    assert said.count("is held by") == 2
    assert "5 could not be changed:" in said
    assert "and 3 more." in said
    assert "(the first 4 of the table were read)" in app.migrate("--rehearse", "--items", "4")
    with pytest.raises(CommandError, match="at least 1"):
        app.migrate("--rehearse", "--items", "0")


def test_a_rehearsal_knows_which_claims_would_be_released(app: History, table: Table) -> None:
    """A value that former code has transferred to another object is free for it."""
    fill(shop(app))
    shop(app, name=models.UnicodeAttribute(unique=True))
    app.make()
    app.migrate(until=1, passed=True)
    write(table, "a", name="Z")
    write(table, "b", name="A")
    said = app.migrate("--rehearse")
    assert "could not be changed" not in said
    assert "2 of 3 items would change" in said


def test_a_rehearsal_names_those_that_would_move_to_one_place(app: History) -> None:
    """The second one to come there."""
    model = shop(app, town=models.UnicodeAttribute(null=True))
    app.make()
    app.migrate()
    for name in "ab":
        model.objects.create(shop_id=name, name=name, town="Bern")
    shop(app, town=models.UnicodeAttribute(), primary=("S#{town}", "#"))
    app.make(answers=["2"])
    assert "Its new key S#Bern / # is another item's" in app.migrate("--rehearse")


def test_a_table_that_was_not_read_to_its_end_is_not_taken_for_a_new_one(
    app: History, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest may contain items of the model, so the new key is backfilled."""
    change(app, keys=BY_NAME)
    setup_table()
    for number in range(3):
        key = {"pk": {"S": f"OTHER#{number}"}, "sk": {"S": "#"}}
        table.send(Request("PutItem", {"Item": {**key, "itemType": {"S": "Other"}}}))
    monkeypatch.setattr("dynamo_single.evolution.adopt.MAX_SAMPLES", 1)
    monkeypatch.setattr("dynamo_single.evolution.adopt.MAX_PAGES", 2)
    assert re.search("Add key by_name to Shop on gs1: [1-9][0-9]* items read", app.migrate())


def test_a_rename_that_is_taken_back_while_it_is_open_keeps_what_old_code_has_written(app: History) -> None:
    """The old name counts still."""
    old = shop(app)
    fill(old)
    app.forget("Shop")
    app.model(bases=(models.SoftDeleteModel,), title=models.UnicodeAttribute())
    app.make(answers=["y"])
    app.migrate(until=1)
    old.objects.filter(shop_id="a").update(name="Z")
    app.migrate("0001")
    assert item() == {"name": "Z", "shop_id": "a"}


def test_migrations_that_were_never_applied_are_named_by_the_server_and_in_the_log(
    tmp_path: Path, table: Table, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """``runserver`` prints them at its start, every process logs them, and ``migrate`` does not."""
    monkeypatch.setattr(table, "replaced", 0)
    with history(tmp_path) as found:
        shop(found).objects.create(shop_id="a", name="A")
        found.make()
        out = StringIO()
        BaseCommand(stdout=out, no_color=True).check_migrations()
        assert "You have 1 unapplied migration(s)" in out.getvalue()
        renamed = found.model(bases=(models.SoftDeleteModel,), title=models.UnicodeAttribute(null=True))
        assert renamed.objects.get(pk="a").title is None
        assert [each.name for each in caplog.records] == ["dynamo_single.migrations"]
        caplog.clear()
        shop(found)
        found.migrate("--fake-initial")
        assert [each.name for each in caplog.records] == []
