"""Many items by key: batches of a hundred in threads, in order, each key once."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from django.db.models import Q
from msgspec.structs import replace

from dynamo_single.costs import measure_requests
from dynamo_single.exceptions import Throttled
from dynamo_single.table import Table, batches, get_table
from dynamo_single.table import flow as parallel
from dynamo_single.testing import assert_requests, capture_requests, intercept, refusal, setup_table
from tests.catalog.models import Sample

#: Eight parallel batches, and one that has to wait.
MANY = 850
PKS = [f"s{number:04d}" for number in range(MANY)]


@pytest.fixture(scope="module")
def stored(engine: Table) -> Iterator[None]:
    """Many small items, written as they are: by PynamoDB's batches."""
    setup_table()
    with Sample.batch_write() as batch:
        for pk in PKS:
            batch.save(Sample(sample_id=pk, text=pk[::-1]))
    yield


def keys_of(params: Mapping[str, Any]) -> list[str]:
    """Return the partition keys of a BatchGetItem."""
    ((_, asked),) = params["RequestItems"].items()
    return [key["pk"]["S"] for key in asked["Keys"]]


def wanted(*pks: str) -> Any:
    """A queryset of samples by their keys."""
    return Sample.objects.filter(pk__in=pks or PKS)


@pytest.mark.usefixtures("stored")
def test_many_items_come_in_the_order_asked() -> None:
    """Nine batches return a list in its order, and duplicate keys are sent once."""
    asked = [*PKS[::-1], *PKS[:200]]
    with capture_requests() as sent:
        found = list(Sample.objects.filter(pk__in=asked))
    assert [each.pk for each in found] == PKS[::-1]
    assert [request.operation for request in sent] == ["BatchGetItem"] * 9
    sent_keys = [key for request in sent for key in keys_of(request.params)]
    assert sorted(sent_keys) == sorted(f"SAMPLE#{pk}" for pk in PKS)


@pytest.mark.usefixtures("stored")
def test_in_bulk_is_one_batch_for_each_hundred() -> None:
    """``in_bulk`` omits missing items, and reads each key once."""
    with assert_requests(["BatchGetItem"] * 3):
        found = Sample.objects.in_bulk([*PKS[:249], "missing", *PKS[:100]])
    assert list(found) == PKS[:249]


@pytest.mark.usefixtures("stored")
def test_batches_are_sent_at_once_and_from_threads() -> None:
    """Eight requests are under way together, none in the caller's thread; one batch alone stays in it."""
    together = threading.Barrier(parallel.MAX_THREADS)
    threads: set[int] = set()

    def meet(operation: str, params: Mapping[str, Any]) -> None:
        threads.add(threading.get_ident())
        together.wait(10)

    with intercept(meet):
        assert len(wanted(*PKS[:800])) == 800
    assert len(threads) == parallel.MAX_THREADS
    assert threading.get_ident() not in threads
    threads.clear()
    with intercept(lambda operation, params: threads.add(threading.get_ident())):
        assert len(wanted(*PKS[:100])) == 100
    assert threads == {threading.get_ident()}


@pytest.mark.usefixtures("stored")
def test_no_more_than_eight_are_ahead_of_what_was_taken() -> None:
    """Iterating keeps at most eight batches in memory."""
    with capture_requests() as sent:
        found = wanted().iterator()
        next(found)
        assert len(sent) <= parallel.MAX_THREADS
        assert sum(1 for _ in found) == MANY - 1
    assert len(sent) == 9


@pytest.mark.parametrize(("stop", "requests"), [(1, 1), (100, 1), (101, 2), (250, 3)])
@pytest.mark.usefixtures("stored")
def test_a_slice_sends_no_more_batches_than_it_takes(stop: int, requests: int) -> None:
    """Batches after the end of a slice are not read."""
    with assert_requests(["BatchGetItem"] * requests):
        assert len(wanted()[:stop]) == stop


@pytest.mark.usefixtures("stored")
def test_a_slice_goes_on_where_items_are_missing() -> None:
    """Missing items do not count: more batches are sent until the slice is full."""
    missing = [f"x{number}" for number in range(150)]
    with assert_requests(["BatchGetItem"] * 2):
        assert [each.pk for each in wanted(*missing, *PKS[:40])[:10]] == PKS[:10]


@pytest.mark.usefixtures("stored")
def test_first_and_exists_read_one_batch() -> None:
    """A single result needs the first batch only."""
    with assert_requests(["BatchGetItem"]):
        assert wanted().first().pk == PKS[0]
    with assert_requests(["BatchGetItem"]):
        assert wanted().exists()


@pytest.mark.usefixtures("stored")
def test_there_are_no_more_requests_at_once_than_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """``MAX_POOL_CONNECTIONS`` bounds the threads that send."""
    table = get_table()
    monkeypatch.setattr(table, "settings", replace(table.settings, max_pool_connections=2))
    running: set[int] = set()
    most: list[int] = []
    lock, both = threading.Lock(), threading.Barrier(2)

    def note(operation: str, params: Mapping[str, Any]) -> dict[str, Any]:
        with lock:
            running.add(threading.get_ident())
            most.append(len(running))
            first = len(most) <= 2
        if first:
            both.wait(60)
        else:
            threading.Event().wait(0.01)
        with lock:
            running.discard(threading.get_ident())
        return {"Responses": {}}

    with intercept(note):
        assert len(wanted()) == 0
    assert max(most) == 2


@pytest.mark.usefixtures("stored")
def test_an_error_is_raised_and_the_other_batches_end() -> None:
    """The error of one batch is raised after all requests have ended."""
    under_way: list[str] = []

    def fail(operation: str, params: Mapping[str, Any]) -> dict[str, Any]:
        first = keys_of(params)[0]
        under_way.append(first)
        try:
            if first == "SAMPLE#s0200":
                raise refusal(operation, "ThrottlingException")
            threading.Event().wait(0.02)
            return {"Responses": {}}
        finally:
            under_way.remove(first)

    with intercept(fail), pytest.raises(Throttled):
        list(wanted())
    assert under_way == []


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the longest possible pause before each retry, without waiting."""
    found: list[float] = []

    def uniform(low: float, high: float) -> float:
        found.append(high)
        return 0.0

    monkeypatch.setattr(batches.random, "uniform", uniform)
    return found


@pytest.mark.usefixtures("stored")
def test_unprocessed_keys_are_asked_for_again(pauses: list[float]) -> None:
    """Each batch repeats what DynamoDB left out, after pauses that may grow, and gives everything in order."""
    seen: dict[str, int] = {}

    def leave_out(operation: str, params: Mapping[str, Any]) -> dict[str, Any] | None:
        keys = keys_of(params)
        seen[keys[-1]] = seen.get(keys[-1], 0) + 1
        if seen[keys[-1]] > 2:
            return None
        return {"Responses": {}, "UnprocessedKeys": dict(params["RequestItems"])}

    with intercept(leave_out), measure_requests() as costs:
        assert [each.pk for each in wanted(*PKS[:200])] == PKS[:200]
    assert costs.operations == {"BatchGetItem": 6}
    assert sorted(pauses) == [0.05, 0.05, 0.1, 0.1]


@pytest.mark.usefixtures("stored")
def test_what_was_processed_is_kept(pauses: list[float]) -> None:
    """A batch that DynamoDB returns in halves is complete and in order."""
    table = get_table()

    def leave_half(operation: str, params: Mapping[str, Any]) -> dict[str, Any] | None:
        keys = params["RequestItems"][table.name]["Keys"]
        if len(keys) <= 50:
            return None
        half = table.call(operation, {"RequestItems": {table.name: {"Keys": keys[50:]}}})
        return {**half, "UnprocessedKeys": {table.name: {"Keys": keys[:50]}}}

    with intercept(leave_half):
        assert [each.pk for each in wanted(*PKS[:200])] == PKS[:200]
    assert pauses == [0.05, 0.05]


@pytest.mark.usefixtures("stored")
def test_keys_that_are_never_processed_are_an_error(pauses: list[float]) -> None:
    """After eight requests, the read raises an error; pauses have a maximum."""

    def leave_all(operation: str, params: Mapping[str, Any]) -> dict[str, Any]:
        return {"Responses": {}, "UnprocessedKeys": dict(params["RequestItems"])}

    with (
        intercept(leave_all),
        assert_requests(["BatchGetItem"] * batches.BATCH_ATTEMPTS),
        pytest.raises(Throttled, match="left 2 keys of a BatchGetItem unread after 8 requests"),
    ):
        list(wanted(*PKS[:2]))
    assert pauses == [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, batches.LONGEST_PAUSE]


@pytest.mark.usefixtures("stored")
def test_an_alternative_of_many_keys_is_not_read_ahead_of_a_slice() -> None:
    """If ``|`` combines keys with another query, a slice reads only the batches that it needs."""
    either = Sample.objects.filter(Q(pk__in=PKS) | Q(sample_id__startswith="x"))
    with capture_requests() as sent:
        assert len(either[:150]) == 150
    assert [request.operation for request in sent].count("BatchGetItem") <= 2
