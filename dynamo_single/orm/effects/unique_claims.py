"""Unique values: the claim items that hold them, and which of them a write takes and releases.

A claim is an item of its own that carries its owner's key. It is written in the same transaction as the owner, so that
two objects can never hold the same values; which of two racing writers loses is decided by DynamoDB.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial

from dynamo_single.exceptions import UniqueViolation
from dynamo_single.orm.conditions.terms import And, Or, Stored
from dynamo_single.orm.effects.base import Along, Effect, Subject, Transition, standing
from dynamo_single.orm.items.expiry import free
from dynamo_single.orm.items.unique_rules import Rule, lookups_of, rules_of
from dynamo_single.orm.reading import single
from dynamo_single.orm.reading.single import has_expired, owner_of
from dynamo_single.orm.requests.actions import ITEM_MISSING, Action, Delete, Item, ItemKey, Put, key_of
from dynamo_single.orm.rollout import knowledge
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.attributes import Attribute
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.table import names
from dynamo_single.table.request import NewItem, StoredValue
from dynamo_single.table.table import get_table


def unique_attributes(model: type[DynamoModel]) -> dict[str, Attribute]:
    """The attributes that decide about claims: what is unique, alone or together, and what a condition looks at."""
    stored = {name for rule in rules_of(model) for name in rule.stored_names}
    return {name: each for name, each in registry.attributes_of(model).items() if each.attr_name in stored}


class Claims(Effect):
    """The claims of one model's objects."""

    def __init__(self, model: type[DynamoModel]) -> None:
        self.model = model
        stored = (rule.stored_names for rule in rules_of(model))
        self.watches = frozenset({names.EXPIRES_AT, names.DELETED_AT}.union(*stored))

    async def follow(self, transition: Transition) -> Along:
        """Claims to take and to release; without reading, but for claims of a rule that not every item has yet."""
        before, after = transition.before, transition.after
        as_read: set[str] = set()
        if before is not None and after is None:
            # Another writer's rename, or restore, must not leave its own claim behind.
            as_read = {stored for rule in rules_of(self.model) for stored in rule.stored_names}
            as_read |= standing(self.model, before)
        elif before is not None and after is not None:
            as_read = depends_on(self.model, before, after, transition.written)
        found = tuple(actions(self.model, before, after))
        if before is not None and any(isinstance(each, Delete) for each in found):
            found = await self._releasable(before, found)
        return Along(found, frozenset(as_read), explain=partial(_explained, transition))

    async def _releasable(self, before: Item, found: tuple[Action, ...]) -> tuple[Action, ...]:
        """The actions without the release of what another object holds: a GetItem for each claim of an open rule.

        Until a rule is filled two objects may have one value, and one of them the claim. The other one is corrected, or
        deleted, without it.
        """
        layout = registry.layout_of(self.model)
        missing = await knowledge.ask_rules(layout, lookups_of(self.model))
        if not missing:
            return found
        old = claims_of(self.model, before)
        kept: list[Action] = []
        for each in found:
            if isinstance(each, Delete) and each.key in old and old[each.key].fingerprint in missing:
                claim = await single.stored_item(get_table(layout.alias), each.key)
                if holder_by(claim) not in {None, key_of(before)}:
                    continue
            kept.append(each)
        return tuple(kept)


def _explained(transition: Transition, action: Action, found: Item | None) -> Exception | None:
    return None if transition.after is None else violation(transition.subject, transition.after, action)


def violation(subject: Subject, item: Item, action: Action) -> UniqueViolation | None:
    """The error for a claim of an item that another object holds; ``None`` if the action takes no claim of it."""
    label = subject.model._meta.label
    for key, rule in claims_of(subject.model, item).items():
        if key == action.key:
            values = rule.claimed(item)[key]
            constraint = f" ({rule.name})" if rule.name else ""
            return UniqueViolation(
                f"Another {label} has {rule.worded(values)}{constraint}; nothing was written.",
                label=label,
                field=", ".join(rule.fields),
                value=values[0] if len(values) == 1 else values,
                fields=rule.fields,
            )
    return None


def claims_of(model: type[DynamoModel], item: Item | None) -> dict[ItemKey, Rule]:
    """The claims that a stored item owns, and the rule of each: none for one that is deleted, or not there."""
    return {} if item is None else {key: rule for rule in rules_of(model) for key in rule.claimed(item)}


def actions(model: type[DynamoModel], before: Item | None, after: Item | None) -> list[Action]:
    """The claims to take and to release when one item becomes the other; ``None`` is an item that is not there.

    Those to release are the ones that ``before`` knows of: another writer's must not be left behind, so the write
    itself has to be held to what was read. Where the two have different keys, the claims change hands.
    """
    old, new = claims_of(model, before), claims_of(model, after)
    former = None if before is None or after is None or key_of(before) == key_of(after) else key_of(before)
    renewed = former is not None or _expiry(before) != _expiry(after)
    # With its owner a claim has expired too, and may be another's by now: nothing is left to be released.
    to_free = before is not None and not has_expired(before)
    found: list[Action] = []
    for rule in rules_of(model):
        if after is not None:
            taken = (key for key in _of(new, rule) if key not in old or renewed)
            found += (put_claim(model, key, after, former if key in old else None) for key in taken)
        if before is not None and to_free:
            found += (delete_claim(key, key_of(before)) for key in _of(old, rule) if key not in new)
    return found


def _of(claims: Mapping[ItemKey, Rule], rule: Rule) -> list[ItemKey]:
    return [key for key, each in claims.items() if each is rule]


def _expiry(item: Item | None) -> StoredValue | None:
    return (item or {}).get(names.EXPIRES_AT)


def depends_on(model: type[DynamoModel], before: Item, after: Item, written: Collection[str]) -> set[str]:
    """The physical names that have to be as they were read for the claims to be right after an update.

    All that decides about a claim, if any of it is written: two writers who each change another part would leave claims
    that fit neither. The trash and the time of expiry decide about every claim, also one that the object knows nothing
    of because another writer took it since.
    """
    rules = rules_of(model)
    if not rules:
        return set()
    old, new = claims_of(model, before), claims_of(model, after)
    expires = {names.EXPIRES_AT} if registry.layout_of(model).expires else set()
    decides_about_all = not {names.DELETED_AT, *expires}.isdisjoint(written)
    found: set[str] = set()
    for rule in rules:
        if decides_about_all or not rule.stored_names.isdisjoint(written) or _of(old, rule) != _of(new, rule):
            found |= rule.stored_names | expires
    return found


def put_claim(model: type[DynamoModel], key: ItemKey, owner: Item, former: ItemKey | None = None) -> Put:
    """Take what nobody holds, or what this owner holds already, or the ``former`` one; it expires with its owner."""
    holders = (key_of(owner),) if former is None else (key_of(owner), former)
    return Put(claim_item(key, owner), Or((free(model), *map(_held_by, holders))))


def claim_item(key: ItemKey, owner: Item) -> NewItem:
    """The claim that an owner has to hold under a key."""
    partition, sort = key_of(owner)
    item = {
        names.PARTITION_KEY: {"S": key[0]},
        names.SORT_KEY: {"S": key[1]},
        names.ITEM_TYPE: {"S": names.CLAIM_ITEM_TYPE},
        names.CLAIM_OWNER_PARTITION: {"S": partition},
        names.CLAIM_OWNER_SORT: {"S": sort},
    }
    if names.EXPIRES_AT in owner:
        item[names.EXPIRES_AT] = dict(owner[names.EXPIRES_AT])
    return item


def delete_claim(key: ItemKey, owner: ItemKey) -> Delete:
    """Release a claim, if it is this owner's."""
    return Delete(key, Or((ITEM_MISSING, _held_by(owner))))


def _held_by(owner: ItemKey) -> And:
    return And(
        (
            Stored(names.CLAIM_OWNER_PARTITION, "=", ({"S": owner[0]},)),
            Stored(names.CLAIM_OWNER_SORT, "=", ({"S": owner[1]},)),
        )
    )


def holder_by(claim: Item | None) -> ItemKey | None:
    """The key of the item that holds a claim as it was read; ``None`` if nobody does by now."""
    return None if claim is None or has_expired(claim) else owner_of(claim)
