"""Django's own commands in a project with the stock apps and no SQL database.

Each group of command lines runs in one child process, because the stock apps are not among the apps of the tests.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import django
import pytest

from tests import children
from tests.versions import DJANGOS

ROOT = Path(__file__).resolve().parents[3]
NO_SQL = "this project has no SQL database (DATABASES['default'] is dynamo_single.backend)"
NOTHING_TO_APPLY = "No migrations to apply."


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a command ended."""

    code: int
    out: str
    err: str


@cache
def run(settings: str, *lines: str) -> dict[str, Outcome]:
    """Run the command lines in one child process with a settings module of ``tests.backend_project``."""
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": f"tests.backend_project.{settings}",
        "PYTHONPATH": str(ROOT),
    }
    child = children.run(["-m", "tests.backend_project.run"], input=json.dumps(lines), env=environment)
    assert child.returncode == 0, child.stderr
    return {line: Outcome(*outcome) for line, outcome in zip(lines, json.loads(child.stdout), strict=True)}


ANSWERS = {
    "check": "System check identified no issues",
    "check --database default": "System check identified no issues",
    "makemigrations --dry-run": "No changes detected",
    "makemigrations --check --dry-run": "No changes detected",
    "migrate": NOTHING_TO_APPLY,
    "migrate shop": NOTHING_TO_APPLY,
    "migrate --run-syncdb": NOTHING_TO_APPLY,
    "migrate --verbosity 2": "Running post-migrate handlers for application sites",
    "migrate --check": "",
    "migrate --plan": "No planned migration operations.",
    "migrate --prune sites": "No migrations to prune.",
    "showmigrations": "[X] 0012_alter_user_first_name_max_length",
    "showmigrations shop": "[X] 0001_squashed_0002_code (2 squashed migrations)\n [X] 0003_name",
    "showmigrations --plan shop": "[X]  shop.0003_name",
    "showmigrations --verbosity 2 shop": "[X] 0003_name (applied at ",
    "looks_for_migrations": "ran",
    "sqlmigrate shop 0003": "-- Rename field code on thing to name\n--\n-- (no-op)",
    "inspectdb": "from django.db import models\n",
    "inspectdb things": f"# The error was: Cannot describe the SQL table 'things': {NO_SQL}",
    "createcachetable": "",
    "remove_stale_contenttypes --noinput": "",
}
REFUSALS = {
    "migrate shop zero": "Cannot delete from the record of migrations",
    "migrate --fake shop zero": "Cannot delete from the record of migrations",
    "dbshell": "Cannot open a database shell",
}
#: The effect, with a reason for missing parts.
WITH_A_WORD = ("flush --noinput", "dumpdata sites")


@pytest.mark.parametrize(("line", "answer"), ANSWERS.items())
def test_a_command_answers(line: str, answer: str) -> None:
    """A command that works without SQL does not warn."""
    outcome = run("settings", *ANSWERS)[line]
    assert (outcome.code, outcome.err) == (0, "")
    assert answer in outcome.out
    assert "unapplied migration" not in outcome.out


@pytest.mark.parametrize("line", [line for line in ANSWERS if line.startswith("migrate")])
def test_no_operation_of_a_migration_runs(line: str) -> None:
    """Migrations count as applied, and their code does not run."""
    assert "RunPython ran" not in run("settings", *ANSWERS)[line].out


@pytest.mark.parametrize(("line", "refusal"), REFUSALS.items())
def test_a_command_is_refused_in_one_line(line: str, refusal: str) -> None:
    """A command that needs SQL ends with one line that contains the reason."""
    outcome = run("settings", *REFUSALS)[line]
    assert outcome.code == 1
    assert outcome.err.startswith(f"CommandRefused: {refusal}: {NO_SQL}. ")
    assert outcome.err.count("\n") == 1


def test_dumpdata_says_that_sql_models_hold_nothing() -> None:
    """The file is empty, and the message contains the reason if you name the app."""
    outcome = run("settings", *WITH_A_WORD)["dumpdata sites"]
    assert (outcome.code, outcome.out.strip()) == (0, "[]")
    assert outcome.err == "Nothing is dumped of sites.Site: they are of SQL, and 'default' is no SQL database.\n"


def test_flush_says_that_it_empties_nothing() -> None:
    """The message reports that DynamoDB is unchanged."""
    outcome = run("settings", *WITH_A_WORD)["flush --noinput"]
    assert outcome.code == 0
    assert "Items in DynamoDB are not touched" in outcome.err


def test_the_test_runner_runs_every_test_class() -> None:
    """`manage.py test` sets up, runs Django's four test classes, and tears down."""
    line = "test tests.backend_project.shop.tests"
    outcome = run("settings", line)[line]
    assert "Ran 17 tests" in outcome.err
    assert outcome.code == 0, outcome.err
    assert re.search(r"Test table 'test_single-table_run\w+' at http://127.0.0.1:", outcome.err)


def test_parallel_tests_have_tables_of_their_own() -> None:
    """Each process of a parallel run gets a copy of the test table."""
    line = "test --parallel 2 tests.backend_project.shop.tests"
    outcome = run("settings", line)[line]
    assert outcome.code == 0, outcome.err
    assert outcome.err.count("Cloning test database for alias 'default'") == 2


def test_atomic_requests_is_warned_of() -> None:
    """A setting that promises a rollback gets a warning from the check."""
    line = "check --database default"
    assert "(dynamo_single.W901)" in run("settings_atomic", line)[line].err


def test_a_project_with_sql_keeps_its_database() -> None:
    """With only SQL, the app does not interfere: migrations run, and content types and permissions are stored."""
    lines = (
        "migrate",
        "dumpdata auth.permission --natural-foreign",
        "dumpdata sites.site",
    )
    outcomes = run("settings_sql", *lines)
    assert "RunPython ran" in outcomes["migrate"].out
    assert '"codename": "add_thing"' in outcomes[lines[1]].out
    assert '"domain": "example.com"' in outcomes[lines[2]].out


@pytest.mark.parametrize(("settings", "routers"), [("settings", 1), ("settings_mixed", 1), ("settings_sql", 0)])
def test_the_router_is_there_from_the_start_where_it_is_needed(settings: str, routers: int) -> None:
    """The app installs its router at start-up, and only if an alias has the engine."""
    line = "shell --verbosity 0 --command print(len(__import__('django').db.router.routers))"
    assert run(settings, line)[line].out == f"{routers}\n"


def test_the_engine_on_a_second_alias_leaves_the_first_alone() -> None:
    """Next to an SQL database, the engine handles only its own alias."""
    lines = (
        "migrate",
        "migrate --database nosql",
        "createcachetable --dry-run",
        "check --database default --database nosql",
    )
    outcomes = run("settings_mixed", *lines)
    assert "Applying shop.0003_name...RunPython ran" in outcomes["migrate"].out
    assert NOTHING_TO_APPLY in outcomes["migrate --database nosql"].out
    assert outcomes["createcachetable --dry-run"].out.count('CREATE TABLE "cache"') == 1
    assert outcomes[lines[3]].code == 0


DEMO_ANSWERS = {
    "check": "System check identified no issues",
    "makemigrations --check": "No changes detected",
    "migrate": NOTHING_TO_APPLY,
    "migrate --run-syncdb": NOTHING_TO_APPLY,
    "migrate --plan": "No planned migration operations.",
    "showmigrations": "auth\n [X] 0001_initial",
    "makemigrations directory --dry-run": "+ Add model Company, stored as Company",
    "shell --verbosity 0 --command print(Company._meta.label)": "directory.Company",
}


@pytest.mark.parametrize(("line", "answer"), DEMO_ANSWERS.items())
def test_users_in_dynamodb_need_no_setting_for_migrations(line: str, answer: str) -> None:
    """The admin's migrations, which refer to the user, are skipped if users are in DynamoDB."""
    outcome = run("settings_dynamo_users", *DEMO_ANSWERS)[line]
    assert (outcome.code, outcome.err) == (0, "")
    assert answer in outcome.out


REFERENCES = {
    "check": "System check identified no issues",
    "makemigrations --check": "No changes detected",
    "migrate --run-syncdb": "Applying parcels.0001_initial... OK",
    "sqlmigrate parcels 0001": '"company_id" varchar(255) NULL, "person_id" varchar(255) NULL);',
    "inspectdb parcels_token": "user_id = models.CharField(unique=True, max_length=255)",
}


@pytest.mark.parametrize(("line", "answer"), REFERENCES.items())
def test_a_reference_from_sql_is_a_column(line: str, answer: str) -> None:
    """Migrations contain the declared foreign key, and create a column without a constraint."""
    outcome = run("settings_sql_reference", *REFERENCES)[line]
    assert (outcome.code, outcome.err) == (0, "")
    assert answer in outcome.out
    assert 'REFERENCES "company' not in outcome.out


def test_the_stock_admins_log_needs_its_site() -> None:
    """If users are in DynamoDB, Django's own site would store the log in SQL, which does not exist."""
    assert "dynamo_single.E017" in run("settings_stock_admin", "check")["check"].err


STRAYS = {
    "strays.Plan: (dynamo_single.E010) day": "no column of SQL can hold its pk, which is a DateAttribute.",
    "strays.Plan: (dynamo_single.E010) named": "by name: only by its pk it can be read.",
    "strays.Fair: (dynamo_single.E010) companies": "would be found by a join, which no database can do.",
    "strays.Stall: (dynamo_single.E010) company": "the database does not know when an object is deleted there.",
}


@pytest.mark.parametrize(("which", "why"), STRAYS.items())
def test_a_reference_that_cannot_work_is_named(which: str, why: str) -> None:
    """The check reports references that no column or database supports, before ``migrate`` runs."""
    if "Stall" in which and django.VERSION < (6, 1):
        pytest.skip("Django 6.1 leaves on_delete to the database")
    outcome = run("settings_sql_strays", "migrate")["migrate"]
    assert outcome.code == 1
    assert re.search(rf"{re.escape(which)} refers to .*, which is stored in DynamoDB.*{re.escape(why)}", outcome.err)


BESIDE_SQL = {
    "makemigrations --check": "No changes detected",
    "makemigrations shop --dry-run": "No changes detected in app 'shop'",
    "makemigrations directory shop --dry-run": "+ Add model Company, stored as Company",
    "migrate --run-syncdb": "Applying shop.0003_name",
    "migrate --verbosity 0": "",
    "check --database default": "System check identified no issues",
    "sqlflush": 'DELETE FROM "shop_thing"',
    "flush --noinput": "",
    "inspectdb": "class ShopThing(models.Model)",
    "dumpdata contenttypes.contenttype --natural-foreign": '"model": "company"',
}


@pytest.mark.parametrize(("line", "answer"), BESIDE_SQL.items())
def test_models_beside_sql_are_no_tables(line: str, answer: str) -> None:
    """Commands that make, read and empty SQL tables pass over models in DynamoDB."""
    outcome = run("settings_beside_sql", *BESIDE_SQL)[line]
    assert (outcome.code, outcome.err) == (0, "")
    assert answer in outcome.out
    assert "directory_" not in outcome.out.lower()
    assert "DirectoryCompany" not in outcome.out


def test_permissions_beside_sql_are_rows_once() -> None:
    """Django adds its permissions in its migrations, and the app adds the permissions of the trash."""
    line = "dumpdata auth.permission --natural-foreign"
    rows = json.loads(run("settings_beside_sql", "migrate --verbosity 0", line)[line].out)
    found = [tuple(row["fields"][name] for name in ("codename", "name")) for row in rows]
    assert sorted(each for each in found if each[0].endswith("_company")) == [
        ("add_company", "Can add company"),
        ("change_company", "Can change company"),
        ("delete_company", "Can delete company"),
        ("hard_delete_company", "Can delete company permanently"),
        ("restore_company", "Can restore company"),
        ("view_company", "Can view company"),
    ]


def test_these_answers_were_checked_with_this_django() -> None:
    """The private parts of Django that the engine uses were checked in this release."""
    assert ".".join(map(str, django.VERSION[:2])) in DJANGOS
