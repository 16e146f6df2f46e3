"""Whole projects in separate processes: the demo, and one with SQL models next to ours."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.test import override_settings

from dynamo_single.table import Request, Table
from tests import children

ROOT = Path(__file__).resolve().parents[3]
SETTINGS = """
import os
SECRET_KEY = "only for tests"
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": os.environ["SQL"]}}
DYNAMO_SINGLE = {"default": os.environ["DYNAMO_TEST_URL"]}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = ["dynamo_single", "shops"]
USE_TZ = True
"""
MODELS = """
from django.db import models as sql
from dynamo_single import models

class Shop(models.Model):
    shop_id = models.IdAttribute()
    name = models.UnicodeAttribute()

    class Keys:
        primary = models.Key("SHOP#{shop_id}", "#METADATA")
        #by_name = models.IndexKey("gs1", "SHOP", "{name}")

class Visit(sql.Model):
    shop = sql.ForeignKey(Shop, sql.CASCADE, db_constraint=False)
    note = sql.TextField()
"""


class Project:
    """A project on disk; each call of ``run`` is one process."""

    def __init__(self, folder: Path, table: Table) -> None:
        self.folder = folder
        self.url = f"dynamodb://{table.settings.endpoint_url.removeprefix('http://')}/{table.name}?region=us-east-1"
        (folder / "shops").mkdir()
        (folder / "shops" / "__init__.py").touch()
        (folder / "project_settings.py").write_text(SETTINGS)
        self.write(MODELS)

    def write(self, models: str) -> None:
        """Declare the models otherwise."""
        (self.folder / "shops" / "models.py").write_text(models)

    def run(self, *lines: str, database: str = "one") -> list[tuple[int, str, str]]:
        """Run commands; what each ended with and printed."""
        environment = os.environ | {
            "DJANGO_SETTINGS_MODULE": "project_settings",
            "PYTHONPATH": f"{self.folder}{os.pathsep}{ROOT}",
            "PYTHONDONTWRITEBYTECODE": "1",
            "DYNAMO_TEST_URL": self.url,
            "SQL": str(self.folder / f"{database}.sqlite3"),
        }
        child = children.run(
            ["-m", "tests.backend_project.run"], cwd=self.folder, env=environment, input=json.dumps(lines)
        )
        assert child.returncode == 0, child.stderr
        return [(code, out, err) for code, out, err in json.loads(child.stdout)]

    def said(self, *lines: str, database: str = "one") -> list[str]:
        """Return the output of successful commands."""
        found = self.run(*lines, database=database)
        assert [(code, err) for code, _, err in found if code] == []
        return [out for _, out, _ in found]


@pytest.fixture
def project(tmp_path: Path, table: Table) -> Project:
    """Return a current project with an item, and without migrations of our models."""
    table.send(
        Request(
            "PutItem",
            {
                "Item": {
                    "pk": {"S": "SHOP#a"},
                    "sk": {"S": "#METADATA"},
                    "itemType": {"S": "Shop"},
                    "shop_id": {"S": "a"},
                    "name": {"S": "A"},
                }
            },
        )
    )
    return Project(tmp_path, table)


def test_sql_models_and_ours_migrate_together(project: Project, table: Table) -> None:
    """One file contains both, items are adopted and backfilled, and a second database finds the work complete."""
    made, checked, refused, adopted = (
        *project.said("makemigrations shops", "makemigrations --check"),
        project.run("migrate")[0],
        project.said("migrate --fake-initial")[0],
    )
    assert "+ Add model Shop, stored as Shop\n    + Create model Visit" in made
    assert "No changes detected" in checked
    assert (refused[0], "migrate --fake-initial" in refused[2]) == (1, True)
    assert "Shop: checked 1 items" in adopted
    project.write(
        MODELS.replace("#by_name", "by_name").replace("note =", 'more = sql.TextField(default="")\n    note =')
    )
    made, filled, checked = project.said("makemigrations shops --noinput --name second", "migrate", "migrate --check")
    assert "Add key by_name to Shop on gs1" in made
    assert "1 changed" in filled
    assert "Left to do" not in filled + checked
    again = project.said("migrate", "showmigrations shops", database="two")
    assert "items read" not in again[0]
    assert "[X] 0002_second" in again[1]


def test_what_migrate_is_about_to_apply_is_no_warning(project: Project) -> None:
    """The check of databases has it, which ``migrate`` runs as well."""
    made, checked, migrated = project.run("makemigrations shops", "check --database default", "migrate --fake-initial")
    assert [each[0] for each in (made, checked, migrated)] == [0, 0, 0]
    assert "W910) shops.0001_initial is not applied" in checked[2]
    assert "W910" not in migrated[1] + migrated[2]


def test_another_database_changes_no_items(project: Project, table: Table) -> None:
    """The first migration decides: the table records which database changed the items."""
    settings = project.folder / "project_settings.py"
    settings.write_text(
        f"{SETTINGS}\nDATABASES['other'] = {{**DATABASES['default'], 'NAME': os.environ['SQL'] + '.other'}}\n"
    )
    project.said("makemigrations shops", "migrate --fake-initial", "migrate --database other")
    project.write(MODELS.replace("#by_name", "by_name"))
    project.said("makemigrations shops --noinput --name second")
    other, own = project.said("migrate --database other", "migrate")
    assert "items read" not in other
    assert "1 changed" in own
    project.said("migrate shops zero --database other")
    assert "items read" not in "".join(project.said("migrate", "migrate --check"))
    assert "items read" not in project.said("migrate", database="two")[0]


def test_a_migration_whose_sql_tables_are_there_is_adopted_as_well(project: Project, table: Table) -> None:
    """Django records it without its operations, and the items are still checked."""
    project.said("makemigrations shops", "migrate --fake-initial", "migrate shops zero --fake")
    state = {"pk": {"S": "MIGRATIONS"}, "sk": {"S": "#STATE"}}
    table.send(Request("DeleteItem", {"Key": state}))
    item = {"pk": {"S": "SHOP#b"}, "sk": {"S": "#METADATA"}, "itemType": {"S": "Shop"}, "shop_id": {"S": "other"}}
    table.send(Request("PutItem", {"Item": item}))
    ((code, _, said),) = project.run("migrate --fake-initial")
    assert (code, "SHOP#b / #METADATA: its key should be SHOP#other / #METADATA" in said) == (1, True)
    assert "[ ] 0001_initial" in project.said("showmigrations shops")[0]
    table.send(Request("DeleteItem", {"Key": {"pk": {"S": "SHOP#b"}, "sk": {"S": "#METADATA"}}}))
    (said,) = project.said("migrate --fake-initial")
    assert "FAKED" in said
    assert "Shop: checked 1 items" in said
    assert "Item" in table.send(Request("GetItem", {"Key": state}))


TESTS = """
from django.test import TestCase
from shops.models import Shop, Visit

class ShopTests(TestCase):
    def test_items_and_rows(self):
        shop = Shop.objects.create(name="B")
        Visit.objects.create(shop=shop, note="x")
        self.assertEqual([each.name for each in Shop.objects.order_by("name")], ["B"])
"""


@pytest.mark.parametrize("database", ["django.db.backends.sqlite3", "dynamo_single.backend"])
def test_the_test_runner_migrates_its_tables(project: Project, database: str) -> None:
    """Test tables are new and count as complete, and the settings' table is not touched."""
    project.said("makemigrations shops")
    project.write(MODELS.replace("#by_name", "by_name"))
    project.said("makemigrations shops")
    settings = SETTINGS.replace("django.db.backends.sqlite3", database)
    (project.folder / "project_settings.py").write_text(settings)
    tests = TESTS if "sqlite" in database else TESTS.replace('Visit.objects.create(shop=shop, note="x")', "pass")
    (project.folder / "shops" / "tests.py").write_text(tests)
    code, _, said = project.run("test shops")[0]
    assert "Ran 1 test" in said
    assert code == 0, said


@pytest.mark.parametrize("app", ["directory", "accounts", "dynamo_single", "catalog"])
def test_the_models_that_there_are_can_be_migrated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, app: str) -> None:
    """Their first migration is written, and then there are no changes."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / f"first_of_{app}").mkdir()
    (tmp_path / f"first_of_{app}" / "__init__.py").touch()
    with override_settings(MIGRATION_MODULES={app: f"first_of_{app}"}):
        call_command("makemigrations", app, verbosity=0)
        call_command("makemigrations", "--check", verbosity=0)
    assert [path.name for path in (tmp_path / f"first_of_{app}").glob("0*")] == ["0001_initial.py"]


def test_a_reference_to_a_model_that_no_migration_has_says_what_to_do(project: Project) -> None:
    """The app's migrations are older than its models in DynamoDB, or were written manually."""
    folder = project.folder / "shops" / "migrations"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "0001_initial.py").write_text(
        "import django.db.models as sql\n"
        "from django.db import migrations\n\n\n"
        "class Migration(migrations.Migration):\n"
        "    initial = True\n"
        "    operations = [migrations.CreateModel('Visit', [\n"
        "        ('id', sql.BigAutoField(primary_key=True)),\n"
        "        ('shop', sql.ForeignKey('shops.Shop', sql.CASCADE, db_constraint=False)),\n"
        "        ('note', sql.TextField()),\n"
        "    ])]\n"
    )
    ((code, _, said),) = project.run("migrate")
    assert code == 1
    assert "shops.Shop is stored in DynamoDB, but the migrations of its app do not add it (AddModel). Run " in said
    assert "manage.py makemigrations shops, and add its migration to the dependencies." in said


def test_no_migration_is_written_into_the_installed_package() -> None:
    """Without a module of the project for them."""
    with pytest.raises(
        CommandError, match=r"MIGRATION_MODULES = \{'dynamo_single': 'project.migrations.dynamo_single'\}"
    ):
        call_command("makemigrations", "dynamo_single", verbosity=0)
