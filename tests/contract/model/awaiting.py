"""Helpers for awaited methods: the requests that the event loop awaits itself, and their overlap."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from dynamo_single.table import transport
from dynamo_single.table.flow import is_run


@contextmanager
def awaited() -> Iterator[list[str]]:
    """The operations that the event loop waits for itself."""
    found: list[str] = []
    send = transport.send

    async def noted(settings: Any, operation: str, *args: Any) -> Any:
        if not is_run():
            found.append(operation)
        return await send(settings, operation, *args)

    with mock.patch("dynamo_single.table.transport.send", noted):
        yield found


@contextmanager
def gathering(count: int) -> Iterator[None]:
    """Within the block, hold requests until a number of them runs in parallel."""
    under_way = 0
    all_there = asyncio.Event()
    send = transport.send

    async def waits(*args: Any) -> Any:
        nonlocal under_way
        if is_run():
            return await send(*args)
        under_way += 1
        if under_way == count:
            all_there.set()
        await asyncio.wait_for(all_there.wait(), 20)
        return await send(*args)

    with mock.patch("dynamo_single.table.transport.send", waits):
        yield


async def result(found: Any) -> Any:
    """The result of a coroutine, or all that an asynchronous generator gives."""
    return [each async for each in found] if hasattr(found, "__aiter__") else await found
