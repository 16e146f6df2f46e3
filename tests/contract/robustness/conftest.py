"""What tests of crashes share with pytest."""

from __future__ import annotations

import pytest

from dynamo_single.orm.effects import spreading
from dynamo_single.orm.write import cascade
from tests.contract.robustness.crashing import ROOM


@pytest.fixture
def small_transactions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deletions, restorations and copies go on in another transaction after ``ROOM`` actions."""
    along = spreading.MAX_ACTIONS - spreading.MAX_ALONG
    monkeypatch.setattr(cascade, "MAX_ACTIONS", ROOM)
    monkeypatch.setattr(spreading, "MAX_ACTIONS", ROOM)
    monkeypatch.setattr(spreading, "MAX_ALONG", ROOM - along)
