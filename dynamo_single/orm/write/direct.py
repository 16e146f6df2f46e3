"""Write one object without composing a write: one pass over its values, and one request with a cached form.

Each function returns ``False`` before the request if an effect takes part or a value is unusual. The caller then
composes the write, which raises the errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from dynamo_single.exceptions import BeginAgain, ConditionFailed
from dynamo_single.orm.conditions.terms import Condition, join
from dynamo_single.orm.effects.all_effects import effects_of
from dynamo_single.orm.effects.base import Effect, Effects, Subject, WriteConditions
from dynamo_single.orm.effects.compose import Draft, NewObject, compose, compose_new
from dynamo_single.orm.effects.derived import Version
from dynamo_single.orm.effects.send import explained, undo_of
from dynamo_single.orm.effects.write import Write, exists_error, stale_error
from dynamo_single.orm.items import version
from dynamo_single.orm.items.encode import Values, check_trash_key, fields_setting_themselves, may_block, set_automatic
from dynamo_single.orm.items.encodings import Encodings
from dynamo_single.orm.items.expiry import free_key_condition
from dynamo_single.orm.items.form import ItemForm, form_of
from dynamo_single.orm.items.readers import values_reader
from dynamo_single.orm.items.stored import NAME as STORED
from dynamo_single.orm.items.writer import ItemWriter, asymmetrical, item_writer
from dynamo_single.orm.requests.actions import ITEM_EXISTS, ITEM_MISSING, Action, Item, Put, Update, key_of
from dynamo_single.orm.requests.atomic_block import Block, Entry, Explain
from dynamo_single.orm.requests.compiler import compile_action
from dynamo_single.orm.requests.updates import as_stored
from dynamo_single.orm.rollout import knowledge
from dynamo_single.orm.schema.bindings import ModelBinding, fact
from dynamo_single.table import names
from dynamo_single.table.lease import Lease
from dynamo_single.table.request import MAX_ITEM_SIZE, Request
from dynamo_single.table.table import Table, get_table

_KEY: Final = frozenset({names.PARTITION_KEY, names.SORT_KEY})
_DUE: Final = names.COPIES_DUE
#: The number of cached forms of updates for each model.
MAX_SHAPES: Final = 256


class DirectWrites:
    """How to write the objects of one binding, each by one request.

    - ``watched`` contains the physical names that effects depend on. If ``is_alone``, the model has no effects.
    - ``careful`` contains the physical names that are written by their difference, or under conditions of their own.
    - ``read`` reads all values of an item, ``compared`` those that a write compares, ``needed`` also the documents that
      values are extracted from: all other documents stay as they are stored.
    - ``kept`` contains the attributes that a save must not change.
    - ``asymmetrical`` contains the attributes whose stored value does not tell whether they changed.
    - ``version_name`` is the attribute that counts the writes, or ``""``.
    """

    __slots__ = (
        "asymmetrical",
        "binding",
        "careful",
        "compared",
        "form",
        "is_alone",
        "kept",
        "needed",
        "new",
        "read",
        "sets_itself",
        "shapes",
        "version_name",
        "watched",
        "writer",
    )

    def __init__(self, binding: ModelBinding, writer: ItemWriter, effects: Effects) -> None:
        form = form_of(binding)
        pairs = frozenset[str]().union(*(key.pair for key in form.keys)) if form.extracted else frozenset[str]()
        self.binding, self.writer, self.form = binding, writer, form
        self.read = values_reader(binding)
        self.compared = values_reader(binding, form.compared)
        self.needed = values_reader(binding, form.compared.union(each.place.name for each in form.extracted))
        self.is_alone = not effects
        self.watched = frozenset[str]().union(*(effect.watches for effect in effects))
        self.careful = form.documents.union(pairs, (each.copy for each in form.extracted))
        self.kept = form.fixed.union(form.immutable, form.identity)
        self.asymmetrical = frozenset(asymmetrical(form.attributes))
        counting = version.version_attribute(binding.model)
        self.version_name = "" if counting is None else counting.name
        self.shapes: dict[Any, UpdateShape] = {}
        self.new: dict[str, Any] | None = None
        self.sets_itself = bool(fields_setting_themselves(binding.model))

    def following(self, obj: Any, before: Item) -> Values:
        """Return the automatic times and the version to set in every write of a stored object."""
        values = self.form.automatic_values(obj) if self.form.automatic else {}
        return {**values, **version.next_values(self.binding.model, before)} if self.version_name else values

    def put_in(self, item: dict[str, Any], values: Values) -> bool:
        """Put values into an item that has others in their places; ``False`` if keys depend on them."""
        stored, writer = self.form.stored, self.writer
        if not writer.in_keys.isdisjoint(values) or not all(stored[name] in item for name in values):
            return False
        for name, value in values.items():
            item[stored[name]] = writer.parts[name](value)[1]
        return True

    def creation(self, item: Item, size: int) -> Request:
        """Return the request that creates an item."""
        if self.new is not None:
            return Request("PutItem", {"Item": item, **self.new}, self.binding.lease)
        # If items expire, the condition contains the current time.
        found = compile_action(Put(item, free_key_condition(self.binding.model), size))
        if self.binding.layout.expires is None:
            self.new = {name: value for name, value in found.params.items() if name != "Item"}
        return replace(found, lease=self.binding.lease)

    def earlier(self, write: Write, error: ConditionFailed, values: Values) -> tuple[dict[str, Any], Values]:
        """Return the item and the values that an earlier attempt has written; raise the error if there was none."""
        stored = dict(explained(write, error))
        held = self.read(stored)
        return stored, {name: held[name] for name in values}

    def shape(self, put: Item, removed: tuple[str, ...], as_read: Sequence[tuple[str, bool]]) -> UpdateShape:
        """Return the form of an update that writes these names if others are unchanged since the read."""
        key = (*put, None, *removed, None, *as_read)
        found = self.shapes.get(key)
        if found is None:
            if len(self.shapes) >= MAX_SHAPES:
                self.shapes.clear()
            before: Item = {name: {_READ: name} for name, is_there in as_read if is_there}
            conditions = WriteConditions(as_read=tuple(as_stored(before, name) for name, _ in as_read))
            update = Update(("", ""), {}, removed, condition=conditions.request_condition())
            found = self.shapes[key] = UpdateShape.of(put, update)
        return found


#: The types of placeholders in a cached update: a value to write, and a value that was read.
_PUT: Final = "put"
_READ: Final = "read"


class UpdateShape(Struct, frozen=True, eq=False):
    """The parameters of an update that do not depend on its values.

    ``values`` are the placeholders of values, each with a physical name and whether it has the value that was read.
    ``constants`` are the other placeholders with their values.
    """

    params: dict[str, Any]
    values: tuple[tuple[str, str, bool], ...]
    constants: dict[str, Any]

    @classmethod
    def of(cls, put: Iterable[str], update: Update) -> UpdateShape:
        """Compile an update that also sets the attributes ``put``, with names instead of values.

        A value of the type ``_READ`` in its condition stands for the value of this name that was read.
        """
        update = replace(update, set={name: {_PUT: name} for name in put})
        params = dict(compile_action(update).params)
        given: dict[str, dict[str, str]] = params.pop("ExpressionAttributeValues", {})
        del params["Key"]
        named = {mark: each for mark, each in given.items() if not each.keys().isdisjoint((_PUT, _READ))}
        values = tuple((mark, name, kind == _READ) for mark, each in named.items() for kind, name in each.items())
        return cls(params, values, {mark: each for mark, each in given.items() if mark not in named})

    def request(self, key: Item, put: Item, read: Item, lease: Lease | None = None) -> Request:
        """Return the request that sets the values of ``put``, conditional on the stored values of ``read``."""
        params = {"Key": key, **self.params}
        if self.values or self.constants:
            values = {mark: (read if is_read else put)[name] for mark, name, is_read in self.values}
            params["ExpressionAttributeValues"] = {**self.constants, **values} if self.constants else values
        return Request("UpdateItem", params, lease)


@fact
def direct_writes(binding: ModelBinding) -> DirectWrites | None:
    """Return how to write a model directly; ``None`` if an effect takes part in every write, or a migration is open."""
    writer = item_writer(binding)
    if writer is None or binding.rollout is not None:
        return None
    effects = tuple(each for each in effects_of(binding) if not isinstance(each, Version))
    return DirectWrites(binding, writer, effects) if all(map(_is_passive, effects)) else None


def _is_passive(effect: Effect) -> bool:
    """Return whether an effect concerns only writes of its watched attributes."""
    methods = (
        (getattr(type(effect), name), getattr(Effect, name))
        for name in ("concerns", "values_from_others", "values_of_each_write")
    )
    return not effect.always and all(own is base for own, base in methods)


async def saved_directly(binding: ModelBinding, obj: Any, encodings: Encodings, pending: Block | None = None) -> bool:
    """Write the changes since the read of an object with one UpdateItem; return ``False`` if the caller has to compose
    it.

    In a block, add the write to the block instead of sending it.
    """
    direct, values = direct_writes(binding), obj.__dict__
    before = obj._stored if type(values.get(STORED)) is bytes else values.get(STORED)
    if direct is None or type(before) is not dict or direct.form.files:
        return False
    form = direct.form
    try:
        prepared, after, size = direct.writer.whole(values, before, encodings)
        differing = {
            name: prepared[name]
            for name, stored in form.stored.items()
            if after.get(stored) != before.get(stored) or name in direct.asymmetrical
        }
        if not differing:
            return direct.is_alone
        changed = form.difference(differing, direct.compared(before), before, named=False, encodings=encodings)
        if not direct.kept.isdisjoint(changed):
            return False
        if changed and (form.automatic or direct.version_name):
            changed.update(following := direct.following(obj, before))
            if not direct.put_in(after, following):
                _, after, size = direct.writer.whole({**values, **following}, before, encodings)
    except Exception:
        return False  # the full pass raises any error again, with its message
    if not changed:
        return direct.is_alone
    return await _update(direct, obj, after, changed, size, pending=pending)


async def saved_by_name(
    binding: ModelBinding, obj: Any, only: frozenset[str], encodings: Encodings, pending: Block | None = None
) -> bool:
    """Write the attributes that ``only`` names, also unchanged ones: one UpdateItem; ``False`` if it must be composed.

    It does not write other attributes, even if they changed.
    """
    direct, held = direct_writes(binding), obj.__dict__
    before = obj._stored if type(held.get(STORED)) is bytes else held.get(STORED)
    if direct is None or type(before) is not dict or direct.form.files:
        return False
    form = direct.form
    try:
        read = direct.needed(before)
        values = {**read, **{name: held[name] for name in only}}
        prepared, after, size = direct.writer.whole(values, before, encodings)
        named = {*only, *(follower for follower, source in form.followers if source in only)}
        changed = form.difference(
            {name: prepared[name] for name in form.stored if name in named},
            read,
            before,
            named=True,
            encodings=encodings,
        )
        repeated = form.repeatable.intersection(only).difference(changed)
        if not direct.kept.isdisjoint(changed) or not (changed or repeated):
            return False
        changed.update(following := direct.following(obj, before))
        if not direct.put_in(after, following):
            _, after, size = direct.writer.whole({**values, **following}, before, encodings)
    except Exception:
        return False  # as above
    return await _update(direct, obj, after, changed, size, repeated, pending)


async def set_directly(binding: ModelBinding, obj: Any, values: Values) -> bool:
    """Set attributes of an unchanged object with one UpdateItem; ``False`` if the write has to be composed."""
    direct, held = direct_writes(binding), obj.__dict__
    before = obj._stored if type(held.get(STORED)) is bytes else held.get(STORED)
    if direct is None or type(before) is not dict:
        return False
    try:
        changed = {**values, **direct.following(obj, before)}
        _, after, size = direct.writer.whole({**direct.needed(before), **changed}, before)
    except Exception:
        return False  # as above
    return await _update(direct, obj, after, changed, size)


async def _update(
    direct: DirectWrites,
    obj: Any,
    after: dict[str, Any],
    changed: Values,
    size: int,
    repeated: frozenset[str] = frozenset(),
    pending: Block | None = None,
) -> bool:
    """Send an update and record it in the object; return ``False`` without sending if the caller has to compose it.

    ``after`` is the item of all values; attributes that are not among the ``changed`` ones stay as they were read.
    ``repeated`` contains the attributes to write although they are unchanged.
    """
    form, binding, before = direct.form, direct.binding, obj.__dict__[STORED]
    _leave_others(form, before, after, changed)
    put = {name: value for name, value in after.items() if before.get(name) != value}
    removed = tuple(name for name in before if name not in after and name in form.known)
    written = frozenset((*put, *removed))
    again = frozenset([form.stored[name] for name in repeated]) - written if repeated else repeated
    touched = written | again
    is_free = touched.isdisjoint(direct.watched) and touched.isdisjoint(direct.careful) and put.keys().isdisjoint(_KEY)
    if not (touched and is_free and size <= MAX_ITEM_SIZE // 2 and binding.is_current):
        return False
    as_read = sorted(form.as_read(written, after).union(again & form.depended_on).difference((form.version,)))
    put |= {name: after[name] for name in sorted(again) if name in after}
    removed += tuple(name for name in sorted(again) if name not in after)
    if direct.version_name:
        as_read.insert(0, form.version)
    request = _request(direct, put, removed, as_read, (before, after))
    if request is None:
        return False
    try:
        if pending is None:
            await get_table(form.alias).ask_patiently(request)
        else:
            update = Update(key_of(before), put, removed, condition=_condition(before, as_read))
            _join(pending, obj, update, (before, after), size, partial(_update_error, obj, before))
    except BeginAgain:
        knowledge.stale()
        return False
    except ConditionFailed as error:
        draft = Draft(binding, before, direct.compared(before), changed, repeated=repeated)
        write = await compose(obj, effects_of(binding), draft)
        if write is None:
            raise
        after, changed = direct.earlier(write, error, changed)
    # The marker of an incomplete earlier write stays.
    obj.__dict__[STORED] = {**after, _DUE: before[_DUE]} if _DUE in before else after
    obj.__dict__.update(changed)
    for effect in effects_of(binding) if repeated and not direct.is_alone else ():
        await effect.finish_earlier_write(obj, pending)
    return True


def _leave_others(form: ItemForm, before: Item, after: dict[str, Any], changed: Values) -> None:
    """Leave the attributes that are not among the ``changed`` ones as they were read."""
    for name, stored in form.stored.items():
        if name not in changed:
            if stored in before:
                after[stored] = before[stored]
            else:
                after.pop(stored, None)


def _condition(before: Item, as_read: Sequence[str]) -> Condition:
    # Most updates do not depend on a read attribute.
    return join((ITEM_EXISTS, *(as_stored(before, name) for name in as_read))) if as_read else ITEM_EXISTS


def _request(
    direct: DirectWrites, put: Item, removed: tuple[str, ...], as_read: Sequence[str], items: tuple[Item, Item]
) -> Request | None:
    """Return the request of an update; ``None`` if the app cannot build it, as for a long expression."""
    before, after = items
    try:
        shape = direct.shape(put, removed, [(name, name in before) for name in as_read])
        key = {names.PARTITION_KEY: before[names.PARTITION_KEY], names.SORT_KEY: before[names.SORT_KEY]}
        return shape.request(key, after, before, direct.binding.lease)
    except Exception:
        return None


def _join(block: Block, obj: Any, action: Action, items: tuple[Item, ...], size: int, explain: Explain) -> None:
    """Add a write to a block; ``items`` are the item before, if there was one, and after, which has ``size`` bytes."""
    after, alias = items[-1], type(obj)._options.alias
    block.add(alias, Entry(Subject(obj).naming(), (action,), items, explain, undo_of(obj, after), (after, size)))


def _update_error(obj: Any, before: Item, action: Action, found: Item | None) -> Exception:
    return stale_error(Subject(obj), found, before)


def _creation_error(obj: Any, action: Action, found: Item | None) -> Exception:
    return exists_error(Subject(obj), found)


def plain_object(direct: DirectWrites, obj: Any, *, raw: bool = False) -> NewObject | None:
    """Return an object to create with its item, made in one pass; ``None`` if ``new_object()`` has to make it.

    It sets automatic times and the version in the object, unless ``raw`` is true (fixtures).
    """
    held, sets = obj.__dict__, not raw and (direct.sets_itself or direct.version_name)
    if not direct.is_alone or held[STORED] is not None or (not raw and may_block(direct.binding.model)):
        return None
    as_it_was = {**held} if sets else held
    if sets and direct.sets_itself:
        set_automatic(obj, add=True)
    if sets and direct.version_name:
        held.update(version.next_values(direct.binding.model, None))
    try:
        values, item, size = direct.writer.whole(held)
    except Exception:
        # Raise any error again with a message about the object as the caller passed it.
        held.update(as_it_was)
        return None
    return NewObject(obj, direct.binding, item, values, size)


async def created_directly(table: Table, binding: ModelBinding, obj: Any, pending: Block | None = None) -> bool:
    """Write a new object: one PutItem; ``False`` if the write has to be composed.

    In a block, add the write to the block instead of sending it.
    """
    direct = direct_writes(binding)
    new = None if direct is None else plain_object(direct, obj)
    if direct is None or new is None:
        return False
    item, values = new.item, new.values
    if len(item[names.PARTITION_KEY]["S"]) + len(item[names.SORT_KEY]["S"]) > direct.writer.longest:
        check_trash_key(binding.model, values)
    if not binding.is_current:
        return False
    try:
        if pending is None:
            await table.ask_patiently(direct.creation(item, new.size))
        else:
            free = ITEM_MISSING if binding.layout.expires is None else free_key_condition(binding.model)
            put = Put(item, free, new.size)
            _join(pending, obj, put, (item,), new.size, partial(_creation_error, obj))
    except BeginAgain:
        knowledge.stale()
        return False
    except ConditionFailed as error:
        item, values = direct.earlier(await compose_new(new, effects_of(binding)), error, values)
    obj.__dict__[STORED] = item
    obj.__dict__.update(values)
    return True
