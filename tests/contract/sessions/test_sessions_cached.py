"""Sessions with a cache: requests to the table, and copies removed after a change or a logout."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from django.contrib.sessions.backends.base import UpdateError
from django.core.cache import caches
from django.core.cache.backends.base import BaseCache, InvalidCacheBackendError
from django.test import override_settings

from dynamo_single import exceptions, sessions, testing
from dynamo_single.cached_sessions import FENCE_SECONDS, SessionStore
from dynamo_single.sessions import key_hash
from dynamo_single.table import SentRequest, Table
from tests.contract.caching import BACKEND, Clock, operations

Sent = list[SentRequest]
MEMORY = "django.core.cache.backends.locmem.LocMemCache"
GREEN = {"colour": "green"}


@pytest.fixture(params=[MEMORY, BACKEND], ids=["memory", "table"])
def any_cache(request: pytest.FixtureRequest, table: Table) -> Iterator[Any]:
    """A cache of Django, and this app's own."""
    location = "default" if request.param == BACKEND else f"sessions-{time.time()}"
    with override_settings(CACHES={"default": {"BACKEND": request.param, "LOCATION": location}}):
        yield caches["default"]


@pytest.fixture
def cache(table: Table) -> Iterator[Any]:
    """Return a cache outside the table."""
    with override_settings(CACHES={"default": {"BACKEND": MEMORY, "LOCATION": f"sessions-{time.time()}"}}):
        yield caches["default"]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The time of the cache."""
    stopped = Clock(float(int(time.time())))
    monkeypatch.setattr(time, "time", stopped.time)
    return stopped


def made(**data: Any) -> str:
    """The key of a stored session."""
    session = SessionStore()
    session.update(data or GREEN)
    session.save()
    assert session.session_key is not None
    return session.session_key


def held(key: str) -> dict[str, Any]:
    """Return the data that a request finds with the key."""
    return dict(SessionStore(key).items())


def test_a_session_is_read_once(cache: Any, sent: Sent) -> None:
    """The first read adds it to the cache, and later ones do not send requests."""
    key = made()
    sent.clear()
    assert [held(key) for _ in range(3)] == [GREEN] * 3
    assert operations(sent) == ["GetItem"]


def test_a_change_is_seen_at_once(any_cache: Any) -> None:
    """Every later request sees it, whether or not the session was cached."""
    key = made()
    for number in range(4):
        session = SessionStore(key)
        session["number"] = number
        session.save()
        assert held(key) == held(key) == {**GREEN, "number": number}
        assert dict(sessions.SessionStore(key).items()) == {**GREEN, "number": number}


def test_after_a_change_the_table_is_read_for_a_while(cache: Any, sent: Sent, clock: Clock) -> None:
    """The fence causes table reads for a time; then the session is cached again."""
    key = made()
    session = SessionStore(key)
    session["a"] = 1
    session.save()
    sent.clear()
    assert held(key) == held(key) == {**GREEN, "a": 1}
    assert operations(sent) == ["GetItem"] * 2
    clock.now += FENCE_SECONDS
    sent.clear()
    assert held(key) == held(key) == {**GREEN, "a": 1}
    assert operations(sent) == ["GetItem"]


@pytest.mark.parametrize("end", ["flush", "delete", "cycle_key"])
def test_a_logout_is_seen_at_once(any_cache: Any, end: str) -> None:
    """The old key is invalid, cached or not."""
    key = made()
    assert held(key) == GREEN
    getattr(SessionStore(key), end)()
    assert held(key) == {}
    assert not SessionStore().exists(key)


def overtaken(monkeypatch: pytest.MonkeyPatch, method: str, act: Callable[[], object]) -> list[str]:
    """Let another request act just before a method of the cache is called."""
    cache: Any = type(caches["default"])
    real = getattr(cache, method)
    acted: list[str] = []

    def late(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not acted:
            acted.append(method)
            act()
        return real(self, *args, **kwargs)

    monkeypatch.setattr(cache, method, late)
    return acted


def test_a_reader_does_not_bring_a_session_back(any_cache: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reader read the table before a logout, and the cache rejects its later copy."""
    key = made()
    acted = overtaken(monkeypatch, "add", lambda: SessionStore(key).flush())
    assert held(key) == GREEN
    assert acted
    assert held(key) == {}


def test_a_reader_does_not_bring_old_data_back(any_cache: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change instead of the logout has the same effect."""
    key = made()

    def change() -> None:
        session = SessionStore(key)
        session["colour"] = "red"
        session.save()

    acted = overtaken(monkeypatch, "add", change)
    assert held(key) == GREEN
    assert acted
    assert held(key) == {"colour": "red"}


def test_a_writer_does_not_bring_a_session_back(any_cache: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The writer writes the table before a logout, and updates the cache after it."""
    key = made()
    session = SessionStore(key)
    session["late"] = 1
    acted: list[str] = []

    def log_out(operation: str, params: Any) -> None:
        if operation == "UpdateItem" and "SESSIONHASH#" in str(params) and not acted:
            acted.append(operation)
            SessionStore(key).flush()

    with testing.intercept(log_out), pytest.raises(UpdateError):
        session.save()
    assert acted
    assert held(key) == {}


def test_two_writers_leave_the_last_ones_data(any_cache: Any) -> None:
    """Reads return the table's data, in any order of cache updates."""
    key = made()
    first, second = SessionStore(key), SessionStore(key)
    first["a"], second["b"] = 1, 2
    acted: list[str] = []

    def in_between(operation: str, params: Any) -> None:
        if operation == "UpdateItem" and "SESSIONHASH#" in str(params) and not acted:
            acted.append(operation)
            second.save()

    with testing.intercept(in_between):
        first.save()
    assert acted
    assert held(key) == {**GREEN, "a": 1} == dict(sessions.SessionStore(key).items())


def test_a_slow_reader_and_a_fence_that_is_over(cache: Any, monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    """The write renews a fence, which then lasts for its whole time."""
    key = made()
    session = SessionStore(key)
    session["colour"] = "red"

    def slow(operation: str, params: Any) -> None:
        if operation == "UpdateItem":
            clock.now += FENCE_SECONDS + 1
            assert held(key) == GREEN  # another request, which caches what is still there

    with testing.intercept(slow):
        session.save()
    assert held(key) == {"colour": "red"}


def test_a_copy_ends_with_its_session(cache: Any, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """This applies even if the cache keeps it longer."""
    real = type(cache).add
    monkeypatch.setattr(type(cache), "add", lambda self, key, value, timeout: real(self, key, value, None))
    session = SessionStore()
    session.update(GREEN)
    session.set_expiry(100)
    session.save()
    key = str(session.session_key)
    assert held(key) == {**GREEN, "_session_expiry": 100}
    with testing.assert_requests(0):
        assert held(key) == {**GREEN, "_session_expiry": 100}
    clock.now += 101
    with testing.assert_requests(["GetItem"]):
        held(key)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("cookie", ["x" * 3000, "two words in it", "", "short", "UPPER" * 10, "\x00" * 32, "a" * 33])
def test_a_cookie_that_no_session_has(cache: Any, cookie: str) -> None:
    """The cache is not queried for invalid keys."""
    session = SessionStore(cookie)
    assert dict(session.items()) == {}
    assert session.session_key is None


class Broken(BaseCache):
    """A cache whose server is down."""

    def __init__(self, location: str, params: dict[str, Any]) -> None:
        super().__init__(params)

    def get(self, *args: Any, **kwargs: Any) -> Any:
        raise ConnectionError("the cache is down")

    set = add = get


@pytest.fixture
def broken(table: Table) -> Iterator[None]:
    """The cache is down."""
    with override_settings(CACHES={"default": {"BACKEND": f"{__name__}.Broken"}}):
        yield


def test_a_cache_that_is_down_is_done_without(broken: None, caplog: pytest.LogCaptureFixture) -> None:
    """Reads and writes use only the table and log an error, as in Django's cached_db."""
    with caplog.at_level(logging.ERROR, logger="django.contrib.sessions"):
        key = made()
        session = SessionStore(key)
        session["a"] = 1
        session.save()
        assert held(key) == {**GREEN, "a": 1}
    assert {record.msg for record in caplog.records} == {
        "Error reading from cache (%s)",
        "Error saving to cache (%s)",
    }
    assert all(record.exc_info for record in caplog.records)


def test_a_logout_that_the_cache_is_not_told_of_is_an_error(broken: None) -> None:
    """The item is deleted, and the error reports a possible copy."""
    key = made()
    with pytest.raises(ConnectionError):
        SessionStore(key).flush()
    assert not sessions.SessionStore().exists(key)


@pytest.mark.parametrize("use", ["load", "save", "delete", "create", "exists"])
def test_a_table_that_does_not_answer_is_an_error(cache: Any, use: str) -> None:
    """An error of the table never looks like an empty or deleted session."""
    session = SessionStore(made())
    session["a"] = 1
    other = SessionStore(made())
    with testing.refuse("ProvisionedThroughputExceededException"), pytest.raises(exceptions.Throttled):
        {
            "load": other.load,
            "save": session.save,
            "delete": other.delete,
            "create": SessionStore().create,
            "exists": lambda: SessionStore().exists(other.session_key),
        }[use]()


def test_a_failed_write_leaves_no_copy_of_it(cache: Any) -> None:
    """Later reads return the table's data."""
    key = made()
    session = SessionStore(key)
    session["a"] = 1
    with testing.refuse("ThrottlingException", operation="UpdateItem"), suppress(exceptions.Throttled):
        session.save()
    assert held(key) == GREEN


def test_the_setting_names_the_cache(table: Table) -> None:
    """SESSION_CACHE_ALIAS must be an alias in CACHES; any other value raises an error."""
    memory = {"BACKEND": MEMORY, "LOCATION": f"sessions-{time.time()}"}
    with override_settings(CACHES={"default": {**memory, "LOCATION": "unused"}, "visits": memory}):
        with override_settings(SESSION_CACHE_ALIAS="visits"):
            key = made()
            held(key)
            assert held(key) == GREEN
            assert caches["visits"].get(SessionStore.cache_key_prefix + key_hash(key))
            assert caches["default"].get(SessionStore.cache_key_prefix + key_hash(key)) is None
        with override_settings(SESSION_CACHE_ALIAS="other"), pytest.raises(InvalidCacheBackendError):
            SessionStore()


def test_a_session_of_the_plain_engine_can_be_cached(cache: Any) -> None:
    """A project can switch between the two engines without logging users out."""
    session = sessions.SessionStore()
    session.update(GREEN)
    session.save()
    assert held(str(session.session_key)) == GREEN
    assert dict(sessions.SessionStore(made()).items()) == GREEN
