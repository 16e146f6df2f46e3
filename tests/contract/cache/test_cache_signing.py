"""Only values signed with SECRET_KEY are unpickled; others are misses."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import override_settings

from dynamo_single.table import Request, SentRequest, Table
from tests.contract.caching import cache_of, items, large, operations

Sent = list[SentRequest]
SPLIT = {"OPTIONS": {"LARGE_VALUES": "split"}}
UNSIGNED = {"OPTIONS": {"SIGN": False}}
ran: list[str] = []


class Trap:
    """Code that runs when it is unpickled."""

    def __reduce__(self) -> Any:
        return ran.append, ("code",)


@pytest.fixture
def cache(table: Table) -> Iterator[Any]:
    """The cache, empty."""
    ran.clear()
    with cache_of() as found:
        yield found


def entry(table: Table) -> dict[str, Any]:
    """Return the only stored entry."""
    (found,) = items(table, "Cache.Entry")
    return found


def put(table: Table, item: dict[str, Any], **changes: Any) -> None:
    """Write an item like an attacker with access to the table and without the key."""
    table.send(Request("PutItem", {"Item": {**item, **changes}}))


def test_a_value_that_somebody_else_put_into_an_entry_is_not_unpickled(
    cache: Any, table: Table, caplog: pytest.LogCaptureFixture
) -> None:
    """The entry is a miss, the log names it, and its code does not run."""
    cache.set("key", "value")
    put(table, entry(table), value={"B": pickle.dumps(Trap())})
    with caplog.at_level(logging.WARNING, "dynamo_single.cache"):
        assert cache.get("key", "none") == "none"
    assert ran == []
    assert "'CACHE#default#:1:key' was not signed" in caplog.text
    assert cache.add("key", "mine")
    assert cache.get("key") == "mine"


def test_a_part_that_somebody_else_wrote_is_not_unpickled(table: Table) -> None:
    """A value in several items has one signature."""
    with cache_of(**SPLIT) as cache:
        cache.set("key", large())
        part = items(table, "Cache.Part")[0]
        put(table, part, value={"B": pickle.dumps(Trap())})
        assert cache.get("key") is None
        assert ran == []
        cache.set("key", large())
        assert cache.get("key") == large()


def test_an_entry_without_a_signature_is_not_there(cache: Any, table: Table) -> None:
    """Values from before signatures, or without them, are misses for each call, and are replaced."""
    with cache_of(**UNSIGNED) as unsigned:
        unsigned.set("key", Trap(), timeout=None)
    assert "signature" not in entry(table)
    with cache_of() as signed:
        assert signed.get("key") is None
        assert not signed.has_key("key")
        assert signed.get_many(["key"]) == {}
        assert not signed.touch("key")
        with pytest.raises(ValueError, match="not found"):
            signed.incr("key")
        assert ran == []
        assert signed.get_or_set("key", "mine") == "mine"
        assert signed.get("key") == "mine"


def test_a_value_is_bound_to_its_key(cache: Any, table: Table) -> None:
    """A genuine value under another's key is not there."""
    cache.set("mine", "mine")
    genuine = entry(table)
    put(table, genuine, pk={"S": genuine["pk"]["S"].replace("mine", "yours")})
    assert cache.get("yours") is None
    assert cache.get("mine") == "mine"


def test_a_key_that_was_replaced_still_reads_while_it_is_a_fallback(cache: Any) -> None:
    """New values are signed with the new key, which processes with the old one do not read."""
    cache.set("old", "value")
    with override_settings(SECRET_KEY="new", SECRET_KEY_FALLBACKS=["only-for-development-and-tests-not-a-secret"]):
        assert cache.get("old") == "value"
        assert not cache.add("old", "other")
        cache.set("new", "value")
    assert cache.get("new") is None
    with override_settings(SECRET_KEY="new"):
        assert cache.get("new") == "value"
        assert cache.get("old") is None
        assert cache.add("old", "other")


def test_integers_are_not_signed_and_count(cache: Any, table: Table) -> None:
    """DynamoDB adds to them without the key, and an integer cannot run code."""
    cache.set("key", 1)
    assert cache.incr("key") == 2
    assert {"signature", "signer"}.isdisjoint(entry(table))


def test_a_signature_costs_no_request(cache: Any, sent: Sent) -> None:
    """The calls send what they sent."""
    cache.set("key", "value")
    cache.get("key")
    assert operations(sent) == ["GetItem", "PutItem", "BatchGetItem"]
