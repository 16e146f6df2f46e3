"""The records' table in each form that its key can have, and products in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dynamo_single import models
from dynamo_single.table import Table
from dynamo_single.testing import setup_table
from tests.contract.tables import single_key_table
from tests.unit.declaring import forgotten


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


@pytest.fixture(scope="module")
def goods(place: str) -> Iterator[Any]:
    """Products with a key of their own, and a unique number."""
    with forgotten():
        yield product(place)


def product(place: str, label: str = "catalog", name: str = "Goods", **attributes: Any) -> Any:
    """Declare products with a key of their own."""

    class Keys(models.Record.Keys):
        by_author = models.IndexKey("gs1", "PRODUCT#{author}", "{id}")

    namespace = {
        "__module__": __name__,
        "__qualname__": name,
        "author": models.ExtractedAttribute("data__author"),
        "isbn": models.UnicodeAttribute(null=True, unique=True),
        "Keys": Keys,
        "Meta": type("Meta", (), {"app_label": label, "id_prefix": "product", "table": place}),
        **attributes,
    }
    return type(models.Record)(name, (models.Record,), namespace)
