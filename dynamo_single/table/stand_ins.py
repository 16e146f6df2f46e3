"""Whether a library stands in for AWS inside botocore, as moto's ``mock_aws`` does: botocore then has to send.

moto answers in botocore's event ``before-send``, by a handler that is on all the time and says by ``enabled`` whether a
test wants it. This module must not import moto, and knows no client.
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

from botocore.handlers import BUILTIN_HANDLERS
from msgspec import Struct

_EVENT = "before-send"
_AWS = ".amazonaws.com"


class _Known(Struct):
    """The handlers that may answer in the place of AWS, of how many handlers: others may be added at any time."""

    of: int = 0
    found: tuple[Callable[..., object], ...] = ()


_known = _Known()


def is_active() -> bool:
    """Whether one of them answers at present. What only listens to botocore, or wraps its methods, changes nothing."""
    if _known.of != len(BUILTIN_HANDLERS):
        _known.of = len(BUILTIN_HANDLERS)
        events = [(each[0], each[1]) for each in BUILTIN_HANDLERS]
        _known.found = tuple(
            handler for event, handler in events if event.startswith(_EVENT) and hasattr(handler, "enabled")
        )
    return any(getattr(handler, "enabled", False) is True for handler in _known.found)


def answers_for(endpoint_url: str | None) -> bool:
    """Whether one of them answers what is sent to an endpoint: it does so for AWS, and lets the rest pass."""
    return is_active() and (endpoint_url is None or (urlsplit(endpoint_url).hostname or "").endswith(_AWS))
