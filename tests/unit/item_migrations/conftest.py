"""An app whose models change."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.histories.app import History, history


@pytest.fixture
def app(tmp_path: Path) -> Iterator[History]:
    """The app ``histories`` without models and migrations."""
    with history(tmp_path) as found:
        yield found
