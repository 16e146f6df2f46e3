"""Sessions are stored under a hash of their key: the table's contents, and sessions of earlier versions."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.sessions.backends.base import UpdateError
from django.core.cache import caches
from django.db.models.signals import post_delete
from django.test import Client, override_settings

from dynamo_single import exceptions, testing
from dynamo_single.sessions import Session, key_hash
from dynamo_single.table import Request, SentRequest, Table
from tests.contract.sessions.former import FORMER, HASHED, as_former, item_of
from tests.contract.sessions.test_sessions_interface import ENGINES

Sent = list[SentRequest]
GREEN = {"colour": "green"}
MOVE = ["GetItem", "GetItem", "TransactWriteItems"]


@pytest.fixture(params=ENGINES)
def store(request: pytest.FixtureRequest, table: Table) -> Iterator[Any]:
    """The session class of an engine, with a cache that is empty."""
    memory = {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": f"hashed-{time.time()}"}
    with override_settings(CACHES={"default": memory}, SESSION_ENGINE=request.param):
        yield import_module(request.param).SessionStore


def made(store: Any) -> str:
    """Return the key of a stored session."""
    session = store()
    session.update(GREEN)
    session.save()
    return str(session.session_key)


def held(store: Any, key: str) -> dict[str, Any]:
    """Return what another request finds under a key."""
    return dict(store(key).items())


def forms(table: Table, key: str) -> str:
    """Return the stored items of a session."""
    found = {"former": item_of(table, FORMER + key), "hashed": item_of(table, HASHED + key_hash(key))}
    return " ".join(name for name, item in found.items() if item is not None)


def test_table_does_not_contain_the_key(store: Any, table: Table) -> None:
    key = made(store)
    assert key not in str(table.send(Request("Scan")))
    assert forms(table, key) == "hashed"


def test_cache_does_not_contain_the_key(store: Any, table: Table) -> None:
    key = made(store)
    assert held(store, key) == held(store, key) == GREEN
    cache: Any = caches["default"]
    assert key not in str([*cache._cache])


@pytest.mark.parametrize("leaked", [key_hash, lambda key: f"HASH#{key_hash(key)}", lambda key: HASHED + key_hash(key)])
def test_leaked_hash_as_cookie_finds_nothing(store: Any, leaked: Callable[[str], str]) -> None:
    key = made(store)
    held(store, key)
    assert held(store, leaked(key)) == {}
    assert not store().exists(leaked(key))


def test_hash_never_reads_a_moved_session(store: Any, table: Table) -> None:
    """This includes a session that an earlier version stored before."""
    key = as_former(made(store))
    session = store(key)
    session["a"] = 1
    session.save()
    assert held(store, key_hash(key)) == {}


def test_leaked_hash_logs_nobody_in(store: Any, table: Table) -> None:
    """The whole of a leaked table, tried as cookies."""
    user = get_user_model()._default_manager.create_user("ann", "ann@example.com", "secret-9")
    client = Client()
    client.force_login(user)
    cookie = client.cookies["sessionid"].value
    assert client.get("/accounts/").status_code == 200
    (item,) = [item for item in table.send(Request("Scan"))["Items"] if item["itemType"]["S"] == "HashedSession"]
    for value in (each["S"] for each in item.values() if "S" in each):
        client.cookies["sessionid"] = value
        assert client.get("/accounts/").status_code == 302
    client.cookies["sessionid"] = cookie
    assert client.get("/accounts/").status_code == 200


def test_hashed_session_is_read_by_one_request(table: Table, sent: Sent) -> None:
    from dynamo_single.sessions import SessionStore as store

    key = made(store)
    with testing.assert_requests(["GetItem"]):
        assert held(store, key) == GREEN


def test_former_session_stays_valid(store: Any) -> None:
    key = as_former(made(store))
    with testing.assert_requests(["GetItem", "GetItem"]):
        assert held(store, key) == GREEN
    assert store().exists(key)


def test_reading_does_not_move(store: Any, table: Table) -> None:
    key = as_former(made(store))
    held(store, key)
    assert forms(table, key) == "former"


def test_saving_moves_in_one_transaction(store: Any, table: Table) -> None:
    key = as_former(made(store))
    with testing.assert_requests(MOVE):
        session = store(key)
        session["a"] = 1
        session.save()
    assert forms(table, key) == "hashed"
    assert held(store, key) == {**GREEN, "a": 1}
    assert key not in str(table.send(Request("Scan")))


def test_moved_session_is_saved_by_one_update(store: Any) -> None:
    session = store(as_former(made(store)))
    session["a"] = 1
    session.save()
    session["a"] = 2
    with testing.assert_requests(["UpdateItem"]):
        session.save()


def test_moving_keeps_the_expiry(store: Any, table: Table) -> None:
    session = store()
    session.set_expiry(300)
    session.save()
    key = as_former(session.session_key)
    before = item_of(table, FORMER + key) or {}
    again = store(key)
    again["a"] = 1
    again.save()
    after = item_of(table, HASHED + key_hash(key)) or {}
    assert abs(int(after["expiresAt"]["N"]) - int(before["expiresAt"]["N"])) < 10
    assert store(key).get_expiry_age() == 300


def test_expired_former_session_is_gone(store: Any, table: Table) -> None:
    session = store()
    session.update(GREEN)
    session.set_expiry(-10)
    session.save()
    key = str(session.session_key)
    item = item_of(table, HASHED + key_hash(key)) or {}
    del item["sessionKeyHash"]
    item |= {"pk": {"S": FORMER + key}, "itemType": {"S": "Session"}, "sessionKey": {"S": key}}
    table.send(Request("PutItem", {"Item": item}))
    assert held(store, key) == {}
    assert not store().exists(key)


@pytest.mark.parametrize("end", ["flush", "delete", "cycle_key"])
@pytest.mark.parametrize("loaded", [True, False])
@pytest.mark.parametrize("keep", [True, False])
def test_ending_deletes_both_forms(store: Any, table: Table, end: str, loaded: bool, keep: bool) -> None:
    """This includes either form, and both after a restored backup."""
    key = as_former(made(store), keep=keep)
    session = store(key)
    if loaded:
        session.get("colour")
    getattr(session, end)()
    assert forms(table, key) == ""
    assert held(store, key) == {}


def test_deleting_by_key_deletes_both_forms(store: Any, table: Table) -> None:
    key = as_former(made(store), keep=True)
    with testing.assert_requests(["TransactWriteItems"]):
        store().delete(key)
    assert forms(table, key) == ""


def test_moved_session_does_not_come_back(store: Any, table: Table) -> None:
    """A request ends the session while another request moves it."""
    key = as_former(made(store))
    late = store(key)
    late["a"] = 1
    store(key).flush()
    with pytest.raises(UpdateError):
        late.save()
    assert forms(table, key) == ""


def test_second_save_wins_after_a_move(store: Any, table: Table) -> None:
    key = as_former(made(store))
    first, second = store(key), store(key)
    first["first"], second["second"] = 1, 2
    first.save()
    second.save()
    assert held(store, key) == {**GREEN, "second": 2}
    assert forms(table, key) == "hashed"


@pytest.mark.parametrize("act", ["save", "flush"])
def test_move_that_is_overtaken_ends_as_a_save(store: Any, table: Table, act: str) -> None:
    """Another request moves or ends the session just before the transaction."""
    key = as_former(made(store))
    late, other = store(key), store(key)
    late["late"], other["other"] = 1, 2
    acted: list[str] = []

    def before(operation: str, params: Any) -> None:
        if operation == "TransactWriteItems" and not acted:
            acted.append(operation)
            getattr(other, act)()

    with testing.intercept(before):
        if act == "flush":
            with pytest.raises(UpdateError):
                late.save()
        else:
            late.save()
    assert held(store, key) == ({} if act == "flush" else {**GREEN, "late": 1})
    assert forms(table, key) == ("" if act == "flush" else "hashed")


def test_move_that_fails_leaves_the_session(store: Any, table: Table) -> None:
    key = as_former(made(store))
    session = store(key)
    session["a"] = 1
    with testing.refuse("ThrottlingException", operation="TransactWriteItems"), pytest.raises(exceptions.Throttled):
        session.save()
    assert forms(table, key) == "former"
    assert held(store, key) == GREEN


def test_twins_move_and_delete(store: Any, table: Table) -> None:
    key, other = as_former(made(store)), as_former(made(store))

    async def use() -> None:
        session = store(key)
        await session.aset("a", 1)
        await session.asave()
        assert await store(key).aload() == {**GREEN, "a": 1}
        assert await store().aexists(other)
        await store(other).aflush()

    asyncio.run(use())
    assert (forms(table, key), forms(table, other)) == ("hashed", "")


def test_listener_hears_of_a_former_session(store: Any, table: Table) -> None:
    """With the model of today."""
    key = as_former(made(store))
    heard: list[Any] = []

    def note(instance: Any, **kwargs: Any) -> None:
        heard.append((type(instance), str(instance), instance.get_decoded()))

    post_delete.connect(note, sender=Session)
    try:
        store(key).flush()
    finally:
        post_delete.disconnect(note, sender=Session)
    assert heard == [(Session, key_hash(key), GREEN)]
    assert forms(table, key) == ""


@pytest.mark.parametrize("act", ["save", "flush"])
def test_copy_of_older_code_is_dropped(table: Table, act: str) -> None:
    """While both versions run, older code does not read a changed or ended session."""
    from dynamo_single.cached_sessions import SessionStore as store

    key = as_former(made(store))
    copy = store.cache_key_prefix + key
    caches["default"].set(copy, "9999999999:data")
    session = store(key)
    session["a"] = 1
    getattr(session, act)()
    assert caches["default"].get(copy) is None
