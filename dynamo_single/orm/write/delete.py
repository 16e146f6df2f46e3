"""Delete an object permanently, with the children that its deletion cascades to, and send Django's signals.

This module does not depend on the trash: an object there is deleted like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from django.db.models.signals import post_delete, pre_delete
from msgspec.structs import replace

from dynamo_single.exceptions import MissingReference, StaleObject
from dynamo_single.lazy_modules import LazyModule
from dynamo_single.orm.conditions.matching import matches
from dynamo_single.orm.conditions.terms import EVERYTHING, join
from dynamo_single.orm.effects import send
from dynamo_single.orm.effects.all_effects import effects_of
from dynamo_single.orm.effects.base import CallerConditions, Subject, Transition, WriteConditions
from dynamo_single.orm.effects.compose import compose_removal
from dynamo_single.orm.effects.counters import Sums
from dynamo_single.orm.effects.write import Write, is_gone
from dynamo_single.orm.items import decode, version
from dynamo_single.orm.items.async_safety import notify
from dynamo_single.orm.items.refresh import changed_in_memory, completed
from dynamo_single.orm.plan.plan import PartialItem
from dynamo_single.orm.requests.actions import Check, Delete, Item, ItemKey, key_of
from dynamo_single.orm.requests.atomic_block import Block, Entry
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.references import Children, checked, taking_along
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.orm.write import cascade, on_delete
from dynamo_single.orm.write.cascade import Cascade, ChildQuery, Step
from dynamo_single.orm.write.save import absent_parents, write_if
from dynamo_single.table import names
from dynamo_single.table.flow import pause

if TYPE_CHECKING:
    from dynamo_single.orm.write import move_references
else:
    move_references = LazyModule("dynamo_single.orm.write.move_references")

#: How often the children are read if other processes change them in the meantime.
ATTEMPTS = 3
#: For how many seconds an incomplete index is waited for before it is read again.
PAUSE = 0.2


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
        # What refers to the identity that it had goes along too.
        await move_references.finish_move(obj)
    done: list[Any] = []
    origin = obj if origin is None else origin
    try:
        if cascade.cascade_children(type(obj), for_good=True) or on_delete.has_references(type(obj)):
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


async def delete_item(
    obj: DynamoModel, terms: CallerConditions, pending: Block | None, because: frozenset[str] = frozenset()
) -> int:
    """Delete one item permanently, with its claims; return the number of deleted items, 0 if there was none.

    An object that was read in part is read completely first. ``because`` as in ``compose_removal()``.
    """
    if not await _read_missing(obj):
        return 0
    effects = effects_of(type(obj))
    absent: frozenset[ItemKey] = frozenset()
    while True:
        write = await compose_removal(obj, effects, terms, pending=pending, absent=absent, because=because)
        try:
            await send.send_write(obj, write)
        except MissingReference as error:
            absent = absent_parents(write, effects, error)
        except StaleObject as error:
            if not is_gone(error):
                raise
            return 0
        else:
            obj._stored = None
            return 1


async def _read_missing(obj: DynamoModel) -> bool:
    """Read the rest of an object that was read in part; return ``False`` if it does not exist any more."""
    try:
        if isinstance(obj._stored, PartialItem):
            await completed(obj)
    except type(obj).DoesNotExist:
        return False
    return True


async def dependents(obj: DynamoModel) -> list[DynamoModel]:
    """Return the objects that are deleted permanently with an object: a Query for each kind of children, or for
    several."""
    return await cascade.descendants(obj, child_queries, for_good=True)


def child_queries(children: Children) -> list[ChildQuery]:
    """Return the queries of live children and of those in the trash."""
    if children.is_by_table or not registry.has_soft_delete(children.model):
        return [ChildQuery(children, "all")]
    # An index that is behind shows among the live ones what has just gone to the trash, and the other way round.
    return [ChildQuery(children, "live", still=_in_any_state), ChildQuery(children, "deleted", still=_in_any_state)]


def _in_any_state(child: DynamoModel) -> bool:
    """Accept any child that the table has, live or in the trash."""
    return True


async def _delete_one(obj: DynamoModel, terms: CallerConditions, pending: Block | None) -> bool:
    if terms.queried == EVERYTHING:
        return bool(await delete_item(obj, terms, pending))
    return await write_if(
        obj, terms.queried, lambda again: delete_item(obj, CallerConditions(again.queried, terms.demanded), pending)
    )


async def _delete_cascade(
    obj: DynamoModel, terms: CallerConditions, done: list[DynamoModel], pending: Block | None, origin: object
) -> None:
    announced: set[ItemKey] = set()
    for attempt in range(ATTEMPTS):
        removal = _DeleteStep(obj, terms)
        if not await removal.read_counters():
            return
        below = await cascade.descendants(obj, child_queries, again=attempt > 0, for_good=True)
        await on_delete.refuse_protected([obj, *below], child_queries)
        # Before anything is deleted, so that what is interrupted can be begun again with the object.
        resets = await on_delete.reset_steps([obj, *below], child_queries, again=attempt > 0)
        counted = [(obj, removal.read), *((each, each._stored) for each in below)]
        found = [*below, *(step.obj for step in resets)]
        if not on_delete.check_counts(counted, found, for_good=True, last=attempt == ATTEMPTS - 1):
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
        first, *others = roots
        late = await cascade.descendants(first, child_queries, again=True, for_good=True, also=others)
        roots += [decode.instance(type(each), each._stored) for each in late]
        resets = await on_delete.reset_steps(roots, child_queries, again=True)
        if not late and not resets:
            await on_delete.report_protected(roots, child_queries)
            return
        await _send_pre_delete(late, origin, announced)
        work = Cascade([*resets, *(_child_step(each) for each in reversed(late))])
        try:
            await work.send(None)
        except StaleObject:
            pass  # written meanwhile: looked at again
        finally:
            done += work.done
    raise StaleObject(
        f"{Subject(obj).name} is deleted, and objects that go along with it are still being created. dynamo_verify "
        "reports those that are left."
    )


async def _send_pre_delete(objects: Sequence[DynamoModel], origin: object, announced: set[ItemKey]) -> None:
    """Send ``pre_delete`` once for each object, even if its deletion is retried."""
    for obj in objects:
        key = key_of(obj._stored)
        if key not in announced:
            announced.add(key)
            await notify(pre_delete, type(obj), instance=obj, using=None, origin=origin)


class _DeleteStep(Step):
    """The deletion of one object of several.

    If the object counts children that are deleted with it, its deletion is conditional on the counters: no child was
    added since it was read.
    """

    def __init__(self, obj: DynamoModel, terms: CallerConditions, because: frozenset[str] = frozenset()) -> None:
        super().__init__(obj, terms)
        self.because = because
        self.counters = [name for name in _counter_names(type(obj)) if not isinstance(obj._stored, PartialItem)]
        self.read: Item = obj._stored

    @property
    def counts(self) -> bool:  # type: ignore[override]  # a plain attribute elsewhere
        """Whether the object has counters of children that are deleted with it."""
        return bool(self.counters)

    async def read_counters(self) -> bool:
        """Read the object's counters before its children: one GetItem if it has any; return whether it exists."""
        if self.counters:
            try:
                self.read = (await decode.reloaded(self.obj))._stored
            except type(self.obj).DoesNotExist:
                return False
        return True

    def with_counts(self, entry: Entry, added: Sums) -> Entry:
        """See ``Step``."""
        if not self.counters:
            return entry
        key = key_of(self.read)
        conditions = tuple(
            cascade.count_condition(self.read, name, added.get(key, {}).get(name, 0)) for name in self.counters
        )
        actions = (
            replace(action, condition=join((action.condition, *conditions)))
            if isinstance(action, Delete) and action.key == key
            else action
            for action in entry.actions
        )
        return replace(entry, actions=tuple(actions))

    async def was_counted(self) -> bool:
        """Return whether the counters changed, so that the children have to be read again."""
        before = self.read
        return await self.read_counters() and any(self.read.get(name) != before.get(name) for name in self.counters)

    async def send(self, pending: Block | None) -> bool:
        """Delete the object by itself, or within a block."""
        return bool(await delete_item(self.obj, self.terms, pending, self.because))

    async def compose(self, pending: Block) -> Write | None:
        """Return the object's write, for a transaction with the other objects."""
        if not await _read_missing(self.obj):
            return None
        effects = effects_of(type(self.obj))
        return await compose_removal(
            self.obj, effects, self.terms, pending=pending, absent=self.absent, because=self.because
        )

    async def remember(self, write: Write, stored: Item) -> None:
        """Record that the object is not stored any more."""
        self.obj._stored = None


def _child_step(obj: DynamoModel) -> _DeleteStep:
    """Return the deletion of a child, conditional on its reference: an index may have returned an earlier state."""
    return _DeleteStep(obj, CallerConditions(), taking_along(type(obj)))


def _counter_names(model: type[DynamoModel]) -> list[str]:
    """Return the physical names of counters of children that are deleted with an object, or checked."""
    followers = cascade.cascade_children(model, for_good=True)
    declared = (each for each in registry.counters_of(model) if getattr(model, each.children) in followers)
    return [*(each.attr_name for each in declared), *(name for name, _ in checked(model))]


def _guards(obj: DynamoModel, terms: CallerConditions) -> list[Entry]:
    """Return the conditions on the object, for the transactions that delete children before it."""
    before = dict(obj._stored)
    conditions = WriteConditions(terms, as_read=version.conditions(type(obj), before))
    if not conditions.as_read and not terms:
        return []
    check = Check(key_of(before), conditions.whole())
    write = Write(Transition(Subject(obj), before, None, frozenset()), type(obj)._options.alias, (check,), conditions)
    return [cascade.guard_entry(write.transition.subject.name, check, write.explain)]


async def _refresh(obj: DynamoModel, terms: CallerConditions) -> bool:
    """Update the object from its item; return whether that exists and meets ``queried``."""
    try:
        fresh = await decode.reloaded(obj)
    except type(obj).DoesNotExist:
        return False
    if not matches(terms.queried, fresh._stored, registry.layout_of(type(obj))):
        return False
    if terms.queried != EVERYTHING:
        decode.follow(obj, fresh, changed_in_memory(obj))
    return True
