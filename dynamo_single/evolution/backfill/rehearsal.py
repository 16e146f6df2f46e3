"""Rehearse work: compute its changes for a sample of items without writing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from dynamo_single.evolution.backfill.checkpoints import Failure, Segment
from dynamo_single.evolution.backfill.items import Sender, scanning
from dynamo_single.evolution.backfill.run import read, scan
from dynamo_single.evolution.backfill.work import Options, Others, Task
from dynamo_single.exceptions import InvalidValue
from dynamo_single.orm.requests.actions import Action, Check, Delete, Item, ItemKey, Put, key_of
from dynamo_single.table import names
from dynamo_single.table.batches import Pace
from dynamo_single.table.request import Response
from dynamo_single.table.table import Table, patience

#: The items that earlier changes would have written, by key; ``None`` for deleted ones.
SimulatedItems = dict[ItemKey, Item | None]

#: The attributes of another item that a change reads: its key, its type, and the owner of a claim.
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
    """The items before and after a change, by key; ``None`` for an item that is not stored."""

    before: dict[ItemKey, Item | None]
    after: dict[ItemKey, Item | None]


@dataclass(slots=True)
class Rehearsal:
    """A dry run of a task: how many items were read, would change and would fail, with samples of both.

    It keeps at most ``most_samples`` items that would change, and ``most_failures`` others. ``imagined`` contains the
    claims and keys that it and earlier tasks would have written. ``complete`` is set if the whole table was read.
    """

    task: Task
    sender: Sender
    most_samples: int
    most_failures: int
    imagined: SimulatedItems
    scanned: int = 0
    matched: int = 0
    changing: int = 0
    failing: int = 0
    samples: list[Sample] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    complete: bool = False

    def page(self, answer: Response) -> None:
        """Rehearse the items of a page."""
        items: list[Item] = answer["Items"]
        wanted = [self.task.keys_wanted(item) for item in items]
        others = read(self.sender, frozenset[ItemKey]().union(*wanted))
        self.scanned += answer["ScannedCount"]
        self.complete = "LastEvaluatedKey" not in answer
        for item, keys in zip(items, wanted, strict=True):
            self.matched += 1
            try:
                self._item(item, self._with_imagined(others, keys) if self.imagined else others)
            except InvalidValue as error:
                self.failing += 1
                if len(self.failures) < self.most_failures:
                    self.failures.append(Failure(key_of(item), str(error)))

    def _item(self, item: Item, others: Others) -> None:
        actions = self.task.change(item, others)
        if not actions:
            return
        self.changing += 1
        before = {key_of(item): item, **others}
        changes = dict(apply_actions(actions, before))
        if len(self.samples) < self.most_samples:
            self.samples.append(Sample({key: before.get(key) for key in changes}, changes))
        for key, after in changes.items():
            if key != key_of(item) or after is None:
                self.imagined[key] = after and {name: after[name] for name in _READ_NAMES if name in after}

    def _with_imagined(self, others: Others, wanted: Iterable[ItemKey]) -> Others:
        """Return the other items of one item, with the simulated changes."""
        as_they_would_be = {key: self.imagined.get(key, others.get(key)) for key in wanted}
        return {key: other for key, other in as_they_would_be.items() if other is not None}


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
    """Compute the changes of a task without writing: a Scan for each page, and BatchGetItems as in a real run.

    The rehearsal ends after about ``most`` items of the table; ``None`` reads all of them. It returns at most
    ``sample`` items that would change, and at most ``refused`` failures (by default ``sample``). It does not notice
    changes by other processes.

    Simulated claims and keys are kept, so the rehearsal finds two items that need the same claim or key. Each takes
    about a kilobyte of memory. ``imagined`` contains the claims and keys of earlier tasks, and this task adds its own.
    """
    pace = Pace(reads=max_rcu)
    kept = {} if imagined is None else imagined
    found = Rehearsal(task, Sender(table, pace), sample, sample if refused is None else refused, kept)
    first = scan(task, Segment(0), 1, min(Options().page, most or Options().page))
    with patience(), pace.counting():
        for answer in table.pages(first, send=scanning(found.sender, task).send):
            found.page(answer)
            if most is not None and found.scanned >= most:
                break
    return found


def apply_actions(actions: Sequence[Action], stored: dict[ItemKey, Item]) -> Iterator[tuple[ItemKey, Item | None]]:
    """Yield the keys and the items that actions write; ``None`` for a deleted item."""
    for action in actions:
        if isinstance(action, Put):
            yield action.key, action.item
        elif isinstance(action, Delete):
            yield action.key, None
        elif not isinstance(action, Check):
            kept = {name: value for name, value in stored.get(action.key, {}).items() if name not in action.remove}
            yield action.key, {**kept, **action.set}
