"""Damaged session items count as missing: a page is shown, the log names the item, and a new session can start."""

from __future__ import annotations

import time
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.sessions.backends.base import UpdateError
from django.core.cache import caches
from django.db.models.signals import post_delete
from django.test import Client, override_settings

from dynamo_single.sessions import Session, key_hash
from dynamo_single.table import Table
from tests.contract.caching import BACKEND
from tests.contract.damage import damages, items_of, store
from tests.contract.sessions.former import as_former
from tests.contract.sessions.test_sessions_interface import ENGINES

MEMORY = "django.core.cache.backends.locmem.LocMemCache"
GREEN = {"colour": "green"}
#: Attributes whose damage does not prevent reading the session.
UNREAD = ("updatedAt",)


@pytest.fixture(params=ENGINES)
def session_class(request: pytest.FixtureRequest, table: Table) -> Iterator[Any]:
    """Return the session class of an engine, with a cache that quickly forgets."""
    dummy = {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}
    with override_settings(CACHES={"default": dummy}, SESSION_ENGINE=request.param):
        yield import_module(request.param).SessionStore


def made(session_class: Any, form: str) -> str:
    """Return the key of a stored session in this form."""
    session = session_class()
    session.update(GREEN)
    session.save()
    return as_former(session.session_key) if form == "Session" else str(session.session_key)


@pytest.mark.parametrize("form", ["HashedSession", "Session"])
def test_damaged_session_is_no_session(session_class: Any, table: Table, form: str) -> None:
    key = made(session_class, form)
    (item,) = items_of(table, form)
    for what, damaged in damages(item, leave=UNREAD):
        store(table, damaged)
        session = session_class(key)
        assert (what, dict(session.items()), session.session_key) == (what, {}, None)
        assert not session_class().exists(key)


@pytest.mark.parametrize("form", ["HashedSession", "Session"])
def test_damaged_time_of_the_last_save_stops_no_save(session_class: Any, table: Table, form: str) -> None:
    key = made(session_class, form)
    (item,) = items_of(table, form)
    for what, damaged in damages(item, leave={*item} - {*UNREAD}):
        session_class(key).delete()
        store(table, damaged)
        session = session_class(key)
        session["a"] = 1
        session.save()  # under another key, if it is unreadable
        assert (what, session_class(session.session_key)["a"]) == (what, 1)


@pytest.mark.parametrize("form", ["HashedSession", "Session"])
@pytest.mark.parametrize("listens", [True, False])
def test_damaged_session_is_deleted(session_class: Any, table: Table, form: str, listens: bool) -> None:
    key = made(session_class, form)
    (item,) = items_of(table, form)

    def note(**kwargs: Any) -> None:
        pass

    if listens:
        post_delete.connect(note, sender=Session)
    try:
        for what, damaged in damages(item):
            store(table, damaged)
            session_class(key).flush()
            assert (what, items_of(table, form)) == (what, [])
    finally:
        post_delete.disconnect(note, sender=Session)


@pytest.mark.parametrize("form", ["HashedSession", "Session"])
def test_damage_before_a_save_refuses_it(session_class: Any, table: Table, form: str) -> None:
    """The error is the same as for a deleted session."""
    key = made(session_class, form)
    (item,) = items_of(table, form)
    for _, damaged in damages(item, leave=UNREAD):
        store(table, damaged)
        session = session_class(key)
        session.clear()
        session["a"] = 1
        with pytest.raises(UpdateError):
            session.save()


@pytest.mark.urls("project.urls")
@pytest.mark.parametrize("form", ["HashedSession", "Session"])
def test_damaged_session_stops_no_page(session_class: Any, table: Table, form: str) -> None:
    """The visitor has to log in, and can."""
    user = get_user_model()._default_manager.create_user("ann", "ann@example.com", "secret-9")
    client = Client()
    client.force_login(user)
    cookie = client.cookies["sessionid"].value
    if form == "Session":
        as_former(cookie)
    (item,) = items_of(table, form)
    for what, damaged in damages(item, leave=UNREAD):
        store(table, damaged)
        client.cookies["sessionid"] = cookie
        answer = client.get("/accounts/")
        assert (what, answer.status_code) == (what, 302)
        client.cookies["sessionid"] = cookie
        answer = client.post("/accounts/login/", {"username": "ann", "password": "secret-9"})
        assert (what, answer.status_code) == (what, 302)
        assert client.get("/accounts/").status_code == 200


def test_log_names_the_item_and_no_key(session_class: Any, table: Table, caplog: Any) -> None:
    key, former = made(session_class, "HashedSession"), made(session_class, "Session")
    for form in ("HashedSession", "Session"):
        (item,) = items_of(table, form)
        store(table, {**item, "sessionData": {"N": "7"}})
    assert (dict(session_class(key).items()), dict(session_class(former).items())) == ({}, {})
    assert f"Cannot read the session pk='SESSIONHASH#{key_hash(key)}': its item is damaged" in caplog.text
    assert "Cannot read the session pk='SESSION#•••': its item is damaged" in caplog.text
    assert key not in caplog.text
    assert former not in caplog.text


@pytest.mark.parametrize("copy", [7, None, [], b"x", "", "x", ":", "x:data", "nan:data", {"a": 1}])
def test_damaged_copy_is_none(table: Table, copy: Any) -> None:
    """The table is read instead."""
    from dynamo_single.cached_sessions import SessionStore

    with override_settings(CACHES={"default": {"BACKEND": MEMORY, "LOCATION": f"damaged-{time.time()}"}}):
        key = made(SessionStore, "HashedSession")
        caches["default"].set(SessionStore.cache_key_prefix + key_hash(key), copy)
        assert dict(SessionStore(key).items()) == GREEN


def test_damaged_copy_in_the_table_is_none(table: Table) -> None:
    from dynamo_single.cached_sessions import SessionStore

    with override_settings(CACHES={"default": {"BACKEND": BACKEND}}):
        key = made(SessionStore, "HashedSession")
        assert dict(SessionStore(key).items()) == GREEN
        (entry,) = items_of(table, "Cache.Entry")
        for what, damaged in damages(entry):
            store(table, damaged)
            assert (what, dict(SessionStore(key).items())) == (what, GREEN)
