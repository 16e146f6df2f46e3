"""The setting ACCOUNTS: its valid values, and messages of mistakes."""

from __future__ import annotations

from typing import Any

import pytest
from django.apps import apps
from django.conf import settings
from django.core.checks.registry import registry
from django.test import override_settings

from dynamo_single.contrib.accounts.admin import AdminLoginForm
from dynamo_single.contrib.accounts.checks import check_client_address, check_pepper_key, check_phone_sender
from dynamo_single.contrib.accounts.conf import AccountSettings, account_settings
from dynamo_single.contrib.accounts.forms import LoginForm
from dynamo_single.exceptions import ConfigurationError

STRONG = "abcdefghij0123456789" * 3


def test_nothing_has_to_be_set() -> None:
    """Without the setting every key has its default."""
    assert not hasattr(settings, "ACCOUNTS")
    assert account_settings() == AccountSettings()


def test_every_key_can_be_set() -> None:
    """Each key's value is used."""
    values = {
        "LOGIN_WITH": ["email"],
        "UNCONFIRMED_MAY_LOG_IN": True,
        "CONFIRMATION_LIFETIME": 60,
        "LOCKOUT": False,
        "FREE_FAILURES": 1,
        "FIRST_DELAY": 1,
        "LONGEST_DELAY": 2.5,
        "ACCOUNT_FAILURES": 3,
        "ADDRESS_FAILURES": 4,
        "CLIENT_ADDRESS_HEADER": "X-Forwarded-For",
        "TRUSTED_PROXIES": 2,
        "PEPPER_KEY": "pepper",
        "PEPPER_KEY_FALLBACKS": ("former",),
        "PHONE_REGION": "US",
        "PROVIDERS": {"google": None, "github": None, "work": "https://login.example.com"},
        "PHONE_SENDER": "mysite.texts.send",
    }
    with override_settings(ACCOUNTS=values):
        found = account_settings()
    assert {key: getattr(found, key.lower()) for key in values} == {**values, "LOGIN_WITH": ("email",)}
    assert account_settings() == AccountSettings()


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (["email"], "ACCOUNTS must be a dict such as"),
        (
            {"LOGIN": ["email"]},
            r"ACCOUNTS\['LOGIN'\] is not a known key; allowed are ACCOUNT_FAILURES, ADDRESS_FAILURES",
        ),
        (
            {"LOGIN_WITH": []},
            r"ACCOUNTS\['LOGIN_WITH'\] must be a list of some of 'email', 'username', 'phone' and providers, not \[\]",
        ),
        ({"LOGIN_WITH": "email"}, "must be a list of some of 'email', 'username', 'phone' and providers, not 'email'"),
        ({"LOGIN_WITH": ["email", "email"]}, "must be a list of some of 'email'"),
        (
            {"LOGIN_WITH": ["telephone"]},
            "contains 'telephone', but allows only 'email', 'username', 'phone', and the providers",
        ),
        ({"PROVIDERS": {"email": None}}, "must be a dict of names such as 'work' and their issuers"),
        ({"PROVIDERS": {"Work!": None}}, "must be a dict of names such as 'work' and their issuers"),
        ({"PHONE_REGION": "us"}, "must be None or the two letters of a country such as 'US'"),
        ({"PHONE_SENDER": "send"}, "must be None or the path of a function such as 'mysite.sms.send'"),
        ({"LOCKOUT": 1}, r"ACCOUNTS\['LOCKOUT'\] must be True or False, not 1"),
        ({"FREE_FAILURES": 0}, r"ACCOUNTS\['FREE_FAILURES'\] must be a whole number of at least 1, not 0"),
        ({"FREE_FAILURES": True}, "must be a whole number of at least 1, not True"),
        ({"FIRST_DELAY": 0}, "must be a number of seconds above 0, not 0"),
        ({"FIRST_DELAY": float("inf")}, "must be a number of seconds above 0, not inf"),
        ({"FIRST_DELAY": 10, "LONGEST_DELAY": 5}, r"ACCOUNTS\['FIRST_DELAY'\] is 10 seconds, more than"),
        ({"CLIENT_ADDRESS_HEADER": "not a header"}, "must be None or a header's name such as 'X-Forwarded-For'"),
    ],
)
def test_a_mistake_is_refused_at_start_up(value: Any, said: str) -> None:
    """Every mistake raises a ConfigurationError with the key and its valid values."""
    with override_settings(ACCOUNTS=value), pytest.raises(ConfigurationError, match=said):
        apps.get_app_config("dynamo_accounts").ready()


@pytest.mark.parametrize(
    ("allowed", "label"),
    [
        (["email", "username"], "E-mail address or user name"),
        (["username", "email"], "E-mail address or user name"),
        (["email"], "E-mail address"),
        (["username"], "User name"),
    ],
)
@pytest.mark.parametrize("form", [LoginForm, AdminLoginForm])
def test_the_login_forms_ask_for_what_is_allowed(allowed: list[str], label: str, form: Any) -> None:
    """The label names it, and an address of the longest kind fits in."""
    with override_settings(ACCOUNTS={"LOGIN_WITH": allowed}):
        field = form().fields["username"]
    assert field.label == label
    assert field.widget.attrs["maxlength"] == 254


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, ["accounts.W001"]),
        ({"TRUSTED_PROXIES": 2}, ["accounts.W001"]),
        ({"CLIENT_ADDRESS_HEADER": None}, []),
        ({"CLIENT_ADDRESS_HEADER": "X-Forwarded-For"}, []),
        ({"LOCKOUT": False}, ["accounts.W001"]),
        ({"LOCKOUT": False, "MAILS_PER_CLIENT": None}, []),
    ],
)
def test_a_deployment_has_to_say_whose_address_the_connections_is(values: Any, expected: list[str]) -> None:
    """Only ``check --deploy`` reports W001, until the setting states whether there is a proxy."""
    with override_settings(ACCOUNTS=values):
        assert [message.id for message in check_client_address()] == expected
    assert check_client_address not in registry.get_checks()
    assert check_client_address in registry.get_checks(include_deployment_checks=True)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, []),
        ({"LOGIN_WITH": ["email", "phone"]}, ["accounts.W003"]),
        ({"LOGIN_WITH": ["email", "phone"], "PHONE_SENDER": "mysite.texts.send"}, []),
        ({"PHONE_SENDER": None}, []),
    ],
)
def test_numbers_that_nobody_can_confirm_are_reported(values: Any, expected: list[str]) -> None:
    """Every ``check`` reports W003: the page that adds a number does not exist."""
    with override_settings(ACCOUNTS=values):
        assert [message.id for message in check_phone_sender()] == expected
    assert check_phone_sender in registry.get_checks()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, []),
        ({"PEPPER_KEY": STRONG}, []),
        ({"PEPPER_KEY": "short"}, ["accounts.W004"]),
        ({"PEPPER_KEY": "ab" * 40}, ["accounts.W004"]),
        ({"PEPPER_KEY": f"django-insecure-{STRONG}"}, ["accounts.W004"]),
        ({"PEPPER_KEY": STRONG, "PEPPER_KEY_FALLBACKS": [STRONG, "short"]}, ["accounts.W004"]),
        ({"PEPPER_KEY": "short", "PEPPER_KEY_FALLBACKS": ["short"]}, ["accounts.W004"] * 2),
        ({"PEPPER_KEY": "short", "SECRETS": {}}, []),
    ],
)
def test_weak_pepper_keys_are_reported(values: Any, expected: list[str]) -> None:
    """``check --deploy`` reports W004 without the key."""
    with override_settings(ACCOUNTS={"LOGIN_WITH": ["username"], "SECRETS": {"username": 6}, **values}):
        found = check_pepper_key()
    assert [message.id for message in found] == expected
    assert "short" not in str(found).replace("shorter", "").replace("short secrets", "")
    assert check_pepper_key in registry.get_checks(include_deployment_checks=True)


@pytest.mark.parametrize(
    "values",
    [
        {"PEPPER_KEY": ""},
        {"PEPPER_KEY": 4711},
        {"PEPPER_KEY_FALLBACKS": "4711"},
        {"PEPPER_KEY_FALLBACKS": ["4711", ""]},
    ],
)
def test_wrong_pepper_key_is_named_not_repeated(values: Any) -> None:
    with override_settings(ACCOUNTS=values), pytest.raises(ConfigurationError, match="PEPPER_KEY") as raised:
        account_settings()
    assert "4711" not in str(raised.value)


def test_reports_of_errors_show_no_pepper_key() -> None:
    with override_settings(ACCOUNTS={"PEPPER_KEY": STRONG}):
        assert STRONG not in repr(account_settings())
