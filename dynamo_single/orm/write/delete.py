"""Deleting for good: an object, and the children that go along, with Django's signals around it.

It must not know the trash: an object there is deleted like any other. What sends is a coroutine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from django.db.models.signals import post_delete, pre_delete
from msgspec.structs import replace

from dynamo_single.exceptions import MissingReference, StaleObject
from dynamo_single.lazy_modules import Later
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
from dynamo_single.orm.write.cascade import Cascade, Listing, Step
from dynamo_single.orm.write.save import only_if, without
from dynamo_single.table import names
from dynamo_single.table.flow import pause

if TYPE_CHECKING:
    from dynamo_single.orm.write import move_references
else:
    move_references = Later("dynamo_single.orm.write.move_references")

#: How often the children are looked for, if other writers change them meanwhile.
ATTEMPTS = 3
#: How many seconds an index that does not show everything yet is waited for before it is asked again.
PAUSE = 0.2


async def delete(
    obj: DynamoModel, terms: CallerConditions, pending: Block | None, origin: object = None
) -> tuple[int, dict[str, int]]:
    """Delete the item for good, after the children that go along; the counts are by model.

    Where the stored item does not meet what is queried, nothing is deleted; where it does not meet what is demanded,
    that is ``ConditionNotMet``. Signals name the ``origin`` of the deletion, which is the object unless it is given.
    """
    if obj._stored is None:
        raise ValueError(f"{obj._meta.object_name} object can't be deleted because it is not stored.")
    if pending is None and names.MOVED_FROM in obj._stored:
        # What refers to the identity that it had goes along too.
        await move_references.complete(obj)
    done: list[Any] = []
    origin = obj if origin is None else origin
    try:
        if cascade.followers(type(obj), for_good=True) or on_delete.concerns(type(obj)):
            await _with_others(obj, terms, done, pending, origin)
        else:
            await notify(pre_delete, type(obj), instance=obj, using=None, origin=origin)
            if await _alone(obj, terms, pending):
                done.append(obj)
    finally:
        await _tell(origin, done)
    obj._state.adding = True
    return cascade.counts(type(obj), done)


async def _tell(origin: object, done: Sequence[DynamoModel]) -> None:
    for each in done:
        each._state.adding = True
        await notify(post_delete, type(each), instance=each, using=None, origin=origin)


async def remove(
    obj: DynamoModel, terms: CallerConditions, pending: Block | None, because: frozenset[str] = frozenset()
) -> int:
    """Delete one item for good, with its unique values; the number of items deleted, 0 if there was none.

    An object that was read in part is read whole first. ``because`` as in ``compose_removal()``.
    """
    if not await _is_whole(obj):
        return 0
    effects = effects_of(type(obj))
    absent: frozenset[ItemKey] = frozenset()
    while True:
        write = await compose_removal(obj, effects, terms, pending=pending, absent=absent, because=because)
        try:
            await send.send_write(obj, write)
        except MissingReference as error:
            absent = without(write, effects, error)
        except StaleObject as error:
            if not is_gone(error):
                raise
            return 0
        else:
            obj._stored = None
            return 1


async def _is_whole(obj: DynamoModel) -> bool:
    """Read the rest of an object that was read in part; ``False`` if it is not there any more."""
    try:
        if isinstance(obj._stored, PartialItem):
            await completed(obj)
    except type(obj).DoesNotExist:
        return False
    return True


async def along_with(obj: DynamoModel) -> list[DynamoModel]:
    """What is deleted for good along with an object: a Query for each kind of children, or for several of them."""
    return await cascade.below(obj, listings, for_good=True)


def listings(children: Children) -> list[Listing]:
    """The children that are live and those in the trash."""
    if children.is_by_table or not registry.has_soft_delete(children.model):
        return [Listing(children, "all")]
    # An index that is behind shows among the live ones what has just gone to the trash, and the other way round.
    return [Listing(children, "live", still=_wherever), Listing(children, "deleted", still=_wherever)]


def _wherever(child: DynamoModel) -> bool:
    """Say of a child that the table has that it is meant, live or not."""
    return True


async def _alone(obj: DynamoModel, terms: CallerConditions, pending: Block | None) -> bool:
    if terms.queried == EVERYTHING:
        return bool(await remove(obj, terms, pending))
    return await only_if(
        obj, terms.queried, lambda again: remove(obj, CallerConditions(again.queried, terms.demanded), pending)
    )


async def _with_others(
    obj: DynamoModel, terms: CallerConditions, done: list[DynamoModel], pending: Block | None, origin: object
) -> None:
    announced: set[ItemKey] = set()
    for attempt in range(ATTEMPTS):
        removal = _Removal(obj, terms)
        if not await removal.read_counters():
            return
        below = await cascade.below(obj, listings, again=attempt > 0, for_good=True)
        await on_delete.refuse_protected([obj, *below], listings)
        # Before anything is deleted, so that what is interrupted can be begun again with the object.
        resets = await on_delete.resets([obj, *below], listings, again=attempt > 0)
        counted = [(obj, removal.read), *((each, each._stored) for each in below)]
        found = [*below, *(step.obj for step in resets)]
        if not on_delete.shows_all(counted, found, for_good=True, last=attempt == ATTEMPTS - 1):
            await pause(PAUSE)
            continue
        await _announce([*below, obj], origin, announced)
        steps = [*resets, *(_along(each) for each in reversed(below)), removal]
        roots = [decode.instance(type(each), each._stored) for each in (obj, *below)] if pending is None else []
        work = Cascade(steps, _guards(obj, terms))
        try:
            await work.send(pending)
        except StaleObject:
            if not await _may_go_on(obj, terms):
                return
            is_final = work.failed is obj and terms.queried == EVERYTHING and not await removal.was_counted()
            if attempt == ATTEMPTS - 1 or is_final:
                raise
        else:
            if pending is None:
                await _latecomers(obj, roots, origin, announced, done)
            return
        finally:
            done += work.done


async def _latecomers(
    obj: DynamoModel, roots: list[DynamoModel], origin: object, announced: set[ItemKey], done: list[DynamoModel]
) -> None:
    """Do the same about what came to refer to the objects while they were deleted, as far as a key shows it by now."""
    for _ in range(ATTEMPTS):
        first, *others = roots
        late = await cascade.below(first, listings, again=True, for_good=True, also=others)
        roots += [decode.instance(type(each), each._stored) for each in late]
        resets = await on_delete.resets(roots, listings, again=True)
        if not late and not resets:
            await on_delete.report_protected(roots, listings)
            return
        await _announce(late, origin, announced)
        work = Cascade([*resets, *(_along(each) for each in reversed(late))])
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


async def _announce(objects: Sequence[DynamoModel], origin: object, announced: set[ItemKey]) -> None:
    """Send ``pre_delete`` once for each object, however often its deletion is begun again."""
    for obj in objects:
        key = key_of(obj._stored)
        if key not in announced:
            announced.add(key)
            await notify(pre_delete, type(obj), instance=obj, using=None, origin=origin)


class _Removal(Step):
    """Deleting one object of several.

    An object whose children that go along are counted is deleted on the condition that none came since it was read: the
    counter is what it was, but for those that were deleted before it.
    """

    def __init__(self, obj: DynamoModel, terms: CallerConditions, because: frozenset[str] = frozenset()) -> None:
        super().__init__(obj, terms)
        self.because = because
        self.counters = [name for name in _counters(type(obj)) if not isinstance(obj._stored, PartialItem)]
        self.read: Item = obj._stored

    @property
    def counts(self) -> bool:  # type: ignore[override]  # a plain attribute elsewhere
        """Whether there are such counters."""
        return bool(self.counters)

    async def read_counters(self) -> bool:
        """Read the object's counters before its children: one GetItem, if it has any; whether it is there."""
        if self.counters:
            try:
                self.read = (await decode.reloaded(self.obj))._stored
            except type(self.obj).DoesNotExist:
                return False
        return True

    def held_to(self, entry: Entry, added: Sums) -> Entry:
        """See ``Step``."""
        if not self.counters:
            return entry
        key = key_of(self.read)
        conditions = tuple(
            cascade.as_counted(self.read, name, added.get(key, {}).get(name, 0)) for name in self.counters
        )
        actions = (
            replace(action, condition=join((action.condition, *conditions)))
            if isinstance(action, Delete) and action.key == key
            else action
            for action in entry.actions
        )
        return replace(entry, actions=tuple(actions))

    async def was_counted(self) -> bool:
        """Whether there may be another number of children by now, so that they are to be looked for again."""
        before = self.read
        return await self.read_counters() and any(self.read.get(name) != before.get(name) for name in self.counters)

    async def send(self, pending: Block | None) -> bool:
        """Delete it by itself, or within a block."""
        return bool(await remove(self.obj, self.terms, pending, self.because))

    async def compose(self, pending: Block) -> Write | None:
        """Its write, among those of the others."""
        if not await _is_whole(self.obj):
            return None
        effects = effects_of(type(self.obj))
        return await compose_removal(
            self.obj, effects, self.terms, pending=pending, absent=self.absent, because=self.because
        )

    async def remember(self, write: Write, stored: Item) -> None:
        """It is not stored any more."""
        self.obj._stored = None


def _along(obj: DynamoModel) -> _Removal:
    """The removal of an object that goes along, as long as it refers as it did: an index may show it as it was."""
    return _Removal(obj, CallerConditions(), taking_along(type(obj)))


def _counters(model: type[DynamoModel]) -> list[str]:
    """The physical names of the counters of children that go along when an object is deleted for good, and of what
    refers to it by references that are checked."""
    followers = cascade.followers(model, for_good=True)
    declared = (each for each in registry.counters_of(model) if getattr(model, each.children) in followers)
    return [*(each.attr_name for each in declared), *(name for name, _ in checked(model))]


def _guards(obj: DynamoModel, terms: CallerConditions) -> list[Entry]:
    """The conditions on the object, for the transactions that delete children before it."""
    before = dict(obj._stored)
    conditions = WriteConditions(terms, as_read=version.conditions(type(obj), before))
    if not conditions.as_read and not terms:
        return []
    check = Check(key_of(before), conditions.whole())
    write = Write(Transition(Subject(obj), before, None, frozenset()), type(obj)._options.alias, (check,), conditions)
    return [cascade.guard(write.transition.subject.name, check, write.explain)]


async def _may_go_on(obj: DynamoModel, terms: CallerConditions) -> bool:
    """Bring the object up to its item; whether it is there and meets what is queried."""
    try:
        fresh = await decode.reloaded(obj)
    except type(obj).DoesNotExist:
        return False
    if not matches(terms.queried, fresh._stored, registry.layout_of(type(obj))):
        return False
    if terms.queried != EVERYTHING:
        decode.follow(obj, fresh, changed_in_memory(obj))
    return True
