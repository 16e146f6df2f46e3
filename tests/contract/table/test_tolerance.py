"""Dated reads measure the tolerance of signatures on both request paths."""

from __future__ import annotations

import os
import time
from unittest import mock

import pytest
from msgspec.structs import replace

from dynamo_single.exceptions import TableNotFound
from dynamo_single.orm.rollout.tolerance import AGES, accepted_ages, tolerance_of
from dynamo_single.table import Table, get_table
from dynamo_single.testing import capture_requests
from tests.contract.table.test_strict import KEYED, SECRETS, on
from tests.contract.table.test_transports import Transport
from tests.strict import IS_STRICT, Received, Refused, in_front_of

# Strict servers in front of one another would take each other's Host for a wrong one.
pytestmark = pytest.mark.skipif(IS_STRICT, reason="the engine has a strict server in front of it")


@pytest.fixture(params=["direct", "botocore"])
def transport(request: pytest.FixtureRequest) -> Transport:
    """Each request path."""
    return Transport(request.param)


@pytest.mark.parametrize(
    ("accepted_for", "accepted", "tolerance"),
    [(300.0, 2, 300.0), (900.0, 4, 900.0), (600.0, 3, None), (250.0, 1, None), (100.0, 0, None), (1e6, 5, None)],
)
def test_tolerance_is_measured(
    transport: Transport, table: Table, accepted_for: float, accepted: int, tolerance: float | None
) -> None:
    """A tolerance that is neither 300 nor 900 seconds does not fence."""
    with in_front_of(on(transport, table), tolerance=accepted_for), capture_requests() as sent:
        ages = accepted_ages(get_table())
    assert ages == AGES[:accepted]
    assert tolerance_of(ages) == tolerance
    assert [each.operation for each in sent] == ["GetItem"] * 6
    assert get_table().is_fenced


def test_wrong_clock_does_not_matter(table: Table) -> None:
    """The direct request path has learned the server's time by the first request."""
    with in_front_of(table, ahead=1200):
        assert tolerance_of(accepted_ages(get_table())) == 300


def test_token_younger_than_date_does_not_fence(transport: Transport, table: Table) -> None:
    """A server may then reject all dates before the token's issue."""

    def refuse(request: Received) -> None:
        headers = dict(request.headers)
        if headers["x-amz-date"] < server.stamp(-60):
            raise Refused("UnrecognizedClientException", "The security token included in the request is invalid.")

    environment = {**KEYED, "AWS_SESSION_TOKEN": "a/temporary+token=="}
    with mock.patch.dict(os.environ, environment), in_front_of(on(transport, table)) as server:
        server.secrets, server.tokens = dict(SECRETS), {"AKIDEXAMPLE": "a/temporary+token=="}
        server.arrived = refuse
        ages = accepted_ages(get_table())
    assert (ages, tolerance_of(ages)) == ((), None)


def test_slow_rejection_is_repeated(table: Table) -> None:
    """The machine may have been suspended between the date and the request."""

    def suspend(request: Received) -> None:
        if dict(request.headers)["x-amz-date"] < server.stamp(-280):
            server.arrived = lambda request: None
            time.sleep(0.2)
            raise Refused("InvalidSignatureException", "Signature expired")

    with in_front_of(table) as server, mock.patch("dynamo_single.orm.rollout.tolerance._SLOW", 0.2):
        server.arrived = suspend
        assert tolerance_of(accepted_ages(get_table())) == 300


def test_missing_table_is_not_measured(table: Table) -> None:
    """Its error is that of every other request."""
    with pytest.raises(TableNotFound):
        accepted_ages(Table(replace(table.settings, table_name="another")))
