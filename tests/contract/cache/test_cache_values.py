"""Cached values, increments of integers, and the lifetime of an entry."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from dynamo_single import exceptions
from dynamo_single.table import SentRequest, Table
from project.directory.models import Company
from tests.contract.caching import Clock, cache_of, items

Sent = list[SentRequest]


@pytest.fixture
def cache(table: Table) -> Iterator[Any]:
    """The cache, empty."""
    with cache_of() as found:
        yield found


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The time of the cache."""
    stopped = Clock(float(int(time.time())))
    monkeypatch.setattr(time, "time", stopped.time)
    return stopped


class Colour:
    """Something that only pickle can store."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Colour) and other.name == self.name

    __hash__ = None  # type: ignore[assignment]  # compared, never hashed

    def __repr__(self) -> str:
        return f"Colour({self.name!r})"


@pytest.mark.parametrize(
    "value",
    [
        "text",
        "",
        "\N{SNOWMAN}",
        b"bytes",
        b"",
        None,
        True,
        False,
        0,
        -1,
        10**38 - 1,
        1 - 10**38,
        10**38,
        10**400,
        1.5,
        float("inf"),
        Decimal("1.10"),
        [1, "a", None],
        (1, 2),
        {"a": {"b": {1, 2}}},
        datetime(2025, 1, 31, 12, tzinfo=UTC),
        Colour("green"),
        Colour,
        len,
    ],
    ids=repr,
)
def test_a_value_comes_back(cache: Any, value: Any) -> None:
    """The value that is read has the same type."""
    cache.set("key", value)
    found = cache.get("key")
    assert found == value
    assert type(found) is type(value)
    assert cache.get_many(["key"]) == {"key": value}


def test_a_stored_object_is_read_as_an_object(cache: Any) -> None:
    """An object of one of this app's models survives with its identity."""
    company = Company.objects.create(company_id="c1", name="Acme")
    cache.set("company", company)
    found = cache.get("company")
    assert found == company
    assert found is not company
    found.name = "Acme Ltd"
    found.save()
    assert Company.objects.get(pk="c1").name == "Acme Ltd"


def test_a_value_is_a_copy(cache: Any) -> None:
    """A change of the given or the returned value does not affect the cache."""
    value = {"a": [1]}
    cache.set("key", value)
    value["a"].append(2)
    cache.get("key")["a"].append(3)
    assert cache.get("key") == {"a": [1]}


def test_what_cannot_be_pickled_is_an_error(cache: Any, table: Table) -> None:
    """pickle's own error is raised before any write."""
    with pytest.raises(Exception, match=r"pickle|local object"):
        cache.set("key", lambda: 1)
    assert items(table) == []


def test_integers_are_numbers_in_the_table(cache: Any, table: Table) -> None:
    """DynamoDB can increment them; true and false are not integers."""
    cache.set("one", 1)
    cache.set("true", True)
    stored = {item["pk"]["S"]: item for item in items(table, "Cache.Entry")}
    assert stored["CACHE#default#:1:one"]["number"] == {"N": "1"}
    assert "number" not in stored["CACHE#default#:1:true"]


# counting


def test_counting_at_once_loses_nothing(cache: Any) -> None:
    """Each of many concurrent incr() calls gets a different number."""
    cache.set("visits", 0)
    with ThreadPoolExecutor(8) as threads:
        results = list(threads.map(lambda _: cache.incr("visits"), range(200)))
    assert sorted(results) == list(range(1, 201))
    assert cache.get("visits") == 200


@pytest.mark.parametrize("value", ["5", 5.0, True, None, [5], 10**38], ids=repr)
@pytest.mark.parametrize("method", ["incr", "decr"])
def test_what_is_no_integer_cannot_be_counted(cache: Any, method: str, value: Any) -> None:
    """The error is not a ValueError, which would mean a missing value, and the value is kept."""
    cache.set("key", value)
    with pytest.raises(exceptions.NotSupported, match="its value is no integer"):
        getattr(cache, method)("key")
    assert cache.get("key") == value


@pytest.mark.parametrize(("value", "delta"), [(10**38 - 1, 1), (1 - 10**38, -1), (1, 10**38 - 1), (10**38 - 2, 5)])
def test_a_sum_stays_exact(cache: Any, value: int, delta: int) -> None:
    """Beyond 38 digits, DynamoDB would round, so an error is raised, and the value is kept."""
    cache.set("key", value)
    with pytest.raises(exceptions.NotSupported, match="more than 38 digits"):
        cache.incr("key", delta)
    assert cache.get("key") == value


@pytest.mark.parametrize("delta", [1.5, "1", True, None, Decimal(1)])
def test_only_integers_are_added(cache: Any, sent: Sent, delta: Any) -> None:
    """Another delta raises an error before any request is sent."""
    with pytest.raises(exceptions.NotSupported, match="add integers"):
        cache.incr("key", delta)
    assert sent == []


@pytest.mark.parametrize("delta", [10**38, -(10**60)])
def test_a_delta_that_no_sum_can_hold(cache: Any, delta: int) -> None:
    """The delta raises the same error as the sum."""
    cache.set("key", 1)
    with pytest.raises(exceptions.NotSupported, match="38 digits"):
        cache.incr("key", delta)
    assert cache.get("key") == 1


# timeouts


@pytest.mark.parametrize(
    ("timeout", "seconds"), [(10, 10.0), (0.5, 0.5), (1.25, 1.25), (300, 300.0), (10**9, 10.0**9), ("default", 300.0)]
)
@pytest.mark.parametrize("method", ["set", "set_many", "add", "touch", "get_or_set"])
def test_a_timeout_is_exact(cache: Any, clock: Clock, method: str, timeout: Any, seconds: float) -> None:
    """Every method finds a value until a millisecond before its timeout, but misses it afterwards."""
    args = () if timeout == "default" else (timeout,)
    if method == "touch":
        cache.set("key", 1, 1)
        cache.touch("key", *args)
    elif method == "set_many":
        cache.set_many({"key": 1, "other": 2}, *args)
    else:
        getattr(cache, method)("key", 1, *args)
    started = clock.now
    clock.now = started + seconds - 0.001
    assert cache.get("key") == 1
    assert cache.get_many(["key"]) == {"key": 1}
    assert cache.has_key("key")
    assert cache.incr("key", 0) == 1
    assert not cache.add("key", 2)
    clock.now = started + seconds
    assert cache.get("key") is None
    assert cache.get_many(["key"]) == {}
    assert not cache.has_key("key")
    with pytest.raises(ValueError, match="not found"):
        cache.incr("key")
    assert not cache.touch("key")
    assert not cache.delete("key")
    assert cache.get_or_set("key", 3, timeout=1) == 3
    clock.now += 1
    assert cache.add("key", 4)
    assert cache.get("key") == 4


@pytest.mark.parametrize("timeout", [0, -1, -0.5, -(10**9)])
@pytest.mark.parametrize("method", ["set", "set_many", "add", "touch", "get_or_set"])
def test_a_timeout_that_is_over(cache: Any, table: Table, method: str, timeout: float) -> None:
    """The value is not found, and DynamoDB's Time to Live deletes its items."""
    if method == "touch":
        cache.set("key", 1)
        assert cache.touch("key", timeout)
    elif method == "set_many":
        cache.set_many({"key": 1}, timeout)
    else:
        assert getattr(cache, method)("key", 1, timeout) in (None, True, 1)
    assert cache.get("key") is None
    assert all(abs(float(item["expiresAt"]["N"]) - time.time()) < 60 for item in items(table))


def test_no_timeout_is_for_ever(cache: Any, clock: Clock, table: Table) -> None:
    """None stores no end, also by touch(), and touch() can give it one again."""
    cache.set("key", 1, None)
    cache.set("other", 1, 10)
    assert cache.touch("other", None)
    assert all("expiresAt" not in item and "validUntil" not in item for item in items(table))
    clock.now += 10**9
    assert cache.get_many(["key", "other"]) == {"key": 1, "other": 1}
    assert cache.touch("key", 5)
    clock.now += 5
    assert cache.get_many(["key", "other"]) == {"other": 1}


def test_the_end_of_an_entry_is_stored_twice(cache: Any, clock: Clock, table: Table) -> None:
    """To the millisecond for this app, and in whole seconds, rounded up, for DynamoDB's time to live."""
    cache.set("key", 1, 10.25)
    (item,) = items(table)
    assert item["validUntil"] == {"N": str(int(clock.now * 1000) + 10250)}
    assert item["expiresAt"] == {"N": str(int(clock.now) + 11)}


def test_counting_keeps_the_timeout(cache: Any, clock: Clock) -> None:
    """incr() does not make a value live longer."""
    cache.set("key", 1, 10)
    clock.now += 9
    cache.incr("key")
    clock.now += 1
    assert cache.get("key") is None


@pytest.mark.parametrize(("timeout", "found"), [(None, True), (5, False), ("5", False), (0, False)])
def test_the_setting_timeout(table: Table, clock: Clock, timeout: Any, found: bool) -> None:
    """TIMEOUT is what a call without a timeout takes."""
    with cache_of(TIMEOUT=timeout) as cache:
        cache.set("key", 1)
        clock.now += 5
        assert cache.has_key("key") is found
