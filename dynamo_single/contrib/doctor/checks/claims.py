"""Unique claims: each has an owner with its value, and each item has all of its claims."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from django.utils.translation import gettext_noop as _

from dynamo_single.contrib.doctor.findings import Finding, Others, Subject, missing_or_unchanged, unchanged_condition
from dynamo_single.exceptions import InvalidValue
from dynamo_single.orm.effects import unique_claims as uniqueness
from dynamo_single.orm.items.unique_rules import Rule, claim_prefix, rules_of
from dynamo_single.orm.requests.actions import Check, Delete, Item, ItemKey, Put, as_read
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.table import names
from dynamo_single.translated import sentence

_OWNER = (names.CLAIM_OWNER_PARTITION, names.CLAIM_OWNER_SORT, names.EXPIRES_AT)


def wanted(subject: Subject, others: Others) -> Iterable[ItemKey]:
    """Return the keys of an item's claims and of their other owners, or the key of a claim's owner."""
    if subject.is_claim:
        return _owner(subject.item)
    claims = _claims(subject.model, subject.item) or {}
    held = (owner for key in claims if key in others for owner in _owner(others[key]))
    return [*claims, *(owner for owner in held if owner != subject.key)]


def findings(subject: Subject, others: Others) -> Iterator[Finding]:
    """Yield the errors of a claim, or of an item's claims."""
    if subject.is_claim:
        yield from _claim_findings(subject, others)
        return
    for key, rule in (_claims(subject.model, subject.item) or {}).items():
        yield from _item_findings(subject, rule, key, others)


def belongs_to(model: type[DynamoModel], key: ItemKey) -> bool:
    """Return whether the key of a claim is one of a model's claims."""
    return key[0].startswith(claim_prefix(model))


def _claims(model: Any, item: Item) -> dict[ItemKey, Rule] | None:
    """Return the claims that an item must have, or ``None`` if the item cannot be read."""
    if model is None:
        return None
    try:
        return uniqueness.claims_of(model, item)
    except InvalidValue:
        return None  # reported by the check of the keys


def _owner(claim: Item) -> tuple[ItemKey, ...]:
    """Return the owner that a claim names, if there is one."""
    partition, sort = (claim.get(name, {}).get("S") for name in _OWNER[:2])
    return ((partition, sort),) if partition and sort else ()


def _claim_findings(subject: Subject, others: Others) -> Iterator[Finding]:
    item, key = subject.item, subject.key
    (owner_key,) = _owner(item) or (None,)
    if owner_key is None:
        yield Finding(
            "orphan claim", key, sentence(_("It does not name an owner.")), (Delete(key, as_read(item, _OWNER)),)
        )
        return
    owner = others.get(owner_key)
    if owner is not None and (holds := _has_to_own(subject.alias, owner, key)) is not False:
        if holds is None:
            text = _("Its owner %(key)s cannot be read. Correct the owner first.")
            yield Finding("orphan claim", key, sentence(text, key=_claim_text(owner_key)))
        return
    text = _("Its owner %(key)s does not exist.") if owner is None else _("Its owner %(key)s does not have it.")
    repair = (Delete(key, as_read(item, _OWNER)), _unchanged(subject.alias, owner_key, owner))
    yield Finding("orphan claim", key, sentence(text, key=_claim_text(owner_key)), repair)


def _item_findings(subject: Subject, rule: Rule, key: ItemKey, others: Others) -> Iterator[Finding]:
    claim = others.get(key)
    which = rule.worded(rule.claimed(subject.item)[key])
    take = uniqueness.put_claim(subject.model, key, subject.item)
    unchanged = unchanged_condition(subject.item, rule.stored_names)
    if claim is None:
        said = sentence(_("It has no claim on %(which)s."), which=which)
        yield Finding("missing claim", subject.key, said, (take, unchanged))
        return
    (owner_key,) = _owner(claim) or (None,)
    replace = Put(take.item, as_read(claim, _OWNER))
    if owner_key == subject.key:
        if claim.get(names.EXPIRES_AT) != subject.item.get(names.EXPIRES_AT):
            said = sentence(_("Its claim on %(which)s does not expire at the same time."), which=which)
            yield Finding("claim's expiry", subject.key, said, (replace, unchanged))
        return
    if owner_key is None:
        said = sentence(_("The claim on %(which)s does not name an owner."), which=which)
        yield Finding("claim of another", subject.key, said, (replace, unchanged))
        return
    owner = others.get(owner_key)
    if owner is not None and _has_to_own(subject.alias, owner, key) is not False:
        text = _("%(key)s also has %(which)s, and owns the claim. Change one of them.")
        yield Finding("value held twice", subject.key, sentence(text, key=_claim_text(owner_key), which=which))
        return
    text = _("The claim on %(which)s is held by %(key)s, which does not need it.")
    repair = (replace, unchanged, _unchanged(subject.alias, owner_key, owner))
    yield Finding("claim of another", subject.key, sentence(text, which=which, key=_claim_text(owner_key)), repair)


def _has_to_own(alias: str, owner: Item, key: ItemKey) -> bool | None:
    """Return whether an item must have a claim, or ``None`` if the item cannot be read."""
    claims = _claims(Subject.of(alias, owner).model, owner)
    return None if claims is None else key in claims


def _unchanged(alias: str, key: ItemKey, owner: Item | None) -> Check:
    model = None if owner is None else Subject.of(alias, owner).model
    rules = () if model is None else rules_of(model)
    return missing_or_unchanged(key, owner, {name for rule in rules for name in rule.stored_names})


def _claim_text(key: ItemKey) -> str:
    return f"{key[0]} / {key[1]}"
