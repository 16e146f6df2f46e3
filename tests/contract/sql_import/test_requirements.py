"""The requirements of ``dynamo_import_sql`` for a project."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = """
import django
from django.conf import settings
from django.core.management import call_command

settings.configure(INSTALLED_APPS=["dynamo_single"], DYNAMO_SINGLE={"default": "dynamodb://127.0.0.1:1/single-table"})
django.setup()
call_command("dynamo_import_sql", database="old")
"""


def test_import_names_the_missing_app() -> None:
    ended = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, cwd=ROOT, check=False
    )

    assert "ConfigurationError: dynamo_import_sql needs 'django.contrib.auth'" in ended.stderr
