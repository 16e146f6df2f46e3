"""The current run of ``migrate``: its options, and the migration that it applies.

Django calls an operation without its migration or the command's options. Outside the command, the defaults apply.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from dynamo_single.evolution.backfill import Options, Report, estimate
from dynamo_single.exceptions import ConfigurationError
from dynamo_single.table.table import Table

#: The minimum number of seconds between two progress lines of one pass.
_BETWEEN_LINES = 5.0


def _no_output(line: str) -> None:
    pass


@dataclass
class Run:
    """One run of ``migrate``. It ``waits`` for processes unless it must not, and refuses them if it is ``forced``."""

    options: Options = field(default_factory=Options)
    #: Whether to adopt items that are older than their model's first migration, after a check of a sample.
    adopt: bool = False
    waits: bool = True
    forced: bool = False
    say: Callable[[str], None] = _no_output
    wait: Callable[[float], None] = time.sleep
    #: The migration that is being applied or reverted.
    migration: Any = None
    #: The migrations that the table has recorded as applied, in a project whose SQL database has its own record.
    recorded: Collection[tuple[str, str]] = ()
    #: The models that this run added to a table that contained no items of them.
    added: set[tuple[str, str]] = field(default_factory=set)
    #: The operations that this run has announced, by the name of the migration and the number there.
    announced: dict[tuple[str, int], Any] = field(default_factory=dict)
    #: The tables whose endpoint this run has measured.
    measured: set[str] = field(default_factory=set)
    _estimated: set[str] = field(default_factory=set)
    _said: float = 0.0

    def refuse_former(self, table: Table) -> None:
        """Raise ``ConfigurationError`` for the first change of a table that an earlier release has migrated.

        Processes of that release stop reading the state once their items have one schema, so they cannot be detected.
        """
        if not self.forced:
            raise ConfigurationError(
                f"{table.name} was migrated by an earlier release of dynamo_single. Processes of that release do not "
                "notice a running migration, and this command cannot detect them. Nothing was changed. Deploy this "
                "release to all processes, then repeat the command with --force."
            )

    def begin(self, table: Table) -> None:
        """Print the size of a table once, before the first work on it."""
        if table.name not in self._estimated:
            self._estimated.add(table.name)
            self.say(f"    {estimate(table)}")
        self._said = time.monotonic()

    def tell(self, progress: Report) -> None:
        """Print the progress of a pass, at most every five seconds."""
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
    """Return the run of this context, or a run with the default options."""
    return _current.get() or Run()


def is_running() -> bool:
    """Return whether a ``migrate`` is running in this context."""
    return _current.get() is not None


@contextmanager
def use_run(run: Run) -> Iterator[Run]:
    """Make ``run`` the current run within the block."""
    token = _current.set(run)
    try:
        yield run
    finally:
        _current.reset(token)
