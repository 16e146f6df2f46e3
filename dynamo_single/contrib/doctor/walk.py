"""Verify a whole table: find inconsistent items, and repair them.

A Scan reads the table, and BatchGetItem requests read the items related to each page, so memory does not grow with the
table. One transaction reads each suspicious item again with all related items. This module is independent of the
individual checks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, Literal

from django.core.exceptions import ObjectDoesNotExist
from django.utils.translation import gettext_noop as _
from msgspec import Struct

from dynamo_single.conf import aliases, table_settings
from dynamo_single.contrib.doctor.checks import (
    cascades,
    claims,
    copies,
    counters,
    derived,
    items,
    moves,
    shards,
    trash_counts,
)
from dynamo_single.contrib.doctor.findings import Checks, Finding, Subject, unexpired_items
from dynamo_single.contrib.doctor.removal import PacedRequests, delete_orphans
from dynamo_single.exceptions import InvalidValue, ItemTooLarge, NotSupported, StaleObject
from dynamo_single.orm.effects.recount import recount
from dynamo_single.orm.effects.send import send_actions
from dynamo_single.orm.requests import atomic_block
from dynamo_single.orm.requests.actions import Action, Item, ItemKey
from dynamo_single.orm.requests.compiler import compile_batches, compile_reads
from dynamo_single.orm.rollout import knowledge
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.table import names
from dynamo_single.table.batches import Rate, get_batch
from dynamo_single.table.flow import run
from dynamo_single.table.request import MAX_ACTIONS, Request
from dynamo_single.table.table import Table, get_table
from dynamo_single.translated import sentence

__all__ = [
    "CORRECT_TEXT",
    "REPAIR_ERRORS",
    "Examination",
    "Finding",
    "Outcome",
    "examine",
    "repair",
    "repair_outcome",
    "verify",
]

CHECKS: Final[tuple[Checks, ...]] = (items, claims, derived, copies, cascades, shards)
#: Checks that send requests themselves, because no key finds the related items: counts, for example.
Inquiry = Callable[[Table, Subject], Iterator[Finding]]
INQUIRIES: Final[tuple[Inquiry, ...]] = (copies.due, moves.due, counters.inquire, trash_counts.inquire)

#: How often related items are read again if they refer to further items.
_MAX_ROUNDS: Final = 4


def verify(
    table: Table | str = "default",
    *,
    model: type[DynamoModel] | None = None,
    rate: float | None = None,
    progress: Callable[[int], object] | None = None,
) -> Iterator[Finding]:
    """Yield the inconsistencies of a table, given by its alias. Reads the whole table and does not write.

    Sends one strongly consistent Scan, a BatchGetItem for each hundred related items, and one TransactGetItems for each
    suspicious item. For a table that the app does not own, a Scan of its companion follows. ``model`` restricts the
    check to this model's items and claims, although all items are read. ``rate`` is the most read units a second, on
    average. ``progress`` is called with the number of items read, for each page.

    For models with migrations or shards, one GetItem first reads the state of the table. Raises ``FormNotApplied`` if
    the items do not match the model's schema.
    """
    if atomic_block.current() is not None:
        raise NotSupported(
            "verify() reads stored items, but this atomic() block has not written yet. Call it after the block."
        )
    walk = _Walk(get_table(table) if isinstance(table, str) else table, Rate(rate))
    for each in registry.all_models() if model is None else (model,):
        if each._options.alias == walk.alias:
            # During an open migration, the table's state determines what an item must contain.
            run(knowledge.ask(registry.layout_of(each)))
    read = 0
    for page in walk.contents():
        subjects = [Subject.of(walk.alias, item) for item in unexpired_items(page).values()]
        chosen = [each for each in subjects if model is None or _is_selected(model, each)]
        yield from walk.examine(chosen)
        read += len(page)
        if progress is not None:
            progress(read)


class Examination(Struct, frozen=True):
    """A part of a table: its items by key, the findings, and the key after which the next part starts."""

    items: Mapping[ItemKey, Item]
    findings: tuple[Finding, ...]
    after: Mapping[str, Any] | None


def examine(table: Table, *, limit: int, after: Mapping[str, object] | None = None) -> Examination:
    """Return the inconsistencies of a part of a table. Reads at most ``limit`` items and does not write.

    Sends one strongly consistent Scan, and the requests of ``verify()`` for its items.
    """
    walk = _Walk(table, Rate(None))
    params = {"ConsistentRead": True, "Limit": limit, **({"ExclusiveStartKey": after} if after else {})}
    answer = table.send(Request("Scan", params))
    found = unexpired_items(walk.own(answer["Items"]))
    subjects = [Subject.of(walk.alias, item) for item in found.values()]
    return Examination(found, tuple(walk.examine(subjects)), answer.get("LastEvaluatedKey"))


#: The outcome of a repair: ``done``, ``right`` if nothing had to be repaired, or ``left`` if the finding remains.
Outcome = Literal["done", "right", "left"]
#: Errors that prevent the repair of a single item.
REPAIR_ERRORS: Final = (InvalidValue, ItemTooLarge)
#: The message of the commands for ``right``.
CORRECT_TEXT: Final = "It is correct: no other process changed the counted objects during the recount."


def repair(finding: Finding, table: Table | str = "default") -> bool:
    """Repair a finding. Return ``False``, without a write, if there is no repair or it is no longer needed.

    Sends one transaction, conditional on unchanged items, so it does not overwrite later writes. To repair a counter,
    the function counts again with two UpdateItems and two Queries, and repeats this after a concurrent write. It
    deletes orphans; ``delete_orphans()`` deletes the orphans of many findings with fewer requests.
    """
    return repair_outcome(finding, table) == "done"


def repair_outcome(finding: Finding, table: Table | str = "default") -> Outcome:
    """Repair a finding, and return the outcome; a counter that was counted again may be ``right``."""
    found = get_table(table) if isinstance(table, str) else table
    if finding.recount is not None:
        counted = run(recount(found, finding.key, finding.recount.counting, finding.recount.pk))
        return "left" if counted is None else "right" if counted.before == counted.number else "done"
    if finding.removal is not None:
        return "left" if next(delete_orphans(found, [finding])) else "done"
    if not finding.repair:
        return "left"

    def changed(action: Action, found: Item | None) -> Exception:
        return StaleObject(f"{finding.key[0]} / {finding.key[1]} was changed since it was looked at.")

    try:
        run(send_actions(found.settings.alias, [(action, changed) for action in finding.repair]))
    except StaleObject:
        return "left"
    return "done"


def _is_selected(model: Any, subject: Subject) -> bool:
    wanted = model._meta.concrete_model
    return subject.model is wanted or (subject.is_claim and claims.belongs_to(wanted, subject.key))


class _Walk(PacedRequests):
    """The requests of one walk, at its rate."""

    def contents(self) -> Iterator[list[Item]]:
        """Yield the pages of the table, and of the items in its companion that are about the table."""
        for answer in self.pages(Request("Scan", {"ConsistentRead": True})):
            yield self.own(answer["Items"])
        companion, prefix = self.table.companion, self.table.settings.own_prefix if self.table.companion else ""
        if companion is None:
            return
        params = {
            "ConsistentRead": True,
            "FilterExpression": "begins_with(#pk, :prefix)",
            "ExpressionAttributeNames": {"#pk": names.PARTITION_KEY},
            "ExpressionAttributeValues": {":prefix": {"S": prefix}},
        }
        for answer in companion.pages(Request("Scan", params), send=partial(self.paced, companion.send)):
            yield answer["Items"]

    def own(self, items: list[Item]) -> list[Item]:
        """Return the items of this table, without the items that it stores as the companion of another table."""
        prefixes = tuple(
            found.own_prefix for found in map(table_settings, aliases()) if found.companion == self.alias != found.alias
        )
        return [item for item in items if not item[names.PARTITION_KEY].get("S", "").startswith(prefixes)]

    def examine(self, subjects: Sequence[Subject]) -> Iterator[Finding]:
        """Yield the errors of the items of one page."""
        others: dict[ItemKey, Item] = {}
        asked: set[ItemKey] = set()
        for _round in range(_MAX_ROUNDS):
            wanted = {key for each in subjects for key in _wanted(each, others)} - asked
            if not wanted:
                break
            asked |= wanted
            others |= unexpired_items(self.batches(sorted(wanted)))
        for subject in subjects:
            if next(_findings(subject, others), None) is not None:
                yield from self.confirmed(subject, others)
            if subject.model is not None:
                for inquiry in INQUIRIES:
                    yield from self.paced(_run_inquiry, inquiry, self.table, subject)

    def confirmed(self, subject: Subject, others: dict[ItemKey, Item]) -> Iterator[Finding]:
        """Yield the errors of an item, read again with all related items at one point in time."""
        wanted = dict.fromkeys((subject.key, *_wanted(subject, others)))
        fresh = subject
        for _round in range(_MAX_ROUNDS):
            found = unexpired_items(self.at_once(list(wanted)))
            if subject.key not in found:
                return
            fresh, others = Subject.of(self.alias, found[subject.key]), found
            further = dict.fromkeys(_wanted(fresh, others))
            if further.keys() <= wanted.keys():
                break
            wanted |= further
        yield from _findings(fresh, others)

    def batches(self, wanted: Sequence[ItemKey]) -> Iterator[Item]:
        """Yield items by their keys, strongly consistent."""
        for request in compile_batches(wanted, self.table.name):
            yield from self.paced(lambda asked: run(get_batch(self.table, asked)), request)

    def at_once(self, wanted: Sequence[ItemKey]) -> Iterable[Item]:
        """Return items by their keys at one point in time, or in batches if a transaction cannot read that many."""
        if len(wanted) > MAX_ACTIONS:
            return self.batches(wanted)
        request = compile_reads(wanted, self.table.name)
        answers = self.paced(self.table.send_patiently, request)["Responses"]
        return [answer["Item"] for answer in answers if answer.get("Item")]


def _run_inquiry(inquiry: Inquiry, table: Table, subject: Subject) -> list[Finding]:
    try:
        return list(inquiry(table, subject))
    except ObjectDoesNotExist:
        # The item was deleted after it was read.
        return []
    except InvalidValue as error:
        # Another check reports an item that cannot be read. Otherwise an item that depends on it cannot be read.
        if any(finding.kind == "unreadable item" for finding in items.findings(subject, {})):
            return []
        said = sentence(_("Its derived items cannot be checked: %(error)s"), error=str(error))
        return [Finding("unreadable item", subject.key, said)]


def _wanted(subject: Subject, others: dict[ItemKey, Item]) -> Iterator[ItemKey]:
    for checks in CHECKS:
        yield from checks.wanted(subject, others)


def _findings(subject: Subject, others: dict[ItemKey, Item]) -> Iterator[Finding]:
    for checks in CHECKS:
        yield from checks.findings(subject, others)
