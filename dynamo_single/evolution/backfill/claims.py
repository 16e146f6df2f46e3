"""Add and remove claims: with a changed item, with a unique rule, and with an item that moves to another key.

A claim is written in one transaction with its owner, or with a check that the owner is unchanged. Two items therefore
never hold the same value, even with concurrent writers. An item that gets a new primary key or type moves in one
transaction with its claims.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from dynamo_single.evolution.backfill.rewrite import index_attributes, indexes_of, rewrite_actions, with_index_keys
from dynamo_single.evolution.backfill.work import Others, Task
from dynamo_single.evolution.snapshots import Snapshot
from dynamo_single.evolution.stored_attributes import UniqueRule
from dynamo_single.exceptions import InvalidValue
from dynamo_single.orm.conditions.terms import And, Stored
from dynamo_single.orm.effects.unique_claims import claim_item
from dynamo_single.orm.reading.single import has_expired, owner_of
from dynamo_single.orm.requests.actions import (
    ITEM_MISSING,
    Action,
    Check,
    Delete,
    Item,
    ItemKey,
    Put,
    as_read,
    key_of,
    type_condition,
)
from dynamo_single.orm.requests.compiler import item_key
from dynamo_single.table import names
from dynamo_single.table.request import NewItem

_OWNER = (names.CLAIM_OWNER_PARTITION, names.CLAIM_OWNER_SORT)


def claim_sources(snapshot: Snapshot, rules: Iterable[UniqueRule]) -> frozenset[str]:
    """Return the physical names of all attributes that the claims of some rules depend on; none without rules."""
    found = [snapshot.claim_rule(rule).stored_names for rule in rules]
    return frozenset({names.DELETED_AT, names.EXPIRES_AT}.union(*found) if found else ())


def required_claims(snapshot: Snapshot, rules: Iterable[UniqueRule], item: Item) -> set[ItemKey]:
    """Return the claims that an item must hold for some rules, none if it has expired; may raise ``InvalidValue``."""
    if has_expired(item):
        return set()
    return set().union(*(snapshot.claim_rule(rule).claimed(item) for rule in rules))


def claim_actions(
    old: Collection[ItemKey], new: Collection[ItemKey], owner: Item, others: Others, *, former: ItemKey | None = None
) -> list[Action]:
    """Return the actions that give an item its ``new`` claims and release its ``old`` ones.

    ``owner`` is the item after the change. ``others`` contains the stored claims. ``former`` is the item's previous key
    if it moves. Raises ``InvalidValue`` for a claim that another item holds.
    """
    owners = {key_of(owner), former or key_of(owner)}
    found: list[Action] = []
    for key in sorted(new):
        claim = others.get(key)
        wanted = claim_item(key, owner)
        if claim is None:
            found.append(Put(wanted, ITEM_MISSING))
        elif has_expired(claim) or owner_of(claim) in owners:
            if claim != wanted:
                found.append(Put(wanted, as_read(claim, (*_OWNER, names.EXPIRES_AT))))
        else:
            other = " / ".join(owner_of(claim))
            raise InvalidValue(f"{key[0]} is held by {other}: both have the value. Change one of them, or delete it.")
    for key in sorted(set(old) - set(new)):
        claim = others.get(key)
        if claim is None:
            # The claims are read after the item. If the item was deleted and restored in between, it holds the claim
            # again.
            found.append(Check(key, ITEM_MISSING))
        else:
            mine = owner_of(claim) in owners
            found.append((Delete if mine else Check)(key, as_read(claim, _OWNER)))
    return found


def take_claims(after: Snapshot, rules: Iterable[UniqueRule]) -> Task:
    """Take the claims of some rules for every live item. Two items with the same value are both reported."""
    chosen = tuple(rules)
    reads = claim_sources(after, chosen)

    def change(item: Item, others: Others) -> tuple[Action, ...]:
        return rewrite_actions(item, item, reads, claim_actions((), required_claims(after, chosen, item), item, others))

    return Task(type_condition(after.item_type), change, wanted=lambda item: required_claims(after, chosen, item))


def release_claims(before: Snapshot, after: Snapshot, rule: UniqueRule) -> Task:
    """Delete the claims of a rule of ``before`` that no item must hold by ``after``, or all if the rule is gone.

    This includes claims whose owner is gone or has another value. A claim stays if another rule of ``after`` over the
    same attributes requires it, for example if only ``canonical`` differs.
    """
    low, high, fits = before.claim_rule(rule).key_range()
    kept = tuple(each for each in after.unique if _names(after, each) == _names(before, rule))
    reads = {names.ITEM_TYPE, *claim_sources(after, kept)}
    claims = And(
        (
            type_condition(names.CLAIM_ITEM_TYPE),
            Stored(names.PARTITION_KEY, "between", ({"S": low}, {"S": high})),
        )
    )

    def wanted(item: Item) -> Iterable[ItemKey]:
        return (owner_of(item),) if kept and fits(key_of(item)) else ()

    def change(item: Item, others: Others) -> tuple[Action, ...]:
        key = key_of(item)
        if not fits(key):
            return ()
        release = Delete(key, as_read(item, _OWNER))
        if not kept:
            return (release,)
        owner_key = owner_of(item)
        owner = others.get(owner_key)
        if owner is None:
            return (release, Check(owner_key, ITEM_MISSING))
        if owner.get(names.ITEM_TYPE) == {"S": after.item_type} and key in required_claims(after, kept, owner):
            return ()
        return (release, Check(owner_key, as_read(owner, reads)))

    return Task(claims, change, wanted=wanted, of_claims=True)


def delete_unused_claims(after: Snapshot, rule: UniqueRule) -> Task:
    """Delete the claims of a rule that items no longer hold, because code without the rule did not release them.

    Run this task before claims are taken: unused claims would block free values.
    """
    return release_claims(after, after, rule)


def _names(snapshot: Snapshot, rule: UniqueRule) -> tuple[list[str], str]:
    return [snapshot.attributes[name].stored for name in rule.attributes], rule.name


def move_items(before: Snapshot, after: Snapshot) -> Task:
    """Move every item to the type, primary key and index keys of ``after``, and pass on its claims.

    The write of a moved item is conditional on all attributes that ``before`` and ``after`` know. The task reports a
    new key that belongs to another item.
    """
    known = {each.stored for snapshot in (before, after) for each in snapshot.attributes.values()}
    former = index_attributes(indexes_of(before))
    known |= former | index_attributes(indexes_of(after))

    def moved(item: Item) -> NewItem:
        values = after.values_of(item)
        key = item_key(after.primary_key(values, near=key_of(item)))
        typed = {**item, **key, names.ITEM_TYPE: {"S": after.item_type}}
        bare = {name: value for name, value in typed.items() if name not in former}
        return with_index_keys(after, indexes_of(after), bare)

    def change(item: Item, others: Others) -> tuple[Action, ...]:
        wanted = moved(item)
        key, new = key_of(item), key_of(wanted)
        old_claims, new_claims = (
            required_claims(before, before.unique, item),
            required_claims(after, after.unique, wanted),
        )
        along = claim_actions(old_claims, new_claims, wanted, others, former=key)
        if key == new:
            return rewrite_actions(item, wanted, known, along)
        if new in others:
            raise InvalidValue(f"Its new key {new[0]} / {new[1]} is another item's. Change one of them, or delete it.")
        condition = as_read(item, {*known, *item.keys()})
        return (Put(wanted, ITEM_MISSING), Delete(key, condition), *along)

    def wanted(item: Item) -> Iterable[ItemKey]:
        target = moved(item)
        claims = required_claims(before, before.unique, item) | required_claims(after, after.unique, target)
        return claims | ({key_of(target)} - {key_of(item)})

    return Task(type_condition(before.item_type), change, wanted=wanted)


def rename_parent_marks(old: str, new: str) -> Task:
    """Update the type of the parent in items that were trashed with it, so that they are restored with it."""

    def change(item: Item, others: Others) -> tuple[Action, ...]:
        rest = item[names.DELETED_WITH]["S"].removeprefix(f"{old}#")
        return rewrite_actions(item, {**item, names.DELETED_WITH: {"S": f"{new}#{rest}"}}, (names.DELETED_AT,))

    return Task(Stored(names.DELETED_WITH, "begins_with", ({"S": f"{old}#"},)), change)
