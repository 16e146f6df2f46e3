"""Walking one segment of a table, page by page, with a checkpoint after each page whose writes are all answered.

A parallel Scan reads its segments beside each other (AWS developer guide, "Scanning tables", parallel scan). This
module must not know threads, or what is done to an item.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dynamo_single.item_migrations.online.checkpoints import Checkpoints, Failure, Segment
from dynamo_single.item_migrations.online.items import Sender, settle
from dynamo_single.item_migrations.online.work import Others, Task, Work
from dynamo_single.orm.conditions.matching import matches
from dynamo_single.orm.requests.actions import Item, ItemKey, key_of
from dynamo_single.orm.requests.compiler import (
    ExpressionBuilder,
    compile_batches,
    compile_condition,
    item_key,
)
from dynamo_single.table.batches import get_batch
from dynamo_single.table.flow import run
from dynamo_single.table.items import Response
from dynamo_single.table.request import Request


@dataclass(frozen=True, slots=True)
class Walk:
    """What the walks of all segments share. ``stopping`` says whether to end after the item in hand."""

    work: Work
    sender: Sender
    checkpoints: Checkpoints
    page: int
    stopping: Callable[[], bool]
    report: Callable[[Segment], object]

    def segment(self, segment: Segment) -> Segment:
        """Go through a segment from where it is to its end, or until it is time to stop."""
        if not self.stopping():
            segment = self._failures_again(segment)
        while not segment.done and not self.stopping():
            answer = self.sender.send(scan(self.work.task, segment, self.checkpoints.run.segments, self.page))
            if self._is_lost(segment, answer):
                segment = replace(segment, position=None)
                continue
            segment = self._page(segment, answer)
            self.checkpoints.save(segment)
            self.report(segment)
        return segment

    def _is_lost(self, segment: Segment, answer: dict[str, object]) -> bool:
        """Whether a local engine ended a segment because the item that it was to go on after has been deleted.

        Dynoxide 1.2.1 does so in a parallel Scan. The segment is begun again, which changes nothing twice.
        """
        ended = answer["ScannedCount"] == 0 and "LastEvaluatedKey" not in answer
        parallel = self.checkpoints.run.segments > 1 and self.sender.table.settings.is_local
        if segment.position is None or not ended or not parallel:
            return False
        return not self.sender.at_once([segment.position])

    def _page(self, segment: Segment, answer: Response) -> Segment:
        items: list[Item] = answer["Items"]
        others = read_with(self.sender, self.work.task, items)
        for number, item in enumerate(items):
            if self.stopping():
                return replace(segment, scanned=segment.scanned + number)
            segment = replace(self._settled(segment, item, others), position=key_of(item))
        scanned = segment.scanned + answer["ScannedCount"]
        end = answer.get("LastEvaluatedKey")
        position = segment.position if end is None else key_of(end)
        return replace(segment, scanned=scanned, position=position, done=end is None)

    def _settled(self, segment: Segment, item: Item, others: Others) -> Segment:
        outcome = settle(self.sender, self.work, item, others)
        segment = replace(segment, matched=segment.matched + 1)
        if isinstance(outcome, Failure):
            return segment.failing(outcome)
        return replace(segment, changed=segment.changed + 1) if outcome == "changed" else segment

    def _failures_again(self, segment: Segment) -> Segment:
        """A segment that was at its end: what failed is tried again; if not all of it is known, the whole segment."""
        if not segment.done or not segment.failed:
            return segment
        if segment.failed > len(segment.failures):
            return Segment(segment.number)
        left = replace(segment, failed=0, failures=())
        for failure in segment.failures:
            if self.stopping():
                left = left.failing(failure)
                continue
            item = self.sender.at_once([failure.key]).get(failure.key)
            if item is None or not matches(self.work.task.items, item):
                continue
            left = self._settled(
                replace(left, matched=left.matched - 1), item, read_with(self.sender, self.work.task, [item])
            )
        self.checkpoints.save(left)
        self.report(left)
        return left


def read_with(sender: Sender, task: Task, items: Sequence[Item]) -> dict[ItemKey, Item]:
    """What the items of a page have to do with, by key: a BatchGetItem for each hundred others."""
    task.ahead(items, sender.write)
    return read(sender, {key for item in items for key in task.wanted(item)})


def read(sender: Sender, keys: Collection[ItemKey]) -> dict[ItemKey, Item]:
    """The items under some keys, by key: a BatchGetItem for each hundred."""
    found: dict[ItemKey, Item] = {}
    for request in compile_batches(sorted(keys), sender.table.name):
        sender.pace.before(request.operation)
        found |= {key_of(item): item for item in run(get_batch(sender.table, request))}
    return found


def scan(task: Task, segment: Segment, segments: int, page: int) -> Request:
    """The request for the next page of a segment, strongly consistent: what was written just now is not passed by."""
    builder = ExpressionBuilder()
    params: dict[str, Any] = {"ConsistentRead": True, "Limit": page}
    if segments > 1:
        params |= {"Segment": segment.number, "TotalSegments": segments}
    if segment.position is not None:
        params["ExclusiveStartKey"] = item_key(segment.position)
    text = compile_condition(task.items, None, builder)
    return Request("Scan", {**params, **({"FilterExpression": text} if text else {}), **builder.params()})
