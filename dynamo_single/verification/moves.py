"""Objects that have moved and bear the mark of it: something that refers to them may not have followed."""

from __future__ import annotations

from collections.abc import Iterator

from dynamo_single.table import names
from dynamo_single.table.table import Table
from dynamo_single.verification.findings import Finding, Subject


def due(table: Table, subject: Subject) -> Iterator[Finding]:
    """An object whose ``move_tree()`` was interrupted."""
    if subject.model is not None and names.MOVED_FROM in subject.item:
        yield Finding(
            "move due",
            subject.key,
            "Not all that refers to it has followed its move. Call its move_tree(), or run manage.py dynamo_rebuild.",
        )
