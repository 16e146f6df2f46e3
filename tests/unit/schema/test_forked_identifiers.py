"""Identifiers of forked processes and threads are unique, and never cause a deadlock."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from multiprocessing import get_context
from typing import Any

import pytest

from dynamo_single import models
from dynamo_single.orm.schema.keys import identifiers
from dynamo_single.testing import frozen_time

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
KINDS: list[dict[str, Any]] = [{"uuid_version": 1}, {"uuid_version": 4}, {"kind": "ulid"}, {"kind": "nanoid"}]
#: How many processes there are, with how many threads each, and how many identifiers each thread makes.
PROCESSES, THREADS, EACH = 4, 2, 500


def _made(make: Callable[[], str]) -> list[str]:
    """Return identifiers that threads create in parallel."""
    with ThreadPoolExecutor(THREADS) as pool:
        return [each for found in pool.map(lambda _: [make() for _ in range(EACH)], range(THREADS)) for each in found]


def _send(make: Callable[[], str], pipe: Any) -> None:
    pipe.send(_made(make))


def forked(make: Callable[[], str], processes: int = PROCESSES) -> list[str]:
    """Return identifiers that this process and its forks create in parallel."""
    context = get_context("fork")
    pipes = [context.Pipe(duplex=False) for _ in range(processes)]
    children = [context.Process(target=_send, args=(make, sender)) for _, sender in pipes]
    for child in children:
        child.start()
    found = _made(make)
    for child, (receiver, _) in zip(children, pipes, strict=True):
        assert receiver.poll(60), "A forked process waits for ever."
        found += receiver.recv()
        child.join()
    return found


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.parametrize("options", KINDS, ids=str)
def test_forked_processes_make_different_identifiers(options: dict[str, Any]) -> None:
    """This includes threads, and identifiers with one time."""
    attribute: Any = models.IdAttribute(**options)
    attribute.make()
    with frozen_time(NOON):
        found = forked(attribute.make)
    assert len(set(found)) == len(found) == (PROCESSES + 1) * THREADS * EACH


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.parametrize(
    ("module", "state", "make"),
    [(identifiers, "_process", identifiers.make_uuid), (identifiers, "_last", identifiers.make_ulid)],
    ids=["uuid", "ulid"],
)
def test_a_fork_waits_for_no_thread_of_its_parent(module: Any, state: str, make: Callable[[], object]) -> None:
    """The child does not have a thread that was creating an identifier."""
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with getattr(module, state).lock:
            held.set()
            done.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(60)
    child = get_context("fork").Process(target=make)
    child.start()
    child.join(20)
    done.set()
    thread.join()
    waits = child.is_alive()
    child.kill()
    child.join()
    assert not waits


def test_uuids_hold_their_time_and_sort_by_it() -> None:
    """With one time, each is larger than the previous one."""
    with frozen_time(NOON):
        made = [identifiers.make_uuid() for _ in range(1000)]
    times = [each.time for each in made]
    assert times == sorted(set(times))
    begun = datetime(1582, 10, 15, tzinfo=UTC) + timedelta(microseconds=times[0] // 10)
    assert abs(begun - NOON) < timedelta(milliseconds=1)
    assert {(each.version, each.variant) for each in made} == {(1, "specified in RFC 4122")}


def test_uuids_name_no_machine() -> None:
    """The node has the bit that no network card's address has."""
    assert identifiers.make_uuid().node >> 40 & 1


def test_a_clock_that_goes_back_makes_no_uuid_again() -> None:
    """Another clock sequence distinguishes them."""
    found = []
    for _ in range(3):
        with frozen_time(NOON) as clock:
            found += [identifiers.make_uuid() for _ in range(10)]
            clock.move(timedelta(hours=1))
            found += [identifiers.make_uuid() for _ in range(10)]
    assert len(set(found)) == len(found)


def test_a_process_is_told_by_61_bits() -> None:
    """A node of 47 random bits, and a clock sequence."""
    before = identifiers._process
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.write(writer, str(identifiers.make_uuid()).encode())
        os._exit(0)
    os.wait()
    made = os.read(reader, 100).decode()
    os.close(reader)
    os.close(writer)
    assert identifiers.UUID(made).node != before.node
    assert identifiers._process is before
