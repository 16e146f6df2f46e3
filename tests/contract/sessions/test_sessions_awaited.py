"""Asynchronous sessions: twenty calls overlap, with the requests of the synchronous methods."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar

import pytest
from django.contrib.sessions.backends.base import UpdateError
from django.test import override_settings

from dynamo_single import cached_sessions, sessions
from dynamo_single.testing import capture_requests
from tests.contract.model.awaiting import awaited, gathering
from tests.ready import table_ready

CALLS = 20
pytestmark = pytest.mark.usefixtures("table")
ENGINES: list[Any] = [sessions.SessionStore, cached_sessions.SessionStore]
CACHES = {
    "default": {"BACKEND": "dynamo_single.cache.DynamoCache", "LOCATION": "default"},
}


def key(number: int) -> str:
    """The key of a stored session."""
    return f"{number:032d}"


def fill() -> None:
    """A session for each call."""
    table_ready()
    for number in range(CALLS):
        store: Any = sessions.SessionStore()
        store["number"] = number
        store._session_key = key(number)
        store.save(must_create=True)


async def _set(store: Any) -> None:
    await store.aset("more", 1)
    await store.asave()


def set_(store: Any) -> None:
    """Change a session and save it."""
    store["more"] = 1
    store.save()


CALLED: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Awaitable[Any]]]] = {
    "create": (lambda store: store.create(), lambda store: store.acreate()),
    "cycle_key": (lambda store: store.cycle_key(), lambda store: store.acycle_key()),
    "delete": (lambda store: store.delete(), lambda store: store.adelete()),
    "exists": (lambda store: store.exists(store.session_key), lambda store: store.aexists(store.session_key)),
    "flush": (lambda store: store.flush(), lambda store: store.aflush()),
    "get": (lambda store: store.get("number"), lambda store: store.aget("number")),
    "load": (lambda store: store.load(), lambda store: store.aload()),
    "save": (set_, _set),
}


@pytest.mark.parametrize("store_class", ENGINES)
@pytest.mark.parametrize("name", CALLED)
def test_calls_overlap_and_do_the_same(name: str, store_class: Any) -> None:
    """Each of twenty calls starts a request before any gets its response, and threads do not send any."""
    call, twin = CALLED[name]
    with override_settings(CACHES=CACHES):
        fill()
        with capture_requests() as sent:
            expected = [call(store_class(key(number))) for number in range(CALLS)]
        fill()

        async def ask() -> list[Any]:
            with gathering(CALLS):
                return list(await asyncio.gather(*(twin(store_class(key(number))) for number in range(CALLS))))

        with capture_requests() as sent_too, awaited() as found:
            assert asyncio.run(ask()) == expected
    assert Counter(each.operation for each in sent_too) == Counter(each.operation for each in sent)
    assert len(found) == len(sent_too)


@pytest.mark.parametrize("store_class", ENGINES)
def test_a_session_that_was_deleted_meanwhile_is_not_saved(store_class: Any) -> None:
    """Synchronous code behaves the same way."""
    fill()

    async def ask() -> None:
        store = store_class(key(1))
        await store.aget("number")
        await store_class(key(1)).adelete()
        with pytest.raises(UpdateError):
            await _set(store)

    with override_settings(CACHES=CACHES):
        asyncio.run(ask())
    assert not sessions.SessionStore().exists(key(1))


class Own(sessions.SessionStore):
    """A project's engine with a ``load()`` of its own."""

    threads: ClassVar[list[int]] = []

    def load(self) -> dict[str, Any]:
        """Load the data, and record the thread."""
        self.threads.append(threading.get_ident())
        return super().load()


def test_what_a_project_overrides_is_called_in_a_thread() -> None:
    """The write is still awaited."""
    fill()

    async def ask() -> None:
        await _set(Own(key(1)))

    with awaited() as found:
        asyncio.run(ask())
    assert found == ["UpdateItem"]
    assert len(Own.threads) == 1
    assert threading.get_ident() not in Own.threads
