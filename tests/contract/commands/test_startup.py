"""Errors that stop a project before its first request."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from dynamo_single.table import Table
from tests import children

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("postgres://127.0.0.1/single-table", "DYNAMO_SINGLE['default']: the URL must begin with dynamodb://"),
        ("dynamodb://127.0.0.1:8001/", "DYNAMO_SINGLE['default']: the URL does not name a table"),
        ("dynamodb:///single-table", "DYNAMO_SINGLE['default']: the URL does not name a region"),
        ("dynamodb:///single-table?region=eu-west-1&idx=1", "unknown query parameter 'idx'"),
    ],
)
def test_a_wrong_setting_stops_the_start(url: str, message: str) -> None:
    """``django.setup()`` rejects a wrong ``DYNAMO_SINGLE``, before the first request uses the table."""
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "project.settings", "DYNAMO_URL": url}
    child = children.run(["-c", "import django; django.setup()"], env=environment)
    assert child.returncode == 1
    assert "ConfigurationError" in child.stderr
    assert message in child.stderr


def test_a_right_setting_does_not(tmp_path: Path) -> None:
    """A start with a right setting succeeds without an engine."""
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


_SETTINGS = """
import sys, django
from django.conf import settings
settings.configure(
    SECRET_KEY="none", USE_TZ=True, DYNAMO_SINGLE={"default": "dynamodb:///single-table?region=eu-west-1"},
    DATABASES={"default": {"ENGINE": "dynamo_single.backend"}},
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "dynamo_single", "project.directory"],
)
django.setup()
print(*sys.modules)
"""


_ADMIN = ("dynamo_single.admin.apps.DynamoAdminConfig", "django.contrib.messages", "django.contrib.sessions")


def imported(*apps: str) -> set[str]:
    """The modules of a process after ``django.setup()``, with further apps."""
    source = _SETTINGS.replace("INSTALLED_APPS=[", f"INSTALLED_APPS=[*{apps!r}, ")
    child = subprocess.run([sys.executable, "-"], input=source, cwd=ROOT, capture_output=True, text=True, check=True)
    return set(child.stdout.split())


def test_a_start_imports_nothing_that_is_imported_later() -> None:
    """A ``LazyModule`` is not imported through another module."""
    sources = [path.read_text() for path in (ROOT / "dynamo_single").rglob("*.py")]
    later = {name for source in sources for name in re.findall(r'= LazyModule\("([\w.]+)"\)', source)}
    assert "simplejson" in later
    assert not imported() & later


def test_a_start_imports_no_tools_of_other_processes() -> None:
    """A start imports no checks, commands, admin, test tables, verification, or client that sends requests."""
    others = re.compile(
        r"dynamo_single\.(checks|contrib|management|admin|cache|test_tables|verification|evolution|engines|testing|table\.schema)(\.|$)"
        r"|dynamo_single\.table\.direct\.|django\.contrib\.(admin|messages|sessions)(\.|$)|cryptography|httptools|boto3"
    )
    assert [name for name in sorted(imported()) if others.match(name)] == []


def test_plain_project_imports_no_translator_of_shaped_tables() -> None:
    """A start imports only the declarations of models, and the order of numbers as strings."""
    found = {name for name in imported() if name.startswith("dynamo_single.table.shaped.")}
    assert found <= {"dynamo_single.table.shaped.declared", "dynamo_single.table.shaped.sortable"}


#: Modules that neither a start nor a first ``get()`` needs: writes, plans and lists, and Django's migrations.
_LATER = re.compile(
    r"dynamo_single\.(backend\.(migration_record|sql_transactions)|costs|permissions|orm\.(write|effects\.(?!django_on_commit)"
    r"|items\.(expiry|form|unique_rules|version|writer)|model\.validation|plan\.(advice|shapes)|query\.(annotate|explain"
    r"|many_to_many)|reading\.(budget|cursors|execute|page|positions|sources)|requests\.explain|results\.(?!state)"
    r"|where\.(comparisons|dates|declared_conditions|secrets|tree)))(\.|$)"
    r"|django\.db\.migrations\.(loader|graph|recorder|executor|autodetector)"
)
_FIRST = """
from project.directory.models import Company
try:
    Company.objects.get(pk="none")
except Company.DoesNotExist:
    pass
print("---")
print(*sys.modules)
print("---")
Company.objects.create(company_id="c1", name="Acme")
print(*sys.modules)
"""


def test_a_start_imports_nothing_that_only_lists_and_writes_need() -> None:
    """Their first use imports them."""
    assert [name for name in sorted(imported()) if _LATER.match(name)] == []


def test_a_first_get_imports_its_connection_alone(table: Table) -> None:
    """And a first creation nothing that deletes, moves or lists."""
    address = urlsplit(table.settings.endpoint_url or "")
    url = f"dynamodb://{address.netloc}/{table.name}?region=eu-west-1"
    source = _SETTINGS.replace("dynamodb:///single-table?region=eu-west-1", url) + _FIRST
    known = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "DJANGO_"))}
    child = subprocess.run(
        [sys.executable, "-"], input=source, cwd=ROOT, env=known, capture_output=True, text=True, check=True
    )
    started, read, written = (set(each.split()) for each in child.stdout.split("---"))
    assert sorted(name for name in read - started if name.startswith("dynamo_single")) == [
        "dynamo_single.orm.items.batch_get",
        "dynamo_single.table.http.connections",
        "dynamo_single.table.http.credentials",
        "dynamo_single.table.http.loop_connections",
    ]
    assert [name for name in sorted(read) if _LATER.match(name)] == []
    deleting = re.compile(r"dynamo_single\.orm\.(write\.(cascade|delete|move|on_delete|trash|bulk)|results\.(?!state))")
    assert [name for name in sorted(written) if deleting.match(name)] == []


def test_a_start_with_the_admin_imports_nothing_of_contrib() -> None:
    """The first use of the site's URLs imports its folders, including the doctor."""
    found = imported(*_ADMIN)
    assert "dynamo_single.admin.sites" in found
    assert [name for name in sorted(found) if re.match(r"dynamo_single\.contrib(\.|$)", name)] == []
