"""Soft delete: into the trash and out of it, with the children that go along.

A deleted item keeps its attributes and its place in the table; it loses its live index keys and its unique claims, and
gains the trash's key, so that live listings never read it and the trash is a Query. What went along with another object
has that object's mark and its moment, so that it comes back with it and nothing else does.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from django.dispatch import Signal
from msgspec import Struct
from msgspec.structs import replace

from dynamo_single import clock
from dynamo_single.exceptions import MissingReference, ParentInTrash, StaleObject, UniqueViolation
from dynamo_single.later import Later
from dynamo_single.orm.conditions.algebra import join
from dynamo_single.orm.conditions.matching import matches
from dynamo_single.orm.conditions.terms import EVERYTHING, Stored
from dynamo_single.orm.effects import sending
from dynamo_single.orm.effects.compose import assigned, compose
from dynamo_single.orm.effects.effect import Subject
from dynamo_single.orm.effects.terms import NO_TERMS, Terms
from dynamo_single.orm.effects.together import effects_of
from dynamo_single.orm.effects.write import Write
from dynamo_single.orm.items import hydration
from dynamo_single.orm.items.held import hold_only, values_held
from dynamo_single.orm.items.native import notify
from dynamo_single.orm.items.partial import changed_in_memory, completed
from dynamo_single.orm.items.serialization import Values, key_of_pk
from dynamo_single.orm.plan.projection import PartialItem
from dynamo_single.orm.reading import single
from dynamo_single.orm.requests.actions import Action, Check, Item, key_of
from dynamo_single.orm.requests.block import Block, Entry
from dynamo_single.orm.requests.changes import as_stored
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.children import Children
from dynamo_single.orm.schema.kinds import DynamoModel
from dynamo_single.orm.schema.referrers import checked
from dynamo_single.orm.write import cascade, on_delete
from dynamo_single.orm.write.cascade import Cascade, Listing, Step
from dynamo_single.orm.write.save import assign, remember
from dynamo_single.signals import post_restore, post_soft_delete
from dynamo_single.table import names

if TYPE_CHECKING:
    from dynamo_single.orm.write import following
else:
    following = Later("dynamo_single.orm.write.following")

#: How often a step is begun again because another writer was faster.
ATTEMPTS = 3
#: What an object that is brought back loses, as far as it has it.
_MARKS = (registry.DELETED_AT, registry.DELETED_WITH, registry.PURGE_AT)


class Batch(Struct, frozen=True):
    """What the objects of one deletion have in common; ``mark`` names the one that the others went along with."""

    mark: str
    moment: datetime
    purge_at: datetime | None

    @classmethod
    def begun_with(cls, obj: DynamoModel) -> Batch:
        """The batch of an object that is deleted now."""
        moment, after = clock.instant(), type(obj)._options.purge_after
        # In whole seconds, as time to live counts.
        purge_at = None if after is None else (moment + after + timedelta(seconds=1)).replace(microsecond=0)
        return cls(_mark(obj), moment, purge_at)

    @classmethod
    def of(cls, obj: Any) -> Batch:
        """The batch that an object in the trash belongs to, as it is stored."""
        values = hydration.values_of(type(obj), obj._stored)
        mark = values[registry.DELETED_WITH] or _mark(obj)
        return cls(mark, values[registry.DELETED_AT], values.get(registry.PURGE_AT))

    def changes(self, obj: DynamoModel, *, follows: bool) -> Values:
        """What the trash is entered with."""
        changes = {registry.DELETED_AT: self.moment, registry.DELETED_WITH: self.mark if follows else None}
        return changes | ({registry.PURGE_AT: self.purge_at} if _purges(obj) else {})

    def guard(self, obj: DynamoModel) -> Entry:
        """What holds the deletion of children to their parent's being in the trash with this batch."""
        name = Subject(obj).name
        moment = registry.attributes_of(type(obj))[registry.DELETED_AT].to_attribute_value(self.moment)
        check = Check(key_of(obj._stored), Stored(names.DELETED_AT, "=", (moment,)))
        return cascade.guard(name, check, partial(_restored_meanwhile, name))

    def listings(self, children: Children) -> list[Listing]:
        """The children that are in the trash with this batch."""
        conditions = {registry.DELETED_WITH: self.mark, registry.DELETED_AT: self.moment}
        return [Listing(children, "deleted", conditions, _is_in_trash)]


async def delete(obj: DynamoModel, terms: Terms, pending: Block | None) -> tuple[int, dict[str, int]]:
    """Move an object to the trash with the children that go along; what is there already is left alone.

    For an object that is in the trash this completes a deletion that was interrupted. Where the stored item does not
    meet what is queried, nothing is written; where it does not meet what is demanded, that is ``ConditionNotMet``.
    """
    done: list[Any] = []
    _check_stored(obj, "deleted")
    if pending is None and names.MOVED_FROM in obj._stored:
        # What refers to the identity that it had goes along too.
        await following.complete(obj)
    try:
        await _carry_out(obj, terms, done, pending, into_trash=True)
    except type(obj).DoesNotExist:
        pass  # somebody else deleted it for good
    finally:
        await _tell(post_soft_delete, done)
    return cascade.counts(type(obj), done)


async def restore(obj: DynamoModel, terms: Terms, pending: Block | None) -> tuple[int, dict[str, int]]:
    """Bring an object back from the trash with what went there along with it; a live one is left alone.

    Raises the model's ``DoesNotExist`` if it is gone for good, ``UniqueViolation`` if a value of it or of a child was
    taken, ``ParentInTrash`` if it belongs to an object that is in the trash itself.
    """
    done: list[Any] = []
    _check_stored(obj, "restored")
    try:
        await _carry_out(obj, terms, done, pending, into_trash=False)
    except UniqueViolation as error:
        if done:  # taken between the question and the answer
            error.args = (
                f"{str(error).removesuffix('; nothing was written.')}. {len(done)} objects that belong to "
                f"{Subject(obj).name} were restored before that: delete() puts them back, restore() goes on from "
                "there.",
            )
        raise
    finally:
        await _tell(post_restore, done)
    return cascade.counts(type(obj), done)


async def _tell(signal: Signal, done: Sequence[object]) -> None:
    for each in done:
        await notify(signal, type(each), instance=each)


async def along_with(obj: DynamoModel) -> list[DynamoModel]:
    """What goes to the trash along with a live object: a Query for each kind of children, or for several of them."""
    return await cascade.below(obj, live)


async def coming_back_with(obj: DynamoModel) -> list[DynamoModel]:
    """What a restoration brings back along with an object in the trash: a Query for each kind of children."""
    return await cascade.below(obj, Batch.of(obj).listings)


def live(children: Children) -> list[Listing]:
    """The children that are not in the trash."""
    return [Listing(children, "live")]


def _check_stored(obj: DynamoModel, done: str) -> None:
    if obj._stored is None:
        raise ValueError(f"{obj._meta.object_name} object can't be {done} because it is not stored.")


async def _carry_out(
    obj: DynamoModel, terms: Terms, done: list[DynamoModel], pending: Block | None, *, into_trash: bool
) -> None:
    """Do what there is to do, and again if another writer was faster; ``done`` takes in what is written.

    What the object remembers may be outdated: where it says that there is nothing to do, it is read again. Changes of
    the object that are not saved stay as they are.
    """
    prepare = _deletion if into_trash else _restoration
    is_fresh = isinstance(obj._stored, PartialItem) and await completed(obj)
    for attempt in range(ATTEMPTS):
        if not is_fresh and _is_in_trash(obj) == into_trash:
            await _read_again(obj)
            is_fresh = True
        if is_fresh and not matches(terms.queried, obj._stored, registry.layout_of(type(obj))):
            return
        work = await prepare(obj, terms, again=attempt > 0)
        batch = Batch.of(obj) if _is_in_trash(obj) else None
        try:
            await work.send(pending)
            if not into_trash and pending is None and work.steps:
                await _latecomers(obj, batch, done)
        except StaleObject as error:
            outdated = error.expected != error.found and work.failed is obj and terms.queried == EVERYTHING
            as_it_was = obj._stored, values_held(obj)
            await _read_again(obj)
            is_fresh = True
            if into_trash and any(each is obj for each in work.done):
                raise  # restored after its own transaction: what is below it is no matter of this deletion any more
            # Another version is not written over, unless there is nothing left to do.
            if attempt == ATTEMPTS - 1 or (outdated and _is_in_trash(obj) != into_trash):
                # Nor by what the caller writes next.
                obj._stored = as_it_was[0]
                hold_only(obj, as_it_was[1])
                raise
        else:
            if into_trash and pending is None and work.steps:
                await _look_again(obj, work, done)
            return
        finally:
            done += work.done


async def _look_again(obj: DynamoModel, first: Cascade, done: list[DynamoModel]) -> None:
    """Once more for what came to refer to the objects by ``on_delete`` while they went to the trash: a Query for each
    such reference."""
    if any(map(on_delete.takes_along, {type(step.obj) for step in first.steps})):
        work = await _deletion(obj, NO_TERMS, again=True)
        try:
            await work.send(None)
        finally:
            done += work.done
    await on_delete.report_protected([step.obj for step in first.steps], live)


async def _deletion(obj: DynamoModel, terms: Terms, *, again: bool) -> Cascade:
    """The object first, so that an interrupted deletion says so, then its children."""
    interrupted = _is_in_trash(obj)
    batch = Batch.of(obj) if interrupted else Batch.begun_with(obj)

    def listings_of(children: Children) -> list[Listing]:
        completes = interrupted and cascade.followers(children.model)
        return [*live(children), *(batch.listings(children) if completes else ())]

    # What is counted is read before it is looked for.
    held = (await hydration.reloaded(obj))._stored if checked(type(obj)) and not interrupted else None
    steps = [] if interrupted else [_Assignment(obj, batch.changes(obj, follows=False), terms, held)]
    children = [child for child in await cascade.below(obj, listings_of, again=again) if not _is_in_trash(child)]
    await on_delete.refuse_protected([*(() if interrupted else (obj,)), *children], live)
    if held is not None:
        on_delete.shows_all([(obj, held)], children, for_good=False)
    steps += [_Assignment(child, batch.changes(child, follows=True)) for child in children]
    # What follows the object's own transaction, or completes it, must not follow its restoration.
    return Cascade(steps, [batch.guard(obj)] if len(steps) > (0 if interrupted else 1) else [])


async def _restoration(obj: DynamoModel, terms: Terms, *, again: bool) -> Cascade:
    """The children first, so that what is not restored yet still belongs to an object in the trash."""
    if not _is_in_trash(obj):
        return Cascade(())
    if single.has_expired(obj._stored):
        raise type(obj).DoesNotExist(f"{Subject(obj).name} is past the time until which the trash keeps it.")
    children = await cascade.below(obj, Batch.of(obj).listings, again=again)
    steps = [*(_Assignment(child, _restored(child)) for child in reversed(children))]
    return Cascade([*steps, _Assignment(obj, _restored(obj), Terms(terms.queried))], _guards(obj), ask_first=True)


async def _latecomers(obj: DynamoModel, batch: Batch | None, done: list[DynamoModel]) -> None:
    """Bring back what another deletion of the object put into the trash meanwhile, as far as a key shows it by now."""

    def listings_of(children: Children) -> list[Listing]:
        found = live(children) if cascade.followers(children.model) else []
        return [*found, *(batch.listings(children) if batch is not None else ())]

    for _ in range(ATTEMPTS):
        below = await cascade.below(obj, listings_of, again=True)
        late = [child for child in reversed(below) if _is_in_trash(child)]
        if not late:
            return
        work = Cascade([*(_Assignment(child, _restored(child)) for child in late)], _guards_of_children(obj))
        try:
            await work.send(None)
        except StaleObject:
            pass  # written meanwhile: looked at again
        finally:
            done += work.done
    raise StaleObject(
        f"{Subject(obj).name} is restored, and others are still deleting what belongs to it. dynamo_verify reports "
        "what is left in the trash."
    )


def _guards_of_children(obj: DynamoModel) -> list[Entry]:
    """What holds the restoration of children to their parent's being live."""
    name = Subject(obj).name
    check = Check(key_of(obj._stored), Stored(names.DELETED_AT, "missing"))
    return [cascade.guard(name, check, partial(_in_trash, obj, name))]


class _Assignment(Step):
    """Setting the marks of the trash on one object of several, or taking them away."""

    def __init__(self, obj: DynamoModel, values: Values, terms: Terms = NO_TERMS, held: Item | None = None) -> None:
        super().__init__(obj, terms)
        self.values = values
        #: The counts of what refers to the object by checked references have to be as in this item.
        self.held = held

    async def send(self, pending: Block | None) -> bool:
        """Set them by themselves, or within a block."""
        write = None if self.held is None else await self.compose(pending)
        if write is None:
            await assign(self.obj, self.values, self.terms, pending)
        else:
            await remember(self.obj, write, await sending.deliver(self.obj, write))
        return True

    async def compose(self, pending: Block | None) -> Write | None:
        """The object's write, among those of the others."""
        draft = assigned(self.obj, self.values)
        if self.held is not None:
            counts = [as_stored(self.held, name) for name, _ in checked(type(self.obj))]
            draft = replace(draft, computed=join(counts))
        return await compose(self.obj, effects_of(type(self.obj)), draft, self.terms, pending=pending)

    async def remember(self, write: Write, stored: Item) -> None:
        """The object has them now."""
        await remember(self.obj, write, stored)


def _restored(obj: DynamoModel) -> Values:
    return {name: None for name in _MARKS if name != registry.PURGE_AT or _purges(obj)}


def _guards(obj: Any) -> list[Entry]:
    """What has to be out of the trash for the object to be live: the objects that it goes along with."""
    guards = []
    for parent, field in cascade.parents(obj._meta.concrete_model):
        pk = hydration.values_of(type(obj), obj._stored)[field.attname]
        if pk is not None:
            name = f"{parent._meta.label} with pk {pk!r}"
            check = Check(key_of_pk(parent, pk), Stored(names.DELETED_AT, "missing"))
            guards.append(cascade.guard(name, check, partial(_in_trash, obj, name)))
    return guards


def _in_trash(obj: DynamoModel, parent: str, action: Action, found: Item | None) -> ParentInTrash | MissingReference:
    if not found:
        return MissingReference(
            f"{Subject(obj).name} cannot be restored: {parent}, which counts it, is not stored; nothing was written.",
            key=action.key,
        )
    return ParentInTrash(
        f"{Subject(obj).name} cannot be restored by itself: it belongs to {parent}, which is in the trash; nothing was "
        "written. Restore that: what was deleted along with it comes back too."
    )


def _restored_meanwhile(name: str, action: Action, found: Item | None) -> StaleObject:
    return StaleObject(
        f"{name} was {'restored' if found else 'deleted for good'} while it was deleted: what belongs to it was not "
        "put into the trash any more."
    )


def _is_in_trash(obj: DynamoModel) -> bool:
    return names.DELETED_AT in obj._stored


def _purges(obj: DynamoModel) -> bool:
    return type(obj)._options.purge_after is not None


def _mark(obj: DynamoModel) -> str:
    return f"{type(obj)._options.item_type}#{obj.pk}"


async def _read_again(obj: DynamoModel) -> None:
    changed = changed_in_memory(obj).difference(_MARKS)
    hydration.follow(obj, await hydration.reloaded(obj), changed)
