"""Pytest fixtures for tests of crashes."""

from __future__ import annotations

import pytest

from tests.contract.robustness.crashing import lower_limits


@pytest.fixture
def small_transactions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start a new transaction of deletions, restorations and copies after ``ROOM`` actions."""
    lower_limits(monkeypatch)
