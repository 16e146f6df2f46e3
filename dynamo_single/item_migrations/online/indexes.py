"""The indexes that a key is to be written on: made one at a time and waited for, before any item is changed.

This module must not know keys or items.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from dynamo_single.exceptions import ConfigurationError
from dynamo_single.table import provisioning
from dynamo_single.table.provisioning import Difference, Observed
from dynamo_single.table.request import Request
from dynamo_single.table.table import Table


def ensure_indexes(
    table: Table,
    indexes: Iterable[str],
    *,
    report: Callable[[Difference], None] = lambda _: None,
    patience: float = math.inf,
) -> list[str]:
    """Make the indexes that the table lacks, one at a time as DynamoDB takes them, and wait until they can be queried.

    One DescribeTable if none is missing; else an UpdateTable for each, and descriptions until it is active, which takes
    DynamoDB hours on a large table. It goes on with that whatever becomes of this process. Gives those that were made.

    Raises ``ConfigurationError`` for an index that the settings do not name, and ``TableMismatch`` for one that has
    other keys, or does not project all attributes.
    """
    wanted = set(indexes)
    if unknown := sorted(wanted - set(table.settings.indexes)):
        alias = table.settings.alias
        raise ConfigurationError(
            f"A key is on the index {unknown[0]!r}, which DYNAMO_SINGLE[{alias!r}] does not name. Add it to INDEXES."
        )

    def concerned(difference: Difference) -> bool:
        return difference.kind == "index" and difference.subject in wanted

    described = table.send(Request("DescribeTable"))["Table"]
    present = described.get("GlobalSecondaryIndexes", ())
    waiting = any(each["IndexName"] in wanted and each["IndexStatus"] != "ACTIVE" for each in present)
    found = provisioning.differences(table.settings, Observed(described, {}))
    if not waiting and not any(map(concerned, found)):
        return []
    made = provisioning.apply(table, report=report, patience=patience, only=concerned)
    return [each.subject for each in made]
