"""The current run of ``migrate``: its options, and the migration that it applies.

Django calls an operation without its migration or the options of the command. Without a command the defaults apply.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from dynamo_single.evolution.backfill import Options, Progress, Task, estimate
from dynamo_single.evolution.backfill.checkpoints import Segment
from dynamo_single.evolution.backfill.run import scan
from dynamo_single.orm.rollout.knowledge import GRACE
from dynamo_single.table.table import Table

#: The least seconds between two lines about one work.
_BETWEEN_LINES = 5.0


def _no_output(line: str) -> None:
    pass


@dataclass
class Run:
    """One run. ``grace`` is for how many seconds processes may act on what they have read of the table's state."""

    options: Options = field(default_factory=Options)
    #: Whether items that were there before their model's first migration are adopted, after a check of samples.
    adopt: bool = False
    grace: float = GRACE
    say: Callable[[str], None] = _no_output
    wait: Callable[[float], None] = time.sleep
    #: The migration that is applied or taken back now.
    migration: Any = None
    #: The migrations that the table says were applied, beside an SQL database that has a record of its own.
    recorded: Collection[tuple[str, str]] = ()
    #: The models that this run has added to a table that was read to its end without items of them.
    added: set[tuple[str, str]] = field(default_factory=set)
    _estimated: set[str] = field(default_factory=set)
    _said: float = 0.0

    def begin(self, table: Table) -> None:
        """Say how large a table is, before work on it, once."""
        if table.name not in self._estimated:
            self._estimated.add(table.name)
            self.say(f"    {estimate(table)}")
        self._said = time.monotonic()

    def tell(self, progress: Progress) -> None:
        """Say how far work is, not too often."""
        if not progress.scanned or time.monotonic() - self._said < _BETWEEN_LINES:
            return
        self._said = time.monotonic()
        left = "" if progress.seconds_left is None else f", about {progress.seconds_left:,.0f} s left"
        failed = f", {progress.failed:,} failed" if progress.failed else ""
        self.say(
            f"    {progress.label}: {progress.scanned:,} of about {progress.expected:,} items read, "
            f"{progress.changed:,} changed{failed}{left}"
        )


_current: ContextVar[Run | None] = ContextVar("dynamo_single_migrate", default=None)


def current_run() -> Run:
    """The run of this context, or one with the defaults."""
    return _current.get() or Run()


def is_running() -> bool:
    """Whether a ``migrate`` is under way here."""
    return _current.get() is not None


@contextmanager
def use_run(run: Run) -> Iterator[Run]:
    """Within the block it is the run of this context."""
    token = _current.set(run)
    try:
        yield run
    finally:
        _current.reset(token)


# The output of ``sqlmigrate``: the requests that read the items, and when they are sent.


def print_tasks(when: str, given: Sequence[Task], lines: list[str]) -> None:
    """Add the lines of some passes over a table."""
    for task in given:
        request = scan(task, Segment(0), 1, current_run().options.page)
        lines.append(f"-- {when}: {request.operation} {json.dumps(dict(request.params), ensure_ascii=False)}")
        lines.append("--   and for each item that is not as it should be a conditional write, or a transaction")
