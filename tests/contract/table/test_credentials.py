"""Without credentials, no request is sent, and the error explains how to provide them, on both request paths."""

from __future__ import annotations

import os
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from django.test import override_settings

from dynamo_single.exceptions import AccessDenied
from dynamo_single.table import Request
from tests.contract.table.test_transports import Transport, transport

__all__ = ["transport"]

GET = Request("GetItem", {"Key": {"pk": {"S": "a"}, "sk": {"S": "b"}}})
CONFIG = """
[profile expired]
sso_start_url = https://sso.invalid
sso_region = eu-west-1
sso_account_id = 1
sso_role_name = reader

[profile failing]
credential_process = false
"""
AWS: dict[str, Any] = {"TABLE_NAME": "orders", "REGION": "eu-west-1"}
#: Clients are cached by their settings, and no other test uses these timeouts.
LIMITS = count(1000)
ELSEWHERE = {**AWS, "ENDPOINT_URL": "http://dynamodb.invalid:8000"}
HERE = {**AWS, "ENDPOINT_URL": "http://127.0.0.1:1"}


@pytest.fixture(autouse=True)
def _no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Remove all credentials of the machine."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    (tmp_path / "config").write_text(CONFIG)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def refused(transport: Transport, settings: dict[str, Any]) -> str:
    """Return the message of a request's error."""
    declared = {**settings, "TRANSPORT": transport.name, "CONNECT_TIMEOUT": next(LIMITS), "MAX_ATTEMPTS": 1}
    with override_settings(DYNAMO_SINGLE={"default": declared}), pytest.raises(AccessDenied) as raised:
        transport.send(GET)
    return str(raised.value)


def test_what_lacks_is_said_with_the_ways_to_give_it(transport: Transport) -> None:
    """AWS did not reject the request, which was not sent."""
    assert refused(transport, AWS) == (
        "There are no credentials for AWS eu-west-1, so GetItem on 'orders' was not sent. Give the machine a role, or "
        "set the environment variable AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY. To use a local "
        "engine, set its address in DYNAMO_SINGLE['default']['ENDPOINT_URL']. (Unable to locate credentials)"
    )


@pytest.mark.parametrize(
    ("settings", "way_out"),
    [
        (ELSEWHERE, "If your own engine does not check them, set the last two to any text."),
        (HERE, "An engine on this machine does not need any, unless the environment sets some."),
    ],
    ids=["elsewhere", "here"],
)
def test_an_engine_of_ones_own_has_a_way_out_of_its_own(
    transport: Transport,
    settings: dict[str, Any],
    way_out: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An engine in another container needs credentials, and a local one only if the environment has some."""
    monkeypatch.setenv("AWS_PROFILE", "missing")
    assert way_out in refused(transport, settings)


@pytest.mark.parametrize(
    ("environment", "cause"),
    [
        ({"AWS_PROFILE": "missing"}, "The config profile (missing) could not be found"),
        ({"AWS_ACCESS_KEY_ID": "x"}, "Partial credentials found in env, missing: AWS_SECRET_ACCESS_KEY"),
        ({"AWS_PROFILE": "expired"}, "Token for https://sso.invalid does not exist"),
        ({"AWS_PROFILE": "failing"}, "Error when retrieving credentials from custom-process"),
    ],
    ids=["no profile", "half of them", "logged out", "failing process"],
)
def test_credentials_that_cannot_be_had_are_named(
    transport: Transport,
    environment: dict[str, str],
    cause: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The message ends with botocore's own text."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    message = refused(transport, AWS)
    assert message.startswith("There are no credentials for AWS eu-west-1, so GetItem on 'orders' was not sent.")
    assert cause in message
