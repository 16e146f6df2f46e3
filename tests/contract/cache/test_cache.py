"""The cache in the table, against Django's documented interface: every method, synchronous and asynchronous."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.cache.backends.base import BaseCache

from dynamo_single import exceptions, testing
from dynamo_single.table import SentRequest, Table
from tests import children
from tests.contract.caching import MANY, USES, cache_of, operations
from tests.contract.noted import case

Sent = list[SentRequest]
ROOT = Path(__file__).resolve().parents[3]
READ, WRITE, CHANGE = ["BatchGetItem"], ["GetItem", "PutItem"], ["GetItem", "UpdateItem"]

#: The contents of the cache before each case.
BEFORE = {"text": "hello", "number": 5, "none": None}
#: Method, arguments, result, requests, and later differences (``...`` for a missing key).
CASES: list[tuple[str, tuple[Any, ...], Any, list[str], dict[str, Any]]] = [
    ("get", ("text",), "hello", READ, {}),
    ("get", ("none", "other"), None, READ, {}),
    ("get", ("missing",), None, READ, {}),
    ("get", ("missing", "other"), "other", READ, {}),
    ("set", ("text", [1]), None, WRITE, {"text": [1]}),
    ("set", ("new", 1), None, WRITE, {"new": 1}),
    ("set", ("text", 1, 0), None, ["DeleteItem"], {"text": ...}),
    ("add", ("new", 1), True, WRITE, {"new": 1}),
    ("add", ("text", 1), False, WRITE, {}),
    ("add", ("none", 1), False, WRITE, {}),
    ("touch", ("text", 60), True, CHANGE, {}),
    ("touch", ("text", -1), True, CHANGE, {"text": ...}),
    ("touch", ("missing",), False, CHANGE, {}),
    ("delete", ("text",), True, ["DeleteItem", "GetItem"], {"text": ...}),
    ("delete", ("missing",), False, ["DeleteItem"], {}),
    ("has_key", ("none",), True, READ, {}),
    ("has_key", ("missing",), False, READ, {}),
    ("get_many", (["text", "none", "missing", "text"],), {"text": "hello", "none": None}, READ, {}),
    ("get_many", ({"number"},), {"number": 5}, READ, {}),
    ("get_many", ([],), {}, [], {}),
    ("set_many", ({"text": 1, "new": 2},), [], ["GetItem", "BatchWriteItem"], {"text": 1, "new": 2}),
    ("set_many", ({"text": 1, "none": 2}, 0), [], ["BatchWriteItem"], {"text": ..., "none": ...}),
    ("set_many", ({},), [], [], {}),
    ("delete_many", (["text", "missing", "number"],), None, ["BatchWriteItem"], {"text": ..., "number": ...}),
    ("delete_many", ([],), None, [], {}),
    ("get_or_set", ("text", 1), "hello", READ, {}),
    ("get_or_set", ("none", 1), None, READ, {}),
    ("get_or_set", ("new", 1), 1, [*READ, "PutItem"], {"new": 1}),
    ("get_or_set", ("new", lambda: 2), 2, [*READ, "PutItem"], {"new": 2}),
    ("incr", ("number",), 6, CHANGE, {"number": 6}),
    ("incr", ("number", 10), 15, CHANGE, {"number": 15}),
    ("incr", ("missing",), ValueError, CHANGE, {}),
    ("decr", ("number",), 4, CHANGE, {"number": 4}),
    ("decr", ("number", 10), -5, CHANGE, {"number": -5}),
    ("decr", ("missing",), ValueError, CHANGE, {}),
    ("incr_version", ("text",), 2, [*READ, *WRITE, "DeleteItem", "GetItem"], {"text": ...}),
    ("incr_version", ("missing",), ValueError, READ, {}),
    ("decr_version", ("text",), 0, [*READ, *WRITE, "DeleteItem", "GetItem"], {"text": ...}),
    ("decr_version", ("missing",), ValueError, READ, {}),
    ("clear", (), None, ["UpdateItem"], dict.fromkeys(BEFORE, ...)),
    ("close", (), None, [], {}),
]
#: Public names of ``BaseCache`` without requests: settings, and computations of keys and timeouts.
COMPUTED = {
    "default_timeout",
    "key_func",
    "key_prefix",
    "version",
    "get_backend_timeout",
    "make_key",
    "validate_key",
    "make_and_validate_key",
}
BOTH_WAYS = pytest.mark.parametrize("way", ["synchronous", "asynchronous"])


@pytest.fixture
def cache(table: Table) -> Iterator[Any]:
    """The cache, empty."""
    with cache_of() as found:
        yield found


def call(cache: Any, way: str, method: str, *args: Any, **kwargs: Any) -> Any:
    """Call a method, or its asynchronous variant in an event loop."""
    if way == "synchronous":
        return getattr(cache, method)(*args, **kwargs)

    async def run() -> Any:
        return await getattr(cache, f"a{method}")(*args, **kwargs)

    return asyncio.run(run())


def test_every_method_is_exercised() -> None:
    """The cases contain each method of Django's base class, and each has its asynchronous variant."""
    public = {name for name in dir(BaseCache) if not name.startswith("_")}
    methods = {case[0] for case in CASES}
    twins = {f"a{name}" for name in methods}
    assert methods | twins | COMPUTED == public | {"default_timeout", "key_func", "key_prefix", "version"}
    assert all(inspect.iscoroutinefunction(getattr(BaseCache, name)) for name in twins)


@BOTH_WAYS
@pytest.mark.parametrize(
    ("method", "args", "result", "requests", "changes"), CASES, ids=lambda value: value if type(value) is str else ""
)
def test_a_method(
    cache: Any,
    sent: Sent,
    way: str,
    method: str,
    args: tuple[Any, ...],
    result: Any,
    requests: list[str],
    changes: dict[str, Any],
) -> None:
    """Each method returns Django's documented result, sends exactly these requests, and has no other effect."""
    for key, value in BEFORE.items():
        cache.set(key, value)
    sent.clear()
    if result is ValueError:
        with pytest.raises(ValueError, match="Key 'missing' not found"):
            call(cache, way, method, *args)
    else:
        assert call(cache, way, method, *args) == result
    assert operations(sent) == requests
    expected = {key: value for key, value in {**BEFORE, **changes}.items() if value is not ...}
    assert cache.get_many(["text", "number", "none", "new", "missing"]) == expected


def test_in(cache: Any, sent: Sent) -> None:
    """``in`` sends the request of has_key()."""
    cache.set("a", None)
    sent.clear()
    assert "a" in cache
    assert "b" not in cache
    assert operations(sent) == READ * 2


def test_every_read_is_strongly_consistent(cache: Any, sent: Sent) -> None:
    """Every process reads the last write of any other process."""
    cache.set("a", 1)
    cache.get("a")
    (generation,) = (request.params for request in sent if request.operation == "GetItem")
    (read,) = (request.params for request in sent if request.operation == "BatchGetItem")
    assert generation["ConsistentRead"] is True
    assert [asked["ConsistentRead"] for asked in read["RequestItems"].values()] == [True]


def test_another_process_reads_what_was_set(cache: Any, table: Table) -> None:
    """Both processes see a value and a clear() of the other one."""
    cache.set("a", {"from": "here"})
    code = (
        "import django; django.setup()\n"
        "from tests.contract.caching import cache_of\n"
        "with cache_of() as cache: print(cache.get('a')); cache.clear(); cache.set('b', 2)"
    )
    address = (table.settings.endpoint_url or "").replace("http", "dynamodb", 1)
    url = f"{address}/{table.name}?region=us-east-1"
    child = children.run(["-c", code], env={"DJANGO_SETTINGS_MODULE": "tests.settings", "DYNAMO_TEST_URL": url})
    assert (child.returncode, child.stdout) == (0, "{'from': 'here'}\n"), child.stderr
    assert cache.get_many(["a", "b"]) == {"b": 2}


# an unreachable table

KEYED = [*((method, ("key", *args)) for method, args in USES), ("clear", ())]
LISTED = [(method, (collect(["key", "other"]),)) for method, collect in MANY]


@BOTH_WAYS
@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("ProvisionedThroughputExceededException", exceptions.Throttled),
        ("ResourceNotFoundException", exceptions.TableNotFound),
        ("AccessDeniedException", exceptions.AccessDenied),
    ],
)
def test_an_error_is_no_miss(cache: Any, way: str, code: str, error: type[Exception]) -> None:
    """Every method raises what the table raised."""
    for method, args in (*KEYED, *LISTED):
        with case(method), testing.refuse(code), pytest.raises(error):
            call(cache, way, method, *args)


def test_an_unreachable_table_is_no_miss(cache: Any, table: Table) -> None:
    """The error is the same if no server listens."""

    def nothing_there(operation: str, params: Any) -> None:
        raise testing.unreachable(table.settings)

    with testing.intercept(nothing_there), pytest.raises(exceptions.EndpointUnreachable):
        cache.get("key")


@pytest.mark.parametrize(
    ("operation", "left", "use"),
    [
        ("BatchGetItem", "UnprocessedKeys", lambda cache: cache.get("a")),
        ("BatchWriteItem", "UnprocessedItems", lambda cache: cache.set_many({"a": 1, "b": 2})),
        ("BatchWriteItem", "UnprocessedItems", lambda cache: cache.delete_many(["a", "b"])),
    ],
)
def test_what_dynamodb_leaves_out_is_asked_for_again(
    cache: Any, sent: Sent, monkeypatch: pytest.MonkeyPatch, operation: str, left: str, use: Any
) -> None:
    """Unprocessed parts are sent again, and finally raise an error."""
    monkeypatch.setattr("dynamo_single.table.batches.LONGEST_PAUSE", 0.0)
    refused: list[Any] = []

    def leave_out(asked: str, params: Any) -> dict[str, Any] | None:
        if asked != operation or len(refused) == limit:
            return None
        refused.append(params["RequestItems"])
        return {"Responses": {}, left: params["RequestItems"]}

    cache.set_many({"a": 0, "b": 0})
    limit = 2
    with testing.intercept(leave_out):
        use(cache)
    assert refused[0] == refused[1]
    assert cache.get("b") != 0 or operation == "BatchGetItem"
    refused.clear()
    limit = -1
    with testing.intercept(leave_out), pytest.raises(exceptions.Throttled, match="because of throttling"):
        use(cache)


def test_nothing_waits_in_the_event_loop(cache: Any) -> None:
    """A thread other than the loop's sends the requests of every asynchronous method."""
    threads: set[int] = set()

    def note(operation: str, params: Any) -> None:
        threads.add(threading.get_ident())

    async def use() -> None:
        cases: list[Any] = [*KEYED, *LISTED]
        for method, args in cases:
            if method not in ("incr", "decr", "incr_version", "decr_version"):
                await getattr(cache, f"a{method}")(*args)
        await cache.aset("key", 1)
        await cache.aincr("key")
        await cache.adecr("key")
        await cache.aincr_version("key")

    with testing.intercept(note):
        asyncio.run(use())
    assert threads
    assert threading.get_ident() not in threads


def test_a_default_is_called_once(cache: Any) -> None:
    """get_or_set() calls a default only for a missing key; the asynchronous variant calls it in the loop."""
    calls: list[int] = []

    def default() -> str:
        calls.append(threading.get_ident())
        return "made"

    assert [cache.get_or_set("a", default) for _ in range(3)] == ["made"] * 3
    assert call(cache, "asynchronous", "get_or_set", "b", default) == "made"
    assert calls == [threading.get_ident()] * 2
