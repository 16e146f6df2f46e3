"""The records' table in each form that its key can have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dynamo_single.table import Table
from dynamo_single.testing import setup_table
from tests.contract.tables import single_key_table


@pytest.fixture(params=["pk", "id"], ids=["a key of two parts", "id alone"], scope="module")
def place(request: Any, engine: Table) -> Iterator[str]:
    """The alias of the records' table."""
    if request.param == "pk":
        yield "default"
        return
    with single_key_table() as alias:
        yield alias


@pytest.fixture
def kept(place: str, table: Table) -> Table:
    """The records' table, empty."""
    return table if place == "default" else setup_table(place)
