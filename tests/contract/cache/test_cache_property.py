"""Any sequence of calls has the results of Django's in-memory cache."""

from __future__ import annotations

import time
from typing import Any
from unittest.mock import patch

from django.core.cache import caches
from django.test import override_settings
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamo_single.exceptions import NotSupported
from dynamo_single.table import Table
from tests.contract.caching import BACKEND, Clock
from tests.deep import examples

KEYS = st.sampled_from(["a", "b", "a#b"])
VALUES = st.one_of(st.integers(-(10**20), 10**20), st.sampled_from(["text", None, [1]]))
TIMEOUTS = st.sampled_from([None, 0, -1, 1, 2.5, 10])
VERSIONS = st.sampled_from([1, 2])
DATA = st.dictionaries(KEYS, VALUES)

CALLS = st.one_of(
    st.tuples(st.sampled_from(["set", "add", "get_or_set"]), st.tuples(KEYS, VALUES, TIMEOUTS, VERSIONS)),
    st.tuples(st.just("touch"), st.tuples(KEYS, TIMEOUTS, VERSIONS)),
    st.tuples(st.sampled_from(["incr", "decr"]), st.tuples(KEYS, st.integers(-5, 5), VERSIONS)),
    st.tuples(st.sampled_from(["incr_version", "decr_version"]), st.tuples(KEYS, st.just(1), VERSIONS)),
    st.tuples(st.just("get"), st.tuples(KEYS, VALUES, VERSIONS)),
    st.tuples(st.sampled_from(["has_key", "delete"]), st.tuples(KEYS, VERSIONS)),
    st.tuples(st.sampled_from(["get_many", "delete_many"]), st.tuples(st.lists(KEYS), VERSIONS)),
    st.tuples(st.just("set_many"), st.tuples(DATA, TIMEOUTS, VERSIONS)),
    st.tuples(st.just("clear"), st.just(())),
    st.tuples(st.just("wait"), st.tuples(st.sampled_from([0.5, 1, 10]))),
)


def result(cache: Any, method: str, args: tuple[Any, ...]) -> Any:
    """Return the result of a call, or the type of its error."""
    if method == "delete":
        cache.has_key(*args)  # in memory, deleting what has expired counts as deleting
    try:
        return getattr(cache, method)(*args)
    except ValueError:
        return "no such key"
    except (TypeError, NotSupported):
        return "no integer"


@given(calls=st.lists(CALLS, max_size=15), split=st.booleans())
@settings(max_examples=examples(15, 60))
def test_it_is_as_the_cache_in_memory(table: Table, calls: list[tuple[str, Any]], split: bool) -> None:
    """Results and contents are the same after every call, whichever calls came before."""
    ours = {"BACKEND": BACKEND, "OPTIONS": {"LARGE_VALUES": "split" if split else "refuse"}}
    memory = {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": "property"}
    clock = Clock(time.time())
    with override_settings(CACHES={"default": ours, "memory": memory}), patch("time.time", clock.time):
        both = caches["default"], caches["memory"]
        for cache in both:
            cache.clear()
        for method, args in calls:
            if method == "wait":
                clock.now += args[0]
                continue
            found, expected = (result(cache, method, args) for cache in both)
            assert (found, type(found)) == (expected, type(expected)), method
            for version in (0, 1, 2, 3):
                held, wanted = (cache.get_many(["a", "b", "a#b"], version=version) for cache in both)
                assert held == wanted, method
