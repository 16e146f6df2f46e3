"""Unique values: the claims that a write takes and releases.

A claim is a separate item that contains its owner's key. The transaction of the owner writes it, so two objects can
never have the same values. DynamoDB decides which of two concurrent writes fails.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial

from dynamo_single.exceptions import UniqueViolation
from dynamo_single.orm.conditions.terms import And, Or, Stored
from dynamo_single.orm.effects.base import Effect, SideWrites, Subject, Transition, liveness_names
from dynamo_single.orm.items.expiry import free_key_condition
from dynamo_single.orm.items.unique_rules import Rule, rules_of
from dynamo_single.orm.reading import single
from dynamo_single.orm.reading.single import has_expired, owner_of
from dynamo_single.orm.requests.actions import ITEM_MISSING, Action, Delete, Item, ItemKey, Put, key_of
from dynamo_single.orm.schema import bindings, registry
from dynamo_single.orm.schema.attributes import Attribute
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.table import names
from dynamo_single.table.request import NewItem, StoredValue
from dynamo_single.table.table import get_table


def unique_attributes(model: type[DynamoModel]) -> dict[str, Attribute]:
    """Return the attributes that determine claims: attributes that are unique, alone or together, or in a condition."""
    stored = {name for rule in rules_of(model) for name in rule.stored_names}
    return {name: each for name, each in registry.attributes_of(model).items() if each.attr_name in stored}


class Claims(Effect):
    """The claims of one model's objects."""

    def __init__(self, model: type[DynamoModel]) -> None:
        self.model = model
        stored = (rule.stored_names for rule in rules_of(model))
        self.watches = frozenset({names.EXPIRES_AT, names.DELETED_AT}.union(*stored))

    async def side_writes(self, transition: Transition) -> SideWrites:
        """Return the claims to take and to release; it reads only claims of a rule that is not complete yet."""
        before, after = transition.before, transition.after
        as_read: set[str] = set()
        if before is not None and after is None:
            # The claim that another process takes by a rename or a restore must not remain.
            as_read = {stored for rule in written_rules(self.model) for stored in rule.stored_names}
            as_read |= liveness_names(self.model, before)
        elif before is not None and after is not None:
            as_read = claim_dependencies(self.model, before, after, transition.written_names)
        found = tuple(claim_actions(self.model, before, after))
        if before is not None and any(isinstance(each, Delete) for each in found):
            found = await self._releasable(before, found)
        return SideWrites(found, frozenset(as_read), explain=partial(_refusal_error, transition))

    async def _releasable(self, before: Item, found: tuple[Action, ...]) -> tuple[Action, ...]:
        """Return the actions without releases of another object's claims: a GetItem for each claim of an open rule.

        Until a rule is complete two objects may have one value, and only one of them the claim. The other one is
        changed or deleted without it.
        """
        layout = registry.layout_of(self.model)
        missing = bindings.binding_of(self.model).missing.unclaimed
        if not missing:
            return found
        old = claims_of(self.model, before)
        kept: list[Action] = []
        for each in found:
            if isinstance(each, Delete) and each.key in old and old[each.key].fingerprint in missing:
                claim = await single.stored_item(get_table(layout.alias), each.key)
                if claim_owner(claim) not in {None, key_of(before)}:
                    continue
            kept.append(each)
        return tuple(kept)


def _refusal_error(transition: Transition, action: Action, found: Item | None) -> Exception | None:
    return None if transition.after is None else unique_error(transition.subject, transition.after, action)


def unique_error(subject: Subject, item: Item, action: Action) -> UniqueViolation | None:
    """Return the error for a claim that another object has; ``None`` if the action takes no claim of the item."""
    label = subject.model._meta.label
    for key, rule in claims_of(subject.model, item).items():
        if key == action.key:
            values = rule.claimed(item)[key]
            constraint = f" ({rule.name})" if rule.name else ""
            return UniqueViolation(
                f"Another {label} has {rule.worded(values)}{constraint}. Nothing was written.",
                label=label,
                field=", ".join(rule.fields),
                value=values[0] if len(values) == 1 else values,
                fields=rule.fields,
            )
    return None


def written_rules(model: type[DynamoModel]) -> tuple[Rule, ...]:
    """Return the rules of a model whose claims the app writes: all except rules that a migration has only announced."""
    rollout = bindings.rollout_of(model)
    if rollout is None or not rollout.unwritten:
        return rules_of(model)
    return tuple(rule for rule in rules_of(model) if rule.fingerprint not in rollout.unwritten)


def claims_of(model: type[DynamoModel], item: Item | None) -> dict[ItemKey, Rule]:
    """Return the keys of an item's claims with their rules; empty for an item in the trash or ``None``."""
    return {} if item is None else {key: rule for rule in written_rules(model) for key in rule.claimed(item)}


def claim_actions(model: type[DynamoModel], before: Item | None, after: Item | None) -> list[Action]:
    """Return the actions that replace the claims of ``before`` with the claims of ``after``.

    ``None`` stands for a missing item.

    The actions release only claims of ``before``. The write must therefore be conditional on the values as read, or a
    claim that another process has created would remain. If the keys of the items differ, the claims get a new owner.
    """
    old, new = claims_of(model, before), claims_of(model, after)
    former = None if before is None or after is None or key_of(before) == key_of(after) else key_of(before)
    renewed = former is not None or _expiry(before) != _expiry(after)
    # A claim expires with its owner. Another object may own it now, and must keep it.
    to_free = before is not None and not has_expired(before)
    found: list[Action] = []
    for rule in written_rules(model):
        if after is not None:
            taken = (key for key in _claims_by_rule(new, rule) if key not in old or renewed)
            found += (put_claim(model, key, after, former if key in old else None) for key in taken)
        if before is not None and to_free:
            found += (delete_claim(key, key_of(before)) for key in _claims_by_rule(old, rule) if key not in new)
    return found


def _claims_by_rule(claims: Mapping[ItemKey, Rule], rule: Rule) -> list[ItemKey]:
    return [key for key, each in claims.items() if each is rule]


def _expiry(item: Item | None) -> StoredValue | None:
    return (item or {}).get(names.EXPIRES_AT)


def claim_dependencies(model: type[DynamoModel], before: Item, after: Item, written: Collection[str]) -> set[str]:
    """Return the physical names that must be unchanged since the read for the claims to be correct.

    If an update writes one attribute of a rule, it depends on all of them: otherwise two processes that each change
    another attribute would leave a wrong claim. The trash and the expiry time affect all claims, including
    claims that another process has created since the read.
    """
    rules = rules_of(model)
    if not rules:
        return set()
    old, new = claims_of(model, before), claims_of(model, after)
    expires = {names.EXPIRES_AT} if registry.layout_of(model).expires else set()
    decides_about_all = not {names.DELETED_AT, *expires}.isdisjoint(written)
    found: set[str] = set()
    for rule in rules:
        if (
            decides_about_all
            or not rule.stored_names.isdisjoint(written)
            or _claims_by_rule(old, rule) != _claims_by_rule(new, rule)
        ):
            found |= rule.stored_names | expires
    return found


def put_claim(model: type[DynamoModel], key: ItemKey, owner: Item, former: ItemKey | None = None) -> Put:
    """Take a claim that is free or belongs to this owner or to the ``former`` key; it expires with its owner."""
    holders = (key_of(owner),) if former is None else (key_of(owner), former)
    return Put(claim_item(key, owner), Or((free_key_condition(model), *map(_is_owner, holders))))


def claim_item(key: ItemKey, owner: Item) -> NewItem:
    """Return the claim item of an owner under a key."""
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
    """Release a claim if it belongs to the owner."""
    return Delete(key, Or((ITEM_MISSING, _is_owner(owner))))


def _is_owner(owner: ItemKey) -> And:
    return And(
        (
            Stored(names.CLAIM_OWNER_PARTITION, "=", ({"S": owner[0]},)),
            Stored(names.CLAIM_OWNER_SORT, "=", ({"S": owner[1]},)),
        )
    )


def claim_owner(claim: Item | None) -> ItemKey | None:
    """Return the key of the owner of a claim; ``None`` if it is missing or has expired."""
    return None if claim is None or has_expired(claim) else owner_of(claim)
