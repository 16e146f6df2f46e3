"""The asynchronous cache: twenty calls overlap, with the effects of the synchronous methods."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from dynamo_single.cache import DynamoCache
from dynamo_single.testing import capture_requests
from tests.contract.model.awaiting import awaited, gathering
from tests.ready import table_ready

CALLS = 20
pytestmark = pytest.mark.usefixtures("table")

#: The name of a method, and its arguments for a numbered call.
CALLED: dict[str, tuple[str, Callable[[int], tuple[Any, ...]]]] = {
    "add": ("add", lambda n: (f"new{n}", n)),
    "add, there": ("add", lambda n: (f"k{n}", n)),
    "clear": ("clear", lambda n: ()),
    "decr": ("decr", lambda n: (f"k{n}", 2)),
    "delete": ("delete", lambda n: (f"k{n}",)),
    "delete_many": ("delete_many", lambda n: ([f"k{n}", f"new{n}"],)),
    "get": ("get", lambda n: (f"k{n}",)),
    "get, missing": ("get", lambda n: (f"new{n}", "none")),
    "get_many": ("get_many", lambda n: ([f"k{n}", f"new{n}"],)),
    "get_or_set": ("get_or_set", lambda n: (f"new{n}", lambda: n)),
    "has_key": ("has_key", lambda n: (f"k{n}",)),
    "incr": ("incr", lambda n: (f"k{n}",)),
    "incr_version": ("incr_version", lambda n: (f"k{n}",)),
    "set": ("set", lambda n: (f"k{n}", [n])),
    "set, over": ("set", lambda n: (f"k{n}", n, 0)),
    "set_many": ("set_many", lambda n: ({f"k{n}": 1, f"new{n}": 2},)),
    "touch": ("touch", lambda n: (f"k{n}", 60)),
}


def fill(cache: Any) -> None:
    """A value for each call."""
    table_ready()
    cache.set_many({f"k{number}": number for number in range(CALLS)})


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("name", CALLED)
def test_calls_overlap_and_do_the_same(name: str, split: bool) -> None:
    """Each of twenty calls starts a request before any gets its response, and threads do not send any."""
    cache = DynamoCache("default", {"OPTIONS": {"LARGE_VALUES": "split" if split else "refuse"}})
    method, given = CALLED[name]
    fill(cache)
    with capture_requests() as sent:
        expected = [getattr(cache, method)(*given(number)) for number in range(CALLS)]
    held = cache.get_many([f"{kind}{number}" for kind in ("k", "new") for number in range(CALLS)])
    fill(cache)

    async def ask() -> list[Any]:
        with gathering(CALLS):
            return list(await asyncio.gather(*(getattr(cache, f"a{method}")(*given(n)) for n in range(CALLS))))

    with capture_requests() as sent_too, awaited() as found:
        assert asyncio.run(ask()) == expected
    assert Counter(each.operation for each in sent_too) == Counter(each.operation for each in sent)
    assert len(found) == len(sent_too)
    assert cache.get_many([f"{kind}{number}" for kind in ("k", "new") for number in range(CALLS)]) == held


class Own(DynamoCache):
    """A project's cache with a ``get()`` of its own."""

    def get(self, *args: Any, **options: Any) -> Any:
        """Record the thread of the call."""
        return threading.get_ident()


def test_what_a_project_overrides_is_called_in_a_thread() -> None:
    """The other methods are awaited."""
    cache = Own("default", {})

    async def ask() -> Any:
        await cache.aset("k", 1)
        return await cache.aget("k")

    with awaited() as found:
        assert asyncio.run(ask()) != threading.get_ident()
    assert found == ["GetItem", "PutItem"]


def test_get_or_set_gives_what_a_projects_get_does() -> None:
    """Another process's value came in between, and is read."""
    cache = Own("default", {})
    theirs = DynamoCache("default", {})

    def default() -> str:
        theirs.set("k", "theirs")
        return "mine"

    assert cache.get_or_set("k", default) == threading.get_ident()


def test_large_values_are_awaited_too() -> None:
    """The loop reads and writes their parts."""
    cache = DynamoCache("default", {"OPTIONS": {"LARGE_VALUES": "split"}})
    large = "x" * 1_000_000

    async def ask() -> Any:
        await cache.aset("large", large)
        return await cache.aget("large")

    with capture_requests() as sent, awaited() as found:
        assert asyncio.run(ask()) == large
    assert found == [each.operation for each in sent]
