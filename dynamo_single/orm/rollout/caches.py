"""What is worked out of a model once, and again when a migration lets it have other keys or names for a while.

Keeping it costs what ``functools`` costs. This module sends nothing, and must not know what is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, wraps
from threading import RLock
from typing import Any, Final, ParamSpec, TypeVar

from dynamo_single.orm.schema import registry

P = ParamSpec("P")
R = TypeVar("R")

_caches: Final[list[Any]] = []
_lock: Final = RLock()
#: Odd while something changes, and another number afterwards.
_epoch = 0


def kept(maxsize: int | None = None) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """As ``lru_cache(maxsize)``, until something changes; what was worked out meanwhile is worked out again."""

    def decorated(function: Callable[P, R]) -> Callable[P, R]:
        @lru_cache(maxsize=maxsize)
        @wraps(function)
        def worked_out(*args: P.args, **kwargs: P.kwargs) -> R:
            while True:
                before = _epoch
                found = function(*args, **kwargs)
                # Between this comparison and the cache's own entry no other thread gets a turn.
                if before == _epoch:
                    return found

        _caches.append(worked_out)
        return worked_out  # type: ignore[return-value]  # it takes what the function takes

    return decorated


def epoch() -> int:
    """A number that is another one whenever keys or names have changed, or are changing."""
    return _epoch


@contextmanager
def changing() -> Iterator[None]:
    """Within the block keys or names change; nothing of before it is kept."""
    global _epoch
    with _lock:
        _epoch += 1
        try:
            yield
        finally:
            registry.changed()
            _epoch += 1
            for each in _caches:
                each.cache_clear()
