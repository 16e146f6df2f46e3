"""What tests of the demo share: its data, which the command writes once."""

from __future__ import annotations

from contextvars import Context
from io import StringIO

import pytest
from django.core.management import call_command

from dynamo_single.table import Table
from dynamo_single.table.batches import Item, write_batch
from dynamo_single.table.flow import run
from dynamo_single.table.request import MAX_BATCH_WRITES
from dynamo_single.test_tables import contents

#: What the command said, and the items that it wrote.
_loaded: list[tuple[str, list[Item]]] = []


@pytest.fixture
def demo_data(table: Table) -> str:
    """The demo's data beside what the table holds; gives what the command said when it wrote them."""
    if not _loaded:
        said = StringIO()
        before = contents.read(table)
        call_command("demo_data", stdout=said)
        after = contents.read(table)
        _loaded.append((said.getvalue(), [after[key] for key in after.keys() - before.keys()]))
        return said.getvalue()
    said_once, items = _loaded[0]
    for start in range(0, len(items), MAX_BATCH_WRITES):
        writes = [{"PutRequest": {"Item": item}} for item in items[start : start + MAX_BATCH_WRITES]]
        # Nobody who counts a test's requests hears of it.
        assert Context().run(run, write_batch(table, writes, patient=True)) is None
    return said_once
