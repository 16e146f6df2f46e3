"""The stored progress of work: its operator, and the position of each segment.

The work and each segment have one item, all in one partition. An operator writes a token into all of them in one
transaction. Each later write is conditional on the token, so that only one of two operators continues. This module does
not depend on how items are changed.
"""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from dynamo_single import clock
from dynamo_single.evolution.backfill.work import MAX_SEGMENTS, Options, Work
from dynamo_single.exceptions import ConditionFailed, MigrationRunning, MigrationStopped, TransactionCancelled
from dynamo_single.orm.conditions.terms import Condition, Stored
from dynamo_single.orm.requests.actions import ITEM_MISSING, Item, ItemKey, Put, Update, as_read, key_of
from dynamo_single.orm.requests.compiler import compile_action, compile_reads, compile_transaction, item_key
from dynamo_single.orm.rollout.states import partition_of
from dynamo_single.table import names
from dynamo_single.table.request import Request
from dynamo_single.table.table import Table

#: The most failures that a segment stores, and their most bytes together: an item holds at most 400 KB (AWS developer
#: guide, "Quotas in Amazon DynamoDB"), and a checkpoint is written after each page. A reason has at most 400
#: characters.
MAX_FAILURES: Final = 100
MAX_FAILURES_SIZE: Final = 100_000
MAX_REASON: Final = 400
_COUNTS: Final = ("scanned", "matched", "changed", "failed")


class DamagedCheckpoint(Exception):
    """A checkpoint lacks an attribute or has one of another type. This exception stays inside this module."""


@contextmanager
def _reading() -> Iterator[None]:
    """Raise ``DamagedCheckpoint`` if an item cannot be read as a checkpoint."""
    try:
        yield
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedCheckpoint from error


@dataclass(frozen=True, slots=True)
class Failure:
    """An item that could not be changed, with the reason."""

    key: ItemKey
    reason: str

    def __str__(self) -> str:
        """Return the key and the reason in one line."""
        return f"{self.key[0]} / {self.key[1]}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Segment:
    """The progress of one segment: the last processed key, the counts so far, and whether the segment is done.

    ``failed`` counts all failures; ``failures`` contains the first ones.
    """

    number: int
    position: ItemKey | None = None
    done: bool = False
    scanned: int = 0
    matched: int = 0
    changed: int = 0
    failed: int = 0
    failures: tuple[Failure, ...] = ()

    def failing(self, failure: Failure) -> Segment:
        """Return the segment with another failure; its reason is stored if there is room."""
        kept = replace(failure, reason=failure.reason[:MAX_REASON])
        size = sum(len(str(each).encode()) for each in (*self.failures, kept))
        room = len(self.failures) < MAX_FAILURES and size <= MAX_FAILURES_SIZE
        return replace(self, failed=self.failed + 1, failures=(*self.failures, kept) if room else self.failures)

    @property
    def item(self) -> dict[str, Any]:
        """The attributes of the stored item, without its key."""
        found: dict[str, Any] = {
            "done": {"BOOL": self.done},
            **{name: {"N": str(getattr(self, name))} for name in _COUNTS},
        }
        if self.position is not None:
            found["position"] = {"M": item_key(self.position)}
        if self.failures:
            found["failures"] = {
                "L": [{"M": {**item_key(each.key), "reason": {"S": each.reason}}} for each in self.failures]
            }
        return found

    @classmethod
    def of(cls, number: int, item: Item) -> Segment:
        """Return a segment from its item, or a new segment if the item is missing.

        Raises ``DamagedCheckpoint`` if the item cannot be read.
        """
        with _reading():
            counts = {name: int(item[name]["N"]) for name in _COUNTS if name in item}
            failures = (each["M"] for each in (item["failures"]["L"] if "failures" in item else ()))
            return cls(
                number,
                position=key_of(item["position"]["M"]) if "position" in item else None,
                done=item["done"]["BOOL"] if "done" in item else False,
                failures=tuple(Failure(key_of(each), each["reason"]["S"]) for each in failures),
                **counts,
            )


@dataclass(frozen=True, slots=True)
class StoredRun:
    """The stored record of work as a whole: the operator with the token, its start, and the end of its lease.

    ``since`` and ``until`` are Unix times in seconds.
    """

    token: str
    holder: str
    since: float
    until: float
    segments: int
    label: str
    mark: str
    done: bool = False
    failed: int = 0

    @property
    def item(self) -> dict[str, Any]:
        """The attributes of the stored item, without its key."""
        return {
            **{name: {"S": getattr(self, name)} for name in ("token", "holder", "label", "mark")},
            **{name: {"N": str(getattr(self, name))} for name in ("since", "until", "segments", "failed")},
            "done": {"BOOL": self.done},
        }

    @classmethod
    def of(cls, item: Item) -> StoredRun:
        """Return the stored record of work; raise ``DamagedCheckpoint`` if it cannot be read."""
        with _reading():
            return cls(
                token=item["token"]["S"],
                holder=item["holder"]["S"],
                since=float(item["since"]["N"]),
                until=float(item["until"]["N"]),
                segments=int(item["segments"]["N"]),
                label=item["label"]["S"],
                mark=item["mark"]["S"],
                done=item["done"]["BOOL"],
                failed=int(item["failed"]["N"]),
            )


class Checkpoints:
    """The checkpoints of one piece of work, as written by the operator that has the token.

    ``taken()`` creates them. Every write raises ``MigrationRunning`` if another operator has taken over.
    """

    def __init__(
        self, table: Table, work: Work, run: StoredRun, lease: float, *, goes_on: bool = True, repairs: bool = False
    ) -> None:
        self.table, self.work, self.run, self.lease = table, work, run, lease
        self.goes_on, self.repairs = goes_on, repairs

    @classmethod
    def taken(cls, table: Table, work: Work, options: Options) -> Checkpoints:
        """Start or take over work: a GetItem and one TransactWriteItems.

        Does not write if the work is done. Raises ``MigrationRunning`` while another operator runs the work, and
        ``MigrationStopped`` for a damaged checkpoint. With ``repairs``, damaged work starts from the beginning.
        """
        key = _sort_key(work)
        answer = table.send(Request("GetItem", {"Key": item_key(_key(table, key)), "ConsistentRead": True}))
        stored: Item | None = answer.get("Item")
        try:
            before = None if stored is None else StoredRun.of(stored)
        except DamagedCheckpoint as error:
            if not options.repairs:
                raise _damaged(work, key) from error
            before = None
        if before is not None and before.mark == work.mark and before.done and not before.failed:
            return cls(table, work, before, options.lease)
        if before is not None and before.until > clock.timestamp():
            raise _running(work, before)
        goes_on = before is not None and before.mark == work.mark
        present = clock.timestamp()
        run = StoredRun(
            token=str(uuid.uuid4()),
            holder=f"{socket.gethostname()}:{os.getpid()}",
            since=present,
            until=present + options.lease,
            segments=before.segments if before is not None and goes_on else options.segments,
            label=work.label,
            mark=work.mark,
        )
        found = cls(table, work, run, options.lease, goes_on=goes_on, repairs=options.repairs)
        if before is not None:
            found._take(Stored("token", "=", ({"S": before.token},)))
        else:
            found._take(ITEM_MISSING if stored is None else as_read(stored, stored))
        return found

    def _take(self, condition: Condition) -> None:
        actions: list[Put | Update] = [Put(self._item(_sort_key(self.work), self.run.item), condition)]
        for number in range(self.run.segments):
            key = _sort_key(self.work, number)
            if self.goes_on:
                mine = {"token": {"S": self.run.token}, names.ITEM_TYPE: {"S": names.CHECKPOINT_ITEM_TYPE}}
                actions.append(Update(_key(self.table, key), set=mine))
            else:
                actions.append(Put(self._item(key, Segment(number).item)))
        request = compile_transaction(actions, self.table.name, str(uuid.uuid4()))
        try:
            self.table.send_patiently(request)
        except TransactionCancelled as error:
            if not _checkpoint_error(error):
                raise
            answer = self.table.send(Request("GetItem", {"Key": item_key(_key(self.table, _sort_key(self.work)))}))
            with suppress(DamagedCheckpoint):
                raise _running(self.work, StoredRun.of(answer["Item"]) if "Item" in answer else None) from error
            raise _damaged(self.work, _sort_key(self.work)) from error

    def segments(self) -> list[Segment]:
        """Return every segment as it is stored: one TransactGetItems, or no request for new work.

        Raises ``MigrationStopped`` for a damaged segment. With ``repairs``, that segment starts from its beginning.
        """
        if not self.goes_on:
            return [Segment(number) for number in range(self.run.segments)]
        keys = [_key(self.table, _sort_key(self.work, number)) for number in range(self.run.segments)]
        answers = self.table.send_patiently(compile_reads(keys, self.table.name))["Responses"]
        return [self._segment(number, answer.get("Item") or {}) for number, answer in enumerate(answers)]

    def _segment(self, number: int, item: Item) -> Segment:
        try:
            return Segment.of(number, item)
        except DamagedCheckpoint as error:
            if not self.repairs:
                raise _damaged(self.work, _sort_key(self.work, number)) from error
            return Segment(number)

    def save(self, segment: Segment) -> None:
        """Store the progress of a segment: one PutItem."""
        item = self._item(_sort_key(self.work, segment.number), segment.item)
        self._write(Put(item, self._mine()))

    def renew(self) -> None:
        """Extend the lease: one UpdateItem."""
        self._until(clock.timestamp() + self.lease)

    def release(self) -> None:
        """End the lease, so that the next operator can take over immediately: one UpdateItem."""
        self._until(0.0)

    def finish(self, failed: int) -> None:
        """Store that the work is done, with the number of failures: one PutItem."""
        done = replace(self.run, done=True, failed=failed, until=0.0)
        self._write(Put(self._item(_sort_key(self.work), done.item), self._mine()))

    def _until(self, moment: float) -> None:
        self._write(
            Update(_key(self.table, _sort_key(self.work)), set={"until": {"N": str(moment)}}, condition=self._mine())
        )

    def _mine(self) -> Stored:
        return Stored("token", "=", ({"S": self.run.token},))

    def _item(self, sort_key: str, contents: Mapping[str, object]) -> dict[str, Any]:
        return {
            **item_key(_key(self.table, sort_key)),
            names.ITEM_TYPE: {"S": names.CHECKPOINT_ITEM_TYPE},
            "token": {"S": self.run.token},
            **contents,
        }

    def _write(self, action: Put | Update) -> None:
        try:
            self.table.send_patiently(compile_action(action))
        except ConditionFailed as error:
            raise _running(self.work, None) from error


def delete_checkpoints(table: Table, app: str, migration: str) -> int:
    """Delete the checkpoints of a migration that is recorded or reverted: a Query, and a DeleteItem for each.

    There are at most ``MAX_SEGMENTS`` + 1 for each operation, phase and step. Returns the number of deleted
    checkpoints.
    """
    found = 0
    for item in [*_items(table, f"WORK#{app}#{migration}#")]:
        table.send_patiently(Request("DeleteItem", {"Key": item_key(key_of(item))}))
        found += 1
    return found


def _items(table: Table, prefix: str) -> Iterator[dict[str, Any]]:
    params: dict[str, Any] = {
        "KeyConditionExpression": "#p = :p AND begins_with(#s, :s)",
        "ExpressionAttributeNames": {"#p": names.PARTITION_KEY, "#s": names.SORT_KEY},
        "ExpressionAttributeValues": {":p": {"S": partition_of(table.settings)}, ":s": {"S": prefix}},
        "ConsistentRead": True,
    }
    for answer in table.pages(Request("Query", params), send=table.send_patiently):
        # In Dynoxide 1.2.1, begins_with() on a key ignores the case of ASCII letters.
        yield from (item for item in answer["Items"] if item[names.SORT_KEY]["S"].startswith(prefix))


def _key(table: Table, sort_key: str) -> ItemKey:
    return partition_of(table.settings), sort_key


def _sort_key(work: Work, segment: int | None = None) -> str:
    key = f"WORK#{work.app}#{work.migration}#{work.number}#{work.phase}#{work.step}"
    return key if segment is None else f"{key}#{segment:0{len(str(MAX_SEGMENTS))}d}"


def _checkpoint_error(error: TransactionCancelled) -> bool:
    return any(reason is not None and reason.get("Code") == "ConditionalCheckFailed" for reason in error.reasons)


def _damaged(work: Work, sort_key: str) -> MigrationStopped:
    return MigrationStopped(
        f"Cannot resume {work.name}: its checkpoint {names.MIGRATIONS} / {sort_key} is damaged. Nothing was written. "
        "Make sure that no other process runs it, and run the same command with --force: what is damaged begins "
        "again."
    )


def _running(work: Work, run: StoredRun | None) -> MigrationRunning:
    if run is None:
        return MigrationRunning(f"Another operator has taken over {work.name}. This operator has stopped.")
    since = datetime.fromtimestamp(run.since, UTC).isoformat(" ", "seconds")
    left = max(0, round(run.until - clock.timestamp()))
    return MigrationRunning(
        f"{run.holder} has been running {work.name} since {since}. Wait until it has ended. If it was killed, its "
        f"lease ends in {left} s: repeat the command after that to resume its work.",
        holder=run.holder,
    )
