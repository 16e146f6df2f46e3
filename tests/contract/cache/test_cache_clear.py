"""clear() in constant time, and with concurrent writes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from django.core.cache import caches
from django.test import override_settings

from dynamo_single import exceptions, testing
from dynamo_single.table import Request, SentRequest, Table
from tests.contract.caching import BACKEND, Clock, cache_of, items, operations

Sent = list[SentRequest]


@pytest.fixture
def cache(table: Table) -> Iterator[Any]:
    """The cache, empty."""
    with cache_of() as found:
        yield found


@contextmanager
def before_the_first(operation: str, act: Callable[[], object]) -> Iterator[list[str]]:
    """Let others act just before the first request of a kind goes out."""
    acted: list[str] = []

    def interceptor(asked: str, params: Any) -> None:
        if asked == operation and not acted:
            acted.append(asked)
            act()

    with testing.intercept(interceptor):
        yield acted
    assert acted


@pytest.mark.parametrize("number", [0, 1, 60])
def test_clearing_is_one_request(cache: Any, sent: Sent, table: Table, number: int) -> None:
    """The entries stay in the table, but a read misses them until they are set again."""
    data = {f"key-{each}": each for each in range(number)}
    cache.set_many(data)
    cache.set_many(data, version=2)
    sent.clear()
    cache.clear()
    assert operations(sent) == ["UpdateItem"]
    assert len(items(table, "Cache.Entry")) == 2 * number
    assert cache.get_many(data) == cache.get_many(data, version=2) == {}
    assert cache.set_many(data) == []
    assert cache.get_many(data) == data
    assert cache.get_many(data, version=2) == {}


def test_one_version_is_cleared_by_one_request_too(cache: Any, sent: Sent) -> None:
    """The other versions stay, and a clear() of all still takes everything."""
    for version in (1, 2, "beta"):
        cache.set("key", version, version=version)
    sent.clear()
    cache.clear(version=2)
    assert operations(sent) == ["UpdateItem"]
    assert [cache.get("key", version=version) for version in (1, 2, "beta")] == [1, None, "beta"]
    cache.clear(version="beta")
    cache.set("key", "new", version=2)
    assert [cache.get("key", version=version) for version in (1, 2, "beta")] == [1, "new", None]
    cache.clear()
    assert [cache.get("key", version=version) for version in (1, 2, "beta")] == [None] * 3
    cache.set("key", "newer", version=2)
    assert cache.get("key", version=2) == "newer"


def test_a_version_with_an_endless_name_cannot_be_cleared(cache: Any, sent: Sent) -> None:
    """The version does not fit into an attribute's name, so clear() raises an error before any request."""
    with pytest.raises(exceptions.InvalidValue, match="too long"):
        cache.clear(version="x" * 250)
    assert sent == []


def test_a_cleared_entry_is_gone_for_every_method(cache: Any) -> None:
    """Every method ignores it, and can write over it."""

    def cleared() -> Any:
        cache.set("key", 1, None)
        cache.clear()
        return cache

    assert cleared().get("key") is None
    assert not cleared().has_key("key")
    assert cleared().get_many(["key"]) == {}
    assert not cleared().touch("key")
    assert not cleared().delete("key")
    assert cleared().add("key", 2)
    assert cleared().get_or_set("key", 3) == 3
    for method in ("incr", "decr", "incr_version", "decr_version"):
        with pytest.raises(ValueError, match="not found"):
            getattr(cleared(), method)("key")


def test_caches_in_one_table_are_cleared_apart(table: Table) -> None:
    """OPTIONS["NAME"] separates caches and KEY_PREFIX does not, as in Django's other caches."""
    one = {"BACKEND": BACKEND, "LOCATION": "default"}
    settings = {
        "default": one,
        "pages": {**one, "OPTIONS": {"NAME": "pages"}},
        "prefixed": {**one, "KEY_PREFIX": "site"},
        "forged": {**one, "OPTIONS": {"NAME": "pages#"}},
    }
    with override_settings(CACHES=settings):
        for name in settings:
            caches[name].set("key", name)
        assert [caches[name].get("key") for name in settings] == list(settings)
        caches["default"].clear()
        assert [caches[name].get("key") for name in settings] == [None, "pages", None, "forged"]
        caches["pages"].clear()
        assert [caches[name].get("key") for name in settings] == [None, None, None, "forged"]


def test_generations_never_repeat(cache: Any, table: Table, clock: Clock) -> None:
    """If their item is lost, old entries are valid until the next clear(), and new ones can be set."""
    cache.set("key", "old")
    for _ in range(5):
        cache.clear()
    cache.set("key", "new")
    (generations,) = items(table, "Cache.Generations")
    table.send(Request("DeleteItem", {"Key": {name: generations[name] for name in ("pk", "sk")}}))
    assert cache.get("key") == "new"
    cache.set("key", "newer")
    assert cache.get("key") == "newer"
    clock.now += 1
    cache.clear()
    assert cache.get("key") is None
    cache.set("key", "newest")
    assert cache.get("key") == "newest"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The time of the cache."""
    stopped = Clock(float(int(time.time())))
    monkeypatch.setattr(time, "time", stopped.time)
    return stopped


# concurrent calls


def test_a_set_that_a_clear_overtakes_is_cleared_too(cache: Any) -> None:
    """The set() read the former generation, so it counts as set before the clear()."""
    with before_the_first("PutItem", cache.clear):
        cache.set("key", 1)
    assert cache.get("key") is None
    with before_the_first("BatchWriteItem", cache.clear):
        cache.set_many({"key": 1, "other": 2})
    assert cache.get_many(["key", "other"]) == {}


def test_a_set_never_hides_what_was_set_after_a_clear(cache: Any, sent: Sent) -> None:
    """Overtaken by a clear() and a set(), it reads the generation again and is the last one."""

    def others() -> None:
        cache.clear()
        cache.set("key", "other")

    with before_the_first("PutItem", others):
        cache.set("key", "mine")
    assert cache.get("key") == "mine"
    assert [request.error for request in sent if request.operation == "PutItem"].count(
        "ConditionalCheckFailedException"
    ) == 1


def test_an_add_never_takes_what_was_added_after_a_clear(cache: Any) -> None:
    """If two processes lock with add() and a clear() comes in between, one gets and keeps the lock."""

    def others() -> None:
        cache.clear()
        assert cache.add("lock", "other")

    with before_the_first("PutItem", others):
        assert not cache.add("lock", "mine")
    assert cache.get("lock") == "other"


def test_an_add_may_follow_what_a_clear_took(cache: Any) -> None:
    """A value set in between is cleared: then add() reads the generation again and writes."""

    def others() -> None:
        cache.clear()
        cache.set("lock", "other")
        cache.clear()

    with before_the_first("PutItem", others):
        assert cache.add("lock", "mine")
    assert cache.get("lock") == "mine"


def test_a_default_made_before_a_clear_is_not_kept(cache: Any) -> None:
    """get_or_set() gives it to its caller, and the next one makes it again."""

    def default() -> str:
        cache.clear()
        return "outdated"

    assert cache.get_or_set("key", default) == "outdated"
    assert cache.get("key") is None


def test_a_default_gives_way_to_what_was_set_meanwhile(cache: Any) -> None:
    """get_or_set() gives the other's value, with or without a clear() before it."""

    def default() -> str:
        cache.set("key", "theirs")
        return "mine"

    def cleared_default() -> str:
        cache.clear()
        return default()

    assert cache.get_or_set("key", default) == "theirs"
    cache.delete("key")
    assert cache.get_or_set("key", cleared_default) == "theirs"


@pytest.mark.parametrize("method", ["incr", "touch"])
def test_a_change_that_a_clear_overtakes_brings_nothing_back(cache: Any, method: str) -> None:
    """The change counts as done before the clear(), on a deleted value."""
    cache.set("key", 1)
    with before_the_first("UpdateItem", cache.clear):
        getattr(cache, method)("key")
    assert cache.get("key") is None


@pytest.mark.parametrize("method", ["set", "add"])
def test_endless_clearing_is_an_error(cache: Any, method: str) -> None:
    """A write that is overtaken every time raises an error."""
    busy: list[bool] = []

    def overtake(operation: str, params: Any) -> None:
        if operation == "PutItem" and not busy:
            busy.append(True)
            cache.clear()
            cache.set("key", "other")
            busy.clear()

    with testing.intercept(overtake), pytest.raises(exceptions.Conflict, match="Try again"):
        getattr(cache, method)("key", "mine")
    assert cache.get("key") == "other"


@pytest.mark.parametrize("seconds", [None, 60])
def test_one_add_wins(cache: Any, seconds: int | None) -> None:
    """Many threads add a key at the same time, and a single call succeeds."""
    with ThreadPoolExecutor(8) as threads:
        won = list(threads.map(lambda number: cache.add("lock", number, seconds), range(40)))
    assert won.count(True) == 1
    assert cache.get("lock") == won.index(True)


def test_an_add_whose_answer_was_lost(cache: Any, table: Table) -> None:
    """A repeated request recognizes its own value."""
    repeated: list[str] = []

    def lose_the_answer(operation: str, params: Any) -> None:
        if operation == "PutItem" and not repeated:
            repeated.append(operation)
            table.call(operation, params)

    with testing.intercept(lose_the_answer):
        assert cache.add("lock", "mine")
    assert repeated
    assert not cache.add("lock", "other")
