"""Squashed migrations: code with the former files, and code with only the squashed one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dynamo_single import models
from dynamo_single.evolution import drive
from dynamo_single.evolution.processes import Process
from dynamo_single.exceptions import FormNotApplied
from dynamo_single.table import Table
from dynamo_single.testing import assert_requests
from tests.contract.item_migrations.test_migrate import form, shop
from tests.contract.item_migrations.test_phases import by
from tests.histories.app import History, history

FUNCTION = "def same(values):\n    return {}\n\n\n"
CHANGES = "items.ChangeItems('Shop', same, repeat=True)"
SQUASHED = "0001_squashed_0003_items"
AGAIN = "0001_squashed_0004_more"


@pytest.fixture
def app(tmp_path: Path, table: Table) -> Iterator[History]:
    """The app with three applied migrations, the last of which runs a function over its items, and an object."""
    with history(tmp_path) as found:
        shop(found)
        found.make()
        found.migrate()
        model = shop(found, town=models.UnicodeAttribute(default="Bern"))
        found.make("--name", "town")
        write(found, "0003_items", "0002_town", CHANGES)
        found.migrate()
        model.objects.create(shop_id="a", name="A")
        yield found


def write(app: History, name: str, before: str, *operations: str, replaces: tuple[str, ...] = ()) -> None:
    """Write a migration by hand."""
    dependencies = [("histories", before)] if before else []
    (app.folder / f"{name}.py").write_text(
        "import dynamo_single.migrations\nimport dynamo_single.models\nfrom django.db import migrations\n"
        f"from dynamo_single import migrations as items\n\n\n{FUNCTION}"
        "class Migration(migrations.Migration):\n"
        f"    initial = {not before}\n    dependencies = {dependencies}\n"
        f"    replaces = {[('histories', each) for each in replaces]}\n"
        f"    operations = [{', '.join(operations)}]\n"
    )


def operations(app: History, *names: str) -> list[str]:
    """The operations of migrations, as their files have them."""
    texts = [(app.folder / f"{name}.py").read_text().partition("operations = [")[2] for name in names]
    return [text.strip().removesuffix("]").strip().removesuffix(",") for text in texts]


def squash(app: History, name: str = SQUASHED, *, more: tuple[str, ...] = ()) -> None:
    """Write a migration that replaces all that there are, as ``squashmigrations`` does."""
    replaced = tuple(app.files)
    write(app, name, "", *operations(app, *replaced), *more, replaces=replaced)


def settle(app: History, name: str = SQUASHED) -> None:
    """Remove the files that a squashed migration replaces, and its ``replaces``, as Django documents."""
    (text,) = operations(app, name)
    for each in app.files:
        (app.folder / f"{each}.py").unlink()
    write(app, name, "", text)
    app.start()


def read(app: History) -> str:
    """Return the object as new code reads it, and write it."""
    model: Any = shop(app, town=models.UnicodeAttribute(default="Bern"))
    model.objects.filter(pk="a").update(name="B")
    return str(model.objects.get(pk="a").name)


def test_code_that_knows_only_the_squashed_migration_follows(app: History, table: Table) -> None:
    """This also applies after the squashed migration loses its ``replaces``."""
    squash(app)
    app.migrate()
    settle(app)
    assert read(app) == "B"
    assert form(table).squashed["histories.0003_items"] == f"histories.{SQUASHED}"
    assert "No changes detected" in app.make()


def test_code_that_knows_only_the_replaced_migrations_follows(app: History) -> None:
    """A process from before the squashing continues."""
    squash(app)
    app.migrate()
    (app.folder / f"{SQUASHED}.py").unlink()
    app.start()
    assert read(app) == "B"


def test_code_of_before_the_replaced_migrations_is_refused(app: History) -> None:
    """Neither name is among its files."""
    squash(app)
    app.migrate()
    for name in app.files[1:]:
        (app.folder / f"{name}.py").unlink()
    app.start()
    with pytest.raises(FormNotApplied, match=r"does not have histories\.0003_items"):
        read(app)


def test_squashed_migration_is_squashed_again(app: History) -> None:
    """Its own name is replaced next."""
    squash(app)
    app.migrate()
    settle(app)
    squash(app, AGAIN)
    app.migrate()
    settle(app, AGAIN)
    assert read(app) == "B"


def test_former_table_is_squashed_without_a_request(app: History) -> None:
    """Only a squashed migration on disk is searched in the tables."""
    squash(app)
    app.migrate()
    with assert_requests(0):
        settle(app)


def test_later_key_does_not_wait_for_squashed_code(app: History, table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process whose last migration is the squashed one knows the attributes that the replaced ones added."""
    squash(app)
    app.migrate()
    settle(app)
    shop(app, by("town"), town=models.UnicodeAttribute(default="Bern"))
    app.make("--name", "key")
    needed: list[set[str]] = []
    found = drive._needed

    def noted(*arguments: Any) -> set[str]:
        needed.append(found(*arguments))
        return needed[-1]

    monkeypatch.setattr(drive, "_needed", noted)
    app.migrate()
    (names,) = filter(None, needed)
    squashed = Process("PROCESS#host#1#x", 1, 1, False, {"histories": SQUASHED}, 0, 0)
    assert squashed.lacks(names) == ""
    assert Process("PROCESS#host#1#x", 1, 1, False, {"histories": "0001_initial"}, 0, 0).lacks(names)
