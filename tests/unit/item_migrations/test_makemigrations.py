"""``makemigrations`` writes readable changes of models in DynamoDB."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.core.management.commands import makemigrations as djangos
from django.core.management.commands import migrate
from django.db import models as sql
from django.db.migrations.autodetector import MigrationAutodetector
from django.db.models import Q, UniqueConstraint

from dynamo_single import models
from dynamo_single.evolution.commands import MakemigrationsMixin, MigrateMixin
from dynamo_single.migrations import Autodetector
from tests.histories.app import History, history

BY_NAME = {"by_name": models.IndexKey("gs1", "SHOP", "{name}")}
NOTHING = "No changes detected in app 'histories'\n"


def name(**options: Any) -> Any:
    """The attribute that most of these models have."""
    return models.UnicodeAttribute(**options)


def test_a_file_reads_as_the_model(app: History) -> None:
    """The file contains only the stored parts of the declaration."""
    email = models.EmailAttribute("e-mail", unique=True, canonical=True, null=True, help_text="Where to write.")
    app.model(keys=BY_NAME, name=name(max_length=40), email=email, qty=models.IntegerAttribute(default=1))
    app.make()
    stored = "dynamo_single.migrations.StoredAttribute"
    assert app.text() == (
        "class Migration(migrations.Migration):\n\n"
        "    initial = True\n\n"
        "    dependencies = [\n    ]\n\n"
        "    operations = [\n"
        "        dynamo_single.migrations.AddModel(\n"
        "            name='Shop',\n"
        "            item_type='Shop',\n"
        "            primary=dynamo_single.models.Key('SHOP#{shop_id}', '#METADATA'),\n"
        "            attributes={\n"
        f"                'shop_id': {stored}('UnicodeAttribute', 'shop_id'),\n"
        f"                'name': {stored}('UnicodeAttribute', 'name'),\n"
        f"                'email': {stored}('UnicodeAttribute', 'email', required=False),\n"
        f"                'qty': {stored}('IntegerAttribute', 'qty', absent={{'N': '1'}}),\n"
        "            },\n"
        "            keys={\n"
        "                'by_name': dynamo_single.models.IndexKey('gs1', 'SHOP', '{name}'),\n"
        "            },\n"
        "            unique=[\n"
        "                dynamo_single.migrations.UniqueRule(('email',), canonical=('email',)),\n"
        "            ],\n"
        "        ),\n"
        "    ]\n"
    )


def test_without_a_change_nothing_is_written(app: History) -> None:
    """Also of a model with everything that a snapshot has."""
    condition = UniqueConstraint(fields=["name"], condition=Q(qty__gt=1), name="many_named_once")
    app.model(
        keys=BY_NAME,
        name=name(),
        folded=models.CanonicalAttribute(source="name"),
        qty=models.IntegerAttribute(default=1),
        tags=models.UnicodeSetAttribute(),
        version=models.VersionAttribute(),
        until=models.TTLAttribute(),
        options={"constraints": [condition]},
        bases=(models.TimestampedModel,),
    )
    app.make()
    assert app.make("--check") == NOTHING
    assert len(app.files) == 1


def test_the_condition_of_a_key_reads_as_stored_values(app: History) -> None:
    """By the attributes' names, and the members of a set in one order: another process finds no change."""
    condition = Q(state__in={"open", "late", "stuck"}, qty__gte=5) | ~Q(name="x")
    attributes = {"name": name(), "qty": models.IntegerAttribute(), "state": name(attr_name="st")}
    app.model(keys={"queue": models.IndexKey("gs1", "Q", "{shop_id}", condition=condition)}, **attributes)
    app.make()
    assert (
        "IndexKey('gs1', 'Q', '{shop_id}', condition=('or', ('and', ('>=', 'qty', {'N': '5'}), "
        "('in', 'state', {'S': 'late'}, {'S': 'open'}, {'S': 'stuck'})), ('not', ('=', 'name', {'S': 'x'}))))"
    ) in app.text()
    turned = Q(state__in=["stuck", "open", "late"], qty__gte=5) | ~Q(name="x")
    app.model(keys={"queue": models.IndexKey("gs1", "Q", "{shop_id}", condition=turned)}, **attributes)
    assert app.make("--check") == NOTHING


def test_a_condition_follows_a_name_and_is_altered_with_its_key(app: History) -> None:
    """A rename in Python changes no item; another condition is another form of the key."""

    def shop(called: str, **options: Any) -> None:
        key = models.IndexKey("gs1", "Q", "{shop_id}", **options)
        app.model(keys={"queue": key}, **{called: name(attr_name="st")})

    shop("state", condition=Q(state="open"))
    app.make()
    shop("status", condition=Q(status="open"))
    app.make()
    assert app.operations() == ["Rename attribute state of Shop to status"]
    shop("status", condition=Q(status="late"))
    app.make()
    assert app.operations() == ["Alter key queue of Shop on gs1"]
    shop("status")
    app.make()
    assert app.operations() == ["Alter key queue of Shop on gs1"]
    assert "condition" not in app.text()


def test_what_decides_nothing_that_is_stored_is_no_change(app: History) -> None:
    """Labels, validation, and a string that becomes an e-mail address are not changes."""
    app.model(name=name())
    app.make()
    app.model(name=models.EmailAttribute("name", max_length=9, help_text="x", validators=[print]))
    assert app.make("--check") == NOTHING


@pytest.mark.parametrize(
    ("before", "after", "file", "operations"),
    [
        ({}, {"keys": BY_NAME}, "shop_by_name", ["Add key by_name to Shop on gs1"]),
        ({"keys": BY_NAME}, {}, "remove_shop_by_name", ["Remove key by_name from Shop"]),
        (
            {"keys": BY_NAME},
            {"keys": {"by_name": models.IndexKey("gs1", "SHOPS", "{name}")}},
            "alter_shop_by_name",
            ["Alter key by_name of Shop on gs1"],
        ),
        (
            {"keys": BY_NAME},
            {"keys": {"by_name": models.IndexKey("gs2", "SHOP", "{name}")}},
            "remove_shop_by_name_shop_by_name",
            ["Remove key by_name from Shop", "Add key by_name to Shop on gs2"],
        ),
        (
            {"keys": BY_NAME},
            {"keys": {"named": models.IndexKey("gs1", "SHOP", "{name}")}},
            "rename_shop_by_name_named",
            ["Rename key by_name of Shop to named"],
        ),
        ({}, {"town": name(null=True)}, "shop_town", ["Add attribute town to Shop"]),
        ({"town": name(null=True)}, {}, "remove_shop_town", ["Remove attribute town from Shop"]),
        (
            {"town": name(null=True)},
            {"town": models.IntegerAttribute(null=True)},
            "alter_shop_town",
            ["Alter attribute town of Shop"],
        ),
        ({}, {"name": name(unique=True)}, "shop_name_unique", ["Make name of Shop unique"]),
        ({"name": name(unique=True)}, {}, "remove_shop_name_unique", ["Let name of Shop be the same"]),
        (
            {"name": name(unique=True)},
            {"name": name(unique=True, canonical=True)},
            "remove_shop_name_unique_shop_name_unique",
            ["Let name of Shop be the same", "Make name of Shop unique"],
        ),
        (
            {},
            {"primary": ("S#{shop_id}", "#")},
            "move_shop",
            ["Move items of Shop to (S#{shop_id}, #)"],
        ),
        ({}, {"options": {"item_type": "store"}}, "move_shop", ["Move items of Shop to itemType store"]),
        (
            {"bases": (models.SoftDeleteModel,), "keys": BY_NAME},
            {"bases": (models.SoftDeleteModel,), "keys": BY_NAME, "options": {"trash_index": "gs3"}},
            "shop_trash_gs3",
            ["Read the trash of Shop by gs3"],
        ),
    ],
)
def test_a_change_is_one_operation_with_a_name(
    app: History, before: dict[str, Any], after: dict[str, Any], file: str, operations: list[str]
) -> None:
    """The file's name describes the change, and a second run does not find a change."""
    app.model(**{"name": name(), **before})
    app.make()
    app.model(**{"name": name(), **after})
    app.make()
    assert app.files[1:] == [f"0002_{file}"]
    assert app.operations() == operations
    assert app.make("--check") == NOTHING


def test_what_was_renamed_is_asked(app: History) -> None:
    """Keys and rules follow the new name, so that there is one operation."""
    app.model(keys=BY_NAME, name=name(unique=True))
    app.make()
    app.model(keys={"by_name": models.IndexKey("gs1", "SHOP", "{title}")}, title=name(unique=True))
    app.make(answers=["y"])
    assert app.operations() == ["Rename attribute name of Shop to title, stored as title"]
    assert app.make("--check") == NOTHING


def test_what_keeps_its_stored_name_is_renamed_without_a_question(app: History) -> None:
    """Two attributes cannot be one in the item."""
    app.model(name=name())
    app.make()
    app.model(title=name(attr_name="name"))
    app.make()
    assert app.operations() == ["Rename attribute name of Shop to title"]


def test_without_anybody_to_ask_nothing_is_lost(app: History) -> None:
    """The values are kept, and the log names the options."""
    app.model(name=name(null=True))
    app.make()
    app.model(title=name(null=True))
    said = app.make("--noinput")
    assert "Shop: name may have been renamed" in said
    assert app.operations() == [
        "Add attribute title to Shop",
        "Remove attribute name from Shop; its values stay in the items",
    ]
    assert app.make("--check", "--noinput") == NOTHING


def test_a_value_for_items_that_lack_a_required_attribute_is_asked(app: History) -> None:
    """The prompt is the same as for an SQL column, and the file contains the chosen default."""
    app.model()
    app.make()
    app.model(qty=models.IntegerAttribute())
    app.make(answers=["1", "7"])
    assert "default=7" in app.text()
    with pytest.raises(SystemExit):
        app.model(size=models.IntegerAttribute())
        app.make("--noinput")


def test_a_model_that_was_renamed(app: History) -> None:
    """Its class has another name; the items' type, which follows it, moves unless ``Meta`` keeps it."""
    app.model(name=name())
    app.make()
    app.forget("Shop")
    app.model("Store", name=name(), primary=("SHOP#{shop_id}", "#METADATA"))
    app.make(answers=["y"])
    assert app.operations() == ["Rename model Shop to Store", "Move items of Store to itemType Store"]
    app.forget("Store")
    app.model("Outlet", name=name(), primary=("SHOP#{shop_id}", "#METADATA"), options={"item_type": "Store"})
    app.make(answers=["y"])
    assert app.operations() == ["Rename model Store to Outlet"]


def test_without_anybody_to_ask_a_model_that_may_have_been_renamed_is_named(app: History) -> None:
    """Its items are kept, and the log names the options; with the right one, the rest is detected."""
    app.model(name=name())
    app.make()
    app.forget("Shop")
    app.model("Store", name=name())
    assert "Shop may have been renamed to Store, but --noinput disables the prompt." in app.make("--noinput")
    assert app.operations() == ["Add model Store, stored as Store", "Remove model Shop; its items stay in the table"]
    file = app.folder / f"{app.files[-1]}.py"
    before, _, _ = file.read_text().partition("    operations = [")
    file.write_text(f"{before}    operations = [dynamo_single.migrations.RenameModel('Shop', 'Store')]\n")
    app.make("--noinput")
    assert app.operations() == ["Move items of Store to (STORE#{shop_id}, #METADATA) and itemType Store"]


def test_a_model_that_is_gone(app: History) -> None:
    """Its items are kept, and the operation's description reports this."""
    app.model(name=name())
    app.model("Depot")
    app.make()
    app.forget("Depot")
    app.make()
    assert app.operations() == ["Remove model Depot; its items stay in the table"]


def test_another_table_is_refused(app: History) -> None:
    """No migration moves items between tables."""
    app.model()
    app.make()
    app.model(options={"table": "kinds"})
    with pytest.raises(CommandError, match="migrations do not move items to another table"):
        app.make()


def test_sql_models_beside_ours_are_in_the_same_file(app: History) -> None:
    """A foreign key comes after the model that it refers to, whichever database that is in."""
    app.model()
    meta = type("Meta", (), {"app_label": "histories"})
    key = sql.ForeignKey("histories.Shop", sql.CASCADE, db_constraint=False)
    type("Note", (sql.Model,), {"__module__": __name__, "Meta": meta, "shop": key, "text": sql.TextField()})
    app.make()
    assert app.operations() == ["Add model Shop, stored as Shop", "Create model Note"]
    assert app.make("--check") == NOTHING


def test_an_app_without_migrations_stays_so(tmp_path: Path) -> None:
    """Once the app is named, it starts with all its models."""
    with history(tmp_path, project=True) as app:
        app.model()
        said = app.run("makemigrations", "--dry-run")
        assert "catalog" not in said
        assert "Add model Sample" in app.run("makemigrations", "catalog", "--dry-run")


def test_a_dry_run_writes_no_file(app: History) -> None:
    """With ``-v 3`` it shows it."""
    app.model()
    said = app.make("--dry-run", "-v", "3")
    assert "dynamo_single.migrations.AddModel(" in said
    assert app.files == []


def test_a_migration_that_is_not_applied_can_be_updated(app: History) -> None:
    """Two operations on one model become one."""
    app.model()
    app.make()
    app.model(name=name())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("django.db.migrations.loader.MigrationRecorder.applied_migrations", lambda self: {})
        app.make("--update", answers=["1", "'x'"])
    assert app.operations() == ["Add model Shop, stored as Shop"]
    assert "'name'" in app.text()
    assert app.make("--check") == NOTHING


def test_two_branches_can_be_merged(app: History) -> None:
    """Django merges them."""
    app.model()
    app.make()
    app.model(town=name(null=True))
    app.make()
    branch = app.folder / "0002_shop_town.py"
    other = branch.read_text().replace("town", "road")
    (app.folder / "0002_shop_road.py").write_text(other)
    app.make("--merge", "--noinput")
    assert app.files[-1] == "0003_merge_0002_shop_road_0002_shop_town"


def test_migrations_of_the_app_itself_have_to_have_a_place() -> None:
    """They would be written into the installed package."""
    with pytest.raises(CommandError, match=r"MIGRATION_MODULES = \{'dynamo_single'"):
        call_command("makemigrations", "dynamo_single")


def test_a_projects_own_command_finds_both() -> None:
    """Its autodetector is kept below ours."""
    theirs = type("Theirs", (MigrationAutodetector,), {})
    other = type("Command", (djangos.Command,), {"autodetector": theirs})
    mixed: Any = type("Command", (MakemigrationsMixin, other), {})
    assert issubclass(mixed.autodetector, theirs)
    assert mixed.autodetector.__mro__.index(Autodetector) < mixed.autodetector.__mro__.index(theirs)


def test_both_commands_of_a_project_have_one_autodetector() -> None:
    """Django's ``commands.E001`` requires this."""
    theirs = type("Theirs", (MigrationAutodetector,), {})
    bases = {MakemigrationsMixin: djangos.Command, MigrateMixin: migrate.Command}
    made, migrated = (
        type("Command", (mixin, type("Command", (base,), {"autodetector": theirs})), {})
        for mixin, base in bases.items()
    )
    assert made.autodetector is migrated.autodetector


def test_the_edges_of_a_relation_are_a_model_that_is_made(app: History) -> None:
    """The relation itself is not stored; its edges have keys like any items."""
    app.model("Tag")
    app.model(tags=models.ManyToMany("histories.Tag"))
    app.make()
    text = app.text()
    assert "name='Shop_tags'" in text
    assert "primary=dynamo_single.models.Key('Shop_tags#{shop_id}', '{tag_id}')" in text
    assert "'tags'" not in text
    assert app.make() == NOTHING


def test_a_schema_of_a_map_or_of_a_list_is_no_change(app: History) -> None:
    """The schema affects only later writes: the stored form is the same."""
    declared = type("Line", (), {"price": models.NumberAttribute()})
    app.model(
        data=models.MapAttribute(default=dict),
        lines=models.ListAttribute(null=True),
        marks=models.ListAttribute(null=True),
    )
    app.make()
    app.model(
        data=models.MapAttribute(default=dict, schema=declared),
        lines=models.ListAttribute(null=True, schema=declared),
        marks=models.ListAttribute(null=True, of=models.UnicodeAttribute()),
    )
    assert app.make() == NOTHING


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (models.TimestampAttribute(), models.TimestampAttribute(stored_as="iso")),
        (models.TimestampAttribute(stored_as="pynamodb"), models.TimestampAttribute(stored_as="iso")),
        (models.BooleanAttribute(stored_as="number"), models.BooleanAttribute()),
        (models.BinaryAttribute(stored_as="base64"), models.BinaryAttribute()),
    ],
)
def test_another_form_is_another_type(app: History, before: Any, after: Any) -> None:
    app.model(value=before)
    app.make()
    app.model(value=after)
    printed = app.make()
    assert app.operations() == ["Alter attribute value of Shop"]
    assert "convert" in printed
    assert app.make("--check") == NOTHING


class Address(models.MapAttribute):
    """A map class."""

    street = models.UnicodeAttribute()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (models.MapAttribute(), Address()),
        (models.ListAttribute(), models.ListAttribute(of=Address)),
        (models.TimestampAttribute(unit="s"), models.TimestampAttribute(stored_as="seconds")),
        (models.TimestampAttribute(), models.TimestampAttribute(stored_as="milliseconds")),
        (models.JSONAttribute(), models.JSONAttribute(stored_as="text")),
    ],
)
def test_a_form_of_two_names_is_no_change(app: History, before: Any, after: Any) -> None:
    app.model(value=before)
    app.make()
    app.model(value=after)
    assert app.make("--check") == NOTHING
