"""Damaged cache items are misses: every method works, and new values are found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.core.cache import caches
from django.test import override_settings

from dynamo_single.table import Request, Table
from dynamo_single.testing import assert_requests
from tests.contract.caching import BACKEND, items, large
from tests.contract.damage import damages, store

SET = 3
#: Each method, and its possible results for a miss.
MISSES: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "get": (lambda cache: cache.get("a", "missing"), "missing"),
    "get_many": (lambda cache: cache.get_many(["a", "b"]), {"b": 2}),
    "has_key": (lambda cache: cache.has_key("a"), False),
    "incr": (lambda cache: cache.incr("a"), ValueError),
    "touch": (lambda cache: cache.touch("a", 50), False),
    "add": (lambda cache: cache.add("a", SET), True),
    "get_or_set": (lambda cache: cache.get_or_set("a", SET), SET),
    "delete": (lambda cache: cache.delete("a"), False),
    "delete_many": (lambda cache: cache.delete_many(["a"]), None),
    "set": (lambda cache: cache.set("a", SET), None),
    "clear": (lambda cache: cache.clear(), None),
    "clear of a version": (lambda cache: cache.clear(version=1), None),
}


@pytest.fixture
def cache(table: Table) -> Iterator[Any]:
    """A cache in the table, whose large entries have parts."""
    with override_settings(CACHES={"default": {"BACKEND": BACKEND, "OPTIONS": {"LARGE_VALUES": "split"}}}):
        yield caches["default"]


def outcome(cache: Any, name: str) -> Any:
    """Return the result of a method, or Django's documented error for a missing key."""
    try:
        return MISSES[name][0](cache)
    except ValueError as error:
        assert str(error) == "Key 'a' not found"
        return ValueError


def assert_usable(cache: Any, what: str) -> None:
    """Assert that a new value is found."""
    cache.set("a", SET)
    assert (what, cache.get("a")) == (what, SET)


def entry_of(table: Table, key: str) -> dict[str, Any]:
    """Return the item of an entry."""
    (found,) = (item for item in items(table, "Cache.Entry") if item["pk"]["S"].endswith(f":{key}"))
    return found


@pytest.mark.parametrize("value", [7, "text"])
def test_damaged_entry_is_a_miss(cache: Any, table: Table, value: Any) -> None:
    cache.set_many({"a": value, "b": 2}, 100)
    entry, other = entry_of(table, "a"), entry_of(table, "b")
    for what, damaged in damages(entry, leave=("itemType", "expiresAt")):
        if what == "without validUntil":
            continue  # like an entry without a timeout
        for name, (_, missed) in MISSES.items():
            forget_generations(table)
            store(table, other)
            store(table, damaged)
            assert (what, name, outcome(cache, name)) == (what, name, missed)
        assert_usable(cache, what)


@pytest.mark.parametrize("part", ["Cache.Entry", "Cache.Part"])
def test_damaged_entry_in_parts_is_a_miss(cache: Any, table: Table, part: str) -> None:
    cache.set("a", large(), 100)
    stored = [*items(table, "Cache.Entry"), *items(table, "Cache.Part")]
    item = next(each for each in stored if each["itemType"]["S"] == part)
    for what, damaged in damages(item, leave=("itemType", "expiresAt", "generation", "validUntil", "signer")):
        for each in (*stored, damaged):
            store(table, each)
        cache.touch("a", 100)
        assert (what, cache.get("a", "missing")) == (what, "missing")
        assert (what, cache.add("a", SET), cache.get("a")) == (what, True, SET)
        assert cache.delete("a")


@pytest.mark.parametrize("count", ["0", "-1", "100001", "99999999999"])
def test_damaged_number_of_parts_is_a_miss(cache: Any, table: Table, count: str) -> None:
    """The parts are not read."""
    cache.set("a", large(), 100)
    store(table, {**entry_of(table, "a"), "parts": {"N": count}})
    with assert_requests(["BatchGetItem", "DeleteItem"]):
        assert cache.get("a", "missing") == "missing"
    assert_usable(cache, count)


def test_damaged_generations_clear_the_cache(cache: Any, table: Table, caplog: Any) -> None:
    """The valid entries are unknown, and cleared ones do not return."""
    cache.set("a", "cleared")
    cleared = entry_of(table, "a")
    cache.clear()
    cache.clear(version=1)
    cache.set("a", "later")
    (generations,), later = items(table, "Cache.Generations"), entry_of(table, "a")
    for what, damaged in damages(generations, leave=("itemType",)):
        if what.startswith("without"):
            continue  # like a cache that was never cleared
        for name, (_, missed) in MISSES.items():
            for each in (later, damaged):
                store(table, each)
            if "latest" in what and "clear" not in name:
                continue  # which only clear() reads
            cache.delete("b")
            found = outcome(cache, name)
            assert (what, name, found) == (what, name, {} if name == "get_many" else missed)
            assert_usable(cache, what)
            store(table, cleared)
            assert cache.get("a") is None
    assert "which records the valid entries of the cache 'default', is damaged" in caplog.text


def test_damaged_entry_is_named_in_the_log(cache: Any, table: Table, caplog: Any) -> None:
    cache.set("a", large(), 100)
    store(table, {**entry_of(table, "a"), "parts": {"N": "-1"}})
    cache.get("a")
    assert "The cache entry 'CACHE#default#:1:a' is damaged: it is removed and not read." in caplog.text


def forget_generations(table: Table) -> None:
    """Make all entries valid, as in a cache that was never cleared."""
    for item in items(table, "Cache.Generations"):
        table.send(Request("DeleteItem", {"Key": {name: item[name] for name in ("pk", "sk")}}))
