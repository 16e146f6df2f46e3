"""How long does a list over shards take, and how much does it read?

``python -m benchmarks.shards.run [ITEMS] [SHARDS]`` starts a local engine in memory, fills the shards and reads them
with a delay of 5 ms for each request. The baseline is the same list with ``PARALLEL_READS`` 1, which reads the shards
sequentially. The first table uses the engine: it works on the same cores, so eight parallel requests wait for each
other there. The second table replays its responses, as if DynamoDB were 5 ms away. ``own CPU`` is the CPU of this
process alone. Times depend on the machine; compare them by ratio in one run.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from django.conf import settings as django_settings
from django.test import override_settings

from benchmarks.harness.distance import MILLISECONDS, far_away
from dynamo_single.orm.rollout import knowledge, shard_record
from dynamo_single.orm.schema import registry
from dynamo_single.testing import capture_requests, local_engine
from tests.catalog.service import Visit

ITEMS, SHARDS, PAGE, ROUNDS = 2000, 8, 100, 7
BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)


def first_page() -> int:
    """Return the length of the first page of a hundred."""
    return len(Visit.objects.order_by("-at").page(size=PAGE))


def fifth_page() -> int:
    """Return the length of the fifth page, without reading the four before it."""
    return len(Visit.objects.order_by("-at").page(size=PAGE, cursor=_cursor()))


_cursors: list[str | None] = []


def _cursor() -> str | None:
    if not _cursors:
        cursor = None
        for _ in range(4):
            cursor = Visit.objects.order_by("-at").page(size=PAGE, cursor=cursor).next_cursor
        _cursors.append(cursor)
    return _cursors[0]


def listed() -> int:
    """Return the length of the whole list."""
    return len(list(Visit.objects.order_by("at")))


def counted() -> int:
    """Return the count of the list."""
    return int(Visit.objects.count())


QUESTIONS: dict[str, Callable[[], int]] = {
    f"page({PAGE})": first_page,
    f"page({PAGE}, cursor)": fifth_page,
    "list(): all": listed,
    "count()": counted,
}


@contextlib.contextmanager
def at_once(reads: int) -> Iterator[None]:
    """Limit the parallel reads of a query to ``reads`` within the block."""
    declared = dict(django_settings.DYNAMO_SINGLE)
    declared["default"] = {**declared["default"], "PARALLEL_READS": reads}
    with override_settings(DYNAMO_SINGLE=declared):
        yield


class Cost(NamedTuple):
    """The least seconds of a query: the wall time, and the CPU of this process."""

    wall: float
    cpu: float


def cost(question: Callable[[], int]) -> Cost:
    """Return the least cost in several rounds, because other processes only add to it."""
    question()
    walls, cpus = [], []
    for _ in range(ROUNDS):
        started, worked = time.perf_counter(), time.process_time()
        question()
        walls.append(time.perf_counter() - started)
        cpus.append(time.process_time() - worked)
    return Cost(min(walls), min(cpus))


def measure(items: int, shards: int) -> None:
    """Fill the shards; print a table with the engine's responses and a table with replayed responses."""
    with local_engine() as table:
        shard_record.record_first(table, registry.layout_of(Visit), shards)
        made = [Visit(visit_id=f"v{n:06}", at=BEGINNING + timedelta(seconds=n), page="/" * 60) for n in range(items)]
        Visit.objects.bulk_create(made)
        for replayed in (False, True):
            answered = "answers replayed" if replayed else "answered by the engine"
            print(f"{items} items in {shards} shards, {MILLISECONDS} ms a request, {answered}")
            print(
                f"{'question':<20} {'requests':>9} {'read':>6} {'given':>6} {'one by one':>11} {'at once':>9} "
                f"{'ratio':>6} {'own CPU':>9}"
            )
            with far_away(table.settings, replayed=replayed):
                for name, question in QUESTIONS.items():
                    row(name, question)


def row(name: str, question: Callable[[], Any]) -> None:
    """Print a query's costs for sequential and for parallel reads."""
    knowledge.schedule(registry.layout_of(Visit))
    question()
    with capture_requests() as sent:
        given = question()
    read = sum(int(each.response["ScannedCount"]) for each in sent if "ScannedCount" in each.response)
    with at_once(1):
        slow = cost(question)
    with at_once(8):
        fast = cost(question)
    times = f"{slow.wall * 1000:>8.1f} ms {fast.wall * 1000:>6.1f} ms {fast.wall / slow.wall:>6.2f}"
    print(f"{name:<20} {len(sent):>9} {read:>6} {given:>6} {times} {fast.cpu * 1000:>6.1f} ms")


if __name__ == "__main__":
    given = [int(each) for each in sys.argv[1:]]
    measure(*[*given, *(ITEMS, SHARDS)[len(given) :]])
