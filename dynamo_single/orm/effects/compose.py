"""Compose the write of one object: the changes of its item, the writes of its effects, and their conditions.

All ways to write compose here. This module does not depend on any single effect, or on the request of a write.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from dynamo_single.orm.conditions.terms import EVERYTHING, Condition, Stored, join
from dynamo_single.orm.effects.base import (
    NO_CONDITIONS,
    CallerConditions,
    Effects,
    SideWrites,
    Subject,
    Transition,
    WriteConditions,
    values_of_each_write,
)
from dynamo_single.orm.effects.write import Write
from dynamo_single.orm.items import decode
from dynamo_single.orm.items.encode import Values, check_trash_key
from dynamo_single.orm.items.encodings import Encodings
from dynamo_single.orm.items.expiry import free_key_condition
from dynamo_single.orm.items.form import ItemForm, form_of
from dynamo_single.orm.requests.actions import Delete, Item, ItemKey, Put, Update, key_of
from dynamo_single.orm.requests.atomic_block import Block
from dynamo_single.orm.requests.compiler import fits
from dynamo_single.orm.requests.updates import Change, Place, as_stored, difference_of, required_conditions, whole_write
from dynamo_single.orm.rollout import knowledge
from dynamo_single.orm.schema import bindings
from dynamo_single.orm.schema.bindings import ModelBinding
from dynamo_single.orm.schema.layout import Twin
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.table import names
from dynamo_single.table.table import get_table

_KEY = (names.PARTITION_KEY, names.SORT_KEY)


class Draft(Struct, frozen=True, eq=False):
    """The values to write to one stored item.

    - ``read_values`` contains the values as they were read, without documents; ``new_values`` those to set.
    - ``changes`` are left to DynamoDB.
    - ``computed`` is the condition under which these computed values are correct. ``computed_values`` contains these
      values and those that effects set; ``extra_values`` contains further values of the object after the write.
    - ``repeated`` names attributes to write even if they are unchanged.
    - ``overwritten_documents`` names documents to overwrite completely.
    - ``raw`` (fixtures) sets no version and does not require parents.
    - ``binding`` is the binding that the operation uses: it decides about names and keys.
    - ``encodings`` contains the documents that the app has already encoded.
    """

    binding: ModelBinding
    before: Item
    read_values: Values
    new_values: Values
    changes: tuple[Change, ...] = ()
    computed: Condition = EVERYTHING
    raw: bool = False
    repeated: frozenset[str] = frozenset()
    overwritten_documents: frozenset[str] = frozenset()
    computed_values: Mapping[str, Any] = field(default_factory=dict)
    extra_values: Mapping[str, Any] = field(default_factory=dict)
    encodings: Encodings = field(default_factory=Encodings)

    @property
    def current_values(self) -> Values:
        """The values of the object's attributes if there is nothing to write."""
        return {**self.extra_values, **self.computed_values, **self.new_values}


async def draft_of(obj: DynamoModel, values: Mapping[str, object]) -> Draft:
    """Return the draft that sets attributes of an object's item to ``values`` instead of the object's own values.

    It uses the model's binding, which may read the table.
    """
    binding, before = await taken(type(obj)), obj._stored
    form = form_of(binding)
    changed = {**values, **form.automatic_values(obj)}
    return Draft(binding, before, decode.values_of(binding, before, form.compared), changed)


async def taken(model: type[DynamoModel], pending: Block | None = None) -> ModelBinding:
    """Return the binding that an operation uses from its beginning to its end: read as ``knowledge.ask()``.

    A block reads the state of a model once, and again before the request. For a sharded model, it reads the state in
    each operation.
    """
    if pending is None:
        return bindings.binding_if_known(model, get_table(model._options.alias)) or await knowledge.binding_for(model)
    found: ModelBinding | None = pending.bindings.get(model)
    if found is None or not found.is_current or found.layout.sharding is not None:
        found = await taken(model)
        pending.bindings.setdefault(model, found)
    return found


async def compose(
    obj: DynamoModel,
    effects: Effects,
    draft: Draft,
    terms: CallerConditions = NO_CONDITIONS,
    *,
    pending: Block | None = None,
    absent: frozenset[ItemKey] = frozenset(),
) -> Write | None:
    """Return the write of a draft; ``None`` if it would not change the item."""
    form, before = form_of(draft.binding), draft.before
    terms = terms.with_twin_names(form.twins) if form.twins else terms
    form.check_key(obj, draft.read_values, before)
    changed = draft.new_values if draft.raw else draft.new_values | values_of_each_write(effects, before)
    after = form.after(before, draft.read_values, changed, draft.encodings)
    size = form.check_size(obj, after, draft.encodings)
    put = {name: value for name, value in after.items() if before.get(name) != value}
    removed = tuple(name for name in before if name not in after and name in form.known)
    if not (put or removed or draft.changes or draft.repeated):
        return None
    written = frozenset((*put, *removed))
    transition = Transition(Subject(obj), before, after, written, pending, absent, lenient=draft.raw)
    side_writes = await _side_writes(effects, transition)
    repeated = {form.stored[name] for name in draft.repeated} - written if draft.repeated else set()
    held = _names_written_again(form, effects, draft, repeated)
    documents = form.documents & written if form.documents and not draft.raw else frozenset()
    documents -= {form.stored[name] for name in draft.overwritten_documents}
    as_read = _as_read(form, transition, side_writes, held)
    if form.extracted:
        put_whole = form.documents.intersection((*written, *repeated)) - documents
        as_read += form.extractions_as_read((before, after), written, put_whole)
    conditions = WriteConditions(
        terms, draft.computed, required_conditions(draft.changes) if draft.changes else EVERYTHING, as_read
    )
    put |= {name: after[name] for name in sorted(repeated) if name in after}
    removed += tuple(name for name in sorted(repeated) if name not in after)
    own = Update(
        key_of(before), set=put, remove=removed, changes=draft.changes, condition=conditions.request_condition()
    )
    for each in side_writes:
        own = own if each.amend is None else each.amend(own)
    if documents:
        renamed = [twin.used for twin in form.twins]
        own, conditions = _with_document_changes(own, conditions, before, after, documents, renamed)
    own = _with_renamed_attributes(own, form.twins) if form.twins else own
    return Write(
        transition,
        form.alias,
        (own,),
        conditions,
        side_writes,
        draft.changes,
        values=changed,
        size=size,
        lease=draft.binding.lease,
    )


def _names_written_again(form: ItemForm, effects: Effects, draft: Draft, repeated: Collection[str]) -> Collection[str]:
    """Return which ``repeated`` names must be unchanged since the read, because keys, other items or parts of a
    document depend on them.
    """
    if not repeated:
        return ()
    documents = form.documents - {form.stored[name] for name in draft.overwritten_documents}
    return form.depended_on.union(documents, *(effect.watches for effect in effects)).intersection(repeated)


def _with_document_changes(
    own: Update,
    conditions: WriteConditions,
    before: Item,
    after: Item,
    documents: Collection[str],
    renamed: Collection[str],
) -> tuple[Update, WriteConditions]:
    """Return the update with documents written by their difference, or whole if one expression cannot contain it.

    It writes documents whole while a migration renames them.
    """
    for difference in (difference_of, whole_write):
        found = [
            (whole_write if name in renamed else difference)(name, before.get(name), after.get(name))
            for name in sorted(documents)
        ]
        held = tuple(condition for each in found for condition in each.conditions)
        update = replace(
            own,
            set={name: value for name, value in own.set.items() if name not in documents},
            remove=tuple(name for name in own.remove if name not in documents),
            changes=(*own.changes, *(change for each in found for change in each.changes)),
            condition=join((own.condition, *held)),
        )
        if fits(update):
            break
    return update, replace(conditions, as_read=(*conditions.as_read, *held))


def _with_renamed_attributes(own: Update, twins: Iterable[Twin]) -> Update:
    """Return the update with its changes repeated under the other name of each renamed attribute, or that removed."""
    put, removed, changes = dict(own.set), dict.fromkeys(own.remove), list(own.changes)
    for twin in twins:
        both = [each for each in changes if each.place.name == twin.used]
        if not (twin.used in put or twin.used in removed or both):
            continue
        if not twin.is_kept:
            continue  # a pass of the migration removes it, once no code writes it
        if twin.used in put:
            put[twin.other] = put[twin.used]
        elif both:
            changes += (replace(each, place=Place(twin.other)) for each in both)
        else:
            removed[twin.other] = None
    return replace(own, set=put, remove=tuple(removed), changes=tuple(changes))


class NewObject(Struct, frozen=True, eq=False):
    """An object to create: its binding, and its item and the values of its attributes by that.

    ``size`` is in bytes; 0 if unknown.
    """

    obj: Any
    binding: ModelBinding
    item: Item
    values: Values
    size: int = 0


async def compose_new(
    new: NewObject,
    effects: Effects,
    *,
    pending: Block | None = None,
    absent: frozenset[ItemKey] = frozenset(),
    lenient: bool = False,
) -> Write:
    """Return the write of a new item, which overwrites expired items only."""
    form, lease = form_of(new.binding), new.binding.lease
    check_trash_key(form.model, new.values)
    transition = Transition(Subject(new.obj), None, new.item, form.known, pending, absent, lenient)
    put = Put(new.item, free_key_condition(form.model), new.size)
    side_writes = await _side_writes(effects, transition)
    return Write(transition, form.alias, (put,), WriteConditions(), side_writes, values=new.values, lease=lease)


async def compose_removal(
    obj: DynamoModel,
    effects: Effects,
    terms: CallerConditions = NO_CONDITIONS,
    *,
    pending: Block | None = None,
    absent: frozenset[ItemKey] = frozenset(),
    because: frozenset[str] = frozenset(),
) -> Write:
    """Return the write that deletes a stored item; ``because`` contains the stored names with unchanged values."""
    binding = await taken(type(obj), pending)
    form, before = form_of(binding), obj._stored
    terms = terms.with_twin_names(form.twins) if form.twins else terms
    transition = Transition(Subject(obj), before, None, form.known, pending, absent)
    side_writes = await _side_writes(effects, transition)
    as_read = {name for each in side_writes for name in each.as_read}.union(because)
    conditions = WriteConditions(terms, as_read=_unchanged(form, before, as_read))
    delete = Delete(key_of(before), conditions.request_condition())
    return Write(transition, form.alias, (delete,), conditions, side_writes, lease=binding.lease)


async def compose_move(
    obj: DynamoModel,
    effects: Effects,
    target: Any,
    values: Values,
    *,
    pending: Block | None,
    absent: frozenset[ItemKey],
) -> Write:
    """Return the write that moves an object to another key, as its ``target``; the old item must be unchanged."""
    binding = bindings.binding_of(type(obj))
    form, before, item = form_of(binding), obj._stored, target._stored
    check_trash_key(form.model, values)
    transition = Transition(Subject(obj), before, item, form.known, pending, absent)
    depends_on = {*before, *form.known}.difference(_KEY)
    conditions = WriteConditions(as_read=_unchanged(form, before, depends_on))
    put, delete = Put(item, free_key_condition(type(obj))), Delete(key_of(before), conditions.request_condition())
    side_writes = await _side_writes(effects, transition)
    return Write(
        transition,
        form.alias,
        (put, delete),
        conditions,
        side_writes,
        moved_subject=Subject(target),
        values=values,
        lease=binding.lease,
    )


async def _side_writes(effects: Effects, transition: Transition) -> tuple[SideWrites, ...]:
    found: list[SideWrites] = []
    for effect in effects:
        if effect.concerns(transition):
            side_writes = await effect.side_writes(transition)
            found += [] if side_writes is None else [side_writes]
    return tuple(found)


def _as_read(
    form: ItemForm, transition: Transition, side_writes: tuple[SideWrites, ...], held: Collection[str]
) -> tuple[Stored, ...]:
    """Return the conditions that the attributes an update depends on, and ``held``, are unchanged."""
    stored = form.as_read(transition.written_names, transition.after).union(held)
    for each in side_writes:
        stored |= each.as_read
    return _unchanged(form, transition.before or {}, stored)


def _unchanged(form: ItemForm, before: Item, stored: Iterable[str]) -> tuple[Stored, ...]:
    """Return the conditions that attributes are unchanged since the read, the version first."""
    return tuple(as_stored(before, name) for name in sorted(stored, key=lambda name: (name != form.version, name)))
