"""Check that each derived item matches its object, and is deleted with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from django.utils.translation import gettext_noop as _

from dynamo_single.contrib.doctor.findings import Finding, Others, Subject, missing_or_unchanged, unchanged_condition
from dynamo_single.exceptions import InvalidValue
from dynamo_single.orm.effects import derived
from dynamo_single.orm.items import decode, encode
from dynamo_single.orm.requests.actions import ITEM_MISSING, Delete, Item, ItemKey, Put, as_read
from dynamo_single.orm.schema.types import ModelField
from dynamo_single.translated import sentence


def wanted(subject: Subject, others: Others) -> Iterable[ItemKey]:
    """Return the keys of the items derived from an item, and of its own source."""
    source = _source(subject)
    return [*(_derived_items(subject.model, subject.item) or ()), *(() if source is None else (source,))]


def findings(subject: Subject, others: Others) -> Iterator[Finding]:
    """Yield the errors of the items derived from an item, and of the item itself if it is derived."""
    for key, expected in (_derived_items(subject.model, subject.item) or {}).items():
        yield from _derived_finding(subject, key, expected, others.get(key))
    source = _source(subject)
    if source is not None:
        yield from _orphan(subject, source, others.get(source))


def _derived_items(model: Any, item: Item) -> derived.Items | None:
    """Return the items derived from an item, or ``None`` if the item cannot be read."""
    if model is None:
        return None
    try:
        return derived.derived_items(model, item)
    except InvalidValue:
        return None  # reported by the check of the keys


def _source(subject: Subject) -> ItemKey | None:
    """Return the key of an item's source, which is the target of the reference that ``derived_by`` names."""
    model = subject.model
    if model is None or not model.derived_by:
        return None
    field = model._meta.get_field(model.derived_by)
    try:
        obj = decode.instance(model, {name: dict(value) for name, value in subject.item.items()})
        pk = getattr(obj, field.attname) if obj.is_derived() else None
        target: Any = field.remote_field.model
        return None if pk is None else encode.computed_key(target, target(pk=pk).__dict__)
    except InvalidValue:
        return None  # as above


def _derived_finding(subject: Subject, key: ItemKey, expected: Item, found: Item | None) -> Iterator[Finding]:
    unchanged = unchanged_condition(subject.item, derived.source_names(subject.model))
    said = f"{key[0]} / {key[1]}"
    if found is None:
        repair = (Put(expected, ITEM_MISSING), unchanged)
        text = _("%(key)s is derived from it but does not exist.")
        yield Finding("missing derived item", subject.key, sentence(text, key=said), repair)
        return
    model: Any = Subject.of(subject.alias, expected).model
    automatic = {field.attribute.attr_name for field in model._meta.concrete_fields if _is_automatic(field)}
    if model.derived_exclusive and found.get(held := _owner_name(model)) != expected[held]:
        text = _("%(key)s is derived from it, but another object has this item. Change one of the two objects.")
        yield Finding("value held twice", subject.key, sentence(text, key=said))
        return
    if not encode.is_same_item(expected, found, model, apart_from=automatic):
        repair = (Put(expected, as_read(found, {*expected, *found})), unchanged)
        text = _("%(key)s is derived from it but has other values.")
        yield Finding("derived item", subject.key, sentence(text, key=said), repair)


def _owner_name(model: Any) -> str:
    """Return the physical name of the attribute that stores the owner of a derived item."""
    stored: str = model._meta.get_field(model.derived_by).attribute.attr_name
    return stored


def _is_automatic(field: ModelField) -> bool:
    return bool(getattr(field, "auto_now", False) or getattr(field, "auto_now_add", False))


def _orphan(subject: Subject, key: ItemKey, source: Item | None) -> Iterator[Finding]:
    model = None if source is None else Subject.of(subject.alias, source).model
    following = {} if source is None else _derived_items(model, source)
    if following is None or subject.key in following:
        return
    stored = () if model is None else derived.source_names(model)
    repair = (Delete(subject.key, as_read(subject.item, subject.item)), missing_or_unchanged(key, source, stored))
    said = sentence(_("It is no longer derived from %(key)s."), key=f"{key[0]} / {key[1]}")
    yield Finding("derived item left over", subject.key, said, repair)
