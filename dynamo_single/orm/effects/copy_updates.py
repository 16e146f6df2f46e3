"""Copies that follow their source: what goes along with a change of an attribute that other objects copy.

Where the copies do not fit into the transaction, the source is marked, and they follow in batches until none is stale.
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
    CopiesDue,
    DynamoSingleError,
    NoAccessPattern,
    SourceChanged,
    StaleObject,
    TooManyHolders,
)
from dynamo_single.orm.conditions.terms import join
from dynamo_single.orm.effects import send
from dynamo_single.orm.effects.base import Along, Effect, Effects, Subject, Transition, is_repeated
from dynamo_single.orm.effects.compose import assigned, compose
from dynamo_single.orm.effects.copies import value_in
from dynamo_single.orm.effects.write import Write
from dynamo_single.orm.items.encode import is_same
from dynamo_single.orm.requests.actions import Action, Check, Item, ItemKey, Update, key_of
from dynamo_single.orm.requests.atomic_block import Block, combined, disputed
from dynamo_single.orm.requests.updates import as_stored
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.attributes import CopiedAttribute
from dynamo_single.orm.schema.identities import some_value_of
from dynamo_single.orm.schema.keys.values import item_size, named
from dynamo_single.orm.schema.types import DynamoModel, ModelField
from dynamo_single.table import names
from dynamo_single.table.request import MAX_ACTIONS, MAX_BATCH_KEYS
from dynamo_single.table.table import pause_before

# Who holds the copies of a source: the objects that refer to it, found by a key, whatever holds them back.
#
# What becomes of their copies is in ``Spreading``.


class Group(Struct, frozen=True):
    """The copies of one source that the objects of one model hold by one reference, and what they are to be."""

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
        """The objects whose copies are otherwise: a Query by the key that the relation has; ``deleted`` ones too.

        From the table itself, strongly consistent, if that has a key for them. An index may show an object as it was
        some seconds ago; ``reread`` adds a consistent BatchGetItem for each hundred that it shows as stale.
        """
        # Planning asks for it.
        await self.holder._base_manager.all()._know()
        for queryset in found_by_keys(self.holder, self.field, self.pk, deleted=deleted):
            again = reread and not queryset._asked.consistent
            async with aclosing(queryset._pages()) as pages:
                async for page in pages:
                    found = [obj for obj in page if self._is_stale(obj)]
                    for obj in await self._reread(found) if again and found else found:
                        yield obj

    def _is_stale(self, obj: Any) -> bool:
        attributes, held = registry.attributes_of(self.holder), obj.__dict__
        return not all(is_same(attributes[name], value, held[name]) for name, value in self.values.items())

    async def _reread(self, shown: list[Any]) -> list[Any]:
        """Those of the objects that are stale in the table too, as it has them."""
        pks = [obj.pk for obj in shown]
        every = self.holder._base_manager.order_by().consistent().filter(**{self.field.attname: self.pk})
        found = []
        for start in range(0, len(pks), MAX_BATCH_KEYS):
            async with aclosing(every.filter(pk__in=pks[start : start + MAX_BATCH_KEYS])._pages()) as pages:
                found += [obj async for page in pages for obj in page if self._is_stale(obj)]
        return found


def found_by_keys(holder: Any, field: ModelField, pk: object, *, deleted: bool) -> list[Any]:
    """The querysets that find the objects which refer to one; raises ``NoAccessPattern`` if no key does."""
    # Without Meta.ordering, which no key may have.
    every = holder._base_manager.order_by().filter(**{field.attname: pk})
    querysets = [every]
    if registry.layout_of(holder).soft_delete and not _is_one_reading(every):
        # Deleted objects have left the live keys.
        querysets = [every.with_visibility("live"), every.with_visibility("deleted")][: 1 + deleted]
    return [_as_consistent_as_possible(queryset) for queryset in querysets]


def _is_one_reading(queryset: Any) -> bool:
    try:
        return queryset._plan(ordered=False).kind in ("query", "get", "batch_get")
    except NoAccessPattern:
        return False


def _as_consistent_as_possible(queryset: Any) -> Any:
    plan = queryset._plan(ordered=False)
    from_table = plan.kind == "query" and plan.key is not None and plan.key.index is None
    return queryset.consistent() if from_table or plan.kind in ("get", "batch_get") else queryset


def problem(copy: CopiedAttribute) -> str | None:
    """What is wrong with how a copy's holders are found, if anything is."""
    value = some_value_of(copy.reference_field.attribute)
    try:
        found_by_keys(copy.field.model, copy.reference_field, value, deleted=True)
    except NoAccessPattern as error:
        return str(error)
    return None


def groups(model: type[DynamoModel], pk: object, item: Item, copies: Iterable[CopiedAttribute]) -> list[Group]:
    """Some copies of an object's attributes, as its item says they are to be."""
    values: dict[tuple[Any, Any], dict[str, Any]] = {}
    for copy in copies:
        at = values.setdefault((copy.field.model, copy.reference_field), {})
        at[copy.name] = value_in(copy.source, item)
    return [Group(holder, field, pk, found) for (holder, field), found in values.items()]


def marks(copies: Iterable[CopiedAttribute]) -> list[str]:
    """Copies as a source's mark names them."""
    return sorted(f"{copy.field.model._options.item_type}.{copy.attr_name}" for copy in copies)


def marked(model: type[DynamoModel], item: Item) -> list[CopiedAttribute]:
    """The copies that an item's mark says have not followed yet."""
    due = item.get(names.COPIES_DUE, {}).get("SS", ())
    return [copy for copy in registry.copied_from(model) if set(marks([copy])) & set(due)]


#: How many actions go along with their source's, which may have some for claims and derived items itself.
MAX_ALONG = MAX_ACTIONS - 10
#: The most bytes of the copies' items that go along with their source; more follow in batches.
MAX_SIZE = 3 * 1024 * 1024
#: How often the copies in one model are gone through, because their holders are changed by others meanwhile.
#: Five, without a pause, were over on a busy machine before four other writers had ended.
ATTEMPTS = 12


class _Spread(Struct, frozen=True):
    """What a change of a source takes along: the holders' actions and items, or a mark, which a ``job`` takes away.

    ``writes`` are those that the actions are made of.
    """

    copies: tuple[CopiedAttribute, ...] = ()
    actions: tuple[Action, ...] = ()
    items: tuple[Item, ...] = ()
    writes: tuple[Write, ...] = ()
    mark: tuple[str, ...] = ()
    job: bool = False


class Spreading(Effect):
    """The copies that other objects hold of one model's.

    ``effects_of`` gives the effects of a holder, which follow from what is written of it.
    """

    spreads = True

    def __init__(self, model: type[DynamoModel], effects_of: Callable[[Any], Effects]) -> None:
        self.model = model
        self.effects_of = effects_of
        self.watches = frozenset(copy.source.attr_name for copy in registry.copied_from(model))

    async def follow(self, transition: Transition) -> Along | None:
        """The holders' writes: a Query for each kind of them, and nothing if no copied attribute changes.

        A repeated write adds a BatchGetItem for each hundred holders that an index shows. Copies that do not fit into
        the transaction are marked. Within an atomic() block they have to fit.
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
        copies = tuple(dict.fromkeys([*changed, *marked(self.model, before)]))
        spread = await self._spread(transition, key_of(before), copies)
        return Along(
            actions=spread.actions,
            as_read=self.watches & transition.written,
            touched=spread.items,
            explain=partial(_explained, transition.subject, spread),
            amend=partial(_with_mark, spread, before),
            mark={names.COPIES_DUE: {"SS": list(spread.mark)}} if spread.mark else {},
            afterwards=partial(self._finish, spread, transition.pending),
        )

    async def _spread(self, transition: Transition, own: ItemKey, copies: tuple[CopiedAttribute, ...]) -> _Spread:
        values: dict[ItemKey, Mapping[str, Any]] = {}
        room = _Room(own)
        for group in groups(self.model, transition.subject.pk, transition.after or {}, copies):
            bound, number = None if transition.lenient else group.bound, 0
            if bound is None and room.is_full:
                continue
            async with aclosing(group.stale(reread=is_repeated.get())) as holders:
                async for holder in holders:
                    number += 1
                    if bound is not None and number > (bound.max_holders or 0):
                        if bound.beyond == "refuse":
                            raise _too_many(transition.subject, bound)
                        return _Spread(copies, mark=tuple(marks(copies)), job=True)
                    if room.is_full:
                        continue  # only counted
                    # One that refers to the source more than once is written once.
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
            return _Spread(copies, mark=tuple(marks(copies)))
        return _Spread(copies, tuple(room.actions()), tuple(room.items()), tuple(room.writes.values()))

    async def _holder_write(
        self, holder: DynamoModel, values: Mapping[str, object], pending: Block | None
    ) -> Write | None:
        """The write that sets a holder's copies, with the holder's own effects but for copies of its copies."""
        effects = tuple(each for each in self.effects_of(type(holder)) if not each.spreads)
        return await compose(holder, effects, assigned(holder, values), pending=pending)

    async def idle(self, obj: DynamoModel, pending: Block | None) -> None:
        """Let the copies that an object's mark names follow."""
        if names.COPIES_DUE not in obj._stored or await self._is_job(obj):
            return
        if pending is not None:
            pending.callbacks.append(partial(self.complete, obj))
        else:
            await self.complete(obj)

    async def _is_job(self, obj: DynamoModel) -> bool:
        """Whether more copies than a bound allows are due, which no save is to wait for."""
        for group in groups(self.model, obj.pk, obj._stored, marked(self.model, obj._stored)):
            bound, number = group.bound, 0
            if bound is None or bound.beyond != "job":
                continue
            async with aclosing(group.stale()) as holders:
                async for _ in holders:
                    number += 1
                    if number > (bound.max_holders or 0):
                        return True
        return False

    async def catch_up(self, obj: DynamoModel, pending: Block | None) -> None:
        """Fill the copies of objects that were stored before their source: a Query for each reference to it."""
        await self._finish(_Spread(registry.copied_from(self.model)), pending, obj)

    async def _finish(self, spread: _Spread, pending: Block | None, obj: DynamoModel) -> None:
        """What has to happen after a source's change: copies that were made meanwhile, or that did not fit, follow."""
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
        """Let the copies that a mark names follow, and take the mark away: batches, then one UpdateItem."""
        item = obj._stored
        due = None if item is None else item.get(names.COPIES_DUE)
        if due is None:
            return  # another write has finished it, or the object was deleted
        copies = marked(self.model, item)
        await self._follow(obj, item, copies, deleted=True)
        unchanged = [as_stored(item, name) for name in sorted({copy.source.attr_name for copy in copies})]
        update = Update(key_of(item), discard={names.COPIES_DUE: due}, condition=join(unchanged))
        try:
            await send.carry_out(self.model._options.alias, [(update, _superseded)])
        except SourceChanged:
            return  # another writer changed the source, and takes the copies and the mark along
        obj._stored = {name: value for name, value in item.items() if name != names.COPIES_DUE}

    async def _follow(
        self, obj: DynamoModel, item: Item, copies: Sequence[CopiedAttribute], *, deleted: bool = False
    ) -> None:
        """Write the copies that are not as an item of their source says, until there are none.

        Where others change the holders meanwhile, they are looked for again: at once, then after pauses, ``ATTEMPTS``
        times in all for each model of them. After that it is ``CopiesDue``.
        """
        try:
            for group in groups(self.model, obj.pk, item, copies):
                await self._follow_group(group, item, deleted=deleted)
        except DynamoSingleError as error:
            why = str(error).replace("; nothing was written", "")  # of a holder: the source is
            raise CopiesDue(
                f"{named(obj)} is saved, but not every copy of it has followed: {why} "
                "Save it again, or run manage.py dynamo_rebuild."
            ) from error

    async def _follow_group(self, group: Group, item: Item, *, deleted: bool) -> None:
        # The source has its value already, so that nothing can be copied of an earlier one any more: one passage finds
        # all.
        for attempt in range(ATTEMPTS):
            await pause_before(attempt)
            again = False
            # What was refused may only have been shown as it was, by an index that is behind.
            async with aclosing(self._batches(group, deleted=deleted, reread=attempt > 0)) as batches:
                async for batch, writes in batches:
                    explain = partial(_changed, key_of(item), writes)
                    try:
                        await send.carry_out(self.model._options.alias, [(action, explain) for action in batch])
                    except _HolderChanged:
                        again = True
                    except SourceChanged:
                        return  # another writer changed the source, and takes the copies along
            if not again:
                return
        raise SourceChanged(f"The copies in {group.holder._meta.label} are changed by others all the time.")

    async def _batches(
        self, group: Group, *, deleted: bool, reread: bool
    ) -> AsyncGenerator[tuple[list[Action], list[Write]], None]:
        """The holders' actions in transactions, each with the check of the source, and the writes that they are of."""
        batch: list[Action] = []
        writes: list[Write] = []
        async with aclosing(group.stale(deleted=deleted, reread=reread)) as holders:
            async for holder in holders:
                write = await self._holder_write(holder, group.values, None)
                if write is None:
                    continue
                larger = combined([*batch, *write.actions])
                # Of two that come to one value the second one is refused by the table, once the first one has it.
                if batch and (len(larger) > MAX_ACTIONS or disputed(larger)):
                    yield batch, writes
                    larger, writes = write.actions, []
                batch, writes = larger, [*writes, write]
        if batch:
            yield batch, writes


class _Room:
    """The writes of holders, and whether they fit into the transaction of their source; each is counted as it comes.

    ``own`` is the key of the source, which is written itself: holders' checks of it are not counted.
    """

    def __init__(self, own: ItemKey) -> None:
        self.own = own
        #: What comes is not taken any more.
        self.is_full = False
        self.writes: dict[ItemKey, Write] = {}
        self._times: Counter[ItemKey] = Counter()
        self._size = 0

    def take(self, key: ItemKey, write: Write) -> None:
        """A holder's write, in the place of an earlier one of the same holder."""
        for each, sign in ((self.writes.get(key), -1), (write, 1)):
            if each is not None:
                self._size += sign * sum(map(item_size, _items(each)))
                for action in _actions(each, self.own):
                    self._times[action.key] += sign
        self.writes[key] = write

    @property
    def is_exceeded(self) -> bool:
        """Whether the writes do not fit."""
        return self._size > MAX_SIZE or (len(self._times) > MAX_ALONG and len(+self._times) > MAX_ALONG)

    def actions(self) -> list[Action]:
        """What the holders' writes do, each item once; raises ``UniqueViolation`` for two that come to one value."""
        found = combined(action for write in self.writes.values() for action in _actions(write, self.own))
        claims = disputed(found)
        if claims is not None:
            taken, refused = claims
            later = [write for write in self.writes.values() if any(refused is each for each in write.actions)]
            raise _meant(later, refused, taken.item) or _superseded(refused, taken.item)
        return found

    def items(self) -> Iterator[Item]:
        """The holders, as they are and as they will be."""
        return (item for write in self.writes.values() for item in _items(write))


def _actions(write: Write, own: ItemKey) -> Iterator[Action]:
    """What a holder's write does, but for the check of the source; what it adds to a number of the source stays."""
    every = (*write.own, *(each for along in write.along for each in along.actions))
    return (action for action in every if action.key != own or not isinstance(action, Check))


def _items(write: Write) -> Iterator[Item]:
    both = (write.transition.before, write.transition.after)
    return (item for item in both if item is not None)


def _too_many(subject: Subject, bound: CopiedAttribute) -> TooManyHolders:
    label = bound.field.model._meta.label
    return TooManyHolders(
        f"{subject.name}: more than {bound.max_holders} {label} objects hold a copy of {bound.attribute}, which "
        f"max_holders of {label}.{bound.name} does not allow; nothing was written. Allow more, or say "
        'beyond="job", and run manage.py dynamo_rebuild after such a change.',
        limit=bound.max_holders or 0,
    )


def _with_mark(spread: _Spread, before: Item, update: Update) -> Update:
    """A source's change that leaves the mark, or takes an earlier one away with what it was about."""
    if spread.mark:
        return replace(update, add={**update.add, names.COPIES_DUE: {"SS": list(spread.mark)}})
    if names.COPIES_DUE in before:
        return replace(update, remove=(*update.remove, names.COPIES_DUE))
    return update


def _explained(subject: Subject, spread: _Spread, action: Action, found: Item | None) -> Exception | None:
    if any(action.key == each.key for each in spread.actions):
        changed = SourceChanged(f"{subject.name}: an object that copies from it was changed.")
        return _meant(spread.writes, action, found) or changed
    return None


def _meant(writes: Iterable[Write], action: Action, found: Item | None) -> Exception | None:
    """What a refused action means to the holder whose it is, where beginning again would not help: a value is taken."""
    for write in writes:
        if any(action.key == each.key for each in write.actions):
            error = write.explain(action, found)
            return None if isinstance(error, StaleObject) else error
    return None


def _superseded(action: Action, found: Item | None) -> Exception:
    return SourceChanged("A copied attribute was changed again meanwhile.")


class _HolderChanged(SourceChanged):
    """An object that holds a copy was changed since it was read."""


def _changed(source: ItemKey, writes: Sequence[Write], action: Action, found: Item | None) -> Exception:
    if action.key == source:
        return _superseded(action, found)
    return _meant(writes, action, found) or _HolderChanged("An object that holds a copy was changed meanwhile.")
