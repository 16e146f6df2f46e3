"""Copies of other objects' attributes: each equals its source, and no source has outdated copies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from django.utils.translation import gettext_noop as _

from dynamo_single.contrib.doctor.findings import Finding, Others, Subject
from dynamo_single.exceptions import InvalidValue
from dynamo_single.orm.conditions.matching import normalized_value
from dynamo_single.orm.effects import copies, copy_updates
from dynamo_single.orm.effects.all_effects import effects_of
from dynamo_single.orm.effects.compose import Draft, compose
from dynamo_single.orm.items import decode, encode
from dynamo_single.orm.requests.actions import Action, Check, Item, ItemKey, Update, as_read
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.bindings import binding_of
from dynamo_single.table import names
from dynamo_single.table.flow import iterate_stream, run
from dynamo_single.table.table import Table
from dynamo_single.translated import joined, sentence


def wanted(subject: Subject, others: Others) -> Iterable[ItemKey]:
    """Return the keys of the sources that an item copies from."""
    return list(_sources(subject))


def findings(subject: Subject, others: Others) -> Iterator[Finding]:
    """Yield the copies that differ from their sources. A copy without a stored source cannot be checked."""
    for key, found in _sources(subject).items():
        source = others.get(key)
        stale = [copy for copy in found if source is not None and not _is_same(copy, subject.item, source)]
        if source is None:
            yield from _missing_source(subject, found, key)
        if source is None or not stale:
            continue
        said = sentence(
            _("%(what)s of %(key)s."),
            what=joined([sentence(_("%(copy)s differs from %(source)s"), copy=c.name, source=c.origin) for c in stale]),
            key=f"{key[0]} / {key[1]}",
        )
        repair = _repair(subject, stale, key, source)
        yield Finding("copy", subject.key, said, repair)


def _missing_source(subject: Subject, found: list[Any], key: ItemKey) -> Iterator[Finding]:
    required = registry.layout_of(subject.model).attributes
    missing = [copy.name for copy in found if required[copy.name].required and copy.attr_name not in subject.item]
    if missing:
        text = _("It has no %(names)s, and %(key)s, which it refers to, is not stored.")
        said = sentence(text, names=", ".join(missing), key=f"{key[0]} / {key[1]}")
        yield Finding("copy", subject.key, said)


def due(table: Table, subject: Subject) -> Iterator[Finding]:
    """Yield a finding for a source whose update of its copies was interrupted: a Query for each reference to it."""
    if names.COPIES_DUE not in subject.item:
        return
    model, item = subject.model, subject.item
    found = copy_updates.due_copies(model, item)
    pk = decode.instance(model, {name: dict(value) for name, value in item.items()}).pk
    left = any(
        next(iterate_stream(group.stale()), None) is not None
        for group in copy_updates.holder_groups(model, pk, item, found)
    )
    mark = {names.COPIES_DUE: item[names.COPIES_DUE]}
    unchanged = as_read(item, {copy.source.attr_name for copy in found})
    repair = () if left else (Update(subject.key, discard=mark, condition=unchanged),)
    text = _("All copies contain its last change, but its marker was not removed.")
    if left:
        text = _("Some copies do not contain its last change. Save it, or run manage.py dynamo_rebuild.")
    yield Finding("copies due", subject.key, sentence(text), repair)


def _sources(subject: Subject) -> dict[ItemKey, list[Any]]:
    """Return the copies of an item by the key of their source."""
    found: dict[ItemKey, list[Any]] = {}
    for copy in () if subject.model is None else registry.copied_of(subject.model):
        attribute = copy.reference_field.attribute
        reference = subject.item.get(attribute.attr_name)
        try:
            pk = None if reference is None else attribute.from_attribute_value(dict(reference))
            if pk is not None:
                found.setdefault(encode.key_of_pk(copy.source_model, pk), []).append(copy)
        except InvalidValue:
            continue  # reported by the check of the keys
    return found


def _is_same(copy: Any, item: Item, source: Item) -> bool:
    one, other = item.get(copy.attr_name), source.get(copy.source.attr_name)
    return one is other or (
        one is not None and other is not None and bool(normalized_value(one) == normalized_value(other))
    )


def _repair(subject: Subject, stale: list[Any], key: ItemKey, source: Item) -> tuple[Action, ...]:
    """Return the actions that update copies and the keys that depend on them, conditional on the source."""
    model, item = subject.model, subject.item
    try:
        changed = {copy.name: copies.stored_value(copy.source, source) for copy in stale}
        obj = decode.instance(model, {name: dict(value) for name, value in item.items()})
        draft = Draft(binding_of(model), item, decode.values_of(model, item), changed, raw=True)
        effects = tuple(effect for effect in effects_of(model) if not effect.updates_copies)
        write = run(compose(obj, effects, draft))
    except InvalidValue:
        return ()  # no key of the item accepts the value
    if write is None:
        return ()
    check = Check(key, as_read(source, {copy.source.attr_name for copy in stale}))
    return (*write.own_actions, check, *(action for action in write.actions if action.key not in (key, subject.key)))
