"""Values that are larger than an item may be: refused, or stored in parts."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from dynamo_single import exceptions, testing
from dynamo_single.orm.schema.keys.values import item_size
from dynamo_single.table import Request, SentRequest, Table
from dynamo_single.table.request import MAX_ITEM_SIZE
from tests.contract.caching import cache_of, items, large, operations

Sent = list[SentRequest]
PARTS = 3  # The parts of a ``large()`` value.


@pytest.fixture
def cache(table: Table) -> Iterator[Any]:
    """A cache that splits."""
    with cache_of(OPTIONS={"LARGE_VALUES": "split"}) as found:
        yield found


@pytest.mark.parametrize(
    "write",
    [
        lambda cache: cache.set("key", large()),
        lambda cache: cache.add("key", large()),
        lambda cache: cache.set_many({"small": 1, "key": large()}),
        lambda cache: cache.get_or_set("key", large()),
    ],
)
def test_a_large_value_is_refused(table: Table, sent: Sent, write: Callable[[Any], object]) -> None:
    """The error names the option, and the table does not change."""
    with cache_of() as cache, pytest.raises(exceptions.ItemTooLarge, match=r"OPTIONS\[\"LARGE_VALUES\"\].*split"):
        write(cache)
    assert set(operations(sent)) <= {"GetItem", "BatchGetItem"}
    assert items(table) == []


def largest(cache: Any, table: Table) -> int:
    """Return the largest number of bytes for one item with the key ``key``, without a timeout."""
    cache.set("key", b"", None)
    (item,) = items(table, "Cache.Entry")
    overhead = item_size(item) - len(item["value"]["B"]) + len(pickle.dumps(bytes(400_000), 5)) - 400_000
    return MAX_ITEM_SIZE - overhead


def test_the_limit_is_dynamodbs_own(table: Table) -> None:
    """DynamoDB stores the largest value, and rejects one more byte."""
    with cache_of() as cache:
        fits = largest(cache, table)
        cache.set("key", bytes(fits), None)
        assert cache.get("key") == bytes(fits)
        with pytest.raises(exceptions.ItemTooLarge):
            cache.set("key", bytes(fits + 1), None)
        assert cache.get("key") == bytes(fits)


def test_a_large_value_is_stored_in_parts(cache: Any, sent: Sent, table: Table) -> None:
    """Parts are written before the entry, and read after it; a small value is one item."""
    cache.set("key", large(), 60)
    assert operations(sent) == ["GetItem", "BatchWriteItem", "PutItem"]
    (head,) = items(table, "Cache.Entry")
    parts = items(table, "Cache.Part")
    assert len(parts) == PARTS == int(head["parts"]["N"])
    assert {part["pk"]["S"] for part in parts} == {head["pk"]["S"]}
    assert {part["expiresAt"]["N"] for part in parts} == {head["expiresAt"]["N"]}
    assert all(item_size(part) <= MAX_ITEM_SIZE for part in parts)
    sent.clear()
    assert cache.get("key") == large()
    assert cache.get_many(["key", "other"]) == {"key": large()}
    assert operations(sent) == ["BatchGetItem"] * 4
    sent.clear()
    assert cache.has_key("key")
    assert operations(sent) == ["BatchGetItem"]


@pytest.mark.parametrize("size", [0, 1])
def test_the_first_value_that_is_split(cache: Any, table: Table, size: int) -> None:
    """A value is in parts from the byte on that does not fit."""
    fits = largest(cache, table)
    cache.set("key", bytes(fits + size), None)
    assert cache.get("key") == bytes(fits + size)
    assert len(items(table, "Cache.Part")) == 2 * size


@pytest.mark.parametrize(
    "write",
    [
        lambda cache: cache.set("key", large(2)),
        lambda cache: cache.set_many({"key": large(2)}),
        lambda cache: cache.delete("key") and cache.add("key", large(2)),
        lambda cache: cache.clear() or cache.add("key", large(2)),
        lambda cache: cache.clear() or cache.get_or_set("key", large(2)),
    ],
)
def test_replacing_removes_the_old_parts(cache: Any, table: Table, write: Callable[[Any], object]) -> None:
    """No unused part remains."""
    cache.set("key", large(1))
    write(cache)
    assert cache.get("key") == large(2)
    assert len(items(table, "Cache.Part")) == PARTS


@pytest.mark.parametrize(
    "remove",
    [
        lambda cache: cache.delete("key"),
        lambda cache: cache.delete_many(["key", "other"]),
        lambda cache: cache.set("key", "small"),
        lambda cache: cache.set("key", 1, 0),
        lambda cache: cache.incr_version("key") and cache.delete("key", version=2),
    ],
)
def test_removing_removes_the_parts(cache: Any, table: Table, remove: Callable[[Any], object]) -> None:
    """Deleting the entry, or replacing it by a small one, takes its parts away."""
    cache.set("key", large())
    remove(cache)
    assert items(table, "Cache.Part") == []


def test_an_add_that_loses_leaves_no_parts(cache: Any, table: Table) -> None:
    """They were written first, and are removed if a value exists."""
    cache.set("key", 1)
    assert not cache.add("key", large())
    assert cache.get("key") == 1
    assert items(table, "Cache.Part") == []


@pytest.mark.parametrize(("timeout", "moved"), [(3600, True), (None, False)])
def test_touching_touches_the_parts(cache: Any, sent: Sent, table: Table, timeout: Any, moved: bool) -> None:
    """DynamoDB's time to live must not take them before the entry."""
    cache.set("key", large(), 60)
    sent.clear()
    assert cache.touch("key", timeout)
    assert operations(sent) == ["GetItem", *["UpdateItem"] * (1 + PARTS)]
    (head,) = items(table, "Cache.Entry")
    assert {part.get("expiresAt", {}).get("N") for part in items(table, "Cache.Part")} == {
        head.get("expiresAt", {}).get("N")
    }
    assert ("expiresAt" in head) is moved
    assert cache.get("key") == large()


def test_touching_what_is_replaced_meanwhile(cache: Any, table: Table) -> None:
    """touch() does not recreate the former value's parts, which set() has deleted."""
    cache.set("key", large(1), 60)
    updates: list[str] = []

    def replace(operation: str, params: Any) -> None:
        if operation == "UpdateItem":
            updates.append(operation)
            if len(updates) == 2:
                cache.set("key", large(2), 60)

    with testing.intercept(replace):
        assert cache.touch("key", 3600)
    assert cache.get("key") == large(2)
    assert len(items(table, "Cache.Part")) == PARTS


def between_reads(act: Callable[[int], object]) -> Callable[[str, Any], None]:
    """An interceptor that lets others act before each reading of parts."""
    done: list[int] = []

    def interceptor(operation: str, params: Any) -> None:
        if operation == "BatchGetItem" and "PART" in str(params):
            done.append(1)
            act(len(done))

    return interceptor


@pytest.mark.parametrize(
    ("act", "found"),
    [
        (lambda cache: cache.set("key", large(2)), large(2)),
        (lambda cache: cache.set("key", "small"), "small"),
        (lambda cache: cache.delete("key"), None),
        (lambda cache: (cache.set("key", large(2)), cache.clear()), None),
    ],
    ids=["large", "small", "deleted", "cleared"],
)
def test_a_reader_sees_one_write(cache: Any, act: Callable[[Any], object], found: Any) -> None:
    """If a value is replaced between the reads of the entry and its parts, the new one is read."""
    cache.set("key", large(1))
    with testing.intercept(between_reads(lambda number: act(cache) if number == 1 else None)):
        assert cache.get("key") == found


def test_endless_replacing_is_an_error(cache: Any) -> None:
    """A reader that never finds a complete value raises an error instead of reporting a miss."""
    cache.set("key", large(1))
    replace = between_reads(lambda number: cache.set("key", large(number % 200)))
    with testing.intercept(replace), pytest.raises(exceptions.Conflict, match="while it was read"):
        cache.get("key")


def test_a_part_that_is_lost_is_a_miss(cache: Any, table: Table) -> None:
    """An entry with a missing part is a miss; it is removed, and can be written again."""
    cache.set("key", large())
    part = items(table, "Cache.Part")[1]
    table.send(Request("DeleteItem", {"Key": {name: part[name] for name in ("pk", "sk")}}))
    assert not cache.add("key", 1)
    assert cache.get("key", "missing") == "missing"
    assert items(table) == []
    assert cache.add("key", large(1))
    assert cache.get("key") == large(1)


def test_readers_and_writers_at_once(cache: Any) -> None:
    """No reader ever sees a mixture of two writes."""
    cache.set("key", large(0))

    def write(number: int) -> bool:
        cache.set("key", large(number))
        return True

    def read(_: int) -> bool:
        try:
            value = cache.get("key")
        except exceptions.Conflict:
            return True
        return value is not None and len(set(value)) == 1 and len(value) == len(large())

    with ThreadPoolExecutor(4) as threads:
        writers = threads.map(write, range(1, 9))
        readers = threads.map(read, range(16))
        assert all(readers)
        assert all(writers)


def test_a_split_value_is_read_whatever_the_option(cache: Any) -> None:
    """A stored value stays readable without the option."""
    cache.set("key", large())
    with cache_of() as strict:
        assert strict.get("key") == large()
        assert strict.delete("key")


def test_a_split_value_is_no_integer(cache: Any) -> None:
    """incr() raises an error."""
    cache.set("key", large())
    with pytest.raises(exceptions.NotSupported, match="no integer"):
        cache.incr("key")


def test_an_expired_large_value_is_missed(cache: Any) -> None:
    """Its parts are not read."""
    cache.set("key", large(), 60)
    assert cache.touch("key", -1)
    with testing.assert_requests(["BatchGetItem"]):
        assert cache.get("key") is None
