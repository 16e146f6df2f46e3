"""A wrong setting ends a management command in one line, with Django's own ``manage.py`` too."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests import children

ROOT = Path(__file__).resolve().parents[3]
WRONG_TABLE = 'DYNAMO_SINGLE = {"default": "http://127.0.0.1:1/single-table"}'
WRONG = "ConfigurationError: DYNAMO_SINGLE['default']: the URL must begin with dynamodb://, not with http."


def python(directory: Path, setting: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python in the demo with one different setting."""
    url = "dynamodb://127.0.0.1:1/single-table?region=us-east-1&indexes=gs1,gs2,gs3"
    lines = ("from project.settings import *", "del ACCOUNTS", f'DYNAMO_SINGLE = {{"default": "{url}"}}', setting)
    (directory / "changed_settings.py").write_text("\n".join((*lines, "")))
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "changed_settings"}
    environment["PYTHONPATH"] = os.pathsep.join((str(directory), str(ROOT)))
    return children.run(arguments, env=environment, timeout=60)


def command(directory: Path, setting: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Django's own command line."""
    return python(directory, setting, "-m", "django", *arguments)


@pytest.mark.parametrize(
    ("setting", "arguments", "line"),
    [
        (WRONG_TABLE, "check", WRONG),
        (WRONG_TABLE, "migrate", WRONG),
        (WRONG_TABLE, "dynamo_setup", WRONG),
        (WRONG_TABLE, "runserver --noreload 127.0.0.1:0", WRONG),
        (
            'DYNAMO_SINGLE = {"other": DYNAMO_SINGLE["default"]}',
            "check",
            "ConfigurationError: DYNAMO_SINGLE has no alias 'default', the table of accounts.",
        ),
        ('DYNAMO_SINGLE_COSTS = {"WARN": 1}', "check", "ConfigurationError: DYNAMO_SINGLE_COSTS['WARN'] is not a"),
        (
            'CACHES = {"default": {"BACKEND": "dynamo_single.cache.DynamoCache", "LOCATION": "x"}}',
            "check",
            "ConfigurationError: CACHES: LOCATION 'x' is no alias of DYNAMO_SINGLE",
        ),
        (
            'CACHES = {"default": {"BACKEND": "dynamo_single.cache"}}',
            "check",
            "ConfigurationError: CACHES['default']['BACKEND'] names a module: write 'dynamo_single.cache.DynamoCache'.",
        ),
        (
            'DATABASES["default"]["OPTIONS"] = {"x": 1}',
            "check",
            "ConfigurationError: DATABASES['default']['OPTIONS'] is {'x': 1}",
        ),
        (
            'AUTH_USER_MODEL = "directory.Company"',
            "check",
            "ConfigurationError: AUTH_USER_MODEL is 'directory.Company', which lacks what a user needs: REQ",
        ),
    ],
)
def test_a_wrong_setting_is_one_line(tmp_path: Path, setting: str, arguments: str, line: str) -> None:
    """The command ends with status 1, and with nothing but the error."""
    ended = command(tmp_path, setting, *arguments.split())
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (1, "", 1)
    assert ended.stderr.startswith(line)


def test_a_wrong_setting_is_a_traceback_on_demand(tmp_path: Path) -> None:
    """``--traceback`` is Django's own option for that."""
    assert command(tmp_path, WRONG_TABLE, "check", "--traceback").stderr.startswith("Traceback (most recent call last)")


def test_a_server_does_not_start_with_a_wrong_setting(tmp_path: Path) -> None:
    """Outside commands, the caller that starts Django can catch the error."""
    code = (
        "import django\nfrom django.core.exceptions import ImproperlyConfigured\n"
        "try:\n    django.setup()\nexcept ImproperlyConfigured as error:\n    print('caught', error)\n"
    )
    ended = python(tmp_path, WRONG_TABLE, "-c", code)
    assert (ended.returncode, ended.stdout.startswith("caught DYNAMO_SINGLE['default']")) == (0, True)


@pytest.mark.parametrize("arguments", ["check", "migrate"])
def test_an_app_that_is_not_installed_is_found_by_commands(tmp_path: Path, arguments: str) -> None:
    """The app's own start-up does not run, so its models report it."""
    ended = command(tmp_path, 'INSTALLED_APPS.remove("dynamo_single")', arguments)
    assert (ended.returncode, "dynamo_single.E021" in ended.stderr) == (1, True)
