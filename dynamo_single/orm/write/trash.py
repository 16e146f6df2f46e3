"""Soft delete: move an object to the trash and restore it, with the children that cascade.

A deleted item keeps its attributes and its primary key. It loses its live index keys and its unique claims, and gains
the trash's key, so that live listings never read it and the trash is a Query. All objects of one deletion have its time
and the marker of the deleted object, so that ``restore()`` finds exactly these.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from django.dispatch import Signal
from msgspec import Struct
from msgspec.structs import replace

from dynamo_single import clock
from dynamo_single.exceptions import ConditionFailed, MissingReference, ParentInTrash, StaleObject, UniqueViolation
from dynamo_single.lazy_modules import LazyModule
from dynamo_single.orm.conditions.matching import matches
from dynamo_single.orm.conditions.terms import EVERYTHING, Stored, join
from dynamo_single.orm.effects import trash_counts
from dynamo_single.orm.effects.all_effects import effects_of
from dynamo_single.orm.effects.base import NO_CONDITIONS, CallerConditions, Subject
from dynamo_single.orm.effects.compose import compose, draft_of
from dynamo_single.orm.effects.referrers import ReferrerQuery
from dynamo_single.orm.effects.write import Write
from dynamo_single.orm.items import decode
from dynamo_single.orm.items.async_safety import notify
from dynamo_single.orm.items.encode import Values, key_of_pk
from dynamo_single.orm.items.refresh import acomplete, changed_in_memory
from dynamo_single.orm.items.stored import object_values, set_object_values
from dynamo_single.orm.plan.plan import PartialItem
from dynamo_single.orm.reading import single
from dynamo_single.orm.requests.actions import Action, Check, Item, ItemKey, Update, as_read, key_of
from dynamo_single.orm.requests.atomic_block import Block, Entry
from dynamo_single.orm.requests.compiler import compile_action
from dynamo_single.orm.schema import bindings, registry, secrecy
from dynamo_single.orm.schema.bindings import ModelBinding, fact
from dynamo_single.orm.schema.references import (
    Children,
    cascading_children,
    cascading_parents,
    cascading_to_trash,
    checked_references,
    protecting_references,
)
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.orm.write import cascade, on_delete
from dynamo_single.orm.write.cascade import ATTEMPTS, PAUSE, TRASH, Cascade, Operation, Step
from dynamo_single.orm.write.direct import set_directly
from dynamo_single.signals import post_restore, post_soft_delete
from dynamo_single.table import names
from dynamo_single.table.flow import pause
from dynamo_single.table.table import get_table

if TYPE_CHECKING:
    from dynamo_single.orm.write import move_references
else:
    move_references = LazyModule("dynamo_single.orm.write.move_references")


#: The attributes that a restored object loses, if it has them.
TRASH_ATTRIBUTES = (registry.DELETED_AT, registry.DELETED_WITH, registry.PURGE_AT)


class DeletionBatch(Struct, frozen=True):
    """The values that the objects of one deletion share; ``mark`` identifies the object whose deletion it is."""

    mark: str
    moment: datetime
    purge_at: datetime | None

    @classmethod
    def of_new_deletion(cls, obj: DynamoModel) -> DeletionBatch:
        """Return the batch of a new deletion."""
        moment, after = clock.instant(), type(obj)._options.purge_after
        # Time to live has a resolution of seconds.
        purge_at = None if after is None else (moment + after + timedelta(seconds=1)).replace(microsecond=0)
        return cls(_mark(obj), moment, purge_at)

    @classmethod
    def of(cls, obj: Any) -> DeletionBatch:
        """Return the batch of an object in the trash, from its stored values."""
        values = decode.values_of(type(obj), obj._stored)
        mark = values[registry.DELETED_WITH] or _mark(obj)
        return cls(mark, values[registry.DELETED_AT], values.get(registry.PURGE_AT))

    def changes(self, obj: DynamoModel, *, follows: bool) -> Values:
        """Return the values that put an object into the trash."""
        changes = {registry.DELETED_AT: self.moment, registry.DELETED_WITH: self.mark if follows else None}
        return changes | ({registry.PURGE_AT: self.purge_at} if _purges(obj) else {})

    def guard(self, obj: DynamoModel) -> Entry:
        """Return the check that a parent is in the trash with this batch, for the deletion of its children."""
        name = Subject(obj).name
        moment = registry.attributes_of(type(obj))[registry.DELETED_AT].to_attribute_value(self.moment)
        check = Check(key_of(obj._stored), Stored(names.DELETED_AT, "=", (moment,)))
        return cascade.guard_entry(name, check, partial(_restored_error, name))

    @property
    def restoration(self) -> Operation:
        """The scope of a restoration: the objects in the trash with this batch."""
        return Operation(cascading_to_trash, self.queries)

    @property
    def completion(self) -> Operation:
        """The same, and live objects below which others of the batch may be."""
        return Operation(cascading_to_trash, lambda children: [*_live_parents(children), *self.queries(children)])

    def queries(self, children: Children) -> list[ReferrerQuery]:
        """Return the query of the children that are in the trash with this batch."""
        conditions = {registry.DELETED_WITH: self.mark, registry.DELETED_AT: self.moment}
        return [ReferrerQuery(children, "deleted", conditions, is_in_trash)]


class TrashStep(Step):
    """Set or remove the trash attributes of one object of several.

    The write is conditional on the counts of checked references in the item that is ``held``.
    """

    is_held_alone = True

    def __init__(
        self, obj: DynamoModel, values: Values, terms: CallerConditions = NO_CONDITIONS, held: Item | None = None
    ) -> None:
        super().__init__(obj, terms)
        self.values = values
        if held is not None:
            self.read, self.counters = held, [name for name, _ in checked_references(type(obj))]

    async def send(self, pending: Block | None) -> bool:
        """Return the ``Step``; it skips a write without effects."""
        model = type(self.obj)
        if pending is None and not self.counters and (self.terms is NO_CONDITIONS or not self.terms):
            binding = bindings.binding_if_known(model, get_table(model._options.alias))
            if binding is not None and await set_directly(binding, self.obj, self.values):
                return True
        return await super().send(pending)

    async def compose(self, pending: Block | None) -> Write | None:
        """Return the object's write, for a transaction with the other objects."""
        effects, draft = effects_of(type(self.obj)), await draft_of(self.obj, self.values)
        return await compose(self.obj, effects, draft, self.terms, pending=pending, absent=self.missing_parents)


class RestoreStep(TrashStep):
    """Remove the trash attributes of an object after all other objects of its deletion.

    The write is conditional on the number of those objects, less the ones restored before it. This
    keeps it from leaving an object in the trash that another deletion put there in the meantime.
    """

    counters = (names.DELETED_ALONG,)

    async def record_write(self, write: Write, stored: Item) -> None:
        """Update the object, which is no longer in the trash and has no number."""
        await super().record_write(
            write, {name: value for name, value in stored.items() if name != names.DELETED_ALONG}
        )


def _live_parents(children: Children) -> list[ReferrerQuery]:
    return cascade.live_queries(children) if cascading_to_trash(children.model) else []


def restore_values(obj: DynamoModel) -> Values:
    """Return the values that take an object out of the trash."""
    return {name: None for name in TRASH_ATTRIBUTES if name != registry.PURGE_AT or _purges(obj)}


def _restored_error(name: str, action: Action, found: Item | None) -> StaleObject:
    return StaleObject(
        f"Cannot delete all children of {name}: another process "
        f"{'restored' if found else 'permanently deleted'} it during the deletion. The remaining children are "
        "not in the trash. Read it again and retry."
    )


def is_in_trash(obj: DynamoModel) -> bool:
    """Return whether an object was in the trash at its last read or write."""
    return names.DELETED_AT in obj._stored


def _purges(obj: DynamoModel) -> bool:
    return type(obj)._options.purge_after is not None


def _mark(obj: DynamoModel) -> str:
    return f"{type(obj)._options.item_type}#{obj.pk}"


async def delete(obj: DynamoModel, terms: CallerConditions, pending: Block | None) -> tuple[int, dict[str, int]]:
    """Move an object to the trash with its cascading children; skip those already in the trash.

    If the object is in the trash, this completes an interrupted deletion. If the stored item does not meet ``queried``,
    nothing is written; if it does not meet ``demanded``, it raises ``ConditionNotMet``.
    """
    done: list[Any] = []
    _check_stored(obj, "deleted")
    if pending is None and names.MOVED_FROM in obj._stored:
        # Objects that refer to its former identity cascade too.
        await move_references.finish_move(obj)
    try:
        await _run(obj, terms, done, pending, into_trash=True)
    except type(obj).DoesNotExist:
        pass  # another process deleted it permanently
    finally:
        await _send_signal(post_soft_delete, done)
    return cascade.deletion_counts(type(obj), done)


async def restore(obj: DynamoModel, terms: CallerConditions, pending: Block | None) -> tuple[int, dict[str, int]]:
    """Restore an object and the objects that went to the trash with it; ignore a live object.

    Raises the model's ``DoesNotExist`` if it was deleted permanently, ``UniqueViolation`` if a value of it or of a
    child was taken, ``ParentInTrash`` if it belongs to an object in the trash.
    """
    done: list[Any] = []
    _check_stored(obj, "restored")
    try:
        await _run(obj, terms, done, pending, into_trash=False)
    except UniqueViolation as error:
        if done:  # taken between two transactions
            error.args = (
                f"{str(error).removesuffix(' Nothing was written.')} {len(done)} objects that belong to "
                f"{Subject(obj).name} are already restored. Call delete() to move them back, or restore() to "
                "continue.",
            )
        raise
    finally:
        await _send_signal(post_restore, done)
    return cascade.deletion_counts(type(obj), done)


async def _send_signal(signal: Signal, done: Sequence[object]) -> None:
    for each in done:
        await notify(signal, type(each), instance=each)


async def restorable_dependents(obj: DynamoModel) -> list[DynamoModel]:
    """Return what a restoration brings back with an object in the trash: a Query for each kind of children."""
    return await DeletionBatch.of(obj).restoration.below([obj])


async def count_batch(obj: DynamoModel) -> int:
    """Return how many items that an index lists are in the trash with an object: a Query for each kind of children."""
    found = await DeletionBatch.of(obj).completion.below([obj], again=True)
    return sum(1 for child in found if is_in_trash(child) and trash_counts.is_counted(type(child)))


async def set_loaded_count(obj: DynamoModel) -> None:
    """Set the trash count of an object that a fixture puts into the trash after its children: one UpdateItem."""
    number = await count_batch(obj) if is_in_trash(obj) else 0
    if number:
        unnumbered = join((as_read(obj._stored, (names.DELETED_AT,)), Stored(names.DELETED_ALONG, "missing")))
        update = Update(key_of(obj._stored), set={names.DELETED_ALONG: {"N": str(number)}}, condition=unnumbered)
        with suppress(ConditionFailed):  # restored, or counted in the meantime
            await get_table(type(obj)._options.alias).ask_patiently(compile_action(update))


def _check_stored(obj: DynamoModel, done: str) -> None:
    if obj._stored is None:
        raise ValueError(f"{obj._meta.object_name} object can't be {done} because it is not stored.")


async def _run(
    obj: DynamoModel, terms: CallerConditions, done: list[DynamoModel], pending: Block | None, *, into_trash: bool
) -> None:
    """Delete or restore, ``ATTEMPTS`` times if other processes change the objects; ``done`` receives those written.

    The object may be outdated: if there seems to be nothing to do, it reads the object again. The object keeps its
    unsaved changes.
    """
    prepare = _plan_deletion if into_trash else _plan_restore
    is_fresh = isinstance(obj._stored, PartialItem) and await acomplete(obj)
    for attempt in range(ATTEMPTS):
        if not is_fresh and is_in_trash(obj) == into_trash:
            await _reload(obj)
            is_fresh = True
        if is_fresh and not matches(terms.queried, obj._stored, registry.layout_of(type(obj))):
            return
        work = await prepare(obj, terms, pending, again=attempt > 0)
        batch = None if into_trash or not is_in_trash(obj) else DeletionBatch.of(obj)
        try:
            await (_send_deletion(obj, work, pending) if into_trash else work.send(pending))
            if batch is not None and pending is None and work.steps:
                await _restore_late_children(obj, batch, done)
        except StaleObject as error:
            outdated = error.expected != error.found and work.failed is obj and terms.queried == EVERYTHING
            as_it_was = obj._stored, object_values(obj)
            await _reload(obj)
            is_fresh = True
            if into_trash and any(each is obj for each in work.done):
                raise  # it was restored after its own transaction: its children are no longer concerned
            # Another version is not overwritten, unless there is nothing left to do.
            if attempt == ATTEMPTS - 1 or (outdated and is_in_trash(obj) != into_trash):
                # The caller's next write must not overwrite it either.
                obj._stored = as_it_was[0]
                set_object_values(obj, as_it_was[1])
                raise
        else:
            if into_trash and pending is None and work.steps and not is_alone(type(obj)):
                await _delete_late_referrers(obj, work, done)
            return
        finally:
            done += work.done


@fact
def is_alone(binding: ModelBinding) -> bool:
    """Return whether no references to a model's objects affect their deletion."""
    model = binding.model
    return not (checked_references(model) or cascading_children(model) or protecting_references(model))


async def _delete_late_referrers(obj: DynamoModel, first: Cascade, done: list[DynamoModel]) -> None:
    """Delete the objects that began to refer to the deleted ones by ``on_delete`` during the deletion.

    Sends a Query for each such reference.
    """
    if any(map(on_delete.has_cascade, {type(step.obj) for step in first.steps})):
        work = await _plan_deletion(obj, NO_CONDITIONS, again=True)
        try:
            await _send_deletion(obj, work, None)
        finally:
            done += work.done
    await on_delete.report_protected([step.obj for step in first.steps], TRASH)


async def _plan_deletion(
    obj: DynamoModel, terms: CallerConditions, pending: Block | None = None, *, again: bool
) -> Cascade:
    """Return the deletion: the object first, to recognize an interrupted deletion, then its children."""
    interrupted = is_in_trash(obj)
    batch = DeletionBatch.of(obj) if interrupted else DeletionBatch.of_new_deletion(obj)
    if is_alone(type(obj)) and not interrupted:
        return Cascade([TrashStep(obj, batch.changes(obj, follows=False), terms)])

    def queries(children: Children) -> list[ReferrerQuery]:
        completes = interrupted and cascading_to_trash(children.model)
        return [*cascade.live_queries(children), *(batch.queries(children) if completes else ())]

    # Read the counts before the objects, so that the counts include all objects that the search returns.
    held = (await decode.areload(obj))._stored if checked_references(type(obj)) and not interrupted else None
    steps = [] if interrupted else [TrashStep(obj, batch.changes(obj, follows=False), terms, held)]
    # An interrupted deletion reads children that it does not write.
    block = None if interrupted else pending
    found = await replace(TRASH, queries=queries).below([obj], again=again, block=block)
    children = [child for child in found if not is_in_trash(child)]
    await on_delete.refuse_protected([*(() if interrupted else (obj,)), *children], TRASH)
    if held is not None:
        on_delete.check_counts([(obj, held)], children, TRASH)
    steps += [TrashStep(child, batch.changes(child, follows=True)) for child in children]
    # Do not send later transactions if another process has restored the object.
    return Cascade(steps, [batch.guard(obj)] if len(steps) > (0 if interrupted else 1) else [])


async def _send_deletion(obj: DynamoModel, work: Cascade, pending: Block | None) -> None:
    """Send a deletion; the object in memory gets the number of its children in the trash."""
    await work.send(pending)
    if along := [step.obj for step in work.steps if step.obj is not obj]:
        trash_counts.add_known_count(obj, along)


async def _plan_restore(obj: DynamoModel, terms: CallerConditions, pending: Block | None, *, again: bool) -> Cascade:
    """Return the restoration: the children first, so that the others still belong to an object in the trash."""
    if not is_in_trash(obj):
        return Cascade(())
    if single.has_expired(obj._stored):
        raise type(obj).DoesNotExist(f"{Subject(obj).name} has expired: its time in the trash is over.")
    children = await _restorable(obj, pending, again=again)
    steps = [*(TrashStep(child, restore_values(child)) for child in reversed(children))]
    own = RestoreStep if trash_counts.has_trash_count(type(obj)) else TrashStep
    return Cascade(
        [*steps, own(obj, restore_values(obj), CallerConditions(terms.queried))], _parent_guards(obj), checks_first=True
    )


async def _restorable(obj: DynamoModel, pending: Block | None, *, again: bool) -> list[DynamoModel]:
    """Return the objects that went to the trash with an object, as many as it has counted.

    If an index does not show all of them, it reads them again. Raises ``StaleObject`` after ``ATTEMPTS`` reads,
    ``PAUSE`` seconds apart.
    """
    for attempt in range(ATTEMPTS):
        batch = DeletionBatch.of(obj)
        # Another process may delete objects again below objects that this process has already restored.
        operation = batch.completion if attempt else batch.restoration
        found = await operation.below([obj], again=again or attempt > 0, block=None if attempt else pending)
        found = [child for child in found if is_in_trash(child)]
        if trash_counts.is_complete(obj._stored, found):
            return found
        if attempt < ATTEMPTS - 1:
            await pause(PAUSE)
            # Objects that left the trash separately have already lowered the number.
            await _reload(obj)
            if not is_in_trash(obj):
                return []  # its own write raises the error
    number = trash_counts.trash_count(obj._stored)
    raise StaleObject(
        f"Cannot restore {Subject(obj).name}: {number} objects went to the trash with it and are still there, and "
        "their index does not show all of them yet. Nothing was written. Restore it again. If the error remains, run "
        "manage.py dynamo_rebuild, which counts them."
    )


async def _restore_late_children(obj: DynamoModel, batch: DeletionBatch, done: list[DynamoModel]) -> None:
    """Restore what another deletion of the object moved to the trash in the meantime, as far as a key shows it."""
    for _ in range(ATTEMPTS):
        below = await batch.completion.below([obj], again=True)
        late = [child for child in reversed(below) if is_in_trash(child)]
        if not late:
            return
        guard = _live_guard(obj, key_of(obj._stored), Subject(obj).name)
        work = Cascade([TrashStep(child, restore_values(child)) for child in late], [guard])
        try:
            await work.send(None)
        except StaleObject:
            pass  # changed again: read again
        finally:
            done += work.done
    raise StaleObject(
        f"{Subject(obj).name} is restored, but other processes are still deleting its children. Run manage.py "
        "dynamo_verify to list the children that are left in the trash."
    )


def _parent_guards(obj: Any) -> list[Entry]:
    """Return the checks that the objects whose deletion cascades to an object are not in the trash."""
    guards = []
    for parent, field in cascading_parents(type(obj)):
        pk = decode.values_of(type(obj), obj._stored)[field.attname]
        if pk is not None and registry.has_soft_delete(parent):
            guards.append(_live_guard(obj, key_of_pk(parent, pk), secrecy.named(parent, pk)))
    return guards


def _live_guard(obj: DynamoModel, key: ItemKey, name: str) -> Entry:
    """Return the check that a parent is not in the trash, for the restoration of its children."""
    check = Check(key, Stored(names.DELETED_AT, "missing"))
    return cascade.guard_entry(name, check, partial(_parent_error, obj, name))


def _parent_error(
    obj: DynamoModel, parent: str, action: Action, found: Item | None
) -> ParentInTrash | MissingReference:
    if not found:
        return MissingReference(
            f"Cannot restore {Subject(obj).name}: {parent}, which counts it, is not stored. Nothing was written.",
            key=action.key,
        )
    return ParentInTrash(
        f"Cannot restore {Subject(obj).name} by itself: it belongs to {parent}, which is in the trash. Nothing "
        "was written. Restore the parent instead, which also restores the objects that were deleted with it."
    )


async def _reload(obj: DynamoModel) -> None:
    changed = changed_in_memory(obj).difference(TRASH_ATTRIBUTES)
    decode.update_from(obj, await decode.areload(obj), changed)
