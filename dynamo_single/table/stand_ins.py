"""Detect a library that replaces AWS inside botocore, as moto's ``mock_aws`` does. botocore then sends the requests.

moto responds in botocore's event ``before-send``. Its handler is always registered, and its attribute ``enabled`` is
``True`` while a test uses it. This module must not import moto, and is independent of clients.
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

from botocore.handlers import BUILTIN_HANDLERS
from msgspec import Struct

_EVENT = "before-send"
_AWS = ".amazonaws.com"


class _Known(Struct):
    """The handlers that can respond instead of AWS, and the number of handlers when they were collected."""

    of: int = 0
    found: tuple[Callable[..., object], ...] = ()


_known = _Known()


def is_active() -> bool:
    """Return whether a handler currently responds instead of AWS; handlers that only observe requests do not count."""
    if _known.of != len(BUILTIN_HANDLERS):
        _known.of = len(BUILTIN_HANDLERS)
        events = [(each[0], each[1]) for each in BUILTIN_HANDLERS]
        _known.found = tuple(
            handler for event, handler in events if event.startswith(_EVENT) and hasattr(handler, "enabled")
        )
    return any(getattr(handler, "enabled", False) is True for handler in _known.found)


def answers_for(endpoint_url: str | None) -> bool:
    """Return whether a handler responds to requests to an endpoint: it does for endpoints of AWS only."""
    return is_active() and (endpoint_url is None or (urlsplit(endpoint_url).hostname or "").endswith(_AWS))
