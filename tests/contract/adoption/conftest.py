"""A table that the app does not own, next to its companion, for each form of its key."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.conf import settings
from django.test import override_settings

from dynamo_single.table import Table
from dynamo_single.testing import setup_table
from tests.unit.declaring import forgotten

ADOPTED = "shop"


@contextmanager
def adopted_table(**changes: Any) -> Iterator[str]:
    """The alias of a table with ``OWNS = False``, whose companion is the default table."""
    declared = settings.DYNAMO_SINGLE
    own = {
        **declared["default"],
        "TABLE_NAME": "adopted",
        "INDEXES": ["gs1", "gs2"],
        "OWNS": False,
        "COMPANION": "default",
        **changes,
    }
    if own["COMPANION"] is None:
        del own["COMPANION"]
    with override_settings(DYNAMO_SINGLE={**declared, ADOPTED: own}):
        yield ADOPTED


@pytest.fixture(params=["pk", "id"], ids=["a key of two parts", "id alone"])
def adopted(request: Any, table: Table) -> Iterator[Table]:
    """The adopted table, empty, with an empty companion."""
    with adopted_table(KEY=request.param) as alias, forgotten():
        yield setup_table(alias)


@pytest.fixture
def lone(table: Table) -> Iterator[Table]:
    """An adopted table without a companion."""
    with adopted_table(COMPANION=None) as alias, forgotten():
        yield setup_table(alias)


def raw(table: Table) -> list[dict[str, Any]]:
    """Return every stored item of a table."""
    from dynamo_single.table import Request

    found: list[dict[str, Any]] = Table(table.settings).send(Request("Scan", {"ConsistentRead": True}))["Items"]
    return found


def types(table: Table) -> dict[str, int]:
    """Return the numbers of stored items of each type in a table."""
    found: dict[str, int] = {}
    for item in raw(table):
        name = item["itemType"]["S"]
        found[name] = found.get(name, 0) + 1
    return found


def keys(table: Table) -> list[tuple[str, str]]:
    """The keys of a table with a key of two parts."""
    return sorted((item["pk"]["S"], item["sk"]["S"]) for item in raw(table))
