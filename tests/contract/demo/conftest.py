"""Fixtures for tests of the demo: its data, which the command writes once."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import call_command

from dynamo_single.table import Table
from dynamo_single.test_tables import contents

#: The output of the command, and the items that it wrote, by their keys.
_loaded: list[tuple[str, contents.Contents]] = []


@pytest.fixture
def demo_data(table: Table) -> str:
    """Add the demo's data to the table, and return the output of the command that wrote them."""
    if not _loaded:
        said = StringIO()
        before = contents.read(table)
        call_command("demo_data", stdout=said)
        after = contents.read(table)
        _loaded.append((said.getvalue(), {key: after[key] for key in after.keys() - before.keys()}))
        return said.getvalue()
    said_once, items = _loaded[0]
    # The state item with the shards is one of them: what the process knows of the table ends here.
    contents.put_back(table, items, items)
    return said_once
