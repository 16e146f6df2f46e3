"""Rehearse work: compute its changes for a sample of items without writing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from dynamo_single.evolution.backfill.checkpoints import Failure, Segment
from dynamo_single.evolution.backfill.items import Sender
from dynamo_single.evolution.backfill.run import read, scan
from dynamo_single.evolution.backfill.work import Options, Others, Task
from dynamo_single.exceptions import InvalidValue
from dynamo_single.orm.requests.actions import Action, Check, Delete, Item, ItemKey, Put, key_of
from dynamo_single.table import names
from dynamo_single.table.batches import Pace
from dynamo_single.table.table import Table, patience

#: What items further on would be written, or ``None`` for deleted ones, by their keys.
SimulatedItems = dict[ItemKey, Item | None]

#: What a change looks at of another item: that it is there, and whose claim it is.
_READ_NAMES = (
    names.PARTITION_KEY,
    names.SORT_KEY,
    names.ITEM_TYPE,
    names.CLAIM_OWNER_PARTITION,
    names.CLAIM_OWNER_SORT,
    names.EXPIRES_AT,
)


@dataclass(frozen=True, slots=True)
class Sample:
    """The items that one change writes, before and after it, by their keys; ``None`` where none is stored."""

    before: dict[ItemKey, Item | None]
    after: dict[ItemKey, Item | None]


@dataclass(slots=True)
class Rehearsal:
    """What a dry run has seen: how many items were read, would change and would fail, with samples of both.

    ``complete`` says whether all of the table was read.
    """

    scanned: int = 0
    matched: int = 0
    changing: int = 0
    failing: int = 0
    samples: list[Sample] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    complete: bool = False


def rehearse(
    task: Task,
    table: Table,
    *,
    sample: int = 5,
    refused: int | None = None,
    most: int | None = 10_000,
    max_rcu: float | None = None,
    imagined: SimulatedItems | None = None,
) -> Rehearsal:
    """Try a task on the items of a table, and write nothing: a Scan for each page, and BatchGetItems as in earnest.

    It ends after about ``most`` items of the table, ``None`` for all of them. ``sample`` is how many items that would
    change are kept, and ``refused``, or as many, how many that would fail. What others write meanwhile is not looked
    for.

    Claims and keys that an item would take count for those after it, so that two which want the same are found; about a
    kilobyte is kept of each. ``imagined`` are those of earlier tasks, to which this one's are added.
    """
    found = Rehearsal()
    pace = Pace(reads=max_rcu)
    trial = _TaskRehearsal(found, task, Sender(table, pace), sample, sample if refused is None else refused)
    trial.imagined = {} if imagined is None else imagined
    segment: Segment = Segment(0)
    with patience(), pace.counting():
        while not segment.done and (most is None or found.scanned < most):
            answer = trial.sender.send(scan(task, segment, 1, min(Options().page, most or Options().page)))
            found.scanned += answer["ScannedCount"]
            trial.page(answer["Items"])
            end = answer.get("LastEvaluatedKey")
            segment = Segment(0, position=None if end is None else key_of(end), done=end is None)
    found.complete = segment.done
    return found


@dataclass(slots=True)
class _TaskRehearsal:
    """A task that is tried, with what it would have written so far."""

    found: Rehearsal
    task: Task
    sender: Sender
    sample: int
    refused: int
    imagined: SimulatedItems = field(default_factory=dict)

    def page(self, items: Sequence[Item]) -> None:
        """Try the items of a page."""
        wanted = [frozenset(self.task.wanted(item)) for item in items]
        others = read(self.sender, frozenset[ItemKey]().union(*wanted))
        for item, keys in zip(items, wanted, strict=True):
            self.found.matched += 1
            try:
                self._item(item, self._with_imagined(others, keys) if self.imagined else others)
            except InvalidValue as error:
                self.found.failing += 1
                if len(self.found.failures) < self.refused:
                    self.found.failures.append(Failure(key_of(item), str(error)))

    def _item(self, item: Item, others: Others) -> None:
        actions = self.task.change(item, others)
        if not actions:
            return
        self.found.changing += 1
        before = {key_of(item): item, **others}
        changes = dict(apply_actions(actions, before))
        if len(self.found.samples) < self.sample:
            self.found.samples.append(Sample({key: before.get(key) for key in changes}, changes))
        for key, after in changes.items():
            if key != key_of(item) or after is None:
                self.imagined[key] = after and {name: after[name] for name in _READ_NAMES if name in after}

    def _with_imagined(self, others: Others, wanted: Iterable[ItemKey]) -> Others:
        """The other items of one item, as they would be by now."""
        as_they_would_be = {key: self.imagined.get(key, others.get(key)) for key in wanted}
        return {key: other for key, other in as_they_would_be.items() if other is not None}


def apply_actions(actions: Sequence[Action], stored: dict[ItemKey, Item]) -> Iterator[tuple[ItemKey, Item | None]]:
    """What actions make of stored items, by their keys; what is not stored afterwards is ``None``."""
    for action in actions:
        if isinstance(action, Put):
            yield action.key, action.item
        elif isinstance(action, Delete):
            yield action.key, None
        elif not isinstance(action, Check):
            kept = {name: value for name, value in stored.get(action.key, {}).items() if name not in action.remove}
            yield action.key, {**kept, **action.set}
