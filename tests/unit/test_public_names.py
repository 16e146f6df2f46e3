"""A project's imports and settings keep working when the code behind them moves."""

from __future__ import annotations

import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
from django.core.management import get_commands
from django.template.loader import get_template
from django.utils.module_loading import import_string

ROOT = Path(__file__).resolve().parents[2]
#: A line for each public module, with its names.
LINES = [line.split(": ") for line in (Path(__file__).parent / "public_names.txt").read_text().splitlines()]
NAMES = dict(LINES)

SETTINGS = [
    "dynamo_single.admin.apps.DynamoAdminConfig",
    "dynamo_single.apps.DynamoSingleConfig",
    "dynamo_single.authorship.CurrentUserMiddleware",
    "dynamo_single.backend.base.DatabaseWrapper",
    "dynamo_single.cache.DynamoCache",
    "dynamo_single.cached_sessions.SessionStore",
    "dynamo_single.middleware.RequestCostMiddleware",
    "dynamo_single.middleware.UnavailableMiddleware",
    "dynamo_single.sessions.SessionStore",
    "dynamo_single.contrib.accounts.apps.AccountsConfig",
    "dynamo_single.contrib.accounts.backends.EmailOrUsernameBackend",
    "dynamo_single.contrib.accounts.ready.apps.AccountsConfig",
    "dynamo_single.contrib.accounts.urls.urlpatterns",
]
COMMANDS = [
    "dynamo_local",
    "dynamo_patterns",
    "dynamo_rebuild",
    "dynamo_setup",
    "dynamo_shards",
    "dynamo_status",
    "dynamo_verify",
    "dumpdata",
    "loaddata",
    "makemigrations",
    "migrate",
    "test",
]
TEMPLATES = [
    "dynamo_single/admin/change_form.html",
    "dynamo_single/admin/delete.html",
    "dynamo_single/admin/delete_selected.html",
    "dynamo_single/admin/in_trash.html",
    "dynamo_single/admin/job.html",
    "dynamo_single/admin/log.html",
    "dynamo_single/admin/table/base.html",
    "dynamo_single/admin/table/costs.html",
    "dynamo_single/admin/table/health.html",
    "dynamo_single/admin/table/item.html",
    "dynamo_single/admin/table/partition.html",
    "dynamo_single/admin/table/patterns.html",
    "dynamo_single/admin/table/patterns.svg",
    "dynamo_single/admin/unanswered.html",
    "dynamo_single/admin/unavailable.html",
    "dynamo_single/unavailable.html",
    "accounts/account.html",
    "accounts/base.html",
    "accounts/confirm_email.html",
    "accounts/confirm_email_done.html",
    "accounts/email_change.html",
    "accounts/form.html",
    "accounts/logged_out.html",
    "accounts/login.html",
    "accounts/mail/address_changed.txt",
    "accounts/mail/address_changed_subject.txt",
    "accounts/mail/address_taken.txt",
    "accounts/mail/address_taken_subject.txt",
    "accounts/mail/confirm.txt",
    "accounts/mail/confirm_subject.txt",
    "accounts/mail/password_reset.txt",
    "accounts/mail/password_reset_subject.txt",
    "accounts/mail_sent.html",
    "accounts/password_change.html",
    "accounts/password_change_done.html",
    "accounts/password_reset.html",
    "accounts/password_reset_complete.html",
    "accounts/password_reset_confirm.html",
    "accounts/password_reset_done.html",
    "accounts/send_again.html",
    "accounts/sign_up.html",
]
CHECKS = {
    *(f"dynamo_single.E0{number:02}" for number in range(1, 25)),
    "dynamo_single.E030",
    *(f"dynamo_single.W90{number}" for number in range(1, 10) if number != 7),
    "dynamo_single.W910",
    "dynamo_single.W911",
    "dynamo_single.W912",
    "dynamo_single.W913",
    "dynamo_single.W914",
    "dynamo_single.W916",
    "dynamo_single.W917",
    "dynamo_single.W918",
    "dynamo_single.W919",
    "dynamo_single.W920",
    "dynamo_single.E031",
    "dynamo_single.E032",
    "dynamo_single.E033",
    "dynamo_single.E034",
    "dynamo_single.E035",
    "dynamo_single.E036",
    "dynamo_single.E037",
    "dynamo_single.E045",
    "dynamo_single.E046",
    "dynamo_single.E047",
    "dynamo_single.E048",
    "accounts.E001",
    "accounts.E002",
    "accounts.W001",
    "accounts.W002",
    "accounts.W003",
    "accounts.W004",
}


def test_a_public_module_has_one_line() -> None:
    """No line hides another's names, as two of one module would after a merge."""
    assert [module for module, _ in LINES] == [*NAMES]


@pytest.mark.parametrize("module", NAMES)
def test_a_public_module_has_its_names(module: str) -> None:
    """Each name stays importable from its module."""
    if module.startswith("dynamo_single.contrib.tasks") and find_spec("django.tasks") is None:
        pytest.skip("Django has tasks since 6.0.")
    if module.startswith("dynamo_single.contrib.ninja"):
        pytest.importorskip("ninja", reason="tests/packages imports it.")
    found = import_module(module)
    assert [name for name in NAMES[module].split() if not hasattr(found, name)] == []


@pytest.mark.parametrize("path", SETTINGS)
def test_a_string_of_the_settings_leads_to_something(path: str) -> None:
    """The target of each string in settings exists."""
    assert import_string(path)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_this_apps(command: str) -> None:
    """``manage.py`` finds the command in this app."""
    assert get_commands()[command] == "dynamo_single"


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_can_be_loaded(name: str) -> None:
    """A project that overrides the template overrides something."""
    assert get_template(name)


def test_the_ids_of_the_checks_stay() -> None:
    """``SILENCED_SYSTEM_CHECKS`` may contain each of them; add new ones here."""
    given = set()
    for path in (ROOT / "dynamo_single").rglob("*.py"):
        for prefix, number in re.findall(r'"(dynamo_single\.|accounts\.)?([EW]\d{3})"', path.read_text()):
            given.add(f"{prefix or 'dynamo_single.'}{number}")
    assert given == CHECKS
