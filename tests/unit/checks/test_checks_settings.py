"""``check`` finds mistakes in Django's own settings before a request does."""

from __future__ import annotations

from typing import Any

import pytest
from django.apps import apps
from django.db import connections
from django.test import override_settings

from dynamo_single import models
from dynamo_single.checks import settings as checks
from dynamo_single.checks.admin import check_backends
from dynamo_single.orm.model import metaclass
from tests.unit.declaring import declare, forgotten


def told(found: Any) -> list[tuple[str, str]]:
    """The id of each message, and the message."""
    return [(message.id, message.msg) for message in found]


def test_the_settings_of_the_project_are_right() -> None:
    """The demo's user and sessions are in DynamoDB."""
    assert [*checks.check_user_model(), *checks.check_names(), *checks.check_session_engine()] == []


def test_a_user_for_sql_without_sql_is_told() -> None:
    """W902 names the model."""
    with override_settings(AUTH_USER_MODEL="auth.User"):
        ((identifier, message),) = told(checks.check_user_model())
    assert (identifier, message.partition(",")[0]) == ("dynamo_single.W902", "AUTH_USER_MODEL is auth.User")


def test_a_user_for_sql_is_right_where_nobody_logs_in() -> None:
    """A project may have Django's users installed for another app's sake."""
    installed_apps = ["django.contrib.auth", "django.contrib.contenttypes", "dynamo_single"]
    # Apps are loaded with the settings outside the block.
    with (
        override_settings(AUTH_USER_MODEL="auth.User", MIDDLEWARE=[]),
        override_settings(INSTALLED_APPS=installed_apps),
    ):
        assert checks.check_user_model() == []


def test_a_user_model_without_what_a_login_needs_is_told() -> None:
    """E019 lists what is missing."""
    with forgotten():
        declare(
            "Halfway",
            ("HALF#{name}", "#METADATA"),
            name=models.UnicodeAttribute(unique=True),
            REQUIRED_FIELDS=[],
            USERNAME_FIELD="name",
            check_password=lambda self, raw: True,
        )
        with override_settings(AUTH_USER_MODEL="catalog.Halfway"):
            assert told(checks.check_user_model()) == [
                (
                    "dynamo_single.E019",
                    "AUTH_USER_MODEL is catalog.Halfway, which lacks what a login needs: set_password, "
                    "get_session_auth_hash, get_username, is_active, objects.get_by_natural_key.",
                )
            ]


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("dynamo_single.session", "No module named 'dynamo_single.session'"),
        ("dynamo_single.models", 'Module "dynamo_single.models" does not define a "SessionStore" attribute/class'),
        ("nope", "No module named 'nope'"),
    ],
)
def test_a_session_engine_that_is_not_there_is_told(path: str, reason: str) -> None:
    """E020 contains the reason for the failed import; the check for SQL does not add anything."""
    with override_settings(SESSION_ENGINE=path):
        expected = f"SESSION_ENGINE names {path!r}, which cannot be imported: {reason}."
        assert told(checks.check_names()) == [("dynamo_single.E020", expected)]
        assert checks.check_session_engine() == []


@pytest.mark.parametrize("path", ["nope.Backend", "dynamo_single.contrib.accounts.backends.Nothing"])
def test_a_login_backend_that_is_not_there_is_told(path: str) -> None:
    """E020 reports it, and the check for permissions in SQL does not fail."""
    with override_settings(AUTHENTICATION_BACKENDS=[path]):
        assert [identifier for identifier, _ in told(checks.check_names())] == ["dynamo_single.E020"]
        assert check_backends() == []


@pytest.mark.parametrize("name", ["db", "cached_db"])
def test_sessions_in_sql_without_sql_are_told(name: str) -> None:
    """W903 names the setting."""
    with override_settings(SESSION_ENGINE=f"django.contrib.sessions.backends.{name}"):
        (message,) = checks.check_session_engine()
    assert (message.id, message.hint) == ("dynamo_single.W903", "Set SESSION_ENGINE = 'dynamo_single.sessions'.")


@pytest.mark.parametrize("name", ["cache", "file", "signed_cookies"])
def test_sessions_elsewhere_are_right(name: str) -> None:
    """Engines without a database work without SQL."""
    with override_settings(SESSION_ENGINE=f"django.contrib.sessions.backends.{name}"):
        assert [*checks.check_session_engine(), *checks.check_names()] == []


def test_models_of_an_app_that_is_not_installed_are_told() -> None:
    """E021 comes from the models, for the app's own start does not happen."""
    assert metaclass.check_installed() == []
    without = [config.name for config in apps.get_app_configs() if config.name != "dynamo_single"]
    with override_settings(INSTALLED_APPS=without):
        assert [identifier for identifier, _ in told(metaclass.check_installed())] == ["dynamo_single.E021"]


def test_no_database_at_all_is_told_with_the_engine_to_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """W913: Django's replacement for an empty DATABASES does not support transactions."""
    assert checks.check_database() == []
    monkeypatch.setitem(connections.settings, "default", {"ENGINE": "django.db.backends.dummy"})
    (message,) = checks.check_database()
    assert (message.id, message.hint) == (
        "dynamo_single.W913",
        'For a project without SQL, set DATABASES = {"default": {"ENGINE": "dynamo_single.backend"}}.',
    )
