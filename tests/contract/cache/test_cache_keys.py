"""Keys of the cache: versions, settings, invalid keys, and many keys per call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from django.core.cache.backends.base import CacheKeyWarning

from dynamo_single import exceptions
from dynamo_single.table import SentRequest, Table
from tests.contract.caching import MANY, USES, cache_of, items, operations

Sent = list[SentRequest]


@pytest.fixture
def cache(table: Table) -> Iterator[Any]:
    """The cache, empty."""
    with cache_of() as found:
        yield found


def test_versions(cache: Any) -> None:
    """A version is part of the key, for every method, and moves by incr_version()."""
    cache.set("key", 1)
    cache.set("key", 2, version=2)
    assert (cache.get("key"), cache.get("key", version=2)) == (1, 2)
    assert cache.incr("key", version=2) == 3
    assert cache.get_many(["key"], version=2) == {"key": 3}
    assert cache.has_key("key", version=2)
    assert not cache.has_key("key", version=3)
    assert not cache.add("key", 0, version=2)
    assert cache.get_or_set("key", 0, version=2) == 3
    assert cache.touch("key", version=2)
    assert not cache.touch("key", version=3)
    assert cache.incr_version("key", version=2) == 3
    assert cache.decr_version("key", 2, version=3) == 1
    assert cache.get("key") == 3
    cache.set_many({"key": 4, "other": 5}, version=2)
    cache.delete_many(["key"], version=2)
    assert cache.get_many(["key", "other"], version=2) == {"other": 5}
    assert cache.delete("other", version=2)
    assert cache.get("key") == 3


def test_the_settings_of_a_key(table: Table) -> None:
    """KEY_PREFIX, VERSION and KEY_FUNCTION determine the key, as in Django."""
    with cache_of(KEY_PREFIX="site", VERSION=7) as cache:
        cache.set("key", 1)
        assert cache.get("key", version=7) == 1
    with cache_of(KEY_PREFIX="other", VERSION=7) as cache:
        assert cache.get("key") is None
    with cache_of(KEY_FUNCTION="tests.contract.cache.test_cache_keys.shouted") as cache:
        cache.set("key", 2)
    assert {item["pk"]["S"] for item in items(table)} == {"CACHE#default#site:7:key", "CACHE#default#KEY"}


def shouted(key: str, key_prefix: str, version: Any) -> str:
    """A KEY_FUNCTION of a project."""
    return key.upper()


@pytest.mark.parametrize(
    "key", ["a#b", "a#", "#", "$s", "\N{SNOWMAN}", "a/b?c=d&e", "UNIQUE#x", "a:b", 1, "x" * 200, "\U0010ffff"], ids=repr
)
def test_any_text_is_a_key(cache: Any, key: Any) -> None:
    """Separators of DynamoDB's keys are escaped, so that keys stay different."""
    cache.set(key, "mine")
    assert cache.get(key) == "mine"
    assert cache.get_many([key, "a", "b"]) == {key: "mine"}


@pytest.mark.parametrize(
    ("key", "message"), [("two words", "contains characters"), ("x" * 251, "longer than 250"), ("a\nb", "contains")]
)
def test_keys_that_memcached_does_not_take_are_warned_of(cache: Any, key: str, message: str) -> None:
    """Every method warns, as Django's other caches do."""
    for method, args in USES:
        with pytest.warns(CacheKeyWarning, match=message), suppress(ValueError):
            getattr(cache, method)(key, *args)
    for method, collect in MANY:
        with pytest.warns(CacheKeyWarning, match=message):
            getattr(cache, method)(collect([key]))


@pytest.mark.filterwarnings("ignore::django.core.cache.backends.base.CacheKeyWarning")
@pytest.mark.parametrize(("key", "message"), [("x" * 2049, "DynamoDB takes 2048"), ("a\ud800", "lone surrogate")])
def test_keys_that_dynamodb_does_not_take_are_refused(cache: Any, sent: Sent, key: str, message: str) -> None:
    """Every method raises an error before it writes; no key is truncated."""
    for method, args in USES:
        with pytest.raises(exceptions.InvalidValue, match=message):
            getattr(cache, method)(key, *args)
    for method, collect in MANY:
        with pytest.raises(exceptions.InvalidValue, match=message):
            getattr(cache, method)(collect([key]))
    assert set(operations(sent)) <= {"GetItem"}


def test_an_empty_key_is_refused(table: Table) -> None:
    """A KEY_FUNCTION that returns an empty string does not name an entry."""
    with cache_of(KEY_FUNCTION=lambda key, key_prefix, version: "") as cache, pytest.raises(exceptions.EmptyKeyPart):
        cache.get("key")


# many


def test_many_keys_are_read_by_the_hundred(cache: Any, sent: Sent) -> None:
    """99 keys and the generation are one BatchGetItem; writes and deletions go by 25."""
    data = {f"key-{number}": number for number in range(100)}
    assert cache.set_many(data) == []
    assert operations(sent) == ["GetItem", *["BatchWriteItem"] * 4]
    sent.clear()
    assert cache.get_many(data) == data
    asked = [len(each["Keys"]) for request in sent for each in request.params["RequestItems"].values()]
    assert sorted(asked) == [2, 100]
    sent.clear()
    assert len(cache.get_many(list(data)[:99])) == 99
    assert operations(sent) == ["BatchGetItem"]
    sent.clear()
    cache.delete_many(data)
    assert operations(sent) == ["BatchWriteItem"] * 4
    assert cache.get_many(data) == {}


def test_keys_that_are_one_to_the_key_function(table: Table) -> None:
    """They are read once, and each gets the value; the last of several values is stored."""
    with cache_of(KEY_FUNCTION=shouted) as cache:
        cache.set_many({"a": 1, "A": 2})
        assert cache.get_many(["a", "A"]) == {"a": 2, "A": 2}
        cache.delete_many(["a", "A"])
        assert cache.get_many(["a", "A"]) == {}
