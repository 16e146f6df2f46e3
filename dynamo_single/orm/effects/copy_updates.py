"""Find the objects that hold copies of an attribute, and update the copies when the attribute changes.

The holders of copies are the objects that refer to the source; a key finds them (``HolderGroup``). ``CopyUpdates``
writes them. If the copies do not fit into the transaction, it marks the source, and batches update the copies until
none is stale.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from dynamo_single.exceptions import (
    BeginAgain,
    CopiesDue,
    DynamoSingleError,
    NoAccessPattern,
    SourceChanged,
    StaleObject,
    TooManyHolders,
)
from dynamo_single.orm.conditions.terms import join
from dynamo_single.orm.effects import send
from dynamo_single.orm.effects.base import Effect, Effects, SideWrites, Subject, Transition, is_repeated
from dynamo_single.orm.effects.compose import compose, draft_of
from dynamo_single.orm.effects.copies import stored_value
from dynamo_single.orm.effects.referrers import ReferrerQuery
from dynamo_single.orm.effects.write import Write
from dynamo_single.orm.items.encode import is_same
from dynamo_single.orm.requests.actions import Action, Check, Item, ItemKey, Update, key_of
from dynamo_single.orm.requests.atomic_block import Block, combine_actions, disputed_claims
from dynamo_single.orm.requests.updates import as_stored
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.attributes import CopiedAttribute
from dynamo_single.orm.schema.identities import example_value_of
from dynamo_single.orm.schema.keys.values import item_size, named
from dynamo_single.orm.schema.references import Referrers
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.table import names
from dynamo_single.table.flow import flatten
from dynamo_single.table.request import MAX_ACTIONS
from dynamo_single.table.table import pause_before


class HolderGroup(Struct, frozen=True):
    """The objects of one model that copy from one source by one reference, and the values that they should have."""

    holder: Any
    field: Any
    pk: Any
    values: Mapping[str, Any]

    @property
    def bound(self) -> CopiedAttribute | None:
        """The copy with the smallest ``max_holders``, if any of them has one."""
        copies = [copy for copy in registry.copied_of(self.holder) if copy.name in self.values and copy.max_holders]
        return min(copies, key=lambda copy: copy.max_holders or 0, default=None)

    async def stale(self, *, deleted: bool = True, reread: bool = False) -> AsyncGenerator[Any, None]:
        """Yield the objects with other values: one Query by the key of the reference, also for ``deleted`` objects.

        The read is strongly consistent if the table itself has a key for them. An index may lag by some seconds;
        ``reread`` adds a consistent BatchGetItem for each hundred objects that it returns as stale.
        """
        # The planner needs the state of migrations.
        await self.holder._base_manager.all()._know()
        query = replace(holder_query(self.field, deleted=deleted), still=self._is_stale)
        async with aclosing(flatten(query.pages([self.pk], again=reread))) as holders:
            async for holder in holders:
                yield holder

    def _is_stale(self, obj: Any) -> bool:
        attributes, held = registry.attributes_of(self.holder), obj.__dict__
        return not all(is_same(attributes[name], value, held[name]) for name, value in self.values.items())


def holder_query(field: Any, *, deleted: bool = True) -> ReferrerQuery:
    """Return the query of the objects with a reference to a source.

    Without ``deleted``, objects in the trash are still included if the table itself has a key for all of them.
    """
    holders = Referrers(field.related_model, field)
    return ReferrerQuery(holders, "all" if deleted or holders.is_by_table else "live")


def holder_key_problem(copy: CopiedAttribute) -> str | None:
    """Return why no key finds the holders of a copy; ``None`` if one does."""
    value = example_value_of(copy.reference_field.attribute)
    try:
        holder_query(copy.reference_field).queryset([value])._plan()
    except NoAccessPattern as error:
        return str(error)
    return None


def holder_groups(
    model: type[DynamoModel], pk: object, item: Item, copies: Iterable[CopiedAttribute]
) -> list[HolderGroup]:
    """Return the holders of some copies of an object, with the values of its item."""
    values: dict[tuple[Any, Any], dict[str, Any]] = {}
    for copy in copies:
        at = values.setdefault((copy.field.model, copy.reference_field), {})
        at[copy.name] = stored_value(copy.source, item)
    return [HolderGroup(holder, field, pk, found) for (holder, field), found in values.items()]


def mark_names(copies: Iterable[CopiedAttribute]) -> list[str]:
    """Return the names of copies in the marker of a source."""
    return sorted(f"{copy.field.model._options.item_type}.{copy.attr_name}" for copy in copies)


def due_copies(model: type[DynamoModel], item: Item) -> list[CopiedAttribute]:
    """Return the copies that the marker of an item lists as outdated."""
    due = item.get(names.COPIES_DUE, {}).get("SS", ())
    return [copy for copy in registry.copied_from(model) if set(mark_names([copy])) & set(due)]


#: The maximum number of holders' actions in the transaction of their source, which may write claims and derived items.
MAX_COPY_ACTIONS = MAX_ACTIONS - 10
#: The maximum size of the holders' items in the transaction of their source, in bytes; batches update more.
MAX_COPY_BYTES = 3 * 1024 * 1024
#: How often to read the holders in one model if other processes change them in the meantime. Five passes without a
#: pause were not enough against four other writers on a busy machine.
MAX_PASSES = 12


class _CopyWrites(Struct, frozen=True):
    """The writes of holders in the transaction of their source, or the marker if they do not fit.

    With ``job`` a save leaves the marker for ``dynamo_rebuild``. ``actions`` are built from ``writes``.
    """

    copies: tuple[CopiedAttribute, ...] = ()
    actions: tuple[Action, ...] = ()
    items: tuple[Item, ...] = ()
    writes: tuple[Write, ...] = ()
    mark: tuple[str, ...] = ()
    job: bool = False


class CopyUpdates(Effect):
    """Updates the copies that other objects hold of one model's attributes.

    ``effects_of`` returns the effects of a holder's model.
    """

    updates_copies = True

    def __init__(self, model: type[DynamoModel], effects_of: Callable[[Any], Effects]) -> None:
        self.model = model
        self.effects_of = effects_of
        self.watches = frozenset(copy.source.attr_name for copy in registry.copied_from(model))

    async def side_writes(self, transition: Transition) -> SideWrites | None:
        """Return the holders' writes: one Query for each kind of holder, none if no copied attribute changes.

        A retried write adds a BatchGetItem for each hundred holders that an index returns. It marks the source if
        copies do not fit into the transaction. Within an ``atomic()`` block they have to fit.
        """
        before, after = transition.before, transition.after
        if before is None or after is None or key_of(before) != key_of(after):
            return None
        changed = [
            copy
            for copy in registry.copied_from(self.model)
            if before.get(copy.source.attr_name) != after.get(copy.source.attr_name)
        ]
        if not changed:
            return None
        copies = tuple(dict.fromkeys([*changed, *due_copies(self.model, before)]))
        spread = await self._spread(transition, key_of(before), copies)
        return SideWrites(
            actions=spread.actions,
            as_read=self.watches & transition.written_names,
            written_items=spread.items,
            explain=partial(_refusal_error, transition.subject, spread),
            amend=partial(_with_mark, spread, before),
            mark={names.COPIES_DUE: {"SS": list(spread.mark)}} if spread.mark else {},
            afterwards=partial(self._finish, spread, transition.pending),
        )

    async def _spread(self, transition: Transition, own: ItemKey, copies: tuple[CopiedAttribute, ...]) -> _CopyWrites:
        values: dict[ItemKey, Mapping[str, Any]] = {}
        room = _TransactionRoom(own, transition)
        for group in holder_groups(self.model, transition.subject.pk, transition.after or {}, copies):
            bound, number = None if transition.lenient else group.bound, 0
            if bound is None and room.is_full:
                continue
            async with aclosing(group.stale(reread=is_repeated.get())) as holders:
                async for holder in holders:
                    number += 1
                    if bound is not None and number > (bound.max_holders or 0):
                        if bound.beyond == "refuse":
                            raise _too_many(transition.subject, bound)
                        return _CopyWrites(copies, mark=tuple(mark_names(copies)), job=True)
                    if room.is_full:
                        continue  # only counted
                    # A holder with several references to the source is written once.
                    key = key_of(holder._stored)
                    values[key] = {**values.get(key, {}), **group.values}
                    write = await self._holder_write(holder, values[key], transition.pending)
                    if write is None:
                        continue
                    room.take(key, write)
                    room.is_full = transition.pending is None and room.is_exceeded
                    if room.is_full and bound is None:
                        break
        if room.is_full:
            return _CopyWrites(copies, mark=tuple(mark_names(copies)))
        return _CopyWrites(copies, tuple(room.actions()), tuple(room.items()), tuple(room.writes.values()))

    async def _holder_write(
        self, holder: DynamoModel, values: Mapping[str, object], pending: Block | None
    ) -> Write | None:
        """Return the write that sets a holder's copies, with the holder's effects except copies of its copies."""
        effects = tuple(each for each in self.effects_of(type(holder)) if not each.updates_copies)
        return await compose(holder, effects, await draft_of(holder, values), pending=pending)

    async def finish_earlier_write(self, obj: DynamoModel, pending: Block | None) -> None:
        """Update the copies that the marker of an object lists."""
        if names.COPIES_DUE not in obj._stored or await self._is_job(obj):
            return
        if pending is not None:
            pending.callbacks.append(partial(self.complete, obj))
        else:
            await self.complete(obj)

    async def _is_job(self, obj: DynamoModel) -> bool:
        """Return whether more copies are due than a bound allows, so that a save does not wait for them."""
        for group in holder_groups(self.model, obj.pk, obj._stored, due_copies(self.model, obj._stored)):
            bound, number = group.bound, 0
            if bound is None or bound.beyond != "job":
                continue
            async with aclosing(group.stale()) as holders:
                async for _ in holders:
                    number += 1
                    if number > (bound.max_holders or 0):
                        return True
        return False

    async def update_dependents(self, obj: DynamoModel, pending: Block | None) -> None:
        """Set the copies of objects that exist before their source: one Query for each reference to it."""
        await self._finish(_CopyWrites(registry.copied_from(self.model)), pending, obj)

    async def _finish(self, spread: _CopyWrites, pending: Block | None, obj: DynamoModel) -> None:
        """Update the copies that processes created during the change of their source, or that did not fit."""
        if spread.job:
            return
        if pending is not None:
            item = dict(obj._stored)
            pending.callbacks.append(partial(self._follow, obj, item, spread.copies))
        elif spread.mark:
            await self.complete(obj)
        else:
            await self._follow(obj, obj._stored, spread.copies)

    async def complete(self, obj: DynamoModel) -> None:
        """Update the copies that a marker lists, then remove the marker: batches and one UpdateItem."""
        item = obj._stored
        due = None if item is None else item.get(names.COPIES_DUE)
        if due is None:
            return  # another write has finished it, or deleted the object
        copies = due_copies(self.model, item)
        await self._follow(obj, item, copies, deleted=True)
        unchanged = [as_stored(item, name) for name in sorted({copy.source.attr_name for copy in copies})]
        update = Update(key_of(item), discard={names.COPIES_DUE: due}, condition=join(unchanged))
        try:
            await send.send_actions(self.model._options.alias, [(update, _source_error)])
        except SourceChanged:
            return  # another process changed the source, and updates the copies and the marker
        obj._stored = {name: value for name, value in item.items() if name != names.COPIES_DUE}

    async def _follow(
        self, obj: DynamoModel, item: Item, copies: Sequence[CopiedAttribute], *, deleted: bool = False
    ) -> None:
        """Write the copies that differ from the item of their source, until there are none.

        If other processes change the holders in the meantime, it reads them again: first immediately, then after
        pauses, ``MAX_PASSES`` times for each model. After that it raises ``CopiesDue``.
        """
        try:
            for group in holder_groups(self.model, obj.pk, item, copies):
                await self._follow_group(group, item, deleted=deleted)
        except DynamoSingleError as error:
            why = str(error).replace(" Nothing was written.", "")  # written: the source, but not the holder
            raise CopiesDue(
                f"{named(obj)} is saved, but some copies of it are not updated yet: {why} Save it again, or "
                "run manage.py dynamo_rebuild."
            ) from error

    async def _follow_group(self, group: HolderGroup, item: Item, *, deleted: bool) -> None:
        # The source already has its new value, so no process copies the earlier value: one pass finds all copies.
        for attempt in range(MAX_PASSES):
            await pause_before(attempt)
            again = False
            # DynamoDB may have rejected a holder because an index returned its earlier state.
            async with aclosing(self._batches(group, deleted=deleted, reread=attempt > 0)) as batches:
                async for batch, writes in batches:
                    explain = partial(_batch_error, key_of(item), writes)
                    try:
                        await send.send_actions(
                            self.model._options.alias,
                            [(action, explain) for action in batch],
                            lease=next((each.lease for each in writes), None),
                        )
                    except _HolderChanged:
                        again = True
                    except SourceChanged as error:
                        if not isinstance(error.__cause__, BeginAgain):
                            return  # another process changed the source, and updates the copies
                        again = True  # the lease has ended
            if not again:
                return
        raise SourceChanged(f"The copies in {group.holder._meta.label} are changed by others all the time.")

    async def _batches(
        self, group: HolderGroup, *, deleted: bool, reread: bool
    ) -> AsyncGenerator[tuple[list[Action], list[Write]], None]:
        """Yield the holders' actions of one transaction each, with the check of the source, and their writes."""
        batch: list[Action] = []
        writes: list[Write] = []
        async with aclosing(group.stale(deleted=deleted, reread=reread)) as holders:
            async for holder in holders:
                write = await self._holder_write(holder, group.values, None)
                if write is None:
                    continue
                larger = combine_actions([*batch, *write.actions])
                # If two holders need one unique value, the table refuses the second after the first has it.
                if batch and (len(larger) > MAX_ACTIONS or disputed_claims(larger)):
                    yield batch, writes
                    larger, writes = write.actions, []
                batch, writes = larger, [*writes, write]
        if batch:
            yield batch, writes


class _TransactionRoom:
    """The writes of holders in the transaction of their source, and whether they fit.

    ``own`` is the key of the source. The transaction writes it, so holders do not check it.
    """

    def __init__(self, own: ItemKey, transition: Transition) -> None:
        self.own = own
        self._transition = transition
        #: Whether to ignore further writes.
        self.is_full = False
        self.writes: dict[ItemKey, Write] = {}
        self._times: Counter[ItemKey] = Counter()
        self._size = 0

    def take(self, key: ItemKey, write: Write) -> None:
        """Add a holder's write instead of an earlier one of the same holder; one too many for a block raises."""
        for each, sign in ((self.writes.get(key), -1), (write, 1)):
            if each is not None:
                self._size += sign * sum(map(item_size, _items(each)))
                for action in _actions(each, self.own):
                    self._times[action.key] += sign
        self.writes[key] = write
        block = self._transition.pending
        if block is not None:
            block.check_room({self.own, *self.writes}, self._transition.subject.name)

    @property
    def is_exceeded(self) -> bool:
        """Whether the writes do not fit."""
        return self._size > MAX_COPY_BYTES or (
            len(self._times) > MAX_COPY_ACTIONS and len(+self._times) > MAX_COPY_ACTIONS
        )

    def actions(self) -> list[Action]:
        """Return the holders' actions, each item once; raises ``UniqueViolation`` if two need one unique value."""
        found = combine_actions(action for write in self.writes.values() for action in _actions(write, self.own))
        claims = disputed_claims(found)
        if claims is not None:
            taken, refused = claims
            later = [write for write in self.writes.values() if any(refused is each for each in write.actions)]
            raise _holder_error(later, refused, taken.item) or _source_error(refused, taken.item)
        return found

    def items(self) -> Iterator[Item]:
        """Return the holders' items, before and after the write."""
        return (item for write in self.writes.values() for item in _items(write))


def _actions(write: Write, own: ItemKey) -> Iterator[Action]:
    """Return the actions of a holder's write except its check of the source; updates of the source's counters stay."""
    every = (*write.own_actions, *(each for added in write.side_writes for each in added.actions))
    return (action for action in every if action.key != own or not isinstance(action, Check))


def _items(write: Write) -> Iterator[Item]:
    both = (write.transition.before, write.transition.after)
    return (item for item in both if item is not None)


def _too_many(subject: Subject, bound: CopiedAttribute) -> TooManyHolders:
    label = bound.field.model._meta.label
    return TooManyHolders(
        f"{subject.name}: more than {bound.max_holders} {label} objects hold a copy of {bound.attribute}, "
        f"which is the limit max_holders of {label}.{bound.name}. Nothing was written. Raise max_holders, or "
        'set beyond="job" and run manage.py dynamo_rebuild after such a change.',
        limit=bound.max_holders or 0,
    )


def _with_mark(spread: _CopyWrites, before: Item, update: Update) -> Update:
    """Return a source's update with the marker added, or with an earlier one removed."""
    if spread.mark:
        return replace(update, add={**update.add, names.COPIES_DUE: {"SS": list(spread.mark)}})
    if names.COPIES_DUE in before:
        return replace(update, remove=(*update.remove, names.COPIES_DUE))
    return update


def _refusal_error(subject: Subject, spread: _CopyWrites, action: Action, found: Item | None) -> Exception | None:
    if any(action.key == each.key for each in spread.actions):
        changed = SourceChanged(f"{subject.name}: an object that copies from it was changed.")
        return _holder_error(spread.writes, action, found) or changed
    return None


def _holder_error(writes: Iterable[Write], action: Action, found: Item | None) -> Exception | None:
    """Return the error of the rejected holder if a retry cannot help: a unique value is taken."""
    for write in writes:
        if any(action.key == each.key for each in write.actions):
            error = write.explain(action, found)
            return None if isinstance(error, StaleObject) else error
    return None


def _source_error(action: Action, found: Item | None) -> Exception:
    return SourceChanged("Another process changed a copied attribute during the update.")


class _HolderChanged(SourceChanged):
    """Another process changed an object that holds a copy after the read."""


def _batch_error(source: ItemKey, writes: Sequence[Write], action: Action, found: Item | None) -> Exception:
    if action.key == source:
        return _source_error(action, found)
    return _holder_error(writes, action, found) or _HolderChanged(
        "Another process changed an object that holds a copy during the update."
    )
