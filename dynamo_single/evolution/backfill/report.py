"""Report on work: the estimate before it, its progress, and its failures. Sends one DescribeTable."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from dynamo_single.evolution.backfill.checkpoints import Segment
from dynamo_single.evolution.backfill.work import Options, Report, Work
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
        """Return the estimate as sentences."""
        return (
            f"The table has about {self.items:,} items with {self.size:,} bytes in total, by DynamoDB's count, which "
            f"can be six hours old. Reading them takes about {self.read_units:,} read units. Each changed item takes "
            "one write unit per KB, or two in a transaction."
        )


def estimate(table: Table) -> Estimate:
    """Return the size of a table: one DescribeTable."""
    described = table.send(Request("DescribeTable"))["Table"]
    return Estimate(int(described.get("ItemCount", 0)), int(described.get("TableSizeBytes", 0)))


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
        if self.options.progress is not None:
            self.options.progress(self.report())

    def report(self) -> Report:
        """Return the progress, which is the result of completed work."""
        scanned, seconds = self.sum("scanned"), time.monotonic() - self.started
        just_now, left = scanned - self._scanned_before, self.expected - scanned
        return Report(
            self.work.label,
            scanned=scanned,
            matched=self.sum("matched"),
            changed=self.sum("changed"),
            failed=self.sum("failed"),
            expected=self.expected,
            seconds=seconds,
            # Without it, or if more items were read, DynamoDB's count is out of date.
            seconds_left=None if just_now <= 0 or left < 0 else left * seconds / just_now,
            read_units=self.pace.reads.consumed,
            write_units=self.pace.writes.consumed,
        )

    def incomplete(self) -> MigrationIncomplete:
        """Return the error for work with failures."""
        failed = self.sum("failed")
        kept = [each for number in sorted(self.segments) for each in self.segments[number].failures]
        named = "".join(f"\n  {failure}" for failure in kept[:_NAMED])
        rest = f"\n  and {failed - _NAMED:,} more." if failed > _NAMED else ""
        again = "checks only these items" if failed == len(kept) else "reads only the segments that contain them"
        return MigrationIncomplete(
            f"{self.work.label}: {self.sum('changed'):,} items were changed, and {failed:,} could not be "
            f"changed:{named}{rest}\n"
            f"Correct these items and run the same command again: it {again}.",
            failed=failed,
            failures=tuple((failure.key, failure.reason) for failure in kept),
        )
