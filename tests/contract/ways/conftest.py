"""The shop on both sides for each test, with the same objects; it is declared once, and its items are restored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextvars import Context
from typing import Any

import pytest
from django.db import transaction

from dynamo_single.table import Request, Table
from dynamo_single.table.batches import Item
from dynamo_single.test_tables import contents
from tests.contract.sqlite import ALIAS, sqlite
from tests.contract.ways.shop import Shop, on_dynamodb, on_sqlite
from tests.unit.declaring import forgotten

Shops = tuple[Shop, Shop]


@pytest.fixture(scope="module")
def declared(django_db_blocker: Any) -> Iterator[Shops]:
    with forgotten(), django_db_blocker.unblock(), sqlite() as connection:
        theirs = on_sqlite()
        with connection.schema_editor() as editor:
            for model in theirs.models.values():
                editor.create_model(model)
        theirs.fill()
        yield on_dynamodb(), theirs


@pytest.fixture(scope="module")
def written() -> list[Item]:
    """Return the items of the shop, written once."""
    return []


@pytest.fixture
def shops(declared: Shops, written: list[Item], table: Table) -> Iterator[Shops]:
    """Return both shops; changes in SQLite are rolled back."""
    if written:
        restore(table, written)
    else:
        declared[0].fill()
        written.extend(contents.read(table).values())
    with transaction.atomic(using=ALIAS):
        yield declared
        transaction.set_rollback(True, using=ALIAS)


def restore(table: Table, items: Sequence[Item]) -> None:
    """Put the items back, 25 with each BatchWriteItem."""
    for start in range(0, len(items), 25):
        writes = [{"PutRequest": {"Item": item}} for item in items[start : start + 25]]
        Context().run(table.send, Request("BatchWriteItem", {"RequestItems": {table.name: writes}}))
