"""Awaited requests: how many run in parallel, and their state after a cancellation."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
from time import monotonic
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError
from django.test import override_settings

from dynamo_single.table import Request, get_table
from dynamo_single.table.deadlines import Deadline
from dynamo_single.table.http.connections import Endpoint, Place
from dynamo_single.table.http.loop_connections import LoopPlaces, LoopPool
from dynamo_single.testing import capture_requests, intercept
from tests.contract.table.scripted import FOUND, ITEM, Scripted, Step, scripted

GET = Request("GetItem", {"Key": ITEM})
PUT = Request("PutItem", {"Item": ITEM})
#: Seconds until a hanging test is stopped.
LONG = 10
#: For requests with another limit.
LATE = Deadline(monotonic() + 3600, "")


def reaching(server: Scripted, **options: Any) -> Any:
    """Within the block the default table is at the server."""
    settings = {"TABLE_NAME": "single-table", "ENDPOINT_URL": f"http://127.0.0.1:{server.port}", "REGION": "us-east-1"}
    return override_settings(DYNAMO_SINGLE={"default": {**settings, **options}})


async def together(count: int, request: Request = GET) -> list[Any]:
    """Return the responses to a number of parallel requests."""
    return await asyncio.gather(*(get_table().ask(request) for _ in range(count)))


def held(server: Scripted) -> tuple[threading.Event, threading.Event]:
    """Let requests wait at the server; return events for their arrival and their release."""
    came, released = threading.Event(), threading.Event()

    def check(headers: dict[str, str], body: bytes) -> None:
        came.set()
        released.wait(LONG)

    server.check = check
    return came, released


def wait_for(everyone: threading.Barrier) -> None:
    """Wait until the expected number of requests waits."""
    everyone.wait(LONG)


async def reached(event: threading.Event) -> None:
    """Wait until an event has happened in another thread."""
    assert await asyncio.to_thread(event.wait, LONG)


def test_requests_are_under_way_together() -> None:
    """The server responds only after all of them have arrived."""
    everyone = threading.Barrier(50)
    with scripted() as server, reaching(server, MAX_POOL_CONNECTIONS=50):
        server.check = lambda headers, body: wait_for(everyone)
        assert asyncio.run(together(50)) == [FOUND] * 50
        assert server.connections == 50


def test_a_pool_bounds_them() -> None:
    """200 requests use at most 20 connections, and each gets its own response."""
    with scripted() as server, reaching(server, MAX_POOL_CONNECTIONS=20):
        assert asyncio.run(together(200)) == [FOUND] * 200
        assert server.connections == 20


def test_a_full_pool_is_waited_for_and_no_longer() -> None:
    """The error names the setting, and the next waiting request gets the connection."""

    async def ask() -> None:
        pool = LoopPool(Endpoint("127.0.0.1", 1, "http://127.0.0.1:1", None, connect_timeout=0.1, read_timeout=0.1), 1)
        place = pool._places.get_nowait()
        with pytest.raises(EndpointConnectionError, match="raise MAX_POOL_CONNECTIONS"):
            await pool.exchange(b"", LATE)
        pool._places.put(place)
        assert pool._places.get_nowait() is place

    asyncio.run(ask())


async def cancelled(request: Request, came: threading.Event) -> asyncio.CancelledError:
    """Return the error of a request that is cancelled while the server processes it."""
    task = asyncio.ensure_future(get_table().ask(request))
    await reached(came)
    task.cancel()
    with pytest.raises(asyncio.CancelledError) as caught:
        await task
    return caught.value


def test_a_cancelled_request_closes_its_connection() -> None:
    """The next request must not get its response, and gets a new connection."""
    with scripted() as server, reaching(server, MAX_POOL_CONNECTIONS=1):
        came, released = held(server)

        async def ask() -> Any:
            await cancelled(GET, came)
            released.set()
            return await get_table().ask(GET)

        assert asyncio.run(ask()) == FOUND
        assert server.connections == 2


def test_a_cancelled_write_says_that_its_outcome_is_unknown(caplog: pytest.LogCaptureFixture) -> None:
    """The error has a note, and the log and the listeners report the outcome."""
    with scripted() as server, reaching(server), caplog.at_level(logging.WARNING, "dynamo_single.requests"):
        came, released = held(server)
        with capture_requests() as sent:
            error = asyncio.run(cancelled(PUT, came))
        released.set()
    (told,) = error.__notes__
    assert "PutItem on 'single-table' was cancelled while it was running" in told
    assert [record.getMessage() for record in caplog.records] == [told]
    assert [(request.operation, request.error) for request in sent] == [("PutItem", "CancelledError")]


def test_a_cancelled_read_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """A read does not change anything."""
    with scripted() as server, reaching(server):
        came, released = held(server)
        error = asyncio.run(cancelled(GET, came))
        released.set()
    assert not hasattr(error, "__notes__")
    assert not caplog.records


def test_one_that_is_cancelled_while_it_waits_for_a_connection_takes_none() -> None:
    """The next request gets its turn."""
    with scripted() as server, reaching(server, MAX_POOL_CONNECTIONS=1):

        async def ask() -> list[Any]:
            await get_table().ask(GET)
            came, released = held(server)
            first, second, third = (asyncio.ensure_future(get_table().ask(GET)) for _ in range(3))
            await reached(came)
            second.cancel()
            await asyncio.gather(second, return_exceptions=True)
            released.set()
            return [await first, await third]

        assert asyncio.run(ask()) == [FOUND] * 2
        assert server.connections == 1
        assert len(server.requests) == 3


def test_one_that_is_cancelled_as_it_gets_its_turn_passes_it_on() -> None:
    """An unused connection is not lost."""

    async def ask() -> int:
        places = LoopPlaces()
        waiting = asyncio.ensure_future(places.wait(LONG))
        await asyncio.sleep(0)
        places.put(Place(places))
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        return places.qsize()

    assert asyncio.run(ask()) == 1


def until_left(server: Scripted) -> None:
    """Wait until all connections are closed."""
    for _ in range(1000):
        if not server.at_once:
            return
        threading.Event().wait(0.01)
    raise AssertionError(f"{server.at_once} connections are open still")


def test_the_connections_of_a_loop_that_is_gone_are_closed() -> None:
    """There is no warning about open connections."""
    with scripted() as server, reaching(server):
        asyncio.run(together(5))
        gc.collect(1)  # this object was created just now
        until_left(server)


def test_the_connections_of_a_loop_that_is_closed_are_closed_by_the_next_one() -> None:
    """This applies even if the loop object is still referenced."""
    with scripted() as server, reaching(server):
        loop = asyncio.new_event_loop()
        assert loop.run_until_complete(together(3)) == [FOUND] * 3
        loop.close()
        assert server.at_once == 3
        asyncio.run(together(1))
        gc.collect(1)  # this object was created just now
        until_left(server)
        assert loop.is_closed()


def test_a_loop_that_is_closed_in_the_middle_of_a_request_leaves_nothing() -> None:
    """Its requests are dropped with it."""
    with scripted() as server, reaching(server):
        came, released = held(server)
        loop = asyncio.new_event_loop()
        task = loop.create_task(get_table().ask(GET))
        loop.run_until_complete(reached(came))
        loop.run_until_complete(loop.shutdown_default_executor())
        task.cancel()
        loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
        loop.close()
        released.set()
        until_left(server)


def test_each_loop_has_connections_of_its_own() -> None:
    """Two threads with a loop each never read each other's responses."""
    both = threading.Barrier(2)
    found: list[Any] = []

    def run() -> None:
        both.wait(LONG)
        found.append(asyncio.run(together(20)))

    with scripted() as server, reaching(server, MAX_POOL_CONNECTIONS=4):
        threads = [threading.Thread(target=run) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [[FOUND] * 20] * 2
        assert server.connections == 8


def test_interceptors_may_send_and_wait() -> None:
    """They run in a thread, and their own requests are sent before the intercepted one."""
    with scripted() as server, reaching(server):

        def send_another(operation: str, params: Any) -> None:
            if operation == "PutItem":
                get_table().send(GET)

        with intercept(send_another):
            asyncio.run(get_table().ask(PUT))
        operations = [headers["x-amz-target"].partition(".")[2] for headers, _ in server.requests]
        assert operations == ["GetItem", "PutItem"]


def test_a_fault_on_the_way_is_sent_again_in_the_loop() -> None:
    """Other requests get their responses during the pause."""
    with scripted(Step(end="reset")) as server, reaching(server, MAX_POOL_CONNECTIONS=1):
        assert asyncio.run(together(3)) == [FOUND] * 3
        assert len(server.requests) == 4
