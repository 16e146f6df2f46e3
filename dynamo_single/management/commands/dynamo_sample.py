"""``manage.py dynamo_sample``: take the sample of a table from which the admin draws its pictures."""

from __future__ import annotations

from typing import Any

from dynamo_single.contrib.table_admin.pictures import sampling
from dynamo_single.management.base import TableCommand
from dynamo_single.table.table import Table


class Command(TableCommand):
    """Read a sample of a table and store it as one item: see ``sampling.take()``."""

    help = (
        f"Reads up to {sampling.MAX_ITEMS:,} items or {sampling.MAX_BYTES // 2**20} MB of the table, and stores a "
        "sample for the admin's pictures as one item."
    )

    def run(self, table: Table, options: dict[str, Any]) -> None:
        """Take the sample and print its cost."""
        found = sampling.take(table).found
        rest = "It is the whole table." if found["is_whole"] else "The table has more items."
        self.stdout.write(
            f"Stored a sample of {found['items']:,} items in {table.settings.table_name}: {found['bytes']:,} bytes, "
            f"{found['units']:,.10g} read units. {rest}"
        )
