"""Unique attributes: the claim items that hold their values, and what forms ask about them.

A claim is an item of its own that carries its owner's key. It is written in the same transaction as the owner, so that
two objects can never hold one value; which of two racing writers loses is decided by DynamoDB.
"""

from __future__ import annotations

import time
import unicodedata
from collections.abc import Mapping
from typing import Any

from django.core.exceptions import ValidationError

from dynamo_single import layout as names
from dynamo_single import reading, registry
from dynamo_single.actions import ITEM_MISSING, Action, Delete, Item, ItemKey, Put, key_of
from dynamo_single.attributes import Attribute
from dynamo_single.exceptions import ConfigurationError, InvalidValue
from dynamo_single.hydration import has_expired
from dynamo_single.items import computed_key
from dynamo_single.keys import PARTITION_KEY_LIMIT, Template, canonical, codec_for
from dynamo_single.query import And, Condition, Or, Stored
from dynamo_single.table import get_table

CLAIM_SORT_KEY = "#CLAIM"
CLAIM_PARTITION = Template.parse(f"{names.UNIQUE_PREFIX}#{{item_type}}#{{attribute}}#{{value}}")


def unique_attributes(model: Any) -> dict[str, Attribute[Any]]:
    """The attributes that are unique; the primary key's are so without a claim."""
    return {
        name: attribute
        for name, attribute in registry.attributes_of(model).items()
        if attribute.unique and (name,) != model._identity
    }


def claim_key(model: Any, attribute: Attribute[Any], value: Any) -> ItemKey:
    """The key of the claim on a value; texts are compared in Unicode NFC, canonical ones without regard to case."""
    if attribute.key_kind is None:
        raise ConfigurationError(
            f"{model._meta.label}.{attribute.name} cannot be unique: a {type(attribute).__name__} cannot be in a key."
        )
    if isinstance(value, str):
        value = canonical(value) if attribute.canonical else unicodedata.normalize("NFC", value)
    template = CLAIM_PARTITION.bind(
        {"item_type": codec_for("text"), "attribute": codec_for("text"), "value": codec_for(attribute.key_kind)}
    )
    values = {"item_type": model._options.item_type, "attribute": attribute.attr_name, "value": value}
    try:
        return template.render(values, limit=PARTITION_KEY_LIMIT), CLAIM_SORT_KEY
    except InvalidValue as error:
        raise InvalidValue(
            f"{model._meta.label}: this {attribute.name} cannot be unique, since that takes a key. {error}"
        ) from error


def claims_of(model: Any, item: Item | None) -> dict[str, ItemKey]:
    """The claims that a stored item owns, by attribute: none for one that is deleted, or not there."""
    if item is None or names.DELETED_AT in item:
        return {}
    claims = {}
    for name, attribute in unique_attributes(model).items():
        stored = item.get(attribute.attr_name)
        value = None if stored is None else attribute.from_attribute_value(dict(stored))
        if value is not None and value != "":
            claims[name] = claim_key(model, attribute, value)
    return claims


def actions(model: Any, before: Item | None, after: Item | None) -> list[Action]:
    """The claims to take and to give free when one item becomes the other; ``None`` is an item that is not there.

    Those to give free are the ones that ``before`` knows of: another writer's must not be left behind, so the write
    itself has to be held to what was read.
    """
    old, new = claims_of(model, before), claims_of(model, after)
    expiry_changes = (before or {}).get(names.EXPIRES_AT) != (after or {}).get(names.EXPIRES_AT)
    found: list[Action] = []
    for name in {**old, **new}:
        taken, given_up = new.get(name), old.get(name)
        if after is not None and taken is not None and (taken != given_up or expiry_changes):
            found.append(put_claim(model, taken, after))
        if before is not None and given_up is not None and given_up != taken:
            found.append(delete_claim(given_up, key_of(before)))
    return found


def depends_on(model: Any, before: Item | None, after: Item | None) -> set[str]:
    """The physical names of the unique attributes whose claims are taken or given up."""
    old, new = claims_of(model, before), claims_of(model, after)
    attributes = registry.attributes_of(model)
    return {attributes[name].attr_name for name in {**old, **new} if old.get(name) != new.get(name)}


def put_claim(model: Any, key: ItemKey, owner: Item) -> Put:
    """Take a value that nobody holds, or that this owner holds already; the claim expires with its owner."""
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
    return Put(item, Or((free(model), _held_by((partition, sort)))))


def free(model: Any) -> Condition:
    """The condition that nothing is stored under a key; where items expire, nothing that has not expired yet."""
    if registry.layout_of(model).expires is None:
        return ITEM_MISSING
    return Or((ITEM_MISSING, Stored(names.EXPIRES_AT, "<=", ({"N": str(int(time.time()))},))))


def delete_claim(key: ItemKey, owner: ItemKey) -> Delete:
    """Give a value free, if it is this owner's."""
    return Delete(key, Or((ITEM_MISSING, _held_by(owner))))


def _held_by(owner: ItemKey) -> And:
    return And(
        (
            Stored(names.CLAIM_OWNER_PARTITION, "=", ({"S": owner[0]},)),
            Stored(names.CLAIM_OWNER_SORT, "=", ({"S": owner[1]},)),
        )
    )


def owner_of(claim: Mapping[str, Any]) -> ItemKey:
    """The key of the item that a stored claim belongs to."""
    return claim[names.CLAIM_OWNER_PARTITION]["S"], claim[names.CLAIM_OWNER_SORT]["S"]


def owner_item(model: Any, attribute: Attribute[Any], value: Any) -> Item | None:
    """The stored item that holds a unique value: two GetItems, strongly consistent; one if nobody holds it."""
    table = get_table(model._options.alias)
    claim = reading.get_item(table, claim_key(model, attribute, value))
    return None if claim is None or has_expired(claim) else reading.get_item(table, owner_of(claim))


def errors(obj: Any, own_key: ItemKey | None, unique_checks: Any) -> dict[str, list[Any]]:
    """What ``validate_unique()`` reports: one GetItem for each unique value; the transaction of save() decides.

    ``own_key`` is the key that the object is stored under, or ``None`` for a new one.
    """
    model = type(obj)
    found: dict[str, list[Any]] = {}
    for _, check in unique_checks:
        if len(check) != 1:
            raise ConfigurationError(f"{model._meta.label}: unique together over {', '.join(check)} is not supported.")
        field = obj._meta.get_field(check[0])
        value = getattr(obj, field.attname)
        unchanged = field.primary_key and own_key is not None
        if value is None or value == "" or unchanged:
            continue
        try:
            holder = _holder(obj, field, value)
        except InvalidValue as error:
            found.setdefault(field.name, []).append(ValidationError(str(error), code="invalid_key"))
            continue
        if holder is not None and holder != own_key:
            found.setdefault(field.name, []).append(obj.unique_error_message(model, check))
    return found


def _holder(obj: Any, field: Any, value: Any) -> ItemKey | None:
    model: Any = type(obj)
    table = get_table(model._options.alias)
    if field.primary_key:
        key = computed_key(model, obj.attribute_values)
        found = reading.get_item(table, key)
        return None if found is None or has_expired(found) else key
    claim = reading.get_item(table, claim_key(model, field.attribute, field.attribute.prepare(value)))
    return None if claim is None or has_expired(claim) else owner_of(claim)
