"""Expiring credentials are renewed on botocore's schedule, including renewals by other clients."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Any

import pytest
from botocore.credentials import Credentials, RefreshableCredentials

from dynamo_single.table import flow
from dynamo_single.table.deadlines import Deadline
from dynamo_single.table.http.connections import Endpoint
from dynamo_single.table.http.credentials import _Found
from dynamo_single.table.http.retries import Failure
from dynamo_single.table.transport import DirectClient
from tests.contract.table.scripted import Scripted, scripted

KEY = {"TableName": "single-table", "Key": {"pk": {"S": "a"}, "sk": {"S": "b"}}}
LONG, DUE = timedelta(hours=6), timedelta(minutes=5)


class Role:
    """Credentials of a role that AWS gives for some time; each renewal has another key."""

    def __init__(self, *lifetimes: timedelta) -> None:
        self._lifetimes = iter(lifetimes)
        self.renewals = 0
        self.found = RefreshableCredentials.create_from_metadata(self._given(), self._given, "test")

    def _given(self) -> dict[str, str]:
        self.renewals += 1
        return {
            "access_key": f"ROLE{self.renewals}",
            "secret_key": "not/a+secret",
            "token": "not a token",
            "expiry_time": (datetime.now(UTC) + next(self._lifetimes)).isoformat(),
        }


@pytest.fixture
def server() -> Iterator[Scripted]:
    """Return a server that responds to every request."""
    with scripted() as running:
        yield running


def client_of(server: Scripted, found: Any) -> DirectClient:
    """Return a client for the server with botocore's credentials."""
    url = f"http://127.0.0.1:{server.port}"
    endpoint = Endpoint("127.0.0.1", server.port, url, None, 5, 5, authority=f"127.0.0.1:{server.port}")
    return DirectClient(endpoint, "us-east-1", _Found(found), max_attempts=1, pool_size=2, user_agent="tests")


def send(client: DirectClient, *, awaited: bool = False) -> None:
    """Send one request, and close the connection."""
    deadline = Deadline(monotonic() + 20, "")
    if awaited:
        asyncio.run(client.send("GetItem", KEY, deadline))
    else:
        flow.run(client.send("GetItem", KEY, deadline))
    client.close()


def signers(server: Scripted) -> list[str]:
    """Whose signature each request had."""
    return [headers["authorization"].partition("Credential=")[2].partition("/")[0] for headers, _ in server.requests]


@pytest.mark.parametrize("awaited", [False, True], ids=["in a thread", "awaited"])
def test_credentials_that_are_due_are_renewed(server: Scripted, awaited: bool) -> None:
    """The first ones end in five minutes, and botocore renews within the last fifteen."""
    client = client_of(server, Role(DUE, LONG).found)
    send(client, awaited=awaited)
    send(client, awaited=awaited)
    assert signers(server) == ["ROLE2", "ROLE2"]


def test_request_follows_a_rotation(server: Scripted) -> None:
    """Expired credentials are not used."""
    role = Role(LONG, LONG)
    client = client_of(server, role.found)
    send(client)
    role.found._expiry_time = datetime.now(UTC) + DUE  # type: ignore[attr-defined]
    send(client)
    assert signers(server) == ["ROLE1", "ROLE2"]


def test_renewal_by_botocores_client_is_seen(server: Scripted) -> None:
    """The client shares its session: after its renewal, the old credentials expire soon here."""
    role = Role(LONG, LONG)
    client = client_of(server, role.found)
    send(client)
    role.found._expiry_time = datetime.now(UTC) + DUE  # type: ignore[attr-defined]
    role.found.get_frozen_credentials()
    send(client)
    assert signers(server) == ["ROLE1", "ROLE2"]


def test_success_earns_quota_after_a_failure(server: Scripted) -> None:
    """A request at the first attempt gives one unit back, as botocore has it, once something was spent."""
    client = client_of(server, Credentials("ENVIRONMENT", "not/a+secret"))
    client.quota.spend(Failure())
    before = client.quota.left
    send(client)
    assert client.quota.left == before + 1


def test_unchanging_credentials_are_asked_for_once(server: Scripted) -> None:
    """This applies to credentials from the environment or a profile."""
    client = client_of(server, Credentials("ENVIRONMENT", "not/a+secret"))
    source, asked = client._credentials, []
    current = source.current
    source.current = lambda: asked.append(1) or current()  # type: ignore[method-assign, func-returns-value]
    send(client)
    send(client)
    assert (signers(server), len(asked)) == (["ENVIRONMENT"] * 2, 1)
