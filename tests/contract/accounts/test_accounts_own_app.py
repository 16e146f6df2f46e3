"""The models of accounts in an app of the project, and in the ready one: on a table that has items already.

Only the package is importable here, so ``startapp accounts`` finds the name free.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import dynamo_single
from dynamo_single.table import Request, Table
from tests.docs import pages
from tests.docs.pages import ROOT

#: Items of version 0.1.0, when ``accounts`` was a package next to ``dynamo_single``.
STORED = Path(__file__).parent / "stored_before.json"
PAGE = ROOT / "docs/how-to/own-user-model.md"
#: Variables that the environment of a user does not have.
OF_TESTS = ("DJANGO_", "DYNAMO_", "PYTEST_")

SETTINGS = """
import os

SECRET_KEY = "a-key-that-only-tests-have"
DATABASES = {"default": {"ENGINE": "dynamo_single.backend"}}
DYNAMO_SINGLE = {"default": os.environ["DYNAMO_URL"]}
USERS = os.environ["USERS"].split(",")
INSTALLED_APPS = [
    *("dynamo_single.admin.apps.DynamoAdminConfig", "django.contrib.auth", "django.contrib.contenttypes"),
    *("django.contrib.messages", "dynamo_single", *filter(None, USERS)),
]
AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = ["dynamo_single.contrib.accounts.backends.EmailOrUsernameBackend"]
SESSION_ENGINE = "dynamo_single.sessions"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
ACCOUNTS = {
    "LOGIN_WITH": ["email", "username", "phone", "google"], "PHONE_SENDER": "builtins.print", "SECRETS": {"phone": 6},
}
PROCESSORS = ["django.template.context_processors.request"]
PROCESSORS += [f"django.contrib.{each}.context_processors.{each}" for each in ("auth", "messages")]
TEMPLATES = [{
    "BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True,
    "OPTIONS": {"context_processors": PROCESSORS},
}]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
USE_TZ = True
"""

#: A script for a process that prints the stored items.
READING = """
import json
import sys

import django

django.setup()
from django.apps import apps
from django.contrib.auth import authenticate
from django.core.management import call_command
from django.template.loader import get_template
from django.test import RequestFactory

for line in sys.argv[1:]:
    call_command(*line.split(), verbosity=0)

User = apps.get_model("accounts.User")
ann, request = User.objects.get(pk="1"), RequestFactory().get("/")
typed = {"Ann": "a-good-password", "more@example.com": "a-good-password", "+15550100": "471100"}
counters = [apps.get_model("accounts", name) for name in ("LoginFailures", "MailsAsked")]
print(json.dumps({
    "module": User.__module__,
    "page": get_template("accounts/base.html").origin.name,
    "authenticated": [authenticate(request, username=key, password=typed[key]) == ann for key in typed],
    "identity": User.objects.get_by_identity("google", "1234") == ann,
    "logins": sorted(ann.logins.values_list("kind", flat=True)),
    "groups": [group.name for group in ann.groups.all()],
    "members": [user.pk for user in ann.groups.get().user_set.all()],
    "permissions": sorted(ann.get_all_permissions()),
    "counted": [[*model.objects.allow_scan().values_list("scope", flat=True)] != [] for model in counters],
}))
ann.first_name = "Ann"
ann.save()
"""

FOUND = {
    "authenticated": [True, True, True],
    "identity": True,
    "logins": ["EMAIL", "EMAIL", "GOOGLE", "PHONE", "USERNAME"],
    "groups": ["Packers"],
    "members": ["1"],
    "permissions": ["accounts.view_login", "accounts.view_user"],
    "counted": [True, True],
}


class Project:
    """A project that finds the package alone, on a table with the items of before."""

    def __init__(self, folder: Path, table: Table) -> None:
        self.folder = folder
        (folder / "installed").mkdir()
        (folder / "installed" / "dynamo_single").symlink_to(Path(dynamo_single.__file__).parent)
        (folder / "mysite.py").write_text(SETTINGS)
        (folder / "reading.py").write_text(READING)
        address = str(table.settings.endpoint_url).removeprefix("http://")
        self.url = f"dynamodb://{address}/{table.name}?region=us-east-1"
        for item in json.loads(STORED.read_text()):
            table.send(Request("PutItem", {"Item": item}))

    def run(self, users: str, *arguments: str) -> str:
        """Run Python with the given user apps in addition to ``dynamo_single``."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(OF_TESTS)}
        ended = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.folder,
            env=inherited
            | {
                "DJANGO_SETTINGS_MODULE": "mysite",
                "DYNAMO_URL": self.url,
                "PYTHONDONTWRITEBYTECODE": "1",
                "PYTHONPATH": str(self.folder / "installed"),
                "USERS": users,
            },
            capture_output=True,
            text=True,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout + ended.stderr

    def read(self, users: str, *commands: str) -> dict[str, object]:
        """Run commands, and return what a process then reads of the items."""
        found: dict[str, object] = json.loads(self.run(users, "reading.py", *commands).splitlines()[-1])
        return found

    def write_page(self) -> None:
        """Write the files that the page shows."""
        for block in pages.blocks(PAGE):
            if block.path.startswith("accounts/"):
                (self.folder / block.path).write_text(block.text)


@pytest.fixture
def project(tmp_path: Path, table: Table) -> Project:
    """A project without an app of users."""
    return Project(tmp_path, table)


READY = "dynamo_single.contrib.accounts.ready,dynamo_single.contrib.accounts"
OWN = "accounts,dynamo_single.contrib.accounts"


def test_ready_app_reads_stored_items(project: Project) -> None:
    """Before ``migrate`` and after it, with the models of the package."""
    page = "installed/dynamo_single/contrib/accounts/templates/accounts/base.html"
    found = {**FOUND, "module": "dynamo_single.contrib.accounts.ready.models", "page": str(project.folder / page)}
    for commands in ([], ["check --database=default --fail-level=WARNING", "migrate", "dynamo_verify"]):
        assert project.read(READY, *commands) == found


def test_own_app_takes_over_stored_items(project: Project) -> None:
    """``startapp`` and the page create an app that reads the items before and after its migrations are applied."""
    with pytest.raises(AssertionError, match="would be written into the installed package"):
        project.run(READY, "-m", "django", "makemigrations", "accounts")
    project.run(READY, "-m", "django", "startapp", "accounts")
    project.write_page()
    page = project.folder / "accounts" / "templates" / "accounts" / "base.html"
    page.parent.mkdir(parents=True)
    page.touch()
    found = {**FOUND, "module": "accounts.models", "page": str(page)}
    assert project.read(OWN) == found
    assert "Add model User, stored as User" in project.run(OWN, "-m", "django", "makemigrations", "accounts")
    assert project.read(OWN, "migrate --fake-initial", "dynamo_verify", "makemigrations --check") == found


@pytest.mark.parametrize(
    ("users", "removed", "expected"),
    [
        ("accounts", "", "accounts.E001"),
        (OWN, "class Identity(base.AbstractIdentity):\n    pass\n", "lacks a part of its users: class Identity("),
        (OWN, '    groups = Groups("Membership")\n', "lacks a part of its users: User.groups = Groups("),
    ],
)
def test_check_reports_incomplete_app(project: Project, users: str, removed: str, expected: str) -> None:
    """The check reports missing pages, and missing models or relations of users."""
    (project.folder / "accounts").mkdir()
    project.write_page()
    models = project.folder / "accounts" / "models.py"
    assert removed in models.read_text()
    models.write_text(models.read_text().replace(removed, "") if removed else models.read_text())
    with pytest.raises(AssertionError, match=r"SystemCheckError") as raised:
        project.run(users, "-m", "django", "check")
    assert expected in str(raised.value)
