"""``migrate APP NAME`` takes operations back from every phase: items and the table's state are as before."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError
from django.db.migrations.exceptions import IrreversibleError

from dynamo_single import models
from dynamo_single.backend import migration_record
from dynamo_single.contrib.doctor import verify
from dynamo_single.exceptions import NotRolledBackWarning
from dynamo_single.orm.rollout import knowledge
from dynamo_single.table import Table
from tests.contract.item_migrations.test_migrate import BY_NAME, fill, form, shop, stored
from tests.contract.robustness.crashing import Crash, crash_behind
from tests.deep import examples
from tests.histories.app import Beginning, History, history

OTHERWISE = {"by_name": models.IndexKey("gs1", "SHOPS", "{name}#{shop_id}")}
CONDITIONAL = {"by_name": models.IndexKey("gs1", "SHOP", "{name:last}")}
#: The model's former and new members, and the answers to questions.
CHANGES: Mapping[str, tuple[dict[str, Any], dict[str, Any], list[str]]] = {
    "remove key": ({"keys": BY_NAME}, {}, []),
    "alter key": ({"keys": BY_NAME}, {"keys": OTHERWISE}, []),
    "place missing": ({"keys": BY_NAME}, {"keys": CONDITIONAL}, []),
    "rename key": ({"keys": BY_NAME}, {"keys": {"named": BY_NAME["by_name"]}}, []),
    "move key to another index": ({"keys": BY_NAME}, {"keys": {"by_name": models.IndexKey("gs2", "S", "{name}")}}, []),
    "rename attribute": ({"town": models.UnicodeAttribute()}, {"place": models.UnicodeAttribute()}, ["y"]),
    "rename in python": ({"town": models.UnicodeAttribute()}, {"place": models.UnicodeAttribute(attr_name="town")}, []),
    "optional": ({"town": models.UnicodeAttribute()}, {"town": models.UnicodeAttribute(null=True)}, []),
    "remove rule": ({"name": models.UnicodeAttribute(unique=True)}, {}, []),
    "alter rule": (
        {"name": models.UnicodeAttribute(unique=True)},
        {"name": models.UnicodeAttribute(unique=True, canonical=True)},
        [],
    ),
    "trash index": ({"keys": BY_NAME}, {"keys": BY_NAME, "options": {"trash_index": "gs2"}}, []),
    "folded copy": ({}, {"folded": models.CanonicalAttribute(source="name")}, []),
    "rename unique": (
        {"town": models.UnicodeAttribute(unique=True)},
        {"place": models.UnicodeAttribute(unique=True)},
        ["y"],
    ),
    "counter": ({}, {"count": models.CounterAttribute("members")}, []),
}
#: The numbers of requests before the first and later kills.
FIRST_KILL, STEP = 12, examples(50, 1)


@pytest.fixture
def app(tmp_path: Path, table: Table) -> Iterator[History]:
    """The app without models."""
    with history(tmp_path) as found:
        yield found


def declared(app: History, **attributes: Any) -> Any:
    """Return the model with unusual members."""
    model = shop(app, members=models.Children("Member"), **attributes)
    home = models.ReferenceAttribute("histories.Shop", on_delete=models.DO_NOTHING)
    app.model("Member", primary=("SHOP#{home_id}", "MEMBER#{shop_id}"), home=home)
    return model


def beginning(before: dict[str, Any]) -> Beginning:
    """Apply a model's first migration, and write with its code."""

    def begin(app: History) -> None:
        model = declared(app, **before)
        app.make()
        app.migrate()
        for name in ("a", "b", "c"):
            model.objects.create(shop_id=name, name=name.upper(), **({"town": f"7{name}"} if "town" in before else {}))
        model.objects.get(pk="c").delete()

    return Beginning(begin)


BEGINNINGS = {name: beginning(before) for name, (before, _, _) in CHANGES.items()}


@pytest.mark.parametrize("until", [0, 1, 2, None])
@pytest.mark.parametrize("name", CHANGES)
def test_what_is_taken_back_leaves_what_was(app: History, table: Table, name: str, until: int | None) -> None:
    """The items are identical to the byte, and old code continues."""
    before, after, answers = CHANGES[name]
    BEGINNINGS[name](app)
    was = stored(table), form(table)
    declared(app, **after)
    app.make(answers=answers)
    app.migrate(until=until, passed=True)
    app.migrate("0001")
    assert (stored(table), form(table)) == was
    model = declared(app, **before)
    assert model.objects.get(pk="a").name == "A"
    assert list(verify()) == []


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("name", CHANGES)
def test_killed_run_is_taken_back(
    app: History, table: Table, monkeypatch: pytest.MonkeyPatch, name: str, *, turned: bool
) -> None:
    """With ``turned``, a revert is killed, and the change is completed before the next one."""
    monkeypatch.setattr(knowledge, "LOCAL_LEASE", 0.01)
    before, after, answers = CHANGES[name]
    number = FIRST_KILL - STEP
    is_killed = True
    while is_killed:
        number += STEP
        BEGINNINGS[name](app)
        was = stored(table)
        declared(app, **after)
        app.make(answers=answers)
        is_killed = killed(app, number, turned=turned)
        app.migrate("0001")
        # A killed count leaves its marker, which the next count replaces.
        left = sorted(re.sub(r"\('counting', \{'S': '\w+'\}\), ", "", each) for each in stored(table))
        assert (number, left) == (number, was)
        for path in app.folder.glob("0002*"):
            path.unlink()
        declared(app, **before)


@pytest.mark.parametrize("name", CHANGES)
def test_ended_change_is_not_started_again(app: History, table: Table, name: str) -> None:
    """A run was killed before Django recorded the migration, and another run has completed it."""
    _, after, answers = CHANGES[name]
    BEGINNINGS[name](app)
    declared(app, **after)
    app.make(answers=answers)
    app.migrate()
    ended = stored(table), form(table)
    migration_record.forget([("histories", app.files[-1])])
    assert "Applying histories.0002" in app.migrate()
    assert (stored(table), form(table), app.phases()) == (*ended, {})


def killed(app: History, number: int, *, turned: bool) -> bool:
    """Kill a run or a revert after some requests; return whether it was incomplete."""
    app.migrate(until=1 if turned else 0, passed=turned)
    try:
        with crash_behind(number):
            app.migrate(*["0001"] if turned else [])
    except (Crash, NotRolledBackWarning):
        app.start()
        if turned:
            app.migrate()
        return True
    return False


def test_a_value_that_the_former_declaration_does_not_take_is_named(app: History, table: Table) -> None:
    """The values are kept, and the migration stays applied."""
    model = declared(app, town=models.UnicodeAttribute())
    app.make()
    app.migrate()
    fill(model, town="7")
    declared(app, town=models.IntegerAttribute())
    app.make()
    app.migrate()
    converted = stored(table)
    with pytest.raises(CommandError, match="town must be a string"):
        app.migrate("0001")
    assert stored(table) == converted
    assert "[X] 0002" in app.run("showmigrations", "histories")


def test_a_model_that_was_renamed_is_taken_back(app: History, table: Table) -> None:
    """With its items, which had moved."""
    fill(declared(app, keys=BY_NAME))
    app.make()
    app.migrate("--fake-initial")
    was = stored(table), form(table)
    app.forget("Shop")
    app.forget("Member")
    app.model("Store", keys=BY_NAME, bases=(models.SoftDeleteModel,), name=models.UnicodeAttribute())
    app.make(answers=["y"])
    app.migrate()
    assert "Shop" not in {each for each in stored(table) if "'itemType', {'S': 'Shop'}" in each}
    app.migrate("0001")
    assert (stored(table), form(table)) == was


@pytest.mark.parametrize("reverse", [", reverse=lower", ""])
def test_a_function_over_items_goes_back_by_another_one(app: History, table: Table, reverse: str) -> None:
    """Without a reverse function, nothing is reverted, and Django says so."""
    fill(declared(app))
    app.make()
    app.migrate("--fake-initial")
    was = stored(table)
    (app.folder / "0002_letters.py").write_text(
        "from django.db import migrations\n"
        "from dynamo_single import migrations as items\n\n\n"
        "def lower(values):\n    return {} if values['name'].isupper() else {'name': values['name'].upper()}\n\n\n"
        "def upper(values):\n    return {} if values['name'].islower() else {'name': values['name'].lower()}\n\n\n"
        "class Migration(migrations.Migration):\n"
        "    dependencies = [('histories', '0001_initial')]\n"
        f"    operations = [items.ChangeItems('Shop', upper{reverse})]\n"
    )
    app.migrate()
    changed = stored(table)
    assert changed != was
    if reverse:
        app.migrate("0001")
        assert stored(table) == was
        return
    with pytest.raises(IrreversibleError, match="not reversible"):
        app.migrate("0001")
    assert stored(table) == changed
