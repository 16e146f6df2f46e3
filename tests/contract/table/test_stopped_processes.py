"""A process that is stopped between the check and the send of a request is late only by the server's clock."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

import pytest

from dynamo_single.table import Request, Table
from tests import children
from tests.contract.table.stopping import LONG, SHORT, key, operations
from tests.contract.table.test_transports import Transport, transport
from tests.deep import examples
from tests.strict import IS_STRICT, Received, Strict, strict

__all__ = ["transport"]

# Strict servers in front of one another would take each other's Host for a wrong one.
pytestmark = pytest.mark.skipif(IS_STRICT, reason="the engine has a strict server in front of it")

ROOT = Path(__file__).resolve().parents[3]
#: How many times a process is stopped at a random instruction.
STOPS = examples(40, 110, "LEASE_STOPS")
ROUNDS = examples(1, 25, "LEASE_ROUNDS")


@contextmanager
def server_for(table: Table) -> Iterator[Strict]:
    """A strict server in front of the engine."""
    host, _, port = str(table.settings.endpoint_url).removeprefix("http://").partition(":")
    with strict((host, int(port))) as server:
        yield server


@contextmanager
def process(table: Table, server: Strict, transport: Transport, work: str) -> Iterator[children.Dialogue]:
    """A process that sends its requests to the server."""
    url = f"{server.url.replace('http', 'dynamodb')}/{table.name}?region=us-east-1&transport={transport.name}"
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings", "DYNAMO_TEST_URL": url}
    environment["DYNAMO_SINGLE_TEST_TABLES"] = "unguarded"
    way = "sync" if transport.loop is None else "awaited"
    arguments = ["-m", "tests.contract.table.stopping", work, way]
    found = children.Dialogue(arguments, cwd=ROOT, env=environment, stderr=sys.__stderr__)
    try:
        yield found
    finally:
        found.kill()
        found.close()


def wait_until_stopped(pid: int) -> None:
    """Wait for the state that a signal has caused."""
    while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
        time.sleep(0.001)


def test_request_that_is_sent_too_late_is_refused(transport: Transport, table: Table) -> None:
    """The process is stopped before and after the signature; a new lease executes the request."""
    table.send(Request("PutItem", {"Item": key("delete")}))
    names = operations(table.name)
    with server_for(table) as server, process(table, server, transport, "itself") as child:
        for number in range(1, 2 * len(names) + 1):
            assert child.answer() == "stops\n"
            wait_until_stopped(child.pid)
            taken = len(server.taken)
            server.ahead += LONG + 1
            child.send_signal(signal.SIGCONT)
            assert child.answer() == "Expired\n"
            assert (len(server.taken), len(server.refused)) == (taken, number)
            child.tell("go on")
        assert [item["pk"]["S"] for item in table.send(Request("Scan"))["Items"]] == ["delete"]
        assert [child.answer() for _ in names] == ["executed\n"] * len(names)
    stored = {item["pk"]["S"] for item in table.send(Request("Scan"))["Items"]}
    assert stored == names.keys() - {"delete", "read"}


class Late:
    """The items that a server accepted after the deadline that they contain."""

    def __init__(self, server: Strict) -> None:
        self.server, self.found, self.accepted = server, list[str](), set[str]()
        self._arrivals: dict[int, float] = {}
        self._lock = Lock()
        server.arrived, server.executed = self.arrived, self.executed

    def arrived(self, request: Received) -> None:
        """Note when a request came."""
        with self._lock:
            self._arrivals[id(request)] = self.server.now()

    def executed(self, request: Received) -> None:
        """Compare the item of an executed request with the time when it came."""
        with self._lock:
            arrival = self._arrivals.pop(id(request))
        if request.operation == "PutItem":
            item = request.json()["Item"]
            self.accepted.add(item["pk"]["S"])
            if int(arrival) > int(item["deadline"]["N"]):
                self.found.append(item["pk"]["S"])


@pytest.mark.parametrize("round_", range(ROUNDS))
def test_process_stopped_anywhere_is_never_late(transport: Transport, table: Table, round_: int) -> None:
    """Nothing is accepted after its deadline, no acknowledged write is lost, and the process continues."""
    chance = random.Random(f"{transport.name} {transport.loop is None} {round_}")
    acknowledged: set[str] = set()
    with server_for(table) as server, process(table, server, transport, "stopped") as child:
        late = Late(server)
        for _ in range(STOPS):
            acknowledged.add(child.answer().strip())
            time.sleep(chance.random() / 100)
            child.send_signal(signal.SIGSTOP)
            wait_until_stopped(child.pid)
            server.ahead += 2 * SHORT
            child.send_signal(signal.SIGCONT)
        while (line := child.answer()) == "again\n":
            pass
        acknowledged.add(line.strip())
    assert late.found == []
    assert acknowledged - {"again"} <= late.accepted
    assert server.refused
