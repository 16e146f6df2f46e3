"""incr() and decr() raise the errors of Django's own caches, if documented or equal."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import caches
from django.core.cache.backends.base import BaseCache
from django.core.cache.backends.db import DatabaseCache
from django.core.cache.backends.filebased import FileBasedCache
from django.core.cache.backends.redis import RedisCacheClient
from django.test import override_settings

from dynamo_single.exceptions import NotCountable, NotSupported
from dynamo_single.table import Table
from dynamo_single.testing import assert_requests
from tests.contract.caching import BACKEND, cache_of

BACKENDS = {
    "ours": BACKEND,
    "memory": "django.core.cache.backends.locmem.LocMemCache",
    "files": "django.core.cache.backends.filebased.FileBasedCache",
}
#: Values that are no numbers.
OTHERS = ["text", "1", None, [1], {"a": 1}, b"1"]


def raised(call: Callable[[], object]) -> type[BaseException] | None:
    """The error of a call, as Django's users know it."""
    try:
        call()
    except (TypeError, ValueError) as error:
        return TypeError if isinstance(error, TypeError) else ValueError
    return None


@pytest.fixture(params=BACKENDS)
def cache(request: pytest.FixtureRequest, table: Table, tmp_path: Path) -> Any:
    """Our cache, and two of Django's."""
    location = {"ours": "default", "memory": request.node.name, "files": str(tmp_path)}[request.param]
    with override_settings(CACHES={"default": {"BACKEND": BACKENDS[request.param], "LOCATION": location}}):
        yield caches["default"]


@pytest.mark.parametrize("method", ["incr", "decr"])
def test_missing_key_raises_value_error(cache: Any, method: str) -> None:
    """Django: "A ValueError will be raised if you attempt to increment or decrement a nonexistent cache key."

    https://docs.djangoproject.com/en/stable/topics/cache/#basic-usage
    """
    with pytest.raises(ValueError, match=r"Key '(:1:)?visits' not found"):
        getattr(cache, method)("visits")


@pytest.mark.parametrize("method", ["incr", "decr"])
@pytest.mark.parametrize("value", OTHERS)
def test_other_value_raises_type_error(cache: Any, method: str, value: Any) -> None:
    cache.set("menu", value)
    assert raised(lambda: getattr(cache, method)("menu")) is TypeError
    assert cache.get("menu") == value


def test_database_cache_adds_as_the_one_in_files() -> None:
    """By the same method, so that what holds for one holds for both."""
    assert DatabaseCache.incr is FileBasedCache.incr is BaseCache.incr


def test_redis_cache_raises_value_error_for_a_missing_key() -> None:
    class Empty(RedisCacheClient):
        """A server without keys."""

        def __init__(self) -> None:
            pass

        def get_client(self, *args: Any, **kwargs: Any) -> Any:
            return type("Client", (), {"exists": lambda self, key: False})()

    with pytest.raises(ValueError, match="Key 'visits' not found"):
        Empty().incr("visits", 1)


def test_missing_key_pattern_replaces_no_value(table: Table) -> None:
    """The usual ``except ValueError: cache.set(key, 1)``."""
    with cache_of() as cache:
        cache.set("menu", "text")
        with pytest.raises(TypeError):
            try:
                cache.incr("menu")
            except ValueError:
                cache.set("menu", 1)
        assert cache.get("menu") == "text"


@pytest.mark.parametrize(
    ("value", "delta", "message"),
    [
        ("text", 1, "its value is no integer. Nothing was written. Use get() and set()"),
        (1.5, 1, "its value is no integer"),
        (10**38 - 1, 1, "the sum has more than 38 digits"),
    ],
)
def test_error_names_the_reason(table: Table, value: Any, delta: int, message: str) -> None:
    with cache_of() as cache:
        cache.set("menu", value)
        with assert_requests(["GetItem", "UpdateItem"]), pytest.raises(NotCountable, match=re.escape(message)) as error:
            cache.incr("menu", delta)
        assert isinstance(error.value, NotSupported)
        assert cache.get("menu") == value


@pytest.mark.parametrize("delta", [1.5, "1", None, True])
def test_delta_that_is_no_integer_is_refused(table: Table, delta: Any) -> None:
    with cache_of() as cache, assert_requests([]), pytest.raises(NotCountable, match="incr\\(\\) and decr\\(\\) add"):
        cache.incr("visits", delta)
