"""Copy attributes of other objects when a reference changes, and check their sources with the write.

``copy_updates`` updates the copies when a source changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from typing import cast

from dynamo_single.exceptions import InvalidValue, MissingReference, SourceChanged
from dynamo_single.orm.conditions.terms import Stored
from dynamo_single.orm.effects.base import Effect, Filling, SideWrites, Subject, Transition
from dynamo_single.orm.items import decode
from dynamo_single.orm.items.encode import Values, is_same, key_of_pk
from dynamo_single.orm.reading import single
from dynamo_single.orm.requests.actions import Action, Check, Item, ItemKey
from dynamo_single.orm.requests.atomic_block import Block
from dynamo_single.orm.schema import registry, secrecy
from dynamo_single.orm.schema.attributes import CopiedAttribute
from dynamo_single.orm.schema.attributes.base import Attribute
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.table.table import get_table

#: The sources of several objects, read together, by key; ``None`` for a missing source.
_read_sources: ContextVar[Mapping[ItemKey, Item | None] | None] = ContextVar("read_sources", default=None)


async def read_sources(
    model: type[DynamoModel], objects: Iterable[DynamoModel], pending: Block | None
) -> dict[ItemKey, Item | None]:
    """Read the sources of new objects' copies, strongly consistent: a BatchGetItem for each hundred, or one GetItem.

    It does not read sources that a block writes. The write reports invalid references.
    """
    keys: dict[ItemKey, None] = {}
    for obj in objects:
        for copy in registry.copied_of(model):
            with suppress(InvalidValue):
                field = copy.reference_field
                pk = field.attribute.prepare(obj.__dict__.get(field.attname))
                key = None if pk is None else key_of_pk(copy.source_model, pk)
                if key is not None and not (pending is not None and pending.writes_to(key)):
                    keys[key] = None
    found = await single.stored_items(get_table(model._options.alias), [*keys]) if keys else {}
    return {key: found.get(key) for key in keys}


@contextmanager
def known_sources(found: Mapping[ItemKey, Item | None]) -> Iterator[None]:
    """Let new objects in the block copy from sources that the app has just read."""
    token = _read_sources.set(found)
    try:
        yield
    finally:
        _read_sources.reset(token)


class Copies(Effect):
    """Sets and checks the copies in one model's objects."""

    def __init__(self, model: type[DynamoModel]) -> None:
        self.model = model
        self.pairs = tuple(
            frozenset({copy.attr_name, copy.reference_field.attribute.attr_name}) for copy in registry.copied_of(model)
        )
        self.watches = frozenset[str]().union(*self.pairs)

    async def values_from_others(self, filling: Filling) -> Values:
        """Return the copies for changed references: one GetItem for each source; other copies stay as stored.

        Raises ``MissingReference`` if a source is not stored; a ``lenient`` write leaves its copies empty.
        """
        values, before = filling.values, filling.before
        filled: Values = {}
        found: dict[ItemKey, Item | None] = {}
        for copy in registry.copied_of(self.model):
            field = copy.reference_field
            if filling.only is not None and field.attname not in filling.only:
                continue
            try:
                pk = field.attribute.prepare(values.get(field.attname))
            except InvalidValue:
                break  # the write reports invalid values of all attributes
            if before is not None and is_same(field.attribute, pk, stored_value(field.attribute, before)):
                # A new object has no copies yet.
                filled[copy.name] = stored_value(copy, before)
                continue
            filled[copy.name] = None
            if pk is not None:
                key = key_of_pk(copy.source_model, pk)
                if key not in found:
                    found[key] = await _source_item(self.model, key, filling.pending)
                filled[copy.name] = _copied(filling.subject, copy, pk, found[key], lenient=filling.lenient)
        return filled

    async def side_writes(self, transition: Transition) -> SideWrites:
        """Return checks that the sources still have the copied values; it does not read."""
        found = tuple(source_checks(self.model, transition.before, transition.after, transition.pending))
        as_read: set[str] = set()
        if transition.before is not None and transition.after is not None:
            # If only the reference or the copy changes, the other one must be unchanged.
            as_read = {name for pair in self.pairs if pair & transition.written_names for name in pair}
        return SideWrites(found, frozenset(as_read), explain=partial(_refusal_error, transition.subject, found))


def _refusal_error(
    subject: Subject, checked: tuple[Action, ...], action: Action, found: Item | None
) -> Exception | None:
    if any(action.key == each.key for each in checked):
        return SourceChanged(
            f"{subject.name}: another process changed the object that it copies from. Nothing was written."
        )
    return None


def _copied(subject: Subject, copy: CopiedAttribute, pk: object, item: Item | None, *, lenient: bool) -> object:
    if item is None or single.has_expired(item):
        if lenient:
            return None
        raise MissingReference(
            f"{subject.model._meta.label}.{copy.name} is copied from {secrecy.named(copy.source_model, pk)}, "
            "which is not stored. Nothing was written. Create it first, or refer to another object.",
            key=key_of_pk(copy.source_model, pk),
        )
    decode.check_type(copy.source_model, cast("decode.Item", item))
    return stored_value(copy.source, item)


async def _source_item(model: type[DynamoModel], key: ItemKey, pending: Block | None) -> Item | None:
    if pending is not None and pending.writes_to(key):
        return pending.item_after(key)
    known = _read_sources.get()
    if known is not None and key in known:
        return known[key]
    # A block may change counters of the source, but not the copied values.
    return await single.stored_item(get_table(model._options.alias), key)


def source_checks(
    model: type[DynamoModel], before: Item | None, after: Item | None, pending: Block | None = None
) -> list[Action]:
    """Return a check for each source whose value is new in ``after``, that it still has this value."""
    found: list[Action] = []
    for copy in registry.copied_of(model) if after is not None else ():
        involved = (copy.reference_field.attribute.attr_name, copy.attr_name)
        reference = (after or {}).get(involved[0])
        unchanged = before is not None and all(before.get(name) == (after or {}).get(name) for name in involved)
        if reference is None or unchanged or after is None:
            continue
        key = key_of_pk(copy.source_model, copy.reference_field.attribute.from_attribute_value(dict(reference)))
        if pending is None or not pending.writes_to(key):
            found.append(Check(key, _has_copied_value(copy, after)))
    return found


def _has_copied_value(copy: CopiedAttribute, holder: Item) -> Stored:
    """Return the condition that a source has the value of a holder's item."""
    value = holder.get(copy.attr_name)
    stored = copy.source.attr_name
    return Stored(stored, "missing") if value is None else Stored(stored, "=", (value,))


def stored_value(attribute: Attribute, item: Item) -> object:
    """Return the value of an attribute in an item; ``None`` if it is missing."""
    stored = item.get(attribute.attr_name)
    return None if stored is None else attribute.from_attribute_value(dict(stored))
