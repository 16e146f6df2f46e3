"""Leased requests have the date of their deadline on both request paths, and are never resent with a later one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from threading import Thread
from typing import Any
from unittest import mock

import pytest
from msgspec.structs import replace

from dynamo_single.conf.shapes import BY_ID
from dynamo_single.exceptions import AccessDenied, Expired, OutcomeUnknown, RequestFailed, Superseded
from dynamo_single.table import Request, Table, batches, flow, get_table
from dynamo_single.table import lease as leases
from dynamo_single.table.lease import Lease
from dynamo_single.table.request import Parameters, Response
from dynamo_single.table.table import MAX_WRONGFUL
from dynamo_single.testing import capture_requests, intercept, refusal
from tests.contract.table.test_strict import GET, KEY, PUT, on, requests
from tests.contract.table.test_transports import Transport, hardly_any_pause, transport
from tests.strict import IS_STRICT, Received, Strict, in_front_of

__all__ = ["hardly_any_pause", "transport"]

# Strict servers in front of one another would take each other's Host for a wrong one.
pytestmark = pytest.mark.skipif(IS_STRICT, reason="the engine has a strict server in front of it")

#: The difference of the server's clock from the client's, and its tolerance for signatures, in seconds.
SERVERS = pytest.mark.parametrize(("ahead", "tolerance"), [(0.0, 300.0), (1200.0, 900.0), (-1200.0, 300.0)])


@pytest.fixture
def server(transport: Transport, table: Table) -> Iterator[Strict]:
    """A strict server in front of the engine, reached by the request path."""
    with in_front_of(on(transport, table)) as found:
        yield found


def under(server: Strict, left: float, *, request: Request = GET, tolerance: float | None = 300) -> Request:
    """A request under a lease that ends in some seconds by the server's clock."""
    return Request(request.operation, request.params, Lease(1, server.now() + left, tolerance))


def lose_first(server: Strict) -> None:
    """Execute the first request, and close its connection without a response."""

    def lose(request: Received) -> None:
        server.executed = lambda request: None
        raise ConnectionResetError

    server.executed = lose


@SERVERS
def test_each_request_of_a_valid_lease_is_accepted(
    transport: Transport, server: Strict, table: Table, ahead: float, tolerance: float
) -> None:
    """The client's clock does not matter."""
    server.ahead, server.tolerance = ahead, tolerance
    for request in requests(table):
        transport.send(under(server, 30, request=request, tolerance=tolerance))
    assert (server.refused, len(server.taken)) == ([], 14)


@SERVERS
def test_each_request_of_an_ended_lease_expires(
    transport: Transport, server: Strict, table: Table, ahead: float, tolerance: float
) -> None:
    """The request fails after a single unexecuted attempt."""
    server.ahead, server.tolerance = ahead, tolerance
    number = 0
    for number, request in enumerate(requests(table), 1):
        with pytest.raises(Expired, match="Signature expired") as raised:
            transport.send(under(server, -2, request=request, tolerance=tolerance))
        assert not raised.value.is_wrongful
        assert len(server.refused) == number
    assert server.taken == []


def test_lease_without_tolerance_is_dated_by_the_clock(transport: Transport, server: Strict) -> None:
    """Such a process has no fence."""
    transport.send(under(server, -3600, tolerance=None))
    assert server.refused == []


def test_renewal_extends_a_block(transport: Transport, server: Strict) -> None:
    """An hour later by the server's clock."""
    request = under(server, 30)
    transport.send(request)
    server.ahead = 3600
    with pytest.raises(Expired):
        transport.send(request)
    assert request.lease is not None
    request.lease.deadline = server.now() + 30
    transport.send(request)


def test_renewal_between_attempts_dates_the_next_one(transport: Transport, server: Strict) -> None:
    """Each attempt reads the date."""
    request = under(server, 30)

    def lose(received: Received) -> None:
        assert request.lease is not None
        server.executed = lambda request: None
        server.ahead = 3600
        request.lease.deadline = server.now() + 30
        raise ConnectionResetError

    server.executed = lose
    transport.send(request)
    assert (len(server.taken), server.refused) == (2, [])


def test_closed_lease_sends_nothing(transport: Transport, server: Strict) -> None:
    """The operation begins again."""
    request = under(server, 30)
    assert request.lease is not None
    request.lease.close()
    with capture_requests() as sent, pytest.raises(Superseded, match="Nothing was written"):
        transport.send(request)
    assert (sent, server.taken, request.lease.under_way) == ([], [], {})


def test_request_under_way_keeps_lease_busy(transport: Transport, server: Strict) -> None:
    """Closing it does not interrupt the request."""
    request = under(server, 30, request=PUT)
    seen: list[bool] = []

    def close(received: Received) -> None:
        assert request.lease is not None
        request.lease.close()
        seen.append(request.lease.is_idle)

    server.executed = close
    transport.send(request)
    assert request.lease is not None
    assert (seen, request.lease.is_idle) == ([False], True)


def test_lost_response_keeps_lease_busy(transport: Transport, server: Strict) -> None:
    """The attempt may still arrive until its date is rejected."""
    request = under(server, 30, request=PUT)
    assert request.lease is not None
    lose_first(server)
    transport.send(request)
    assert (len(server.taken), request.lease.under_way, request.lease.is_idle) == (2, {}, False)
    later = time.monotonic() + leases.LONGEST + leases.MARGIN
    with mock.patch.object(leases, "monotonic", lambda: later):
        assert request.lease.is_idle


def test_lost_read_leaves_lease_idle(transport: Transport, server: Strict) -> None:
    """A read does not change anything when it arrives later."""
    request = under(server, 30)
    assert request.lease is not None
    lose_first(server)
    transport.send(request)
    assert (len(server.taken), request.lease.is_idle) == (2, True)


def expire_after_first(server: Strict) -> None:
    """Execute the first request without a response; the lease of the next attempt has ended."""

    def lose(request: Received) -> None:
        server.executed = lambda request: None
        server.ahead += 60
        raise ConnectionResetError

    server.executed = lose


def test_lost_write_with_expired_retry_is_in_doubt(transport: Transport, server: Strict) -> None:
    """The rejection of the last attempt does not prove anything of the first."""
    expire_after_first(server)
    with pytest.raises(OutcomeUnknown, match="Signature expired"):
        transport.send(under(server, 30, request=PUT))
    assert (len(server.taken), len(server.refused)) == (1, 1)


def test_lost_read_with_expired_retry_begins_again(transport: Transport, server: Strict) -> None:
    """A read may be repeated."""
    expire_after_first(server)
    with pytest.raises(Expired):
        transport.send(under(server, 30))


def test_lost_transaction_with_expired_retry_is_in_doubt(transport: Transport, server: Strict, table: Table) -> None:
    """Its token is not sent with a later date, because it might execute the transaction late."""
    item = {**KEY, "n": {"N": "1"}}
    params = {"TransactItems": [{"Put": {"TableName": table.name, "Item": item}}], "ClientRequestToken": "one"}
    request = Request("TransactWriteItems", params)
    expire_after_first(server)
    with pytest.raises(OutcomeUnknown, match="Signature expired"):
        transport.send(under(server, 30, request=request))
    assert (len(server.taken), len(server.refused)) == (1, 1)


def test_wrong_key_is_not_a_wrong_date(transport: Transport, server: Strict) -> None:
    """The error stays ``AccessDenied``."""
    server.secrets = {"local": "another"}
    with pytest.raises(AccessDenied, match="does not match"):
        transport.send(under(server, 30))


@pytest.mark.parametrize(
    "code", ["InvalidSignatureException", "RequestExpired", "RequestTimeTooSkewed", "SignatureDoesNotMatch"]
)
@pytest.mark.parametrize("tolerance", [300.0, None])
def test_each_code_of_a_refused_date_expires(table: Table, code: str, tolerance: float | None) -> None:
    """A request with the clock's date raises a plain error."""

    def refuse(operation: str, params: Parameters) -> None:
        raise refusal(operation, code, "Signature expired: 20261123T000000Z")

    with intercept(refuse), pytest.raises(RequestFailed) as raised:
        table.send(Request("GetItem", GET.params, Lease(1, 0.0, tolerance)))
    assert (type(raised.value) is Expired, raised.value.code) == (tolerance is not None, code)


def test_pynamodb_calls_take_a_lease(table: Table) -> None:
    """They raise the errors of the app that begin an operation again."""
    with in_front_of(table) as server:
        lease = Lease(1, server.now() - 2, 300)
        params = {"TableName": table.name, **GET.params}
        with pytest.raises(Expired):
            get_table().call("GetItem", params, None, lease)
        lease.close()
        with pytest.raises(Superseded):
            get_table().call("GetItem", params, None, lease)
    assert (len(server.refused), lease.under_way) == (1, {})


def test_rejection_at_the_deadline_is_not_wrongful(transport: Transport, server: Strict) -> None:
    """The clocks of two hosts may differ by a second."""
    server.tolerance = 100
    for _ in range(MAX_WRONGFUL):
        with pytest.raises(Expired) as raised:
            transport.send(under(server, 1))
        assert not raised.value.is_wrongful
    assert get_table().is_fenced


def test_wrongful_rejections_end_the_fence(transport: Transport, server: Strict) -> None:
    """After the third rejection, the lease is closed, and the log reports it once."""
    server.tolerance = 100
    table = get_table()
    request = under(server, 30)
    assert request.lease is not None
    with mock.patch("dynamo_single.table.table.logger") as logger:
        for number in range(1, MAX_WRONGFUL + 1):
            assert (table.is_fenced, request.lease.is_closed) == (True, False)
            with pytest.raises(Expired) as raised:
                transport.send(request)
            assert (raised.value.is_wrongful, len(server.refused)) == (True, number)
        with pytest.raises(Superseded):
            transport.send(request)
    assert (table.is_fenced, request.lease.is_closed, logger.warning.call_count) == (False, True, 1)


def test_response_has_the_time_of_the_server(transport: Transport, server: Strict) -> None:
    """In whole seconds."""
    server.ahead = 200.0
    begun = int(server.now())
    asked = get_table().ask_dated(GET)
    answer, served_at = flow.run(asked) if transport.loop is None else transport.loop.run(asked)
    assert "ConsumedCapacity" in answer
    assert served_at is not None
    assert begun <= served_at <= server.now()


def test_intercepted_response_has_no_time(table: Table) -> None:
    """No server has sent it."""
    with intercept(lambda operation, params: {}):
        assert flow.run(table.ask_dated(GET)) == ({}, None)


def test_pages_keep_the_lease(table: Table) -> None:
    """The second page is not requested after the lease is closed."""
    for number in range(2):
        table.send(Request("PutItem", {"Item": {"pk": {"S": "p"}, "sk": {"S": str(number)}}}))
    query = {"KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": {":p": {"S": "p"}}, "Limit": 1}
    lease = Lease(1, 0.0)
    pages = table.pages(Request("Query", query, lease))
    next(pages)
    lease.close()
    with pytest.raises(Superseded):
        next(pages)


@pytest.mark.parametrize("send", [batches.write_batch, batches.insert_batch])
def test_batches_of_writes_have_the_lease(table: Table, send: Any) -> None:
    """A closed one refuses them, and the caller learns why."""
    lease = Lease(1, 0.0)
    lease.close()
    given = {"PutRequest": {"Item": KEY}} if send is batches.write_batch else table.insert_statement(KEY)
    with capture_requests() as sent:
        result = flow.run(send(table, [given], lease=lease))
    found = result if send is batches.write_batch else result[0]
    assert (type(found.error), sent) == (Superseded, [])


def test_unprocessed_keys_keep_the_lease(table: Table) -> None:
    """The rest of a batch is not requested after the lease is closed."""
    lease = Lease(1, 0.0)
    keys = {table.name: {"Keys": [KEY]}}

    def leave(operation: str, params: Parameters) -> Response:
        lease.close()
        return {"Responses": {table.name: []}, "UnprocessedKeys": keys, "ConsumedCapacity": []}

    with intercept(leave), pytest.raises(Superseded):
        flow.run(batches.get_batch(table, Request("BatchGetItem", {"RequestItems": keys}, lease)))


def test_table_by_id_signs_by_the_lease(table: Table) -> None:
    """Its requests are translated before they are sent."""
    with in_front_of(Table(replace(table.settings, shape=BY_ID))) as server, pytest.raises(Expired):
        get_table().send(under(server, -2))
    assert len(server.refused) == 1


def test_cancelled_write_keeps_lease_busy(table: Table) -> None:
    """The request may have been sent."""
    with in_front_of(table) as server:
        request = under(server, 30, request=PUT)
        assert request.lease is not None
        server.executed = lambda received: time.sleep(1)

        async def cancel() -> None:
            task = asyncio.ensure_future(get_table().ask(request))
            await asyncio.sleep(0.2)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(cancel())
        assert (request.lease.under_way, request.lease.is_idle) == ({}, False)


def test_no_request_passes_a_closed_and_idle_lease() -> None:
    """Threads enter while another one closes the lease."""
    for _ in range(10):
        lease, entered = Lease(1, 0.0), []

        def enter(token: int, lease: Lease = lease, entered: list[int] = entered) -> None:
            try:
                while True:
                    lease.enter(token)
                    entered.append(token)
                    lease.leave(token)
            except Superseded:
                return

        threads = [Thread(target=enter, args=(token,)) for token in range(3)]
        for thread in threads:
            thread.start()
        lease.close()
        while not lease.is_idle:
            time.sleep(0)
        number = len(entered)
        for thread in threads:
            thread.join()
        assert len(entered) == number
