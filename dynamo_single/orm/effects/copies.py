"""Copies that objects hold of other objects' attributes: filled when a reference is set, and checked with the write.

What happens when a source changes is in ``copy_updates``.
"""

from __future__ import annotations

from functools import partial
from typing import cast

from dynamo_single.exceptions import InvalidValue, MissingReference, SourceChanged
from dynamo_single.orm.conditions.terms import Stored
from dynamo_single.orm.effects.base import Along, Effect, Subject, Transition
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


class Copies(Effect):
    """The copies that one model's objects hold."""

    def __init__(self, model: type[DynamoModel]) -> None:
        self.model = model
        self.pairs = tuple(
            frozenset({copy.attr_name, copy.reference_field.attribute.attr_name}) for copy in registry.copied_of(model)
        )
        self.watches = frozenset[str]().union(*self.pairs)

    async def fill(
        self,
        subject: Subject,
        values: Values,
        before: Item | None,
        only: frozenset[str] | None,
        pending: Block | None,
        *,
        lenient: bool,
    ) -> Values:
        """The copies of what is referred to again: one GetItem for each source; the others stay as they are stored.

        Raises ``MissingReference`` for a source that is not stored; ``lenient`` leaves its copies empty.
        """
        filled: Values = {}
        found: dict[ItemKey, Item | None] = {}
        for copy in registry.copied_of(self.model):
            field = copy.reference_field
            if only is not None and field.attname not in only:
                continue
            try:
                pk = field.attribute.prepare(values.get(field.attname))
            except InvalidValue:
                break  # the write says so for every attribute
            if before is not None and is_same(field.attribute, pk, value_in(field.attribute, before)):
                # An object that was not read has none yet.
                filled[copy.name] = value_in(copy, before)
                continue
            filled[copy.name] = None
            if pk is not None:
                key = key_of_pk(copy.source_model, pk)
                if key not in found:
                    found[key] = await _source_item(self.model, key, pending)
                filled[copy.name] = _copied(subject, copy, pk, found[key], lenient=lenient)
        return filled

    async def follow(self, transition: Transition) -> Along:
        """Checks that the sources still have what is copied; without reading."""
        found = tuple(checks(self.model, transition.before, transition.after, transition.pending))
        as_read: set[str] = set()
        if transition.before is not None and transition.after is not None:
            # If only one of them changes, the other one has to be what it goes with.
            as_read = {name for pair in self.pairs if pair & transition.written for name in pair}
        return Along(found, frozenset(as_read), explain=partial(_explained, transition.subject, found))


def _explained(subject: Subject, checked: tuple[Action, ...], action: Action, found: Item | None) -> Exception | None:
    if any(action.key == each.key for each in checked):
        return SourceChanged(f"{subject.name}: what it copies was changed by another writer; nothing was written.")
    return None


def _copied(subject: Subject, copy: CopiedAttribute, pk: object, item: Item | None, *, lenient: bool) -> object:
    if item is None or single.has_expired(item):
        if lenient:
            return None
        raise MissingReference(
            f"{subject.model._meta.label}.{copy.name} is copied from {secrecy.named(copy.source_model, pk)}, "
            "which is not stored; nothing was written. Create it first, or refer to another object.",
            key=key_of_pk(copy.source_model, pk),
        )
    decode.check_type(copy.source_model, cast("decode.Item", item))
    return value_in(copy.source, item)


async def _source_item(model: type[DynamoModel], key: ItemKey, pending: Block | None) -> Item | None:
    if pending is not None and pending.writes_to(key):
        return pending.item_after(key)
    # Whatever a block counts there, it does not change what is copied.
    return await single.stored_item(get_table(model._options.alias), key)


def checks(
    model: type[DynamoModel], before: Item | None, after: Item | None, pending: Block | None = None
) -> list[Action]:
    """That each source still has the value that one item has and the other one had not."""
    found: list[Action] = []
    for copy in registry.copied_of(model) if after is not None else ():
        involved = (copy.reference_field.attribute.attr_name, copy.attr_name)
        reference = (after or {}).get(involved[0])
        unchanged = before is not None and all(before.get(name) == (after or {}).get(name) for name in involved)
        if reference is None or unchanged or after is None:
            continue
        key = key_of_pk(copy.source_model, copy.reference_field.attribute.from_attribute_value(dict(reference)))
        if pending is None or not pending.writes_to(key):
            found.append(Check(key, _has(copy, after)))
    return found


def _has(copy: CopiedAttribute, holder: Item) -> Stored:
    """The condition on a source that it has the value which a holder's item has."""
    value = holder.get(copy.attr_name)
    stored = copy.source.attr_name
    return Stored(stored, "missing") if value is None else Stored(stored, "=", (value,))


def value_in(attribute: Attribute, item: Item) -> object:
    """The value of an attribute in an item, without a default for a missing one."""
    stored = item.get(attribute.attr_name)
    return None if stored is None else attribute.from_attribute_value(dict(stored))
