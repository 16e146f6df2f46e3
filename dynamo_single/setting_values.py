"""Read a setting that is a dict: each key has a reader, and an error names the key and the allowed values.

This module must not depend on any setting.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any
from urllib.parse import urlsplit

from dynamo_single.exceptions import ConfigurationError

#: A function that reads a value or raises ``ValueError``, and the description of the allowed values.
Reader = tuple[Callable[[Any], Any], str]


def check_keys(declared: Mapping[Any, Any], readers: Mapping[str, Reader], called: Callable[[Any], str]) -> None:
    """Raise ``ConfigurationError`` for the first key without a reader; ``called`` as in ``read_values()``."""
    for key in declared:
        if key not in readers:
            raise ConfigurationError(f"{called(key)} is not a known key; allowed are {', '.join(readers)}.")


def read_values(
    declared: Mapping[Any, Any],
    readers: Mapping[str, Reader],
    called: Callable[[Any], str],
    *,
    secret: Collection[str] = (),
) -> dict[str, Any]:
    """Return the values of a setting by lower-case keys; raise ``ConfigurationError`` for the first wrong one.

    ``called`` returns the name of a key in a message. The message does not repeat a wrong value of a ``secret`` key.
    """
    check_keys(declared, readers, called)
    values: dict[str, Any] = {}
    for key, value in declared.items():
        read, allowed = readers[key]
        try:
            values[key.lower()] = read(value)
        except ValueError:
            given = "" if key in secret else f", not {value!r}"
            raise ConfigurationError(f"{called(key)} must be {allowed}{given}.") from None
    return values


def or_none(reader: Reader) -> Reader:
    """Return a reader that also accepts ``None``."""
    read, allowed = reader
    return lambda value: None if value is None else read(value), f"{allowed}, or None"


def at_least(least: int) -> Reader:
    """Return a reader for integers of at least ``least``."""

    def read(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ValueError
        return value

    return read, f"a whole number of at least {least}"


def _above_zero(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < float("inf"):
        raise ValueError
    return float(value)


def _boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError
    return value


def _endpoint(value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or re.search(r"[\x00-\x20\x7f]", value):
        raise ValueError
    parts = urlsplit(value)
    _ = parts.port  # raises ValueError if the port is not a number
    if parts.scheme not in {"http", "https"} or not parts.hostname or "@" in parts.netloc:
        raise ValueError
    # botocore does not accept other characters in a host either.
    if parts.query or parts.fragment or not parts.netloc.isascii():
        raise ValueError
    return value if parts.path.strip("/") else value.rstrip("/")


POSITIVE: Reader = at_least(1)
ABOVE_ZERO: Reader = (_above_zero, "a number above 0")
SECONDS: Reader = (_above_zero, "a number of seconds above 0")
ENDPOINT: Reader = (
    _endpoint,
    "None or an address such as 'http://127.0.0.1:8001', without credentials, query and fragment",
)
BOOLEAN: Reader = (_boolean, "True or False")
