"""Tables that killed commands of the former release left, from ``former_tables.json``.

Made once with the code of commit 70364a6, in processes of its own and on the local engine. For each operation:

1. Code of before the migration created five objects, one of which is in the trash.
2. ``migrate``, and then ``migrate --finish --grace 0``, killed itself (SIGKILL) before its n-th write: before and after
   each write of the state item, and in the middle of the passes in between.
3. At each of these stops, a process of new code created an object, put one into the trash and changed one. So did a
   process of old code until ``--finish``. What they acknowledged is among the values, by key; ``None`` is the trash.

``items`` are all distinct items, and ``stops`` has their places. ``files`` are the migrations as the former release
wrote them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dynamo_single.table import Table
from dynamo_single.test_tables import contents

DATA = Path(__file__).with_suffix(".json")


@dataclass(frozen=True)
class FormerTable:
    """A table with the operation that was stopped, and its position."""

    operation: str
    stop: str
    items: tuple[dict[str, Any], ...]
    values: Mapping[str, str | None]
    files: Mapping[str, str]

    def __str__(self) -> str:
        return f"{self.operation}: {self.stop}"

    @property
    def is_ended(self) -> bool:
        """Return whether the change is complete."""
        return self.stop.startswith("finish") and not any(
            '"opened"' in item["forms"]["S"] for item in self.items if "forms" in item
        )

    @property
    def is_applied(self) -> bool:
        """Return whether the table has the second migration as applied."""
        return any("0002" in item["sk"]["S"] for item in self.items if item["sk"]["S"].startswith("APPLIED#"))

    def restore(self, table: Table, folder: Path) -> None:
        """Make the table contain these items, and the folder the migrations."""
        contents.restore(table, {(item["pk"]["S"], item["sk"]["S"]): item for item in self.items})
        for name, text in self.files.items():
            (folder / name).write_text(text)


def former_tables() -> list[FormerTable]:
    """Return all of them, in the order of operations and stops."""
    return [
        FormerTable(
            operation,
            stop,
            tuple(found["items"][place] for place in stopped["items"]),
            stopped["values"],
            found["files"],
        )
        for operation, found in json.loads(DATA.read_text()).items()
        for stop, stopped in found["stops"].items()
    ]
