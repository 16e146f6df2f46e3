"""Django's ``transaction.on_commit()`` waits for an ``atomic()`` block of ours, and for SQL."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from functools import partial
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import transaction
from django.db.transaction import on_commit as imported_before
from django.test import TestCase
from hypothesis import given
from hypothesis import strategies as st

from dynamo_single import transactions
from dynamo_single.exceptions import AlreadyExists
from dynamo_single.orm.requests import atomic_block as pending
from project.directory.models import Company
from tests.contract.sqlite import ALIAS, sqlite

pytestmark = pytest.mark.usefixtures("table")


class FailedError(Exception):
    """The error that ends a block."""


@pytest.fixture(autouse=True)
def connection(django_db_blocker: Any) -> Iterator[Any]:
    """Add an SQL database to the project."""
    with django_db_blocker.unblock(), sqlite() as found:
        yield found


def stored() -> list[str]:
    return sorted(company.pk for company in Company.objects.all())


@pytest.mark.parametrize("register", [transaction.on_commit, imported_before])
def test_callback_runs_once_the_block_is_written(register: Any) -> None:
    """The callback can read the block's writes; code that imported ``on_commit`` earlier works too."""
    found: list[list[str]] = []
    with transactions.atomic():
        Company.objects.create(company_id="a", name="A")
        register(lambda: found.append(stored()), using=ALIAS)
        assert found == []
    assert found == [["a"]]


def test_callback_outside_of_a_block_is_djangos() -> None:
    called: list[str] = []
    transaction.on_commit(partial(called.append, "at once"), using=ALIAS)
    assert called == ["at once"]


def test_callback_of_a_refused_block_is_dropped() -> None:
    Company.objects.create(company_id="a", name="A")
    with pytest.raises(AlreadyExists), transactions.atomic():
        transaction.on_commit(lambda: pytest.fail("called"), using=ALIAS)
        Company.objects.create(company_id="a", name="A")


#: A call of ``on_commit()``, or a block with its kind, outcome and contents.
PROGRAMS: st.SearchStrategy[Any] = st.recursive(
    st.just("call"),
    lambda inner: st.tuples(st.sampled_from(["sql", "dynamodb"]), st.booleans(), st.lists(inner, max_size=3)),
    max_leaves=8,
)


@given(program=PROGRAMS)
def test_callback_runs_if_every_block_around_it_succeeds(program: Any) -> None:
    """The callback runs after the outermost block, in any nesting of SQL's and this app's blocks."""
    expected: list[int] = []
    called: list[int] = []
    blocks = {"sql": lambda: transaction.atomic(using=ALIAS), "dynamodb": transactions.atomic}
    connection = transaction.get_connection(ALIAS)

    def callback(number: int) -> None:
        assert (pending.current(), connection.in_atomic_block) == (None, False)
        called.append(number)

    def run(part: Any, holds: bool, numbers: Iterator[int]) -> None:
        if part == "call":
            number = next(numbers)
            transaction.on_commit(partial(callback, number), using=ALIAS)
            expected.extend([number] * holds)
            return
        kind, fails, parts = part
        with suppress(FailedError), blocks[kind]():
            for each in parts:
                run(each, holds and not fails, numbers)
            if fails:
                raise FailedError

    run(program, True, iter(range(100)))
    assert sorted(called) == expected


@pytest.mark.parametrize("around", [nullcontext, lambda: transaction.atomic(using=ALIAS)])
def test_robust_callback_does_not_stop_the_next(around: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Django logs the callback's error."""
    called: list[str] = []

    def fail() -> None:
        raise FailedError

    with around(), transactions.atomic():
        transaction.on_commit(fail, using=ALIAS, robust=True)
        transaction.on_commit(partial(called.append, "next"), using=ALIAS)
    assert called == ["next"]
    assert [record.name for record in caplog.records] == ["django.db.backends.base"]


def test_wrong_callback_is_refused_when_it_is_given() -> None:
    with pytest.raises(TypeError, match="must be a callable"), transactions.atomic():
        transaction.on_commit("text", using=ALIAS)  # type: ignore[arg-type]  # on purpose


@pytest.mark.parametrize("fails", [False, True])
def test_captured_callbacks_are_those_of_blocks_that_succeed(fails: bool) -> None:
    """This includes callbacks within a ``TestCase``, whose own transaction is never committed."""
    called: list[str] = []
    with transaction.atomic(using=ALIAS):
        with TestCase.captureOnCommitCallbacks(using=ALIAS, execute=True) as callbacks:
            with suppress(FailedError), transactions.atomic():
                transaction.on_commit(partial(called.append, "called"), using=ALIAS)
                if fails:
                    raise FailedError
            assert called == []
        assert (len(callbacks), called) == ((0, []) if fails else (1, ["called"]))
        transaction.set_rollback(True, using=ALIAS)


def test_block_of_another_thread_holds_nothing() -> None:
    """A block and its callbacks belong to their context."""
    called: list[str] = []
    register = partial(transaction.on_commit, partial(called.append, "at once"), using="default")
    with transactions.atomic():
        thread = threading.Thread(target=register)
        thread.start()
        thread.join()
        assert called == ["at once"]


def test_callback_of_an_asynchronous_block_waits_for_it() -> None:
    """The callback is registered and called in a thread, as Django requires while an event loop runs."""
    found: list[tuple[list[str], str]] = []

    def register() -> str:
        transaction.on_commit(lambda: found.append((stored(), threading.current_thread().name)), using="default")
        return threading.current_thread().name

    async def write() -> str:
        async with transactions.atomic():
            await Company.objects.acreate(company_id="a", name="A")
            name = await sync_to_async(register)()
            assert found == []
        return name

    name = asyncio.run(write())
    assert found == [(["a"], name)]


def test_callback_of_a_task_that_outlives_its_block_is_djangos() -> None:
    """There is nothing left to wait for."""
    called: list[str] = []

    async def later(block_over: asyncio.Event) -> None:
        await block_over.wait()
        await sync_to_async(transaction.on_commit)(partial(called.append, "at once"), using="default")

    async def write() -> None:
        over = asyncio.Event()
        async with transactions.atomic():
            task = asyncio.create_task(later(over))
        over.set()
        await task

    asyncio.run(write())
    assert called == ["at once"]
