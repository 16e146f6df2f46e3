"""Objects with folded addresses: each is in the shard of the folded value, where every spelling finds it.

Schedule entries of releases that did not fold hash the value as it is spelled. After a later entry has started, every
process knows both shards, and an object can move to the folded one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django.utils.translation import gettext_noop as _

from dynamo_single import clock
from dynamo_single.contrib.doctor.findings import Finding, Others, Subject
from dynamo_single.exceptions import InvalidValue
from dynamo_single.orm.effects import unique_claims
from dynamo_single.orm.items import decode, encode
from dynamo_single.orm.items.expiry import free_key_condition
from dynamo_single.orm.reading.single import owner_of
from dynamo_single.orm.requests.actions import Action, Check, Delete, Item, ItemKey, Put, as_read
from dynamo_single.orm.requests.compiler import item_key
from dynamo_single.orm.rollout import knowledge
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.keys.shards import Schedule, time_text
from dynamo_single.table import names
from dynamo_single.table.request import MAX_ACTIONS
from dynamo_single.translated import sentence

_OWNER = (names.CLAIM_OWNER_PARTITION, names.CLAIM_OWNER_SORT)


def wanted(subject: Subject, others: Others) -> Iterable[ItemKey]:
    """Return the keys that another object with the same address can have."""
    schedule, values = _schedule_of(subject)
    if schedule is None or _folded_key(subject, values) is None:
        return ()
    return [key for key in _of_address(subject, values) if key != subject.key]


def findings(subject: Subject, others: Others) -> Iterator[Finding]:
    """Yield a finding for an object in the shard of its spelling. The repair moves it if its address is free."""
    schedule, values = _schedule_of(subject)
    if schedule is None:
        return
    place, label = registry.layout_of(subject.model).sharding, subject.model._meta.label
    assert place is not None  # noqa: S101   # a model with a schedule
    if not schedule.fold:
        if encode.folded_key(subject.model, values, fold=place.fold) not in (None, subject.key):
            text = _(
                "Its shard depends on the spelling, so another spelling of %(name)s does not find it. Schedule shards "
                "that fold it: manage.py dynamo_shards %(model)s %(shards)s. Then repair it."
            )
            said = sentence(text, name=place.attribute, model=label, shards=schedule.entries[-1].shards)
            yield Finding("shard of a spelling", subject.key, said)
        return
    target = _folded_key(subject, values)
    if target is None:
        return
    found = [key for key in _of_address(subject, values) if key != subject.key and key in others]
    begins = next(entry.since for entry in schedule.entries if entry.fold)
    repair: tuple[Action, ...] = ()
    if found:
        text = _("%(key)s has the same %(name)s in another spelling. Change or delete one of them.")
        said = sentence(text, key=f"{found[0][0]} / {found[0][1]}", name=place.attribute)
    elif clock.timestamp() < begins:
        text = _("It is in the shard of its spelling. Repair it after %(time)s, when every process uses the shards.")
        said = sentence(text, time=time_text(begins))
    else:
        said = sentence(_("It is in the shard of its spelling, and belongs to %(key)s."), key=" / ".join(target))
        repair = _move_to(subject, target, _of_address(subject, values), others)
    yield Finding("shard of a spelling", subject.key, said, repair)


def _schedule_of(subject: Subject) -> tuple[Schedule | None, Mapping[str, Any]]:
    """Return the schedule and the values of an object whose address is folded, or ``None`` for any other item."""
    layout = None if subject.model is None else registry.layout_of(subject.model)
    if layout is None or layout.primary.sharding is None or not layout.primary.sharding.fold:
        return None, {}
    try:
        values = decode.values_of(subject.model, subject.item)
        encode.computed_key(subject.model, values)
    except InvalidValue:
        return None, {}  # reported by the check of the item itself
    return knowledge.schedule(layout), values


def _folded_key(subject: Subject, values: Mapping[str, Any]) -> ItemKey | None:
    """Return the key that an object must move to, or ``None`` if it has that key."""
    key = encode.folded_key(subject.model, values)
    return None if key == subject.key else key


def _of_address(subject: Subject, values: Mapping[str, Any]) -> list[ItemKey]:
    sharding = registry.layout_of(subject.model).primary.sharding
    assert sharding is not None  # noqa: S101   # as above
    found = encode.possible_keys(subject.model, {**values, sharding.at: None})
    return list(dict.fromkeys(found))


def _move_to(subject: Subject, target: ItemKey, possible: Iterable[ItemKey], others: Others) -> tuple[Action, ...]:
    """Return the actions that move an item and its claims to its folded key if its address is otherwise free."""
    item: Item = {**subject.item, **item_key(target)}
    is_free, known = free_key_condition(subject.model), encode.known_names(subject.model)
    actions = (
        Put(item, is_free),
        # The item must not lose attributes that another process has added since.
        Delete(subject.key, as_read(subject.item, {*known, *subject.item})),
        *(Check(key, is_free) for key in possible if key not in (subject.key, target)),
        *_claims(subject, item, others),
    )
    return actions if len(actions) <= MAX_ACTIONS else ()


def _claims(subject: Subject, item: Item, others: Others) -> Iterator[Action]:
    """Yield the claims that the object holds, with its new key. Other claims are separate findings."""
    for key in unique_claims.claims_of(subject.model, subject.item):
        held = others.get(key)
        if held is not None and owner_of(held) == subject.key:
            yield Put(unique_claims.claim_item(key, item), as_read(held, _OWNER))
