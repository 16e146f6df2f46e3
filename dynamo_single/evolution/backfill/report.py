"""Report on work: the estimate before it, its progress, and its failures. Sends one DescribeTable."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from dynamo_single.evolution.backfill.checkpoints import Failure, Segment
from dynamo_single.evolution.backfill.work import Options, Progress, Work
from dynamo_single.exceptions import MigrationIncomplete
from dynamo_single.table.batches import Pace
from dynamo_single.table.request import Request
from dynamo_single.table.table import Table

#: The bytes of one strongly consistent read unit (AWS developer guide, "DynamoDB read and write operations").
_READ_UNIT: Final = 4096
#: The most failures that a message names. The error's ``failures`` contains all stored ones.
_NAMED: Final = 10


@dataclass(frozen=True, slots=True)
class Estimate:
    """DynamoDB's own count of a table, about six hours old (AWS API reference, DescribeTable); ``size`` in bytes."""

    items: int
    size: int

    @property
    def read_units(self) -> int:
        """The read units of a strongly consistent read of the whole table."""
        return math.ceil(self.size / _READ_UNIT)

    def __str__(self) -> str:
        """Return the estimate as one sentence."""
        return (
            f"The table has about {self.items:,} items of {self.size:,} bytes: reading them takes about "
            f"{self.read_units:,} read units, and each item that changes a write unit for each KB, twice that in a "
            "transaction. (DynamoDB counts about every six hours.)"
        )


def estimate(table: Table) -> Estimate:
    """Return the size of a table: one DescribeTable."""
    described = table.send(Request("DescribeTable"))["Table"]
    return Estimate(int(described.get("ItemCount", 0)), int(described.get("TableSizeBytes", 0)))


@dataclass(frozen=True, slots=True)
class Report:
    """The result of completed work. If ``before`` is set, an earlier run completed it and nothing was read."""

    label: str
    scanned: int = 0
    matched: int = 0
    changed: int = 0
    read_units: float = 0.0
    write_units: float = 0.0
    seconds: float = 0.0
    before: bool = False

    def __str__(self) -> str:
        """Return the report as one line."""
        if self.before:
            return f"{self.label}: done before."
        return f"{self.label}: {self.scanned:,} items read, {self.changed:,} changed in {self.seconds:.1f} s."


@dataclass(slots=True)
class Tally:
    """The totals over all segments, updated as segments report their progress."""

    work: Work
    options: Options
    pace: Pace
    expected: int = 0
    segments: dict[int, Segment] = field(default_factory=dict)
    started: float = field(default_factory=time.monotonic)
    _scanned_before: int = 0

    def begin(self, segments: Iterable[Segment]) -> None:
        """Set the segments. The progress includes the work of earlier runs, and the speed excludes it."""
        self.segments = {segment.number: segment for segment in segments}
        self._scanned_before = self.sum("scanned")
        self.report_progress()

    def update(self, segment: Segment) -> None:
        """Update the progress of a segment."""
        self.segments[segment.number] = segment
        self.report_progress()

    def sum(self, name: str) -> int:
        """Return the total of a count over all segments."""
        return sum(getattr(segment, name) for segment in self.segments.values())

    @property
    def done(self) -> bool:
        """Whether every segment is done."""
        return all(segment.done for segment in self.segments.values())

    def report_progress(self) -> None:
        """Call the progress callback, if there is one."""
        if self.options.progress is None:
            return
        scanned = self.sum("scanned")
        self.options.progress(
            Progress(
                self.work.label,
                scanned=scanned,
                matched=self.sum("matched"),
                changed=self.sum("changed"),
                failed=self.sum("failed"),
                expected=self.expected,
                seconds_left=self._seconds_left(scanned),
                read_units=self.pace.reads.consumed,
                write_units=self.pace.writes.consumed,
            )
        )

    def _seconds_left(self, scanned: int) -> float | None:
        just_now, left = scanned - self._scanned_before, self.expected - scanned
        if just_now <= 0 or left < 0:
            return None  # DynamoDB's count is out of date
        return left * (time.monotonic() - self.started) / just_now

    def report(self) -> Report:
        """Return the report of the work."""
        return Report(
            self.work.label,
            scanned=self.sum("scanned"),
            matched=self.sum("matched"),
            changed=self.sum("changed"),
            read_units=self.pace.reads.consumed,
            write_units=self.pace.writes.consumed,
            seconds=time.monotonic() - self.started,
        )

    def failures(self) -> list[Failure]:
        """Return the stored failures, by segment."""
        return [failure for number in sorted(self.segments) for failure in self.segments[number].failures]

    def incomplete(self) -> MigrationIncomplete:
        """Return the error for work with failures."""
        failed, kept = self.sum("failed"), self.failures()
        named = "".join(f"\n  {failure}" for failure in kept[:_NAMED])
        rest = f"\n  and {failed - _NAMED:,} more." if failed > _NAMED else ""
        again = "looks at these items alone" if failed == len(kept) else "goes through the segments that they are in"
        return MigrationIncomplete(
            f"{self.work.label}: {self.sum('changed'):,} items were changed, {failed:,} could not be:{named}{rest}\n"
            f"Correct them and run the same command again: it {again}.",
            failed=failed,
            failures=tuple((failure.key, failure.reason) for failure in kept),
        )
