"""Writes ``docs/reference/pairs.md`` from the table: ``python -m tests.contract.pairs.page``."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.contract.pairs.oracle import Capability

PAGE = Path(__file__).resolve().parents[3] / "docs/reference/pairs.md"

BEGIN = """\
# Pairs of capabilities

Look up here which capabilities one model can have together, and which ways to write and read it supports. Every pair
works unless this page lists it. [`make test-deep`](tests.md#pairs-of-capabilities) tries every pair.
"""

REFUSED = """\
## Pairs that are not supported

`manage.py check` reports these pairs, or an error at start-up does. The message names an alternative, which is tested
too.
"""

LIMITED = """\
## Known limitations

`dynamo_verify` reports what these capabilities leave behind.
"""

APART = """\
## Crossings outside this table

The rows of this table say nothing about what a user may see. Other tests cover that:
"""

#: Combinations without a row or with a partial one, and their tests.
ELSEWHERE = (
    (
        "secrets: values on pages, in errors, logs, queries and exports; the row above covers writes and reads only",
        (
            "tests/contract/admin/test_admin_secrets.py",
            "tests/contract/reading/test_secret_values.py",
        ),
    ),
    (
        "rights: permissions and the objects that `get_queryset()` hides",
        ("tests/contract/admin/test_admin_permissions.py", "tests/contract/admin/test_admin_tenants.py"),
    ),
    (
        "crashes and processes that write at the same time",
        ("tests/contract/robustness/test_crashes.py", "tests/contract/robustness/test_races.py"),
    ),
)

LAG = """\
In each history an index shows a write 0 to 5 seconds later; with every second seed reads of the table do, too. Some
acts wait until the indexes are up to date, since they read what they write: an `update()` by an index, forms, and
fixtures of models with a many-to-many relation. While a migration is open, every act waits.
"""

OPEN = """\
## Open migrations

A migration adds a capability to a model with stored objects while processes write: while it is open each write
keeps its rules, or raises `KeyNotFilled` or `FormNotApplied`. A test adds each capability. For every other change see
[Change a model](../how-to/change-a-model.md).
"""

#: The user's steps after a migration.
COMMANDS = {"rebuild()": "`dynamo_rebuild`", "grow(Thing, 3, time)": "`dynamo_shards`"}

WRITE = """\
## Ways to write

Each way keeps the rules of the capability, or raises the error. PynamoDB's writers delete permanently: they do not use
the trash.
"""

READ = """\
## Ways to read

A consistent way shows every earlier write. The others may show an object as it was some seconds ago, but no object
twice, and none that has expired.
"""


def text() -> str:
    """The page."""
    from tests.contract.pairs.readers import READERS
    from tests.contract.pairs.table import CAPABILITIES
    from tests.contract.pairs.table import REFUSED as PAIRS
    from tests.contract.pairs.writers import WRITERS

    titles = {name: row.title for name, row in {**CAPABILITIES, **WRITERS}.items()}
    declared = [
        (row.title, ", ".join(f"`{name}`" for name in row.covers) or "a primary key of several values")
        for row in CAPABILITIES.values()
    ]
    refused = [
        (titles[each.first], titles[each.second], f"`{each.by}`", " and ".join(titles[name] for name in each.instead))
        for each in PAIRS
    ]
    added = [(row.title, migration_cell(row)) for row in CAPABILITIES.values()]
    limited = [
        (row.title, ", ".join(f"`{kind}`" for kind in sorted(row.reports)), row.limit)
        for row in CAPABILITIES.values()
        if row.limit
    ]
    apart = [(what, ", ".join(f"`{path}`" for path in paths)) for what, paths in ELSEWHERE]
    ways = [writer.title for writer in WRITERS.values()]
    written = [(row.title, *(cell(row, name) for name in WRITERS)) for row in CAPABILITIES.values()]
    read = [
        (
            each.title,
            "yes" if each.consistent else "no",
            ", ".join(titles[name] for name in sorted(each.needs)) or "any",
        )
        for each in READERS.values()
    ]
    parts = [
        BEGIN,
        "## Capabilities\n",
        table(("capability", "declared by"), declared),
        REFUSED,
        table(("capability", "with", "reported by", "alternative"), refused),
        LIMITED,
        table(("capability", "`dynamo_verify` reports", "what is left"), limited),
        OPEN,
        table(("capability", "added while processes write"), added),
        WRITE,
        table(("capability", *ways), written),
        READ,
        table(("way to read", "consistent", "models with"), read),
        APART,
        table(("crossing", "tests"), apart),
        LAG.rstrip("\n"),
    ]
    return "\n".join(parts)


def migration_cell(row: type[Capability]) -> str:
    """Return the effect of a migration that adds a capability."""
    if row.unadded:
        return f"no: {row.unadded}"
    if row.paused:
        return f"no: {row.paused}, and every write raises `FormNotApplied` while `migrate` moves the items"
    return f"yes; then run {COMMANDS[row.afterwards]}" if row.afterwards else "yes"


def cell(row: type[Capability], way: str) -> str:
    """Return the effect of a way to write."""
    if way in row.keeps:
        return f"yes; to delete is `{row.keeps[way].__name__}`"
    return f"`{row.refuses[way].__name__}`" if way in row.refuses else "yes"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main() -> None:
    """Write the page."""
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    PAGE.write_text(text())


if __name__ == "__main__":
    main()
