"""Whose table it is: a mark in the table's state, so that no other project's commands take its items for theirs."""

from __future__ import annotations

from msgspec.structs import replace

from dynamo_single.orm.filled.knowledge import change, state_of
from dynamo_single.orm.filled.states import TableState, refuse_foreign
from dynamo_single.table.flow import run
from dynamo_single.table.table import Table


def check(table: Table) -> None:
    """Raise ``ForeignTable`` if another project has marked the table as its own: one GetItem, and none without a name.

    A table without a mark is anybody's.
    """
    if table.settings.owner:
        refuse_foreign(table.settings, run(state_of(table)))


def claim(table: Table) -> bool:
    """Mark the table as this project's; whether that was written: a GetItem, and a PutItem where it has no mark yet.

    Raises ``ForeignTable`` as ``check()``. A project without a name marks nothing, and sends nothing.
    """
    owner = table.settings.owner
    if not owner:
        return False
    state = run(state_of(table))
    refuse_foreign(table.settings, state)
    if state.owner == owner:
        return False

    def marked(found: TableState) -> TableState:
        refuse_foreign(table.settings, found)
        return replace(found, owner=owner)

    change(table, marked)
    return True
