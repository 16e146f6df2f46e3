"""Children, references with ``on_delete``, and many-to-many edges: none outlives its parent or a parent in the trash.

An index can lag, and a creation does not check its parent, so that a race can leave such items. A repair deletes
children that would have been deleted with their parent. All others need a decision.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from django.db.models import CASCADE
from django.utils.translation import gettext_noop as _
from msgspec import Struct

from dynamo_single.contrib.doctor.findings import Finding, FindingKind, Others, Removal, Subject
from dynamo_single.exceptions import InvalidValue
from dynamo_single.orm.effects.trash_counts import roots_of
from dynamo_single.orm.items.encode import keys_of_pk
from dynamo_single.orm.items.expiry import free_key_condition
from dynamo_single.orm.requests.actions import ItemKey
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.bindings import ModelBinding, fact
from dynamo_single.orm.schema.references import cascading_parents, referenced_models
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.table import names
from dynamo_single.translated import sentence


def wanted(subject: Subject, others: Others) -> Iterable[ItemKey]:
    """Return the keys of an item's parents, and of the object that it was trashed with."""
    root = _trash_root(subject)
    found = (key for each in _referenced_objects(subject) for key in each.keys)
    return [*found, *(() if root is None else (root,))]


def findings(subject: Subject, others: Others) -> Iterator[Finding]:
    """Yield the errors of an item as a child or as an edge."""
    lost = [each for each in _referenced_objects(subject) if not any(key in others for key in each.keys)]
    for each in lost:
        if each.kind == "reference to a missing object":
            text = _(
                "It refers to %(key)s, by %(name)s with an on_delete, but that object is not stored. Change "
                "the reference, or delete it."
            )
            yield Finding(each.kind, subject.key, sentence(text, key=each.said, name=each.name))
    text = _("It is an edge to %(key)s, by %(name)s, but that object is not stored. Call hard_delete() on it.")
    alone = [each for each in lost if each.kind == "edge without end"]
    if not alone:
        text = _(
            "It belongs to %(key)s, by %(name)s, but that object is not stored. Call hard_delete() on it, or "
            "change its parent."
        )
        alone = [each for each in lost if each.kind == "child without parent"]
    if alone:
        said = sentence(text, key=alone[0].said, name=alone[0].name)
        yield Finding(alone[0].kind, subject.key, said, removal=_removal(subject, lost))
        return
    root = _trash_root(subject)
    if root is not None and others.get(root, {}).get(names.DELETED_AT) != subject.item.get(names.DELETED_AT):
        text = _(
            "It was moved to the trash with %(key)s, which is not deleted, or was restored without it: "
            "restore() it, or hard_delete() it."
        )
        yield Finding("left in the trash", subject.key, sentence(text, key=f"{root[0]} / {root[1]}"))


class _ReferencedObject(Struct, frozen=True):
    """The target of a reference: its model, its possible keys, and the kind of finding if it is gone."""

    kind: FindingKind
    model: Any
    name: str
    keys: tuple[ItemKey, ...]

    @property
    def said(self) -> str:
        """The first key, for messages."""
        return f"{self.keys[0][0]} / {self.keys[0][1]}"


def _removal(subject: Subject, lost: Sequence[_ReferencedObject]) -> Removal | None:
    """Return the deletion of an orphan; ``None`` for a derived item, which its source deletes."""
    if subject.model.derived_by:
        return None
    found = [each for each in lost if each.kind != "reference to a missing object"]
    gone = {key: free_key_condition(each.model) for each in found for key in each.keys}
    return Removal(subject.model, subject.item, gone, tuple(dict.fromkeys(each.model for each in found)))


def _referenced_objects(subject: Subject) -> Iterator[_ReferencedObject]:
    """Yield the target of each reference of an item: as an edge, as a child, or with another ``on_delete``."""
    if subject.model is None:
        return
    model = subject.model._meta.concrete_model
    for kind, parent, field in _references(model):
        stored = subject.item.get(field.attribute.attr_name)
        if stored is None:
            continue
        try:
            keys = keys_of_pk(parent, field.attribute.from_attribute_value(dict(stored)))
        except InvalidValue:
            continue  # reported by the check of the item itself
        yield _ReferencedObject(kind, parent, field.name, keys)


@fact
def _references(binding: ModelBinding) -> tuple[tuple[FindingKind, Any, Any], ...]:
    """Return a model's references within its table, each with the kind of finding if its target is gone."""
    model = binding.model
    found: dict[Any, tuple[FindingKind, Any, Any]] = {}
    for target, field in referenced_models(model):
        if field.remote_field.on_delete is not CASCADE:
            found[field] = ("reference to a missing object", target, field)
    for parent, field in cascading_parents(model):
        if parent._options.alias == model._options.alias:
            found[field] = ("child without parent", parent, field)
    for target, field in _edge_references(model):
        found[field] = ("edge without end", target, field)
    return tuple(found.values())


def _edge_references(model: type[DynamoModel]) -> Iterator[tuple[Any, Any]]:
    """Yield the targets of many-to-many edges within the table, each with the edge's reference."""
    for owner in registry.all_models():
        relations: Any = owner._meta.local_many_to_many
        for relation in relations:
            through = relation.remote_field.through
            # Edges that are derived from the set of an object are checked as derived items.
            is_kept = hasattr(relation, "kept_in")
            if is_kept or isinstance(through, str) or through._meta.concrete_model is not model:
                continue
            for name in (relation.m2m_field_name(), relation.m2m_reverse_field_name()):
                field: Any = model._meta.get_field(name)
                target = field.related_model._meta.concrete_model
                if target in registry.all_models() and target._options.alias == model._options.alias:
                    yield target, field


def _trash_root(subject: Subject) -> ItemKey | None:
    """Return the key of the object that an item was trashed with."""
    mark = subject.item.get(names.DELETED_WITH, {}).get("S")
    if subject.model is None or mark is None or names.DELETED_AT not in subject.item:
        return None
    return next((key for _model, key in roots_of(subject.alias, mark)), None)
