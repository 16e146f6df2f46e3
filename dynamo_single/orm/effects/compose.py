"""Making the write of one object: the difference of two items, what follows from it, and what all of it depends on.

The one place that does it for every way to write. It must not know which effects there are, or how a write is sent.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import partial
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from dynamo_single.exceptions import KeyNotFilled
from dynamo_single.orm.conditions.terms import EVERYTHING, Condition, Stored, join, names_in
from dynamo_single.orm.effects.base import NO_TERMS, Along, Conditions, Effects, Subject, Terms, Transition
from dynamo_single.orm.effects.write import Write
from dynamo_single.orm.items import decode
from dynamo_single.orm.items import form as items_form
from dynamo_single.orm.items.encode import Values, check_trash_key, version_mark
from dynamo_single.orm.items.expiry import free
from dynamo_single.orm.items.form import ItemForm, form_of
from dynamo_single.orm.requests.actions import Delete, Item, ItemKey, Put, Update, key_of
from dynamo_single.orm.requests.atomic_block import Block
from dynamo_single.orm.requests.compiler import fits
from dynamo_single.orm.requests.updates import Change, Place, as_stored, by_place, needs, whole
from dynamo_single.orm.rollout import knowledge
from dynamo_single.orm.rollout.caches import epoch
from dynamo_single.orm.rollout.compare import Missing
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.layout import Twin
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.table import names

_KEY = (names.PARTITION_KEY, names.SORT_KEY)


class Draft(Struct, frozen=True, eq=False):
    """What is wanted of one stored item: the values to set, of those that it ``held`` as it was read.

    ``changes`` are left to DynamoDB; ``computed`` is the condition under which what was computed here is right.
    ``set_to`` is that and what was filled in; ``shown`` is what else the object's attributes are, once it is written.
    ``begun`` is the epoch of the names and keys that all of it goes by.
    ``repeated`` are attributes to write although they are as they were read, ``whole`` those that are written whole
    whatever another writer has put in. ``raw`` (fixtures) gives no version and does without what is missing.
    """

    before: Item
    held: Values
    changed: Values
    changes: tuple[Change, ...] = ()
    computed: Condition = EVERYTHING
    raw: bool = False
    repeated: frozenset[str] = frozenset()
    whole: frozenset[str] = frozenset()
    begun: int = field(default_factory=epoch)
    set_to: Mapping[str, Any] = field(default_factory=dict)
    shown: Mapping[str, Any] = field(default_factory=dict)

    @property
    def shows(self) -> Values:
        """What the object's attributes are where nothing has to be written."""
        return {**self.shown, **self.set_to, **self.changed}


def assigned(obj: DynamoModel, values: Mapping[str, object]) -> Draft:
    """The draft that sets some attributes of an object's item, whatever the object's own are by now."""
    before = obj._stored
    changed = {**values, **form_of(type(obj)).automatic_values(obj)}
    return Draft(before, decode.values_of(type(obj), before), changed)


async def compose(
    obj: DynamoModel,
    effects: Effects,
    draft: Draft,
    terms: Terms = NO_TERMS,
    *,
    pending: Block | None = None,
    absent: frozenset[ItemKey] = frozenset(),
) -> Write | None:
    """The write that a draft asks for; ``None`` if the item would be as it is."""
    refuse_unsettled(obj, await knowledge.ask(registry.layout_of(type(obj))), terms)
    form, before = form_of(type(obj)), draft.before
    base = form.upgraded(before)
    terms = terms.by(form.twins) if form.twins else terms
    form.check_key(obj, draft.held, before)
    changed = draft.changed
    for effect in effects if not draft.raw else ():
        changed = changed | effect.stamp(before)
    after = form.after(base, draft.held, changed)
    size = form.check_size(obj, after)
    put = {name: value for name, value in after.items() if before.get(name) != value}
    removed = tuple(name for name in before if name not in after and (name in form.known or name not in base))
    if not (put or removed or draft.changes or draft.repeated):
        return None
    written = frozenset((*put, *removed))
    transition = Transition(Subject(obj), before, after, written, pending, absent, lenient=draft.raw)
    along = await _along(effects, transition)
    repeated = {form.stored[name] for name in draft.repeated} - written if draft.repeated else set()
    held = form.upgraded_of(before).union(_held(form, effects, draft, repeated))
    documents = form.documents & written if form.documents and not draft.raw else frozenset()
    documents -= {form.stored[name] for name in draft.whole}
    as_read = _as_read(form, transition, along, held)
    if form.extracted:
        put_whole = form.documents.intersection((*written, *repeated)) - documents
        in_key = partial(form.writes_key_of, written)
        as_read = (*as_read, *items_form.as_read(form.extracted, (before, after), written, put_whole, in_key))
    conditions = Conditions(terms, draft.computed, needs(draft.changes) if draft.changes else EVERYTHING, as_read)
    own = Update(
        key_of(before),
        set={**put, **{name: after[name] for name in sorted(repeated) if name in after}},
        remove=(*removed, *(name for name in sorted(repeated) if name not in after)),
        changes=draft.changes,
        condition=conditions.whole(),
    )
    for each in along:
        own = own if each.amend is None else each.amend(own)
    if documents:
        renamed = [twin.used for twin in form.twins]
        own, conditions = _by_difference(own, conditions, before, after, documents, renamed)
    own = _with_twins(own, form.twins) if form.twins else own
    return Write(transition, form.alias, (own,), conditions, along, draft.changes, values=changed, size=size)


def _held(form: ItemForm, effects: Effects, draft: Draft, repeated: Collection[str]) -> Collection[str]:
    """What is written again has to be as it was read, if another writer's change of it changed more than itself: keys,
    other items, or a part of a document."""
    if not repeated:
        return ()
    documents = form.documents - {form.stored[name] for name in draft.whole}
    return form.depended_on.union(documents, *(effect.watches for effect in effects)).intersection(repeated)


def _by_difference(
    own: Update,
    conditions: Conditions,
    before: Item,
    after: Item,
    documents: Collection[str],
    renamed: Collection[str],
) -> tuple[Update, Conditions]:
    """An update that writes documents by their difference, or whole if that is too long for one expression.

    Those that are being renamed are written whole.
    """
    for difference in (by_place, whole):
        found = [
            (whole if name in renamed else difference)(name, before.get(name), after.get(name))
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


def _with_twins(own: Update, twins: Iterable[Twin]) -> Update:
    """An update that does to the other name of what is being renamed what it does to the one, or takes that out."""
    put, removed, changes = dict(own.set), dict.fromkeys(own.remove), list(own.changes)
    for twin in twins:
        both = [each for each in changes if each.place.name == twin.used]
        if not (twin.used in put or twin.used in removed or both):
            continue
        if twin.is_kept and twin.used in put:
            put[twin.other] = put[twin.used]
        elif twin.is_kept and both:
            changes += (replace(each, place=Place(twin.other)) for each in both)
        else:
            removed[twin.other] = None
    return replace(own, set=put, remove=tuple(removed), changes=tuple(changes))


async def compose_new(
    obj: DynamoModel,
    effects: Effects,
    item: Item,
    values: Values,
    *,
    pending: Block | None = None,
    absent: frozenset[ItemKey] = frozenset(),
    lenient: bool = False,
) -> Write:
    """The write of a new item, over none that has not expired."""
    await knowledge.ask(registry.layout_of(type(obj)))
    form = form_of(type(obj))
    check_trash_key(form.model, values)
    transition = Transition(Subject(obj), None, item, form.known, pending, absent, lenient)
    put = Put(item, free(type(obj)))
    return Write(transition, form.alias, (put,), Conditions(), await _along(effects, transition), values=values)


async def compose_removal(
    obj: DynamoModel,
    effects: Effects,
    terms: Terms = NO_TERMS,
    *,
    pending: Block | None = None,
    absent: frozenset[ItemKey] = frozenset(),
    because: frozenset[str] = frozenset(),
) -> Write:
    """The write that removes a stored object's item; ``because`` are the stored attributes for which it is removed."""
    refuse_unsettled(obj, await knowledge.ask(registry.layout_of(type(obj))), terms)
    form, before = form_of(type(obj)), obj._stored
    terms = terms.by(form.twins) if form.twins else terms
    transition = Transition(Subject(obj), before, None, form.known, pending, absent)
    along = await _along(effects, transition)
    as_read = {name for each in along for name in each.as_read}.union(version_mark(type(obj)), because)
    conditions = Conditions(terms, as_read=_as_stored(before, as_read))
    delete = Delete(key_of(before), conditions.whole())
    return Write(transition, form.alias, (delete,), conditions, along)


async def compose_move(
    obj: DynamoModel,
    effects: Effects,
    target: Any,
    values: Values,
    *,
    pending: Block | None,
    absent: frozenset[ItemKey],
) -> Write:
    """The write that stores an object under another key, as its ``target``; the old item has to be as it was read."""
    form, before, item = form_of(type(obj)), obj._stored, target._stored
    check_trash_key(form.model, values)
    transition = Transition(Subject(obj), before, item, form.known, pending, absent)
    depends_on = {*before, *form.known, *form.upgraded_of(before)}.difference(_KEY)
    conditions = Conditions(as_read=_as_stored(before, depends_on))
    put, delete = Put(item, free(type(obj))), Delete(key_of(before), conditions.whole())
    along = await _along(effects, transition)
    return Write(transition, form.alias, (put, delete), conditions, along, target=Subject(target), values=values)


def refuse_unsettled(obj: DynamoModel, missing: Missing, terms: Terms) -> None:
    """Raise ``KeyNotFilled`` for terms on what an upgrade may change: DynamoDB compares what is stored still."""
    layout = registry.layout_of(type(obj))
    if layout.schema is None or not (terms and missing.attributes):
        return
    named = {*names_in(terms.demanded), *names_in(terms.queried)}
    for name in sorted(missing.attributes):
        if layout.attributes[name].stored in named:
            raise KeyNotFilled(
                f"{layout.label}: the condition of this write asks for {name}, which upgrades change when an item is "
                "read, and the stored item may be of an earlier schema version. Nothing was written. Let a migration "
                "upgrade all items (UpgradeItems), and end it by migrate --finish."
            )


async def _along(effects: Effects, transition: Transition) -> tuple[Along, ...]:
    found: list[Along] = []
    for effect in effects:
        if effect.concerns(transition):
            along = await effect.follow(transition)
            found += [] if along is None else [along]
    return tuple(found)


def _as_read(
    form: ItemForm, transition: Transition, along: tuple[Along, ...], held: Collection[str]
) -> tuple[Stored, ...]:
    """What an update depends on, as it was read; ``held`` besides."""
    stored = form.as_read(transition.written, transition.after).union(held)
    for each in along:
        stored |= each.as_read
    return _as_stored(transition.before or {}, stored)


def _as_stored(before: Item, stored: Iterable[str]) -> tuple[Stored, ...]:
    """The conditions that attributes are as they were read, the version first, for whoever reads the request."""
    return tuple(as_stored(before, name) for name in sorted(stored, key=lambda name: (name != names.VERSION, name)))
