"""Delete orphans: edges that lack one side, and children that should have been deleted with their parent.

An object is deleted as with its parent, with all effects, in one transaction that is conditional on the object being
unchanged and its parent being gone. A parent that is being moved is also missing under its old key, so that nothing is
deleted while objects move. Requests are limited to a rate, which leaves capacity for other processes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from dynamo_single import transactions
from dynamo_single.contrib.doctor.findings import Finding, Removal, unexpired_items
from dynamo_single.exceptions import ConditionNotMet, DynamoSingleError, FormNotApplied, StaleObject
from dynamo_single.orm.effects.base import CallerConditions
from dynamo_single.orm.effects.base import Subject as Named
from dynamo_single.orm.effects.counters import LAG
from dynamo_single.orm.items import decode, encode
from dynamo_single.orm.reading.single import get_items
from dynamo_single.orm.requests import atomic_block
from dynamo_single.orm.requests.actions import Action, Check, Item, ItemKey, Update, as_read
from dynamo_single.orm.requests.atomic_block import Block, Entry
from dynamo_single.orm.rollout import knowledge
from dynamo_single.orm.rollout.states import TableState
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.table import names
from dynamo_single.table.batches import Rate
from dynamo_single.table.flow import run
from dynamo_single.table.redirects import SentRequest, listening
from dynamo_single.table.request import Request, Response
from dynamo_single.table.table import Table


class PacedRequests(Struct):
    """The requests of one walk through a table, at a limited rate."""

    table: Table
    rate: Rate

    @property
    def alias(self) -> str:
        """The table's alias."""
        return self.table.settings.alias

    def paced(self, work: Callable[..., object], *given: object) -> Any:
        """Send requests and return their result after the pause that the rate requires."""

        def note(request: SentRequest) -> None:
            self.rate.count(request.consumed)

        with listening(note):
            result = work(*given)
        # time.sleep(0) would still yield the processor for each item.
        if pause := self.rate.pause():
            time.sleep(pause)
        return result

    def pages(self, request: Request) -> Iterator[Response]:
        """Yield the responses to a Scan, page by page."""
        return self.table.pages(request, send=partial(self.paced, self.table.send))


#: How many objects are deleted after each Scan for moving objects.
BATCH_SIZE: Final = 1000
#: The operation that changes the primary key of a model's items.
_MOVE_OPERATION: Final = "MoveKeys"


def delete_orphans(table: Table, findings: Sequence[Finding], rate: float | None = None) -> Iterator[str]:
    """Delete the objects of some findings. Yield for each the reason why it was kept, or an empty string.

    For each ``BATCH_SIZE`` findings, it waits for a second unless the engine is local, and reads the objects and their
    parents again with strongly consistent BatchGetItems. Then it sends one Scan for moving objects, a GetItem of the
    table's state, and one transaction for each object. ``rate`` is the most read units a second, on average.
    """
    work = _OrphanDeletion(table, Rate(rate))
    for start in range(0, len(findings), BATCH_SIZE):
        yield from work.batch(findings[start : start + BATCH_SIZE])


class _OrphanDeletion(PacedRequests):
    def batch(self, findings: Sequence[Finding]) -> Iterator[str]:
        """Delete the objects of a batch, as ``delete_orphans()`` does."""
        if not self.table.settings.is_local:
            time.sleep(LAG)
        asked = {key for each in findings for key in (each.key, *_gone(each))}
        found = unexpired_items(self.paced(run, get_items(self.table, asked)).values())
        # After the read: an object that has moved by now keeps its marker until all references have followed.
        why = self.is_moving()
        state = self.paced(run, knowledge.state_of(self.table))
        for each in findings:
            yield why or self.one(each, found, state)

    def one(self, finding: Finding, found: Mapping[ItemKey, Item], state: TableState) -> str:
        """Delete the object of one finding, unless it is already gone."""
        removal = finding.removal
        assert removal is not None  # noqa: S101   # these findings have a removal
        if finding.key not in found:
            return ""
        if found[finding.key] != removal.item or any(key in found for key in removal.gone):
            return _CHANGED_TEXT
        try:
            _refuse_moved_parents(state, removal)
            self.paced(_delete, removal)
        except (StaleObject, ConditionNotMet):
            return _CHANGED_TEXT
        except DynamoSingleError as error:
            return str(error)
        return ""

    def is_moving(self) -> str:
        """Return why nothing may be deleted while objects move: a Scan up to the first object with a move marker."""
        request = Request(
            "Scan",
            {
                "ConsistentRead": True,
                "FilterExpression": "attribute_exists(#moved)",
                "ExpressionAttributeNames": {"#moved": names.MOVED_FROM},
                "Select": "COUNT",
            },
        )
        for answer in self.pages(request):
            if answer["Count"]:
                return "an object has moved, and some references to it are not updated yet: see its finding first."
        return ""


_CHANGED_TEXT: Final = "another process changed it."


def _gone(finding: Finding) -> Iterable[ItemKey]:
    return () if finding.removal is None else finding.removal.gone


def _refuse_moved_parents(state: TableState, removal: Removal) -> None:
    """Raise an error if a parent's items are being moved to other keys, or have been moved."""
    for model in removal.parents:
        layout = registry.layout_of(model)
        run(knowledge.ask(layout))
        form = state.forms.get(layout.item_type)
        if form is not None and any(each.kind == _MOVE_OPERATION for each in form.opened):
            raise FormNotApplied(
                f"{layout.label}: a migration gives its items another primary key. Nothing was deleted. Run "
                "manage.py migrate first."
            )


def _delete(removal: Removal) -> None:
    model = removal.model
    obj = decode.instance(model, {name: dict(value) for name, value in removal.item.items()})
    unchanged = as_read(removal.item, {*encode.known_names(model), *removal.item})
    with transactions.atomic():
        pending = atomic_block.current()
        assert pending is not None  # noqa: S101   # the block was just started
        run(obj._hard_deleted(CallerConditions(demanded=unchanged), pending))
        _absence_guard(pending, obj, removal)


def _absence_guard(pending: Block, obj: DynamoModel, removal: Removal) -> None:
    """Make a block conditional on the absence of an object's parents, whose counters no longer need updates."""
    alias: str = type(obj)._options.alias
    entries = list(pending.entries)
    pending.entries.clear()
    pending.discard()
    explain = partial(_returned_error, Named(obj).name)
    checks = tuple(Check(key, condition) for key, condition in removal.gone.items())
    pending.add(alias, Entry(lambda: Named(obj).name, checks, (), explain, _no_undo))
    for entry in entries:
        kept = (each for each in entry.actions if not (isinstance(each, Update | Check) and each.key in removal.gone))
        pending.add(alias, replace(entry, actions=tuple(kept)))


def _no_undo() -> None:
    """Do nothing: a check has no effect to undo."""


def _returned_error(name: str, action: Action, found: Item | None) -> StaleObject:
    return StaleObject(f"{name}: what it belongs to is stored again. Nothing was deleted.")
