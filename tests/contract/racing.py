"""Another writer, who acts just before a request of a test's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from dynamo_single.testing import intercept


@contextmanager
def before_write(number: int, act: Callable[[], Any]) -> Iterator[None]:
    """Let another writer act just before the ``number``-th write of the block."""
    writes = 0
    acting = False

    def interceptor(operation: str, params: Mapping[str, Any]) -> None:
        nonlocal writes, acting
        if acting or operation not in {"TransactWriteItems", "UpdateItem", "DeleteItem", "PutItem"}:
            return
        writes += 1
        if writes == number:
            acting = True
            act()
            acting = False

    with intercept(interceptor):
        yield
    assert writes >= number
