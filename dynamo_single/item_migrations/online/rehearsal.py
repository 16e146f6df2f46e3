"""A dry run: what work would do, shown of some items, without a write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from dynamo_single.exceptions import InvalidValue
from dynamo_single.item_migrations.online.checkpoints import Failure, Segment
from dynamo_single.item_migrations.online.items import Sender
from dynamo_single.item_migrations.online.segments import read_with, scan
from dynamo_single.item_migrations.online.work import Options, Task
from dynamo_single.orm.requests.actions import Action, Check, Delete, Item, ItemKey, Put, key_of
from dynamo_single.table.pace import Pace
from dynamo_single.table.table import Table, patience


@dataclass(frozen=True, slots=True)
class Sample:
    """The items that one change writes, before and after it, by their keys; ``None`` where none is stored."""

    before: dict[ItemKey, Item | None]
    after: dict[ItemKey, Item | None]


@dataclass(slots=True)
class Rehearsal:
    """What a dry run has seen: how many items were read and would change, a sample, and what would fail.

    ``complete`` says whether all of the table was read.
    """

    scanned: int = 0
    matched: int = 0
    changing: int = 0
    samples: list[Sample] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    complete: bool = False


def rehearse(
    task: Task, table: Table, *, sample: int = 5, most: int | None = 10_000, max_rcu: float | None = None
) -> Rehearsal:
    """Try a task on the items of a table, and write nothing: a Scan for each page, and BatchGetItems as in earnest.

    It ends after about ``most`` items of the table, ``None`` for all of them. ``sample`` is how many items that would
    change are kept, and how many that would fail. What others write meanwhile is not looked for.
    """
    found = Rehearsal()
    pace = Pace(reads=max_rcu)
    sender = Sender(table, pace)
    segment: Segment = Segment(0)
    with patience(), pace.counting():
        while not segment.done and (most is None or found.scanned < most):
            answer = sender.send(scan(task, segment, 1, min(Options().page, most or Options().page)))
            found.scanned += answer["ScannedCount"]
            _try(found, task, sender, answer["Items"], sample)
            end = answer.get("LastEvaluatedKey")
            segment = Segment(0, position=None if end is None else key_of(end), done=end is None)
    found.complete = segment.done
    return found


def _try(found: Rehearsal, task: Task, sender: Sender, items: Sequence[Item], sample: int) -> None:
    others = read_with(sender, task, items)
    for item in items:
        found.matched += 1
        try:
            actions = task.change(item, others)
        except InvalidValue as error:
            if len(found.failures) < sample:
                found.failures.append(Failure(key_of(item), str(error)))
            continue
        if not actions:
            continue
        found.changing += 1
        if len(found.samples) < sample:
            before = {key_of(item): item, **others}
            changes = dict(applied(actions, before))
            found.samples.append(Sample({key: before.get(key) for key in changes}, changes))


def applied(actions: Sequence[Action], stored: dict[ItemKey, Item]) -> Iterator[tuple[ItemKey, Item | None]]:
    """What actions make of stored items, by their keys; what is not stored afterwards is ``None``."""
    for action in actions:
        if isinstance(action, Put):
            yield action.key, action.item
        elif isinstance(action, Delete):
            yield action.key, None
        elif not isinstance(action, Check):
            kept = {name: value for name, value in stored.get(action.key, {}).items() if name not in action.remove}
            yield action.key, {**kept, **action.set}
