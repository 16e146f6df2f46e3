"""What tests of crashes share with pytest."""

from __future__ import annotations

import pytest

from tests.contract.robustness.crashing import lower_limits


@pytest.fixture
def small_transactions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deletions, restorations and copies go on in another transaction after ``ROOM`` actions."""
    lower_limits(monkeypatch)
