"""Test functions, the last of which counts the Scans sent in between."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dynamo_single.table import transport
from tests.isolated_project.stock import write

_sent: list[str] = []


@pytest.fixture(scope="module", autouse=True)
def counted() -> Iterator[None]:
    """Count beneath everything that a test could see."""
    original = transport.send

    def send(settings: Any, operation: str, *arguments: Any) -> Any:
        _sent.append(operation)
        return original(settings, operation, *arguments)

    transport.send = send  # type: ignore[assignment]
    yield
    transport.send = original


@pytest.mark.django_db
@pytest.mark.parametrize("number", range(2))
def test_writing(number: int) -> None:
    """Write the same key."""
    write()


@pytest.mark.django_db
def test_no_scan_was_sent() -> None:
    """Only one Scan was sent, when the tables were created."""
    write()
    assert _sent.count("Scan") == 1
    assert _sent.count("BatchWriteItem") == 2
