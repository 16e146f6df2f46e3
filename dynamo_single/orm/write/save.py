"""Save one stored object: draft the changes, compose them with their effects, send and record the result.

The functions that send requests are coroutines; ``flow.run()`` runs them in a thread. This module does not depend on
the individual effects.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from dynamo_single.exceptions import MissingReference, SourceChanged, StaleObject
from dynamo_single.orm.conditions.matching import matches
from dynamo_single.orm.conditions.terms import EVERYTHING, Condition, join
from dynamo_single.orm.effects import send as effects_send
from dynamo_single.orm.effects import trash_counts
from dynamo_single.orm.effects.all_effects import effects_of
from dynamo_single.orm.effects.base import (
    NO_CONDITIONS,
    CallerConditions,
    Effects,
    Filling,
    Subject,
    Transition,
    WriteConditions,
    filled_values,
    is_repeated,
)
from dynamo_single.orm.effects.compose import Draft, compose, taken
from dynamo_single.orm.effects.write import Write, conflicting_item, is_gone
from dynamo_single.orm.items import decode
from dynamo_single.orm.items.encode import Values
from dynamo_single.orm.items.encodings import Encodings
from dynamo_single.orm.items.form import form_of
from dynamo_single.orm.items.refresh import acomplete, changed_in_memory
from dynamo_single.orm.items.stored import object_values, set_object_values
from dynamo_single.orm.plan.plan import PartialItem
from dynamo_single.orm.requests.actions import ITEM_EXISTS, Check, Item, ItemKey, key_of
from dynamo_single.orm.requests.atomic_block import Block
from dynamo_single.orm.requests.updates import Change, with_names
from dynamo_single.orm.rollout import knowledge
from dynamo_single.orm.schema import bindings, registry
from dynamo_single.orm.schema.bindings import ModelBinding
from dynamo_single.orm.schema.layout import Twin
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.orm.write import assignments
from dynamo_single.orm.write.direct import saved_by_name, saved_directly
from dynamo_single.table import names
from dynamo_single.table.flow import call_sync
from dynamo_single.table.table import get_table, pause_before

# The caller's request for an object, as a value.


class SaveOptions(Struct, frozen=True):
    """Write the current values of a stored object's attributes.

    ``only`` contains the attributes to write even if unchanged; ``None`` writes all changed attributes. It always
    writes automatic times, and a named time with its value if it is ``given``. It writes a document in ``given`` as a
    whole. ``changes`` apply in addition to the attributes' values. ``raw`` (fixtures) writes values unmodified.
    ``force`` names all attributes, and computes every key, which fills an index that is younger than the item. Without
    ``repeat``, it writes named attributes only if they differ, because the object is fresh.
    """

    only: frozenset[str] | None = None
    changes: tuple[Change, ...] = ()
    given: frozenset[str] = frozenset()
    terms: CallerConditions = NO_CONDITIONS
    raw: bool = False
    force: bool = False
    repeat: bool = True

    def with_twin_names(self, twins: Sequence[Twin]) -> SaveOptions:
        """Return the same options with the current names of attributes that an open migration renames."""
        names = {twin.other: twin.used for twin in twins}
        return replace(self, terms=self.terms.with_twin_names(twins), changes=with_names(self.changes, names))

    @property
    def looks_for_changes(self) -> bool:
        """Whether the save does nothing unless the program has set an attribute since the read."""
        asked = self.only is not None or self.force or self.changes or self.terms.demanded != EVERYTHING
        return not asked


DEFAULT_SAVE = SaveOptions()
T = TypeVar("T")

#: The number of retries after a concurrent change of a source or holder of its copies.
SOURCE_ATTEMPTS = 8
#: The number of retries of a write through a queryset after concurrent changes. With eight processes and twenty sums
#: each, every process succeeded within seven.
ATTEMPTS: Final = 20


async def save(obj: DynamoModel, wanted: SaveOptions, pending: Block | None) -> None:
    """Write the changes since the object was read: one UpdateItem, or one transaction with dependent items.

    Without changes it sends only a check of a required condition. If there may be something to write, it first reads
    the rest of a partially loaded object.
    """
    model, encodings = type(obj), Encodings()
    known = None if pending is not None else bindings.binding_if_known(model, get_table(model._options.alias))
    binding = known or await taken(model, pending)
    if wanted is DEFAULT_SAVE:
        if await saved_directly(binding, obj, encodings, pending):
            return
    elif (
        (only := wanted.only) is not None
        and wanted == SaveOptions(only)
        and await saved_by_name(binding, obj, only, encodings, pending)
    ):
        return
    form = form_of(binding)
    if form.files and not wanted.raw:
        await call_sync(partial(form.store_files, obj, wanted.only))
    named = _named_attributes(obj, wanted)
    if form.asks(object_values(obj)):
        wanted = replace(wanted, changes=(*wanted.changes, *assignments.changes_of(obj, wanted.only)))
    if isinstance(obj._stored, PartialItem) and wanted.looks_for_changes and not changed_in_memory(obj):
        return

    async def attempt() -> None:
        # Composed again also if a renamed attribute has another name by the time of the write, or if the lease has
        # ended.
        is_first = binding.is_current and not is_repeated.get()
        now = binding if is_first else await knowledge.binding_for(model)
        current = wanted.with_twin_names(now.layout.twins) if now.layout.twins else wanted
        await _ObjectSave(obj, current, effects_of(now), pending, named, now, encodings).run()

    await retry_source_changes(attempt)


def _named_attributes(obj: DynamoModel, wanted: SaveOptions) -> frozenset[str] | None:
    """Return the named attributes to write even if unchanged; ``None`` if the caller named none.

    Omit attributes that a partially loaded object reads only now: they have their stored values.
    """
    if wanted.only is None and not wanted.force:
        return None
    if obj._stored is None or not wanted.repeat:
        return frozenset()
    form = form_of(type(obj))
    names = form.repeatable if wanted.only is None else form.repeatable & wanted.only
    if not isinstance(obj._stored, PartialItem):
        return names
    return frozenset(name for name in names if form.stored[name] in obj._stored.names)


async def retry_source_changes(write: Callable[[], Awaitable[T]]) -> T:
    """Call ``write``; repeat it if another process changed a source of the object's copies, or a holder of them.

    It retries twice immediately, then after pauses, ``SOURCE_ATTEMPTS`` times in all, and raises ``SourceChanged``
    after that. A retry reads the holders that an index shows from the table.
    """
    try:
        return await write()
    except SourceChanged:
        token = is_repeated.set(True)
    try:
        for attempt in range(1, SOURCE_ATTEMPTS - 1):
            await pause_before(attempt)
            try:
                return await write()
            except SourceChanged:
                pass
        await pause_before(SOURCE_ATTEMPTS - 1)
        return await write()
    finally:
        is_repeated.reset(token)


class _ObjectSave(Struct, frozen=True, eq=False):
    """A running save: the object, the request, the effects of its model, and the block that it joins.

    ``named`` contains the named attributes to write even if unchanged; ``None`` if the caller named none. ``encodings``
    contains the documents that the app has already encoded.
    """

    obj: Any
    wanted: SaveOptions
    effects: Effects
    pending: Block | None
    named: frozenset[str] | None
    binding: ModelBinding
    encodings: Encodings

    async def run(self) -> None:
        """Draft the request and send it; repeat this if another process changed a source of computed values."""
        model, changes = type(self.obj), self.wanted.changes
        read, shown = await _stored_item(self.obj, self.named or ()), Values()
        before = read
        for attempt in range(1, assignments.ATTEMPTS + 1):
            draft = await self._drafted(before, shown)
            try:
                await self._send(draft)
                return
            except StaleObject as error:
                found = conflicting_item(error)
                if found is None or draft.computed is EVERYTHING or attempt == assignments.ATTEMPTS:
                    raise
                again = assignments.with_current_operands(model, changes, before, found)
                if again is None:
                    raise
                before = again
                # Include the object's own values, so that the write does not restore the former values.
                shown = assignments.operand_values(self.obj, changes, read, before)

    async def _drafted(self, before: Item, shown: Values) -> Draft:
        """Return the differences from the item that was read, and DynamoDB's own changes, without changing the object.

        ``shown`` contains values from other processes, for attributes that the program has not set in the object.
        """
        model, changes, only, raw = type(self.obj), self.wanted.changes, self.wanted.only, self.wanted.raw
        held = decode.values_of(self.binding, before, form_of(self.binding).compared)
        given = {**object_values(self.obj), **shown}
        left = assignments.attribute_names(model, changes) if changes else frozenset()
        filled = await self._filled(before, given, only)
        changed = self._changed(before, held, {**given, **filled}, only, left)
        alone = self.pending is None
        if not changes or assignments.is_computed_by_dynamodb(model, changes, changed, alone=alone):
            draft = Draft(
                self.binding,
                before,
                held,
                changed,
                changes,
                raw=raw,
                computed_values=filled,
                extra_values=shown,
                encodings=self.encodings,
            )
            return self._as_named(draft, left)
        computed, condition = assignments.compute(Subject(self.obj), changes, before)
        given |= computed
        only = None if only is None else only | left
        filled = await self._filled(before, given, only)
        changed = self._changed(before, held, {**given, **filled}, only)
        set_to = {**computed, **filled}
        draft = Draft(
            self.binding,
            before,
            held,
            changed,
            computed=condition,
            raw=raw,
            computed_values=set_to,
            extra_values=shown,
            encodings=self.encodings,
        )
        return self._as_named(draft)

    def _as_named(self, draft: Draft, left: frozenset[str] = frozenset()) -> Draft:
        """Return a draft that also writes named, unchanged attributes, except for those ``left`` to DynamoDB."""
        if self.named is None:
            return draft
        repeated = self.named - draft.new_values.keys() - left
        return replace(draft, repeated=repeated, overwritten_documents=self.wanted.given)

    async def _filled(self, before: Item, given: Values, only: frozenset[str] | None) -> Values:
        """Fill in the values of effects, such as copies of referenced objects."""
        if not self.effects:
            return {}
        filled_from = None if self.wanted.force else before
        filling = Filling(Subject(self.obj), given, filled_from, only, self.pending, self.wanted.raw)
        return await filled_values(self.effects, filling)

    def _changed(
        self,
        before: Item,
        held: Values,
        given: Values,
        only: frozenset[str] | None,
        without: frozenset[str] = frozenset(),
    ) -> Values:
        form = form_of(self.binding)
        prepared = form.prepared(given, before, only, without, encodings=self.encodings)
        changed = form.difference(prepared, held, before, named=self.named is not None, encodings=self.encodings)
        if names.DELETED_WITH in before and not self.wanted.raw:
            changed = trash_counts.values_with_new_parent(type(self.obj), changed)
        return changed

    async def _send(self, draft: Draft) -> None:
        """Send a draft with the follow-ups of every write, or only a check if the draft is empty."""
        form, wanted = form_of(self.binding), self.wanted
        automatic = form.automatic.keys()
        named_automatic = wanted.only is not None and not automatic.isdisjoint(wanted.only)
        if not (draft.new_values or draft.changes or draft.repeated or wanted.force or named_automatic):
            await self._leave(draft)
            return
        changed = draft.new_values
        form.check_whole(changed)
        if form.immutable:
            left = assignments.attribute_names(type(self.obj), draft.changes)
            form.refuse_immutable(left, changed, draft.read_values, draft.before)
        if not wanted.raw:
            form.refuse_fixed(changed)
            if automatic:
                following = form.automatic_values(self.obj)
                changed = {**changed, **{name: following[name] for name in following if name not in wanted.given}}
        form.refuse_move(draft.read_values, changed, draft.before)
        draft = replace(draft, new_values=changed)
        await send_draft(self.obj, self.effects, draft, wanted.terms, self.pending)
        if draft.repeated:
            await self._finish_earlier()

    async def _leave(self, draft: Draft) -> None:
        """Check the required condition of an empty draft, and complete an earlier write."""
        await _check_conditions(self.obj, draft, self.wanted.terms, self.pending)
        _set_stored(self.obj, draft)
        await self._finish_earlier()

    async def _finish_earlier(self) -> None:
        """Complete an earlier write if this write has no effects of its own."""
        for effect in self.effects:
            await effect.finish_earlier_write(self.obj, self.pending)


async def _stored_item(obj: DynamoModel, named: Collection[str]) -> Item:
    """Return the stored item; read it, or the rest of it, if necessary. ``named`` attributes keep their values."""
    try:
        if obj._stored is None:
            obj = await decode.areload(obj)
        elif isinstance(obj._stored, PartialItem):
            await acomplete(obj, named)
    except type(obj).DoesNotExist as error:
        raise StaleObject(
            f"Cannot update {Subject(obj).name}: it does not exist in the table. Nothing was written."
        ) from error
    item: Item = obj._stored
    return item


async def send_draft(
    obj: DynamoModel, effects: Effects, draft: Draft, terms: CallerConditions, pending: Block | None
) -> None:
    """Compose a draft's write, send it and record it; repeat without a missing parent that the write does not need."""
    absent: frozenset[ItemKey] = frozenset()
    while True:
        write = await compose(obj, effects, draft, terms, pending=pending, absent=absent)
        refuse_outdated(obj, draft.binding)
        if write is None:
            # An automatic time that is the same to the millisecond.
            await _check_conditions(obj, draft, terms, pending)
            _set_stored(obj, draft)
            return
        try:
            stored = await effects_send.send_write(obj, write)
        except MissingReference as error:
            absent = missing_parents(write, effects, error)
        else:
            obj.__dict__.update({**draft.extra_values, **draft.computed_values})
            await record_write(obj, write, stored)
            return


def refuse_outdated(obj: DynamoModel, binding: ModelBinding) -> None:
    """Raise ``SourceChanged`` if a binding is outdated, so that the caller composes the write again."""
    if not binding.is_current:
        raise SourceChanged(
            f"A migration changed the stored names or keys of {Subject(obj).name} during this write. Nothing "
            "was written. Try again."
        )


def missing_parents(write: Write, effects: Effects, error: MissingReference) -> frozenset[ItemKey]:
    """Return the known deleted parents and the parent in the error; raise the error if the write needs that parent."""
    transition, key = write.transition, error.key
    can_lack = transition.lenient or any(effect.can_omit(transition, key) for effect in effects)
    if not can_lack or key in transition.missing_parents:
        raise error
    return transition.missing_parents | {key}


def _set_stored(obj: DynamoModel, draft: Draft) -> None:
    """Update an object from its stored item if that matches the request."""
    if obj._stored is None:
        obj._stored = dict(draft.before)
    obj.__dict__.update(draft.current_values)


async def _check_conditions(obj: DynamoModel, draft: Draft, terms: CallerConditions, pending: Block | None) -> None:
    """Check whether a stored object meets a required condition, without a write: one transaction."""
    if terms.demanded == EVERYTHING:
        return
    before = draft.before
    check = Check(key_of(before), join((ITEM_EXISTS, terms.demanded)))
    transition = Transition(Subject(obj), before, before, frozenset(), pending)
    conditions = WriteConditions(CallerConditions(demanded=terms.demanded))
    await effects_send.send_write(obj, Write(transition, type(obj)._options.alias, (check,), conditions))


async def record_write(obj: DynamoModel, write: Write, stored: Item) -> None:
    """Update an object after its write, and complete the work that did not fit.

    The object reads values that DynamoDB computed on access.
    """
    after, values = write.transition.after, write.values
    if stored is not after:
        left = assignments.attribute_names(type(obj), write.changes) if write.changes else frozenset()
        wanted = frozenset(form_of(type(obj)).stored[name] for name in {*values, *left})
        held = decode.values_of(type(obj), stored, wanted)
        for name in left - held.keys():
            obj.__dict__.pop(name, None)
        values = {name: held[name] for name in {*values, *left} if name in held}
    marks = [each.mark for each in write.side_writes if each.mark is not None]
    known: dict[str, Any] = {**stored}
    for mark in marks or [_earlier_mark(write.transition.before)]:
        known |= mark
    decode.set_stored(obj, PartialItem(known, stored.names) if isinstance(stored, PartialItem) else known, values)
    for each in write.side_writes:
        if each.afterwards is not None:
            await each.afterwards(obj)


def _earlier_mark(before: Item | None) -> Item:
    return {} if before is None or names.COPIES_DUE not in before else {names.COPIES_DUE: before[names.COPIES_DUE]}


async def write_if(
    obj: DynamoModel,
    condition: Condition,
    write: Callable[[CallerConditions], Awaitable[object]],
    named: frozenset[str] = frozenset(),
) -> bool:
    """Write under a queryset's condition on the stored item; ``False`` if the item does not meet it, or is gone.

    If the item meets the condition but another process changed it first, it updates the object from the item, except
    for ``named`` attributes and attributes that the program has set, and writes again. Each retry takes a GetItem and
    the write: two immediately, then with pauses, ``ATTEMPTS`` in all. If the last one fails too, it raises
    ``StaleObject``, and the object is unchanged.
    """
    terms = CallerConditions(queried=condition) if condition != EVERYTHING else NO_CONDITIONS
    as_it_was: tuple[Any, Values] | None = None
    read = followed = None
    try:
        for attempt in range(ATTEMPTS):
            try:
                return bool(await write(terms))
            except StaleObject as error:
                if is_gone(error):
                    return False
                await pause_before(attempt)
                fresh = await _reloaded(obj)
                if fresh is None or not matches(condition, fresh._stored, registry.layout_of(type(obj))):
                    return False
                if attempt == ATTEMPTS - 1:
                    error.add_note(
                        f"The app read and wrote it {ATTEMPTS} times, but another process changed it first each time."
                    )
                    raise
                if attempt > 1 and fresh._stored == read:
                    raise  # unchanged since the read, so the error has another cause
                read = fresh._stored
                as_it_was = as_it_was or (obj._stored, object_values(obj))
                decode.update_from(obj, fresh, changed_in_memory(obj) | (named & obj.__dict__.keys()))
                followed = obj._stored
        return False
    finally:
        # After a successful write, the object has another stored item than ``followed``.
        if as_it_was is not None and obj._stored is followed:
            obj._stored = as_it_was[0]
            set_object_values(obj, as_it_was[1])


async def _reloaded(obj: DynamoModel) -> Any:
    try:
        return await decode.areload(obj)
    except type(obj).DoesNotExist:
        return None
