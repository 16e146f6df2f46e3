"""Delete an object permanently, with the children that its deletion cascades to, and send Django's signals.

This module does not depend on the trash: it deletes an object there like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from django.db.models.signals import post_delete, pre_delete

from dynamo_single.exceptions import StaleObject
from dynamo_single.lazy_modules import LazyModule
from dynamo_single.orm.conditions.matching import matches
from dynamo_single.orm.conditions.terms import EVERYTHING
from dynamo_single.orm.effects.all_effects import effects_of
from dynamo_single.orm.effects.base import NO_CONDITIONS, CallerConditions, Subject, Transition, WriteConditions
from dynamo_single.orm.effects.compose import compose_removal
from dynamo_single.orm.effects.write import Write, is_gone
from dynamo_single.orm.items import decode, version
from dynamo_single.orm.items.async_safety import notify
from dynamo_single.orm.items.refresh import acomplete, changed_in_memory
from dynamo_single.orm.plan.plan import PartialItem
from dynamo_single.orm.requests.actions import Check, Item, ItemKey, key_of
from dynamo_single.orm.requests.atomic_block import Block, Entry
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.bindings import ModelBinding, fact
from dynamo_single.orm.schema.references import cascading_children, cascading_names, checked_references
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.orm.write import cascade, on_delete
from dynamo_single.orm.write.cascade import ATTEMPTS, DELETION, PAUSE, Cascade, Step
from dynamo_single.orm.write.save import write_if
from dynamo_single.table import names
from dynamo_single.table.flow import pause

if TYPE_CHECKING:
    from dynamo_single.orm.write import move_references
else:
    move_references = LazyModule("dynamo_single.orm.write.move_references")


async def delete(
    obj: DynamoModel, terms: CallerConditions, pending: Block | None, origin: object = None
) -> tuple[int, dict[str, int]]:
    """Delete an item permanently after its children; return the counts by model.

    If the stored item does not meet ``queried``, it is not deleted; if it does not meet ``demanded``, it raises
    ``ConditionNotMet``. Signals get the ``origin`` of the deletion, by default the object.
    """
    if obj._stored is None:
        raise ValueError(f"{obj._meta.object_name} object can't be deleted because it is not stored.")
    if pending is None and names.MOVED_FROM in obj._stored:
        # Objects that refer to its former identity cascade too.
        await move_references.finish_move(obj)
    done: list[Any] = []
    origin = obj if origin is None else origin
    try:
        if cascading_children(type(obj)) or on_delete.has_references(type(obj)):
            await _delete_cascade(obj, terms, done, pending, origin)
        else:
            await notify(pre_delete, type(obj), instance=obj, using=None, origin=origin)
            if await _delete_one(obj, terms, pending):
                done.append(obj)
    finally:
        await _send_post_delete(origin, done)
    obj._state.adding = True
    return cascade.deletion_counts(type(obj), done)


async def _send_post_delete(origin: object, done: Sequence[DynamoModel]) -> None:
    for each in done:
        each._state.adding = True
        await notify(post_delete, type(each), instance=each, using=None, origin=origin)


async def _delete_one(obj: DynamoModel, terms: CallerConditions, pending: Block | None) -> bool:
    if terms.queried == EVERYTHING:
        return await DeleteStep(obj, terms).send(pending)
    return await write_if(
        obj,
        terms.queried,
        lambda again: DeleteStep(obj, CallerConditions(again.queried, terms.demanded)).send(pending),
    )


async def _delete_cascade(
    obj: DynamoModel, terms: CallerConditions, done: list[DynamoModel], pending: Block | None, origin: object
) -> None:
    announced: set[ItemKey] = set()
    for attempt in range(ATTEMPTS):
        removal = DeleteStep(obj, terms, counting=True)
        if not await removal.read_counters():
            return
        below = await DELETION.below([obj], again=attempt > 0, block=pending)
        await on_delete.refuse_protected([obj, *below], DELETION)
        # Reset references before the first deletion, so that a caller can repeat an interrupted deletion.
        resets = await on_delete.reset_steps([obj, *below], again=attempt > 0, block=pending)
        counted = [(obj, removal.read), *((each, each._stored) for each in below)]
        found = [*below, *(step.obj for step in resets)]
        if not on_delete.check_counts(counted, found, DELETION, last=attempt == ATTEMPTS - 1):
            await pause(PAUSE)
            continue
        await _send_pre_delete([*below, obj], origin, announced)
        steps = [*resets, *(_child_step(each) for each in reversed(below)), removal]
        roots = [decode.instance(type(each), each._stored) for each in (obj, *below)] if pending is None else []
        work = Cascade(steps, _guards(obj, terms))
        try:
            await work.send(pending)
        except StaleObject:
            if not await _refresh(obj, terms):
                return
            is_final = work.failed is obj and terms.queried == EVERYTHING and not await removal.was_counted()
            if attempt == ATTEMPTS - 1 or is_final:
                raise
        else:
            if pending is None:
                await _delete_late_children(obj, roots, origin, announced, done)
            return
        finally:
            done += work.done


async def _delete_late_children(
    obj: DynamoModel, roots: list[DynamoModel], origin: object, announced: set[ItemKey], done: list[DynamoModel]
) -> None:
    """Delete or reset the objects that began to refer to deleted ones during the deletion, if a key shows them."""
    for _ in range(ATTEMPTS):
        late = await DELETION.below(roots, again=True)
        roots += [decode.instance(type(each), each._stored) for each in late]
        resets = await on_delete.reset_steps(roots, again=True)
        if not late and not resets:
            await on_delete.report_protected(roots, DELETION)
            return
        await _send_pre_delete(late, origin, announced)
        work = Cascade([*resets, *(_child_step(each) for each in reversed(late))])
        try:
            await work.send(None)
        except StaleObject:
            pass  # changed again: read again
        finally:
            done += work.done
    raise StaleObject(
        f"{Subject(obj).name} is deleted, but other processes are still creating objects that belong to it. "
        "Run manage.py dynamo_verify to list those objects."
    )


async def _send_pre_delete(objects: Sequence[DynamoModel], origin: object, announced: set[ItemKey]) -> None:
    """Send ``pre_delete`` once for each object, even if its deletion is retried."""
    for obj in objects:
        key = key_of(obj._stored)
        if key not in announced:
            announced.add(key)
            await notify(pre_delete, type(obj), instance=obj, using=None, origin=origin)


class DeleteStep(Step):
    """The deletion of one object, with its claims; it first reads the rest of a partially loaded object.

    ``because`` as in ``compose_removal()``. If the object is ``counting`` children that the deletion includes, the
    deletion is conditional on unchanged counters: no process has added a child since the read.
    """

    def __init__(
        self,
        obj: DynamoModel,
        terms: CallerConditions = NO_CONDITIONS,
        because: frozenset[str] = frozenset(),
        *,
        counting: bool = False,
    ) -> None:
        super().__init__(obj, terms)
        self.because = because
        if counting and not isinstance(obj._stored, PartialItem):
            self.counters = _counter_names(type(obj))

    async def send(self, pending: Block | None) -> bool:
        """Delete the object by itself, or within a block; return whether there was one."""
        try:
            return await super().send(pending)
        except StaleObject as error:
            if not is_gone(error):
                raise
            return False

    async def compose(self, pending: Block | None) -> Write | None:
        """Return the object's write, for a transaction with the other objects."""
        try:
            if isinstance(self.obj._stored, PartialItem):
                await acomplete(self.obj)
        except type(self.obj).DoesNotExist:
            return None
        effects = effects_of(type(self.obj))
        return await compose_removal(
            self.obj, effects, self.terms, pending=pending, absent=self.missing_parents, because=self.because
        )

    async def record_write(self, write: Write, stored: Item) -> None:
        """Record that the object is no longer stored."""
        self.obj._stored = None

    async def read_counters(self) -> bool:
        """Read the object's counters before its children: one GetItem if it has any; return whether it exists."""
        if self.counters:
            try:
                self.read = (await decode.areload(self.obj))._stored
            except type(self.obj).DoesNotExist:
                return False
        return True

    async def was_counted(self) -> bool:
        """Return whether the counters changed, so that the app has to read the children again."""
        before = self.read
        return await self.read_counters() and any(self.read.get(name) != before.get(name) for name in self.counters)


def _child_step(obj: DynamoModel) -> DeleteStep:
    """Return the deletion of a child, conditional on its reference: an index may have returned an earlier state."""
    return DeleteStep(obj, because=cascading_names(type(obj)), counting=True)


@fact
def _counter_names(binding: ModelBinding) -> tuple[str, ...]:
    """Return the physical names of counters of children that the deletion of an object includes or checks."""
    model, along = binding.model, cascading_children(binding)
    declared = (each for each in registry.counters_of(model) if getattr(model, each.children) in along)
    return (*(each.attr_name for each in declared), *(name for name, _ in checked_references(binding)))


def _guards(obj: DynamoModel, terms: CallerConditions) -> list[Entry]:
    """Return the conditions on the object, for the transactions that delete children before it."""
    before = dict(obj._stored)
    conditions = WriteConditions(terms, as_read=version.version_conditions(type(obj), before))
    if not conditions.as_read and not terms:
        return []
    check = Check(key_of(before), conditions.request_condition())
    write = Write(Transition(Subject(obj), before, None, frozenset()), type(obj)._options.alias, (check,), conditions)
    return [cascade.guard_entry(write.transition.subject.name, check, write.explain)]


async def _refresh(obj: DynamoModel, terms: CallerConditions) -> bool:
    """Update the object from its item; return whether that exists and meets ``queried``."""
    try:
        fresh = await decode.areload(obj)
    except type(obj).DoesNotExist:
        return False
    if not matches(terms.queried, fresh._stored, registry.layout_of(type(obj))):
        return False
    if terms.queried != EVERYTHING:
        decode.update_from(obj, fresh, changed_in_memory(obj))
    return True
