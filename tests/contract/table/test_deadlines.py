"""A request ends within its limit whatever the server does, and the error describes the outcome of a write."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context

import pytest

from dynamo_single.exceptions import Conflict, EndpointUnreachable, OutcomeUnknown, Throttled
from dynamo_single.table import Request, deadlines, get_table
from dynamo_single.table import transport as request_paths
from dynamo_single.table.http import connections
from dynamo_single.testing import refuse
from tests.contract.table.scripted import FOUND, Step, refusal, reply, scripted
from tests.contract.table.test_transports import GET, PUT, WRITTEN, Transport, hardly_any_pause, outcome, reaching
from tests.contract.table.test_transports import transport as transport

__all__ = ["hardly_any_pause", "transport"]

#: Much later than ``within()`` waits for.
SILENT = Step(b"", delay=60)
TRANSACTION = Request("TransactWriteItems", {"TransactItems": [{}], "ClientRequestToken": "one"})


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """The block ends in time; the rest is what a busy machine may take."""
    begun = time.monotonic()
    yield
    assert time.monotonic() - begun < seconds + 20


@pytest.mark.parametrize(
    ("request_", "step"),
    [(PUT, SILENT), (PUT, Step(WRITTEN, drip=0.2)), (GET, Step(reply(), drip=0.2)), (TRANSACTION, SILENT)],
    ids=["silent", "dripping", "dripping read", "silent transaction"],
)
def test_request_ends_at_its_total_timeout(transport: Transport, request_: Request, step: Step) -> None:
    """This includes a response in small pieces that arrive quickly enough."""
    with scripted(Step(reply()), step, step, step) as server:
        outcome(server, transport, GET)  # imports the modules of a client
        # On a busy machine, the request is sent late.
        with within(2):
            error = outcome(server, transport, request_, READ_TIMEOUT=5, TOTAL_TIMEOUT=2)
    assert type(error) is (EndpointUnreachable if request_ is GET else OutcomeUnknown)
    assert "TOTAL_TIMEOUT is 2 seconds" in str(error)


def test_attempts_share_the_total_timeout(transport: Transport) -> None:
    """Each may take as long as the read timeout, and all of them no longer than the other."""
    with scripted(Step(reply()), *[SILENT] * 30) as server:
        outcome(server, transport, GET)
        with within(1):
            error = outcome(server, transport, PUT, READ_TIMEOUT=0.1, TOTAL_TIMEOUT=1, MAX_ATTEMPTS=30)
    assert type(error) is OutcomeUnknown
    assert len(server.requests) > 2


def test_no_attempt_begins_after_the_total_timeout(transport: Transport) -> None:
    """A later attempt in the background would be an unexpected write."""
    with scripted(Step(reply()), *[SILENT] * 9) as server:
        outcome(server, transport, GET)
        outcome(server, transport, PUT, READ_TIMEOUT=1.2, TOTAL_TIMEOUT=1, MAX_ATTEMPTS=9)
        time.sleep(0.4)  # until after the end of an attempt that nothing had cut off
        assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("last", "of_read"),
    [(refusal("ThrottlingException"), Throttled), (reply(b"<html></html>", 503), EndpointUnreachable)],
    ids=["throttled", "proxy"],
)
def test_later_refusal_leaves_write_in_doubt(transport: Transport, last: bytes, of_read: type[Exception]) -> None:
    """The first attempt may have been executed, whatever the last one returned."""
    for request, expected in ((GET, of_read), (PUT, OutcomeUnknown)):
        with scripted(Step(end="reset"), Step(last)) as server:
            assert type(outcome(server, transport, request, MAX_ATTEMPTS=2)) is expected


def test_attempts_of_transaction_have_one_token(transport: Transport) -> None:
    """The token makes DynamoDB execute the transaction only once."""
    with scripted(Step(end="reset"), Step(reply({"ConsumedCapacity": []}))) as server:
        assert outcome(server, transport, TRANSACTION) == {"ConsumedCapacity": []}
    assert [b'"ClientRequestToken":"one"' in body.replace(b" ", b"") for _, body in server.requests] == [True, True]


def test_budget_ends_request_and_those_after_it(transport: Transport) -> None:
    """The first request is aborted, and the second is not sent."""
    with scripted(Step(reply()), SILENT) as server:
        outcome(server, transport, GET)
        with within(1 + deadlines.USUAL), deadlines.budget(1, "THE_BOUND"):
            first, second = (outcome(server, transport, PUT) for _ in range(2))
    assert type(first) is OutcomeUnknown
    assert type(second) is EndpointUnreachable
    assert "was not sent" in str(second)
    assert "THE_BOUND is 1 seconds" in str(second)
    assert len(server.requests) == 2


def test_quick_requests_cost_no_budget(transport: Transport, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any number of such requests is allowed, although their total time exceeds the limit, by a simulated clock."""
    with scripted() as server, reaching(server, transport), deadlines.budget(8, "THE_BOUND"):
        begun = time.monotonic()
        for module in (deadlines, request_paths, connections):
            monkeypatch.setattr(module, "monotonic", lambda: begun + deadlines.USUAL * len(server.requests))
        for _ in range(50):
            assert transport.send(GET) == FOUND


def test_threads_share_a_budget() -> None:
    """The waiting time of one thread reduces the limit of the others."""
    with scripted(SILENT) as server, reaching(server, Transport("direct")), deadlines.budget(1, "THE_BOUND"):
        with ThreadPoolExecutor(1) as threads, pytest.raises(EndpointUnreachable, match="did not respond"):
            threads.submit(copy_context().run, get_table().send, GET).result()
        with pytest.raises(EndpointUnreachable, match="was not sent"):
            get_table().send(GET)


def test_inner_budget_is_the_outer_one() -> None:
    """A middleware that is there twice gives no second chance."""
    with deadlines.budget(1, "OUTER"), deadlines.budget(2, "INNER"):
        found = deadlines.BUDGET.get()
    assert found is not None
    assert found.setting == "OUTER"


def test_task_that_outlives_its_budget_has_none() -> None:
    """For example, an asynchronous view has started it without waiting."""

    async def view() -> str:
        over = asyncio.Event()
        with deadlines.budget(0.05, "THE_BOUND"):
            task = asyncio.ensure_future(later(over))
            await asyncio.sleep(0)
        over.set()
        return await task

    async def later(over: asyncio.Event) -> str:
        await over.wait()
        return deadlines.deadline_of(get_table().settings, deadlines.BUDGET.get()).reason

    assert asyncio.run(view()).startswith("TOTAL_TIMEOUT")


def test_pauses_end_with_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """A conflict that others win again and again is itself again, in time."""
    monkeypatch.setattr("random.uniform", lambda least, most: most)
    with (
        scripted() as server,
        reaching(server, Transport("direct")),
        refuse("TransactionConflictException"),
        within(0.3),
        deadlines.budget(0.1, "THE_BOUND"),
        pytest.raises(Conflict),
    ):
        get_table().send_patiently(PUT)


def test_connection_that_changes_protocol_is_no_answer(transport: Transport) -> None:
    """An HTTP status of 101 ends HTTP."""
    for more in ({}, {"upgrade": "websocket", "connection": "upgrade"}):
        with scripted(Step(reply(b"", 101, **more))) as server, within(0.5):
            error = outcome(server, transport, PUT, MAX_ATTEMPTS=1, READ_TIMEOUT=0.5)
        assert type(error) is OutcomeUnknown


def test_write_is_known_where_its_answer_came(transport: Transport) -> None:
    """Just before the bound."""
    with scripted(Step(WRITTEN, delay=0.1)) as server:
        assert isinstance(outcome(server, transport, PUT, TOTAL_TIMEOUT=5), dict)
