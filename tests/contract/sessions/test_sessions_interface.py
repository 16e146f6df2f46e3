"""Every method of Django's session interface, synchronous and asynchronous, on both engines of this app."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import time
from collections.abc import Iterator
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from django.contrib.sessions.backends.base import SessionBase
from django.contrib.sessions.management.commands.clearsessions import Command
from django.core.management import call_command
from django.test import override_settings
from django.utils import timezone

from dynamo_single import exceptions, testing
from dynamo_single.sessions import key_hash
from dynamo_single.table import SentRequest, Table
from tests import children
from tests.contract.noted import case
from tests.contract.sessions import session_races

Sent = list[SentRequest]
ROOT = Path(__file__).resolve().parents[3]
ENGINES = ["dynamo_single.sessions", "dynamo_single.cached_sessions"]
GREEN = {"colour": "green"}
TWO_WEEKS = 14 * 24 * 3600
KEY = object()
READ = ["GetItem"]

#: Method, arguments, result (``...`` for any), what the session holds afterwards, and the requests.
CASES: list[tuple[str, tuple[Any, ...], Any, dict[str, Any], list[str]]] = [
    ("__contains__", ("colour",), True, GREEN, READ),
    ("__getitem__", ("colour",), "green", GREEN, READ),
    ("__setitem__", ("a", 1), None, {**GREEN, "a": 1}, READ),
    ("__delitem__", ("colour",), None, {}, READ),
    ("get", ("colour",), "green", GREEN, READ),
    ("get", ("a", 1), 1, GREEN, READ),
    ("pop", ("colour",), "green", {}, READ),
    ("pop", ("a", 1), 1, GREEN, READ),
    ("setdefault", ("colour", "red"), "green", GREEN, READ),
    ("setdefault", ("a", 1), 1, {**GREEN, "a": 1}, READ),
    ("update", ({"a": 1},), None, {**GREEN, "a": 1}, READ),
    ("has_key", ("colour",), True, GREEN, READ),
    ("keys", (), ["colour"], GREEN, READ),
    ("values", (), ["green"], GREEN, READ),
    ("items", (), [("colour", "green")], GREEN, READ),
    ("clear", (), None, {}, []),
    ("is_empty", (), False, GREEN, []),
    ("load", (), GREEN, GREEN, READ),
    ("exists", (KEY,), True, GREEN, READ),
    ("exists", ("nobody",), False, GREEN, READ * 2),
    ("exists", (None,), False, GREEN, []),
    ("set_test_cookie", (), None, {**GREEN, "testcookie": "worked"}, READ),
    ("test_cookie_worked", (), False, GREEN, READ),
    ("delete_test_cookie", (), KeyError, GREEN, READ),
    ("get_session_cookie_age", (), TWO_WEEKS, GREEN, []),
    ("get_expiry_age", (), TWO_WEEKS, GREEN, READ),
    ("get_expiry_date", (), ..., GREEN, READ),
    ("get_expire_at_browser_close", (), False, GREEN, READ),
    ("set_expiry", (300,), None, {**GREEN, "_session_expiry": 300}, READ),
    ("set_expiry", (timedelta(seconds=300),), None, ..., READ),  # type: ignore[list-item]  # any
    ("encode", (GREEN,), ..., GREEN, []),
    ("decode", ("nonsense",), {}, GREEN, []),
    ("save", (), None, GREEN, [*READ, "UpdateItem"]),
    ("create", (), None, {}, ["PutItem"]),
    ("delete", (), None, GREEN, ["TransactWriteItems"]),
    ("delete", (KEY,), None, GREEN, ["TransactWriteItems"]),
    ("flush", (), None, {}, ["TransactWriteItems"]),
    ("cycle_key", (), None, GREEN, [*READ, "TransactWriteItems"]),
    ("clear_expired", (), None, GREEN, ["DescribeTimeToLive"]),
]
#: Public names of ``SessionBase`` that are no methods.
OTHERS = {"TEST_COOKIE_NAME", "TEST_COOKIE_VALUE", "key_salt", "session_key"}
#: Methods without an asynchronous variant in Django: they send no request, or the variant has another name.
ALONE = {
    "__contains__",
    "__getitem__",
    "__setitem__",
    "__delitem__",
    "clear",
    "is_empty",
    "get_session_cookie_age",
    "encode",
    "decode",
}


@pytest.fixture(params=ENGINES)
def store(request: pytest.FixtureRequest, table: Table) -> Iterator[Any]:
    """The session class of an engine, with a cache that is empty."""
    location = f"{request.node.name}-{time.time()}"
    memory = {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": location}
    with override_settings(CACHES={"default": memory}):
        yield import_module(request.param).SessionStore


def made(store: Any) -> Any:
    """A stored session, as another request would open it."""
    session = store()
    session["colour"] = "green"
    session.save()
    return store(session.session_key)


def call(session: Any, way: str, method: str, *args: Any) -> Any:
    """Call a method, or its asynchronous variant in an event loop."""
    if way == "synchronous":
        return getattr(session, method)(*args)

    async def run() -> Any:
        return await getattr(session, "aset" if method == "__setitem__" else f"a{method}")(*args)

    return asyncio.run(run())


def test_every_method_is_exercised() -> None:
    """The cases contain each method of Django's base class, and each runs with its asynchronous variant."""
    public = {name for name in dir(SessionBase) if not name.startswith("_")}
    methods = {case[0] for case in CASES}
    twins = {"aset", *(f"a{method}" for method in methods - ALONE)}
    assert {name for name in methods if not name.startswith("__")} | twins | OTHERS == public
    assert all(inspect.iscoroutinefunction(getattr(SessionBase, name)) for name in twins)


@pytest.mark.parametrize("way", ["synchronous", "asynchronous"])
def test_a_method(store: Any, sent: Sent, way: str) -> None:
    """Each method returns Django's documented result, sends exactly these requests, and has no other effect."""
    for method, args, result, held, requests in CASES:
        if way == "synchronous" or method not in ALONE - {"__setitem__"}:
            with case(method, args):
                assert_answers(made(store), sent, way, method, args, result, held, requests)


def assert_answers(
    session: Any, sent: Sent, way: str, method: str, args: tuple[Any, ...], result: Any, held: Any, requests: list[str]
) -> None:
    """By one method, of a session of its own."""
    args = tuple(session.session_key if each is KEY else each for each in args)
    sent.clear()
    if result is KeyError:
        with pytest.raises(KeyError):
            call(session, way, method, *args)
    else:
        found = call(session, way, method, *args)
        found = list(found) if method in ("keys", "values", "items") else found
        assert result is ... or found == result
    assert [request.operation for request in sent] == requests
    if method != "delete":
        assert held is ... or dict(session.items()) == held


def test_the_test_cookie(store: Any) -> None:
    """Set on one page, seen and removed on the next."""
    session = made(store)
    session.set_test_cookie()
    session.save()
    again = store(session.session_key)
    assert again.test_cookie_worked()
    again.delete_test_cookie()
    again.save()
    assert dict(store(session.session_key).items()) == GREEN


def test_expiry(store: Any, table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session is missing after its own expiry, for every method."""
    session = made(store)
    session.set_expiry(300)
    session.save()
    key = session.session_key
    assert abs(session.get_expiry_date() - timezone.now() - timedelta(seconds=300)) < timedelta(seconds=5)
    assert store(key)["colour"] == "green"
    later = timezone.now() + timedelta(seconds=301)
    monkeypatch.setattr(timezone, "now", lambda: later)
    monkeypatch.setattr(time, "time", later.timestamp)
    assert not store().exists(key)
    late = store(key)
    assert dict(late.items()) == {}
    assert late.session_key is None


class Backwards:
    """A serializer of a project."""

    def dumps(self, value: Any) -> bytes:
        """Write."""
        return json.dumps(value).encode()[::-1]

    def loads(self, data: bytes) -> Any:
        """Read."""
        return json.loads(data[::-1])


def test_serializers(store: Any) -> None:
    """SESSION_SERIALIZER writes the data; as in Django, another serializer's data is an empty session."""
    with override_settings(SESSION_SERIALIZER=f"{__name__}.Backwards"):
        session = made(store)
        assert store(session.session_key)["colour"] == "green"
    assert dict(store(session.session_key).items()) == {}


def test_clearsessions(store: Any, sent: Sent, capsys: pytest.CaptureFixture[str]) -> None:
    """Django's command keeps every session, and reports that DynamoDB's Time to Live deletes them."""
    key = made(store).session_key
    sent.clear()
    with override_settings(SESSION_ENGINE=store.__module__):
        call_command(Command())
    assert [request.operation for request in sent] == ["DescribeTimeToLive"]
    assert "DynamoDB deletes expired sessions from the table 'single-table' itself" in capsys.readouterr().out
    assert store().exists(key)


@pytest.mark.parametrize(
    "answer",
    [{}, {"TimeToLiveStatus": "DISABLED"}, {"TimeToLiveStatus": "ENABLED", "AttributeName": "ttl"}],
    ids=["none", "disabled", "other"],
)
def test_clearsessions_where_nothing_would_be_deleted(store: Any, answer: dict[str, str]) -> None:
    """Without Time to Live on the right attribute, the command fails and names the fix."""

    def describe(operation: str, params: Any) -> dict[str, Any] | None:
        return {"TimeToLiveDescription": answer} if operation == "DescribeTimeToLive" else None

    with (
        testing.intercept(describe),
        override_settings(SESSION_ENGINE=store.__module__),
        pytest.raises(exceptions.TableMismatch, match="dynamo_setup"),
    ):
        call_command(Command())


# two requests at once


@pytest.fixture(scope="module")
def djangos() -> dict[str, Any]:
    """The outcomes of the races on Django's database sessions."""
    child = children.run(["-m", "tests.contract.sessions.session_races"], env=os.environ)
    assert child.returncode == 0, child.stderr
    found: dict[str, Any] = json.loads(child.stdout)
    return found


@pytest.mark.parametrize("stopped", [True, False], ids=["within a second", "later"])
def test_races_end_as_with_djangos_database(
    store: Any, djangos: dict[str, Any], monkeypatch: pytest.MonkeyPatch, stopped: bool
) -> None:
    """The last save wins completely, and a deleted session stays deleted, as in Django's own backend."""
    if stopped:
        moment = timezone.now()
        monkeypatch.setattr(timezone, "now", lambda: moment)
        monkeypatch.setattr(time, "time", moment.timestamp)
    assert set(djangos) == set(session_races.RACES)
    assert session_races.run(store) == djangos


def test_a_session_is_never_a_mixture(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Data and expiry are from the last of two saves within a second."""
    moment = timezone.now()
    monkeypatch.setattr(timezone, "now", lambda: moment)
    key = made(store).session_key
    first, second = store(key), store(key)
    first.set_expiry(300)
    second["colour"] = "green"
    first.save()
    second.save()
    found = store.get_model_class().objects.get(pk=key_hash(key))
    assert found.get_decoded() == GREEN
    assert abs((found.expire_date - moment).total_seconds() - TWO_WEEKS) < 2
