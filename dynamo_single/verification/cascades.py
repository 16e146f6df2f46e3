"""What goes along with its parent, or refers to it by ``on_delete``: none is left of a parent that is gone, or in the
trash without it.

A key that an index holds can be behind, and a creation does not look at its parent; so a race can leave either. What is
to be done with such a child is for somebody to decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from django.db.models import CASCADE
from django.utils.translation import gettext_noop as _

from dynamo_single.exceptions import InvalidValue
from dynamo_single.orm.items.serialization import key_of_pk
from dynamo_single.orm.requests.actions import ItemKey
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.kinds import DynamoModel
from dynamo_single.orm.schema.referrers import cascading, leading
from dynamo_single.table import names
from dynamo_single.table.sentences import sentence
from dynamo_single.verification.findings import Finding, Others, Subject


def wanted(subject: Subject, others: Others) -> Iterable[ItemKey]:
    """The parents that an item goes along with, and the object that it went to the trash along with."""
    root = _root(subject)
    found = (key for pairs in (_parents(subject), _referred(subject)) for key, _ in pairs)
    return [*found, *(() if root is None else (root,))]


def findings(subject: Subject, others: Others) -> Iterator[Finding]:
    """What is wrong with an item as a child."""
    for key, name in _referred(subject):
        if key not in others:
            text = _(
                "It refers to %(key)s, by %(name)s with an on_delete, which is not stored: let it refer to another "
                "one, or delete it."
            )
            said = sentence(text, key=f"{key[0]} / {key[1]}", name=name)
            yield Finding("refers to nobody", subject.key, said)
    for key, name in _parents(subject):
        if key not in others:
            text = _(
                "It goes along with %(key)s, by %(name)s, which is not stored: hard_delete() it, or give it another "
                "one."
            )
            said = sentence(text, key=f"{key[0]} / {key[1]}", name=name)
            yield Finding("child of nobody", subject.key, said)
            return
    root = _root(subject)
    if root is not None and others.get(root, {}).get(names.DELETED_AT) != subject.item.get(names.DELETED_AT):
        text = _(
            "It went to the trash along with %(key)s, which was not deleted then, or was restored without it: "
            "restore() it, or hard_delete() it."
        )
        yield Finding("left in the trash", subject.key, sentence(text, key=f"{root[0]} / {root[1]}"))


def _parents(subject: Subject) -> Iterator[tuple[ItemKey, str]]:
    """The keys of the parents whose deletion for good takes an item along, each with the reference to it."""
    if subject.model is not None:
        yield from _leading(subject, _followed(subject.model._meta.concrete_model, registry.generation))


def _referred(subject: Subject) -> Iterator[tuple[ItemKey, str]]:
    """The keys of what an item refers to by an ``on_delete`` that does not take it along, each with the reference."""
    if subject.model is not None:
        found = leading(subject.model)
        yield from _leading(subject, (each for each in found if each[1].remote_field.on_delete is not CASCADE))


def _leading(subject: Subject, found: Iterable[tuple[Any, Any]]) -> Iterator[tuple[ItemKey, str]]:
    for parent, field in found:
        stored = subject.item.get(field.attribute.attr_name)
        if stored is None:
            continue
        try:
            yield key_of_pk(parent, field.attribute.from_attribute_value(dict(stored))), field.name
        except InvalidValue:
            continue  # the check of the item itself says so


@lru_cache(maxsize=1024)
def _followed(model: type[DynamoModel], generation: int) -> tuple[tuple[object, object], ...]:
    """The parents that a model's objects go along with, in the same table, each with the reference to it."""
    return tuple(
        (parent, children.field)
        for parent in registry.all_models()
        if parent._options.alias == model._options.alias
        for children in cascading(parent)
        if children.model._meta.concrete_model is model
    )


def _value_of(model: type[DynamoModel], pk: str) -> object:
    attribute = getattr(model._meta.pk, "attribute", None)
    return pk if attribute is None else attribute.from_text(pk)


def _root(subject: Subject) -> ItemKey | None:
    """The key of the object that an item says it went to the trash along with."""
    mark = subject.item.get(names.DELETED_WITH, {}).get("S")
    if subject.model is None or mark is None or names.DELETED_AT not in subject.item:
        return None
    item_type, _, pk = mark.partition("#")
    model = registry.model_of_type(subject.alias, item_type)
    try:
        return None if model is None else key_of_pk(model, _value_of(model, pk))
    except InvalidValue:
        return None  # of another program
