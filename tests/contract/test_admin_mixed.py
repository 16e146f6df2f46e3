"""The admin beside an SQL database: the log is where the users are, for the models of both."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dynamo_single.table import Table

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(("project", "in_dynamodb"), [("sql_users", False), ("dynamo_users", True)])
def test_the_log_is_where_the_users_are(table: Table, project: str, in_dynamodb: bool) -> None:
    """Companies in DynamoDB and groups in SQL are edited on one site, and one log holds it all."""
    settings = table.settings
    endpoint = str(settings.endpoint_url).removeprefix("http://")
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": f"tests.admin_project.{project}",
        "DYNAMO_URL": f"dynamodb://{endpoint}/{settings.table_name}?region={settings.region}",
        "PYTHONPATH": str(ROOT),
    }
    command = [sys.executable, "-W", "error", "-m", "tests.admin_project.run"]
    done = subprocess.run(  # noqa: S603 - a fixed command of ours
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert set(result["answers"].values()) == {200, 302}
    assert result["in_dynamodb"] == in_dynamodb
    assert result["log"] == [
        "Deleted “Editors.”",
        "Added “Editors”.",
        "Changed “Acme” — Restored from the trash.",
        "Deleted “Acme.”",
        "Added “Acme”.",
    ]
