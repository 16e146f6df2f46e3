"""Change one item, conditional on the attributes that were read, and create the indexes that new keys need.

If another process changes the item in the meantime, the change is computed again from the new item. Indexes are created
one at a time, and are ready before any item is changed. This module does not depend on the source of items.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal

from msgspec.structs import replace

from dynamo_single.evolution.backfill.checkpoints import Failure
from dynamo_single.evolution.backfill.work import Others, Task, Work
from dynamo_single.exceptions import (
    BeginAgain,
    ConditionFailed,
    ConfigurationError,
    Conflict,
    InvalidValue,
    ItemTooLarge,
    NotSupported,
    RequestFailed,
    TableUnavailable,
    TransactionCancelled,
)
from dynamo_single.orm.conditions.matching import matches
from dynamo_single.orm.requests.actions import Action, Check, Item, ItemKey, key_of
from dynamo_single.orm.requests.compiler import compile_action, compile_reads, compile_transaction, item_key
from dynamo_single.orm.rollout import knowledge
from dynamo_single.table import schema
from dynamo_single.table.batches import Pace
from dynamo_single.table.lease import Lease
from dynamo_single.table.request import MAX_ACTIONS, Request
from dynamo_single.table.schema import Difference, Observed
from dynamo_single.table.table import Table

#: How often an item is read again that other processes change in the meantime.
ATTEMPTS: Final = 5

Outcome = Literal["changed", "unchanged"] | Failure


class Sender:
    """Sends requests to one table at a limited rate, and retries throttled requests.

    ``lease_now`` returns the lease of the requests. It raises an error after the table's state has changed: late
    requests of a stopped command must not be executed after another command has continued its work.
    """

    def __init__(self, table: Table, pace: Pace, lease_now: Callable[[], Lease | None] = lambda: None) -> None:
        self.table, self.pace, self.lease_now = table, pace, lease_now

    def send(self, request: Request) -> dict[str, Any]:
        """Send one request after the pause that the rate limit requires."""
        self.pace.before(request.operation)
        for _ in range(ATTEMPTS):
            lease = self.lease_now()
            try:
                return self.table.send_patiently(request if lease is None else replace(request, lease=lease))
            except BeginAgain:
                knowledge.stale()
        lease = self.lease_now()
        return self.table.send_patiently(request if lease is None else replace(request, lease=lease))

    def write(self, actions: Sequence[Action]) -> None:
        """Run all actions or none: a plain request for a single write, otherwise a transaction."""
        if len(actions) == 1 and not isinstance(actions[0], Check):
            self.send(compile_action(actions[0]))
        else:
            self.send(compile_transaction(actions, self.table.name, str(uuid.uuid4())))

    def at_once(self, keys: Sequence[ItemKey]) -> dict[ItemKey, Item]:
        """Return the stored items of one point in time: a GetItem for one key, otherwise one TransactGetItems."""
        if len(keys) == 1:
            answer = self.send(Request("GetItem", {"Key": item_key(keys[0]), "ConsistentRead": True}))
            return {keys[0]: answer["Item"]} if answer.get("Item") else {}
        if len(keys) > MAX_ACTIONS:
            raise InvalidValue(f"It has to do with {len(keys) - 1} other items; a transaction takes {MAX_ACTIONS}.")
        answers = self.send(compile_reads(keys, self.table.name))["Responses"]
        return {key_of(answer["Item"]): answer["Item"] for answer in answers if answer.get("Item")}


def scanning(sender: Sender, task: Task) -> Sender:
    """Return the sender for the Scans of a task: claims of a table with a companion are in the companion."""
    companion = sender.table.companion if task.of_claims else None
    return sender if companion is None else Sender(companion, sender.pace, sender.lease_now)


def process_item(sender: Sender, work: Work, item: Item, others: Others) -> Outcome:
    """Bring an item up to date: one write if it has to change. Return the outcome.

    If the write fails or the item cannot be changed, it is read again, at most five times. Each attempt sends a GetItem
    or TransactGetItems, and a write.
    """
    key, reason = key_of(item), ""
    for attempt in range(ATTEMPTS + 1):
        try:
            current = _reread(sender, work, key, item) if attempt else (item, others)
            return "unchanged" if current is None else _try_once(sender, work, *current)
        except _ConcurrentChange as error:
            reason = f"The app tried {ATTEMPTS + 1} times to change it, but other processes wrote it each time. {error}"
        except Conflict as error:
            return Failure(key, str(error))
        except TableUnavailable:
            raise
        except _ITEM_ERRORS as error:
            if attempt:  # before that, the item may have changed since it was read
                return Failure(key, str(error))
    return Failure(key, reason)


class _ConcurrentChange(Exception):
    """Something that a change depends on was changed by another process."""


#: Errors about one item rather than about the table.
_ITEM_ERRORS = (InvalidValue, ItemTooLarge, NotSupported, RequestFailed)


def _try_once(sender: Sender, work: Work, item: Item, others: Others) -> Outcome:
    actions = work.task.change(item, others)
    if not actions:
        return "unchanged"
    try:
        sender.write(actions)
    except ConditionFailed as error:
        raise _ConcurrentChange(str(error)) from error
    except TransactionCancelled as error:
        if not _only_conditions(error):
            raise
        raise _ConcurrentChange(str(error)) from error
    return "changed"


def _reread(sender: Sender, work: Work, key: ItemKey, item: Item) -> tuple[Item, Mapping[ItemKey, Item]] | None:
    """Return the current item and the other items it depends on, read at the same time; ``None`` if it is gone."""
    further = dict.fromkeys((key, *work.task.keys_wanted(item)))
    for _ in range(ATTEMPTS):
        wanted = further
        found = sender.at_once(list(wanted))
        if key not in found or not matches(work.task.items, found[key]):
            return None
        item = found[key]
        further = dict.fromkeys((key, *work.task.keys_wanted(item)))
        if further.keys() <= wanted.keys():
            work.task.prepare([item], sender.write)
            return item, found
    raise InvalidValue("Other processes changed its dependent items during each attempt.")


def _only_conditions(error: TransactionCancelled) -> bool:
    codes = {reason.get("Code") for reason in error.reasons if reason is not None}
    return codes <= {"ConditionalCheckFailed", "TransactionConflict"}


def ensure_indexes(
    table: Table,
    indexes: Iterable[str],
    *,
    report: Callable[[Difference], None] = lambda _: None,
) -> list[str]:
    """Create the indexes that the table lacks, and wait until they can be queried. Return the created ones.

    Sends one DescribeTable if none is missing. Otherwise it sends an UpdateTable for each, since DynamoDB creates one
    index at a time, and DescribeTable until the index is active. This takes hours for a large table, and DynamoDB
    continues if this process ends. Raises ``ConfigurationError`` for an index that is not in the settings, and
    ``TableMismatch`` for an index that has other keys or does not project all attributes.
    """
    wanted = set(indexes)
    if unknown := sorted(wanted - set(table.settings.indexes)):
        alias = table.settings.alias
        raise ConfigurationError(
            f"A key is on the index {unknown[0]!r}, which DYNAMO_SINGLE[{alias!r}] does not name. Add it to INDEXES."
        )

    def concerned(difference: Difference) -> bool:
        return difference.kind == "index" and difference.subject in wanted

    described = table.send(Request("DescribeTable"))["Table"]
    present = described.get("GlobalSecondaryIndexes", ())
    waiting = any(each["IndexName"] in wanted and each["IndexStatus"] != "ACTIVE" for each in present)
    found = schema.differences(table.settings, Observed(described, {}))
    if not waiting and not any(map(concerned, found)):
        return []
    made = schema.apply(table, report=report, patience=math.inf, only=concerned)
    return [each.subject for each in made]
