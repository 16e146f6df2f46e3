"""What ``sqlmigrate`` shows of a migration: the requests that read the items, and when."""

from __future__ import annotations

import json
from collections.abc import Sequence

from dynamo_single.item_migrations import run as runs
from dynamo_single.item_migrations.online import Task
from dynamo_single.item_migrations.online.checkpoints import Segment
from dynamo_single.item_migrations.online.segments import scan


def tasks(when: str, given: Sequence[Task], lines: list[str]) -> None:
    """Add the lines of some passes over a table."""
    for task in given:
        request = scan(task, Segment(0), 1, runs.current().options.page)
        lines.append(f"-- {when}: {request.operation} {json.dumps(dict(request.params), ensure_ascii=False)}")
        lines.append("--   and for each item that is not as it should be a conditional write, or a transaction")
