"""Write many objects: page by page, each once, with progress and a complete report of failures."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db.models.signals import post_delete

from dynamo_single import transactions
from dynamo_single.exceptions import BulkError, RequestFailed, Throttled
from dynamo_single.table import SentRequest
from dynamo_single.testing import assert_requests, intercept, refusal, refuse
from tests.catalog.chat import ChatMembership, ChatServer, ChatUser
from tests.catalog.models import Order, Sample
from tests.contract.tables import assert_consistent
from tests.deep import examples

pytestmark = pytest.mark.usefixtures("table")

#: Ten of them are a page of a Query or Scan, which has a megabyte.
LARGE = "x" * 100_000
#: More objects than any batch, page or number of threads takes at once.
MANY = examples(250, 1000)


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attempts follow each other at once."""
    monkeypatch.setattr("dynamo_single.table.table.LONGEST_PAUSE", 0.0)
    monkeypatch.setattr("dynamo_single.table.batches.LONGEST_PAUSE", 0.0)


@contextmanager
def failing(operation: str, *keys: str, code: str = "InternalServerError") -> Iterator[None]:
    """Refuses an operation on some items."""

    def interceptor(asked: str, params: Mapping[str, Any]) -> None:
        if asked == operation and any(f"'{key}'" in str(params) for key in keys):
            raise refusal(asked, code)

    with intercept(interceptor):
        yield


def samples(number: int, **values: Any) -> list[Sample]:
    """Return unsaved samples."""
    return [Sample(sample_id=f"s{each:04d}", **values) for each in range(number)]


def orders(number: int) -> list[Order]:
    """Return large orders of one customer with one timestamp."""
    moment = datetime(2024, 1, 1, tzinfo=UTC)
    return [Order(customer="c", number=each, placed_at=moment, status=LARGE) for each in range(number)]


def operations(sent: list[SentRequest]) -> list[str]:
    """Return the operations sent, in order."""
    return [request.operation for request in sent]


WRITES: list[tuple[str, str, Callable[[Any], Any], Any]] = [
    ("update", "UpdateItem", lambda found: found.update(coupon="c"), 25),
    ("delete", "DeleteItem", lambda found: found.delete(), (25, {"catalog.Order": 25})),
    ("hard_delete", "DeleteItem", lambda found: found.hard_delete(), (25, {"catalog.Order": 25})),
]


@pytest.mark.parametrize(("verb", "operation", "write", "result"), WRITES, ids=[row[0] for row in WRITES])
def test_objects_are_written_page_by_page(
    verb: str, operation: str, write: Callable[[Any], Any], result: Any, sent: list[SentRequest]
) -> None:
    """The next page is read only after all objects of the previous one are sent, and each object is written once."""
    Order.objects.bulk_create(orders(25))
    sent.clear()
    assert write(Order.objects.filter(customer="c")) == result
    asked = operations(sent)
    reads = [place for place, each in enumerate(asked) if each == "Query"]
    assert (len(reads), asked.count(operation)) == (3, 25)
    assert reads[0] == 0
    assert asked[: reads[1]].count(operation) >= 1


def test_an_object_that_moves_ahead_in_its_index_is_written_once(sent: list[SentRequest]) -> None:
    """The update does not find objects again that it moved after the current page."""
    Order.objects.bulk_create(orders(25))
    sent.clear()
    later = datetime(2025, 1, 1, tzinfo=UTC)
    since = Order.objects.filter(placed_at__gte=datetime(2023, 1, 1, tzinfo=UTC))
    assert since.update(placed_at=later) == 25
    assert operations(sent).count("UpdateItem") == 25
    assert operations(sent).count("Query") > 3
    assert since.filter(placed_at=later).count() == 25


def test_within_a_block_everything_is_read_first_and_sent_together() -> None:
    """A block cannot read pending writes, so its writes start when all objects are known."""
    Order.objects.bulk_create(orders(12))
    with assert_requests(["Query", "Query", "TransactWriteItems"]), transactions.atomic():
        assert Order.objects.filter(customer="c").update(coupon="c") == 12
    assert Order.objects.filter(coupon="c").count() == 12


def test_progress_is_told_after_each_object() -> None:
    """The callback receives the number of finished objects, and the total if it is known in advance."""
    told: list[tuple[int, int | None]] = []

    def note(done: int, total: int | None) -> None:
        told.append((done, total))

    Sample.objects.on_progress(note).bulk_create(samples(12))
    assert told == [(done, 12) for done in range(1, 13)]
    told.clear()
    everything = Sample.objects.on_progress(note)
    assert everything.bulk_update(samples(3, text="new"), ["text"]) == 3
    assert told == [(1, 3), (2, 3), (3, 3)]
    told.clear()
    assert everything.filter(text="new").update(text="newer") == 3
    assert told == [(1, None), (2, None), (3, None)]
    told.clear()
    assert everything.filter(pk="s0001").update(text="newest") == 1
    assert told == [(1, 1)]
    told.clear()
    everything.all().delete()
    assert told == [(done, None) for done in range(1, 13)]
    told.clear()
    assert everything.on_progress(None).bulk_create(samples(2)) == samples(2)
    assert told == []


def test_a_callback_that_raises_ends_the_operation() -> None:
    """Writes in progress are completed, no others start, and the callback's own error is raised."""

    def stop(done: int, total: int | None) -> None:
        if done == 3:
            raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        Sample.objects.on_progress(stop).bulk_create(samples(100), batch_size=1)
    assert 3 <= Sample.objects.count() <= 3 + 8


def test_several_are_written_at_the_same_time() -> None:
    """After the first, up to eight requests are under way at once, in threads."""
    together = threading.Barrier(8, timeout=20)
    first: list[str] = []

    def interceptor(operation: str, params: Mapping[str, Any]) -> None:
        if first:
            together.wait()
        first.append(operation)

    with intercept(interceptor):
        Sample.objects.bulk_create(samples(9), batch_size=1)
    assert Sample.objects.count() == 9


def test_handlers_of_signals_are_called_in_the_callers_thread() -> None:
    """If a signal has handlers, objects are written sequentially."""
    Sample.objects.bulk_create(samples(10))
    threads: set[int] = set()

    def note(**arguments: Any) -> None:
        threads.add(threading.get_ident())

    post_delete.connect(note, sender=Sample)
    try:
        assert Sample.objects.all().delete()[0] == 10
    finally:
        post_delete.disconnect(note, sender=Sample)
    assert threads == {threading.get_ident()}


def test_very_many_objects() -> None:
    """Created, updated and deleted: every one of them, with one request each."""
    made = Sample.objects.bulk_create(samples(MANY, text="new"))
    assert Sample.objects.count() == MANY
    for number, obj in enumerate(made):
        obj.integer = number
    with assert_requests(MANY):
        assert Sample.objects.bulk_update(made, ["integer"]) == MANY
    assert sorted(Sample.objects.values_list("integer", flat=True)) == list(range(MANY))
    assert Sample.objects.all().delete() == (MANY, {"catalog.Sample": MANY})
    assert Sample.objects.count() == 0


def test_what_follows_from_objects_is_right_after_parallel_writes() -> None:
    """Counters, copies and claims are exact after creating, updating, deleting and restoring many at once."""
    server = ChatServer.objects.create(server_id="s", name="S")
    users = ChatUser.objects.bulk_create([ChatUser(user_id=f"u{each}", username=f"User {each}") for each in range(30)])
    ChatMembership.objects.bulk_create([ChatMembership(server=server, user=user) for user in users])
    on_server = ChatMembership.objects.filter(server=server)
    assert sorted(on_server.values_list("username", flat=True)) == sorted(user.username for user in users)
    on_server.filter(role="Member", user_id__gte="u2").delete()
    ChatMembership.deleted_objects.filter(user_id__gte="u28").restore()
    server.refresh_from_db()
    assert server.member_count == on_server.count() > 0
    assert_consistent()


# failures


def test_throttled_writes_are_sent_again() -> None:
    """An operation on many objects waits for DynamoDB longer than a single save does."""
    with refuse("ProvisionedThroughputExceededException", operation="PutItem", times=9):
        Sample.objects.bulk_create(samples(3), batch_size=1)
    assert Sample.objects.count() == 3
    with (
        refuse("ProvisionedThroughputExceededException", operation="UpdateItem", times=1),
        pytest.raises(Throttled),
    ):
        Sample(sample_id="s0000", text="new").save(force_update=True)


@pytest.mark.parametrize("number", [2, 5, 9, 40])
def test_every_object_is_accounted_for(number: int) -> None:
    """After a failure, each object is written, failed or not tried, and the table agrees with this."""
    given = samples(40)
    bad = f"SAMPLE#s{number - 1:04d}"
    with failing("PutItem", bad), pytest.raises(BulkError) as raised:
        Sample.objects.bulk_create(given, batch_size=1)
    error = raised.value
    assert sorted([*error.written, *error.failed, *error.not_tried]) == [obj.pk for obj in given]
    assert [*error.failed] == [f"s{number - 1:04d}"]
    assert {obj.pk for obj in Sample.objects.all()} == {*error.written}
    assert [obj.pk for obj in given if not obj._state.adding] == [*error.written]
    assert number - 1 <= len(error.written) <= number + 7
    assert isinstance(error.__cause__, RequestFailed)
    assert f"bulk_create() wrote {len(error.written)} of 40 catalog.Sample objects, then failed at" in str(error)
    untried = f"It did not try {len(error.not_tried)} objects." if error.not_tried else "Written objects are kept."
    assert str(error).endswith(untried)


def test_the_rest_can_be_written_after_a_failure() -> None:
    """A second call writes the failed and untried objects."""
    given = {obj.pk: obj for obj in samples(30)}
    with failing("PutItem", "SAMPLE#s0003"), pytest.raises(BulkError) as raised:
        Sample.objects.bulk_create(given.values(), batch_size=1)
    rest = [*raised.value.failed, *raised.value.not_tried]
    Sample.objects.bulk_create([given[pk] for pk in rest])
    assert Sample.objects.count() == 30


def test_only_some_of_many_failures_are_told() -> None:
    """The message has three of them, the error has all that were under way."""
    with failing("PutItem", *(f"SAMPLE#s{number:04d}" for number in range(1, 9))), pytest.raises(BulkError) as raised:
        Sample.objects.bulk_create(samples(20), batch_size=1)
    assert [*raised.value.failed] == [f"s{number:04d}" for number in range(1, 9)]
    assert str(raised.value).count("pk 's") == 3
    assert "5 more" in str(raised.value)


def test_a_page_that_cannot_be_read_is_told_with_what_is_written() -> None:
    """If a read fails, the objects already read are written, and the error calls the rest unknown."""
    Order.objects.bulk_create(orders(25))
    seen: list[str] = []

    def interceptor(operation: str, params: Mapping[str, Any]) -> None:
        seen.append(operation)
        if seen.count("Query") == 2 and operation == "Query":
            raise refusal(operation, "InternalServerError")

    with intercept(interceptor), pytest.raises(BulkError, match="the app could not read the rest: ") as raised:
        Order.objects.filter(customer="c").update(coupon="c")
    assert (len(raised.value.written), raised.value.failed) == (Order.objects.filter(coupon="c").count(), {})
    assert 0 < len(raised.value.written) < 25


def test_a_first_page_that_cannot_be_read_is_its_own_error() -> None:
    """The error has no report, because no object was written."""
    with refuse("InternalServerError", operation="Query"), pytest.raises(RequestFailed):
        Order.objects.filter(customer="c").update(coupon="c")
