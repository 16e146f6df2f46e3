"""``check --database`` and ``dynamo_status`` report open changes of a table."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.apps import apps
from django.core.management import call_command
from django.test import override_settings
from msgspec.structs import replace

from dynamo_single import models
from dynamo_single.checks import migrations
from dynamo_single.evolution.forms import form_of
from dynamo_single.evolution.snapshots import Snapshot
from dynamo_single.orm.rollout import knowledge
from dynamo_single.orm.rollout.states import OpenChange
from dynamo_single.table import Request, Table
from dynamo_single.testing import assert_requests
from tests import children
from tests.catalog.clubs import Club
from tests.histories.app import History, history

ROOT = Path(__file__).resolve().parents[3]
CHANGE = OpenChange("AddKey", "catalog.0002_by_town", {"number": "0", "label": "Add key by_town to Club on gs2"})


@pytest.fixture
def opened(table: Table) -> Iterator[Table]:
    """The table with a change of clubs that is open."""
    form = replace(form_of(Snapshot.of(Club), Club._meta.label), opened=(CHANGE,))
    knowledge.change(table, lambda state: state.with_form("Club", form))
    yield table
    knowledge.forget()


def status() -> str:
    """Return the output of ``dynamo_status``."""
    out = io.StringIO()
    call_command("dynamo_status", stdout=out)
    return out.getvalue()


def test_the_status_names_what_is_open(opened: Table) -> None:
    """And the way to end it."""
    said = "Open change    catalog.0002_by_town: Add key by_town to Club on gs2, until migrate has carried it out"
    assert said in status()


def test_the_status_says_nothing_where_nothing_is_open(table: Table) -> None:
    """This includes a missing owner."""
    assert "Open change" not in status()
    assert "Owner" not in status()


def test_the_check_of_databases_names_what_is_open(opened: Table) -> None:
    """W905, for one GetItem a table."""
    with override_settings(DYNAMO_SINGLE={"default": _url(opened)}), assert_requests(["GetItem"]):
        (found,) = migrations.check_tables(databases=["default"])
    assert (found.id, found.obj) == ("dynamo_single.W905", "catalog.club")
    assert found.msg.startswith("catalog.0002_by_town is not finished in the table 'single-table': Add key by_town")


@pytest.fixture
def unapplied(tmp_path: Path, table: Table) -> Iterator[History]:
    """Return an app with an unapplied second migration."""
    with history(tmp_path) as app:
        app.model()
        app.make()
        app.migrate()
        app.model(town=models.UnicodeAttribute(null=True))
        app.make()
        yield app


def test_what_is_not_applied_is_named(unapplied: History) -> None:
    """By the status, and by the check of databases: W910, for one Query."""
    assert "Not applied    histories.0002_shop_town" in unapplied.run("dynamo_status")
    with assert_requests(["Query"]):
        (found,) = migrations.check_applied(databases=["default"])
    assert (found.id, found.hint) == ("dynamo_single.W910", "manage.py migrate")
    assert found.msg == "histories.0002_shop_town is not applied, and changes stored items."
    unapplied.migrate()
    assert "Not applied" not in unapplied.run("dynamo_status")
    assert migrations.check_applied(databases=["default"]) == []
    assert migrations.check_applied() == []


def test_without_databases_nothing_is_sent(opened: Table) -> None:
    """A plain ``check`` reads no table."""
    with assert_requests(0):
        assert migrations.check_tables() == []


def test_a_table_of_another_project_is_an_error(opened: Table) -> None:
    """E022 has the words of the error."""
    knowledge.change(opened, lambda state: replace(state, owner="shop"))
    with override_settings(DYNAMO_SINGLE={"default": f"{_url(opened)}&owner=blog"}):
        (found,) = migrations.check_tables(databases=["default"])
    assert found.id == "dynamo_single.E022"
    assert "belongs to the project 'shop', but this is the project 'blog'" in found.msg


def test_a_table_that_is_not_there_has_nothing_open(table: Table) -> None:
    """Commands that make one run checks before."""
    table.send(Request("DeleteTable"))
    with override_settings(DYNAMO_SINGLE={"default": _url(table)}):
        assert migrations.check_tables(databases=["default"]) == []


def test_an_app_without_migrations_is_told_before_it_is_deployed() -> None:
    """W906 names it; the shipped apps are not the project's to migrate."""
    told = [message.msg for message in migrations.check_apps() if message.id == "dynamo_single.W906"]
    assert [text for text in told if "'catalog'" in text]
    assert not [text for text in told if "'dynamo_single'" in text]
    with override_settings(MIGRATION_MODULES={"catalog": "tests.backend_project.shop.migrations"}):
        assert not [message for message in migrations.check_apps() if "'catalog'" in message.msg]
    assert apps.is_installed("tests.catalog")


def test_a_command_that_knows_nothing_of_these_models_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command's app comes before ours: it would write SQL models, or could not finish."""
    assert migrations.check_commands() == []
    before = {"makemigrations": "django.core", "migrate": "django.core"}
    monkeypatch.setattr(migrations, "get_commands", lambda: before)
    found = [(message.id, message.msg) for message in migrations.check_commands()]
    assert [each for each, _ in found] == ["dynamo_single.E032"] * 2
    assert found[0][1].startswith("The command makemigrations comes from 'django.core'")
    assert found[0][1].endswith("it would write them down as models of SQL.")


def _url(table: Table) -> str:
    endpoint = str(table.settings.endpoint_url).replace("http", "dynamodb", 1)
    return f"{endpoint}/{table.name}?region={table.settings.region}"


def test_the_development_server_says_what_is_open(opened: Table, tmp_path: Path) -> None:
    """The server also reports unapplied migrations, and does not run checks of databases."""
    url = str(opened.settings.endpoint_url).replace("http://", "dynamodb://")
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.settings",
        "DYNAMO_TEST_URL": f"{url}/{opened.name}?region=us-east-1",
        "PYTHONUNBUFFERED": "1",
    }
    with (tmp_path / "stderr").open("w+") as stderr:
        server = children.Dialogue(
            ["-m", "django", "runserver", "--noreload", "127.0.0.1:0"], cwd=ROOT, env=environment, stderr=stderr
        )
        try:
            while (line := server.answer()) and "Starting development server" not in line:
                pass
        finally:
            server.kill()
            server.close()
        stderr.seek(0)
        assert "dynamo_single.W905" in stderr.read()
