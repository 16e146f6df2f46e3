"""Whose table it is: what one project has set up, another project's commands leave as it is."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.core.management import CommandError, call_command
from django.test import override_settings
from msgspec.structs import replace

from dynamo_single.conf import table_settings
from dynamo_single.exceptions import ForeignTable
from dynamo_single.orm.rollout import knowledge
from dynamo_single.table import Request, Table, get_table
from dynamo_single.testing import assert_requests
from tests.catalog.clubs import Club

DESCRIBED = ["DescribeTable", "DescribeTimeToLive"]


def run(*arguments: str) -> str:
    """Return the output of a command."""
    out = io.StringIO()
    call_command(*arguments, stdout=out, stderr=out)
    return out.getvalue()


@contextmanager
def project(table: Table, name: str = "") -> Iterator[None]:
    """The settings of another project that uses the same table."""
    options = {"OWNER": name} if name else {}
    place = {"TABLE_NAME": table.name, "ENDPOINT_URL": table.settings.endpoint_url}
    with override_settings(DYNAMO_SINGLE={"default": {**place, **options}}):
        yield


@pytest.mark.parametrize("command", [("dynamo_setup",), ("dynamo_verify", "--repair"), ("dynamo_rebuild",)])
def test_another_projects_commands_are_refused(table: Table, command: tuple[str, ...]) -> None:
    """The message names both projects, and what to do if they are one."""
    with project(table, "shop"):
        run("dynamo_setup")
    before = table.send(Request("Scan"))["Items"]
    said = r"belongs to the project 'shop', but this is the project.*\"OWNER\": 'shop' in DYNAMO_SINGLE\['default'\]"
    with project(table, "blog"), pytest.raises(CommandError, match=said):
        run(*command)
    assert table.send(Request("Scan"))["Items"] == before


def test_the_same_projects_commands_go_on(table: Table) -> None:
    """Another setup does not write, and the checker accepts the mark and the presence item."""
    with project(table, "shop"):
        run("dynamo_setup")
        with assert_requests([*DESCRIBED, "GetItem", *DESCRIBED * 2]):
            run("dynamo_setup")
        assert "2 items read by 4 requests, 0 findings." in run("dynamo_verify")


def test_a_project_that_is_asked_about_migrations_is_refused_at_its_first_query(table: Table) -> None:
    """The item that the query reads anyway contains the mark."""
    with project(table, "shop"):
        run("dynamo_setup")
    migrations = override_settings(MIGRATION_MODULES={"catalog": "tests.backend_project.shop.migrations"})
    with project(table, "blog"), migrations, pytest.raises(ForeignTable):
        Club.objects.get(pk="c")
    knowledge.forget()


def test_a_project_without_migrations_is_refused_at_its_first_query(table: Table) -> None:
    """The query reads the item because of shards."""
    with project(table, "shop"):
        run("dynamo_setup")
    with project(table, "blog"), assert_requests(["UpdateItem", "GetItem", "UpdateItem"]), pytest.raises(ForeignTable):
        Club.objects.get(pk="c")
    knowledge.forget()


@pytest.mark.parametrize("migrations", [None, "tests.backend_project.shop.migrations"])
def test_a_project_that_was_refused_goes_on_once_the_mark_is_gone(
    migrations: str | None, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process reads the table again before the next error."""
    with project(table, "shop"):
        run("dynamo_setup")
    with project(table, "blog"), override_settings(MIGRATION_MODULES={"catalog": migrations}):
        with pytest.raises(ForeignTable):
            Club.objects.get(pk="c")
        known = dict(knowledge._tables)
        knowledge.change(get_table(), lambda state: replace(state, owner=""))
        knowledge._tables.update(known)
        monkeypatch.setattr(knowledge, "REFUSED_REFRESH", 0.0)
        with pytest.raises(Club.DoesNotExist):
            Club.objects.get(pk="c")
    knowledge.forget()


def test_without_a_name_nothing_is_marked(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """Common package names do not identify a project."""
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "config.settings")
    with project(table):
        assert table_settings().owner == ""
        run("dynamo_setup")
    assert table.send(Request("Scan"))["Items"] == []


def test_a_project_is_called_as_the_package_of_its_settings(table: Table) -> None:
    """The project does not have to set anything."""
    assert table_settings().owner == "tests"
