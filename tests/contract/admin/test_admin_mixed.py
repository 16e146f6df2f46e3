"""The admin with an SQL database: log and permissions of all models are stored with the users."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from dynamo_single.table import Table
from tests import children

ROOT = Path(__file__).resolve().parents[3]


PROJECTS = pytest.mark.parametrize(("project", "in_dynamodb"), [("sql_users", False), ("dynamo_users", True)])


@pytest.fixture
def run(table: Table, project: str) -> Any:
    """Run the project's steps, and return their results."""
    settings = table.settings
    endpoint = str(settings.endpoint_url).removeprefix("http://")
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": f"tests.admin_project.{project}",
        "DYNAMO_URL": f"dynamodb://{endpoint}/{settings.table_name}?region={settings.region}&indexes=gs1,gs2,gs3",
        "PYTHONPATH": str(ROOT),
    }
    done = children.run(["-m", "tests.admin_project.run"], env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@PROJECTS
def test_an_sql_database_and_our_models_share_a_site(run: Any, in_dynamodb: bool) -> None:
    """One site edits companies in DynamoDB and groups in SQL, with one log and working permissions.

    SQL stores the permissions of our models once, including both for the trash. Members of a group have exactly its
    permissions, until the next request after they leave.
    """
    assert set(run["answers"].values()) == {200, 302}
    assert run["in_dynamodb"] == in_dynamodb
    assert run["log"] == [
        "Deleted “Editors.”",
        "Added “Editors”.",
        "Changed “Acme” — Restored from the trash.",
        "Deleted “Acme.”",
        "Added “Acme”.",
    ]
    assert run["permissions"] == [
        "add_company: Can add company",
        "change_company: Can change company",
        "delete_company: Can delete company",
        "hard_delete_company: Can delete company permanently",
        "restore_company: Can restore company",
        "view_company: Can view company",
    ]
    assert run["after_migrating_again"] == run["permissions"]
    assert run["sql_groups_on_the_index"] == (not in_dynamodb)
    assert run["staff"] == {
        "restore button": True,
        "delete button": False,
        "delete": 403,
        "restore": 302,
        "restored": True,
        "list after leaving the group": 403,
    }
