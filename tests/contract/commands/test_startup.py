"""What stops a project before it answers anything."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("postgres://127.0.0.1/single-table", "DYNAMO_SINGLE['default']: the URL must begin with dynamodb://"),
        ("dynamodb://127.0.0.1:8001/", "DYNAMO_SINGLE['default']['TABLE_NAME'] must be"),
        ("dynamodb:///single-table", "DYNAMO_SINGLE['default']['REGION'] is missing"),
        ("dynamodb:///single-table?region=eu-west-1&idx=1", "unknown query parameter 'idx'"),
    ],
)
def test_a_wrong_setting_stops_the_start(url: str, message: str) -> None:
    """``django.setup()`` refuses a wrong ``DYNAMO_SINGLE``, before the first request asks for the table."""
    child = subprocess.run(
        [sys.executable, "-c", "import django; django.setup()"],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "project.settings", "DYNAMO_URL": url},
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == 1
    assert "ConfigurationError" in child.stderr
    assert message in child.stderr


def test_a_right_setting_does_not(tmp_path: Path) -> None:
    """The same start without a mistake succeeds, and needs no engine."""
    child = subprocess.run(
        [sys.executable, "-c", "import django; django.setup()"],
        cwd=ROOT,
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "project.settings",
            "DYNAMO_URL": "dynamodb:///single-table?region=eu-west-1",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert (child.returncode, child.stderr) == (0, "")
