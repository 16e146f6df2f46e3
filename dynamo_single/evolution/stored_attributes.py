"""Attributes and unique rules in migrations: how values are stored, independent of the model's class.

This module does not depend on operations or on the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import cached_property
from typing import Any

from dynamo_single.exceptions import ConfigurationError
from dynamo_single.orm.conditions.terms import EVERYTHING
from dynamo_single.orm.conditions.wording import Plain, plain
from dynamo_single.orm.items.encode import writer_of
from dynamo_single.orm.items.readers import absent_value
from dynamo_single.orm.items.unique_rules import Rule
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.attributes import (
    Attribute,
    CanonicalAttribute,
    CopiedAttribute,
    CounterAttribute,
    ExtractedAttribute,
)
from dynamo_single.orm.schema.attributes.computed import FOLDS, FollowingAttribute, Steps, value_at
from dynamo_single.orm.schema.attributes.references import ReferenceAttribute
from dynamo_single.orm.schema.fingerprints import attribute_class, attribute_text, counted_by, form_of, place_text
from dynamo_single.orm.schema.identities import attributes_of_identity
from dynamo_single.orm.schema.keys.reference_parts import Member
from dynamo_single.orm.schema.types import DynamoModel


class MigrationValue:
    """A frozen dataclass that a migration file writes as a call, without what is as by default."""

    def deconstruct(self) -> tuple[str, list[Any], dict[str, Any]]:
        """The public path, and the arguments: those without a default by position."""
        arguments: list[Any] = []
        named: dict[str, Any] = {}
        for each in fields(self):  # type: ignore[arg-type]  # its subclasses are dataclasses
            value = getattr(self, each.name)
            if each.default is MISSING and each.default_factory is MISSING:
                arguments.append(value)
            elif value != (each.default if each.default_factory is MISSING else each.default_factory()):
                named[each.name] = value
        return f"dynamo_single.migrations.{type(self).__name__}", arguments, named


@dataclass(frozen=True)
class StoredAttribute(MigrationValue):
    """One attribute of the items of then.

    ``kind`` is the class that encodes it: its name in ``dynamo_single.models``, or the whole path of a project's own.
    A reference has the kind of the key that it stores.
    """

    kind: str
    #: The physical name.
    stored: str
    #: Whether no item lacks it, so that a key which names it is always complete.
    required: bool = True
    #: The AttributeValue that stands for a value which an item lacks.
    absent: Mapping[str, Any] | None = None
    #: What else of the declaration decides how values are stored.
    options: Mapping[str, Any] = field(default_factory=dict)
    #: The attribute that a folded copy is made of, and how; see ``CanonicalAttribute``.
    source: str = ""
    fold: str = ""
    #: The place inside the document ``source`` that a value is extracted from; see ``ExtractedAttribute``.
    steps: Steps = ()
    #: What another object gives: the reference's attribute, and the physical name of the other object's.
    copied: str = ""
    #: The children that a ``CounterAttribute`` counts, and which of them.
    counted: str = ""
    #: Whether the object that it refers to counts those that do.
    checked: bool = False
    #: Of a reference whose parts a key names: what the identity that it holds is made of, by Python names, in order.
    members: tuple[tuple[str, StoredAttribute], ...] = ()

    @classmethod
    def of(cls, attribute: Attribute, *, required: bool, apart: bool = False) -> StoredAttribute:
        """What is stored of a declared attribute; ``ConfigurationError`` if its class cannot be made again.

        ``apart``: it is a reference of which a key names parts.
        """
        kind, options = form_of(attribute)
        absent = absent_value(attribute)
        prepared = None if absent is None else attribute.prepare(absent)
        found = cls(
            kind,
            attribute.attr_name,
            required=required,
            absent=None if prepared is None else writer_of(attribute)(prepared),
            options=options,
            source=attribute.source if isinstance(attribute, FollowingAttribute) else "",
            fold=attribute.fold if isinstance(attribute, CanonicalAttribute) else "",
            steps=attribute.steps if isinstance(attribute, ExtractedAttribute) else (),
            copied=_source_of(attribute) if isinstance(attribute, CopiedAttribute) else "",
            counted=counted_by(attribute) if isinstance(attribute, CounterAttribute) else "",
            checked=isinstance(attribute, ReferenceAttribute) and attribute.checked,
            members=_members_of(attribute) if apart else (),
        )
        found.attribute(attribute.name)
        return found

    def attribute(self, name: str) -> Attribute:
        """An attribute of this form that belongs to no model: it encodes and decodes."""
        kind: Any = attribute_class(self.kind)
        try:
            made: Attribute = kind(**self.options)
        except TypeError as error:
            raise ConfigurationError(
                f"A {self.kind} cannot be made of {dict(self.options)} for a migration ({error}). Let its "
                "stored_options() give every argument that __init__() needs."
            ) from error
        made.name = name
        made.attr_name = self.stored
        return made

    @cached_property
    def identity(self) -> tuple[Member, ...]:
        """The members of the identity that it holds; none unless a key names its parts."""
        found = ((name, each, each.attribute(name)) for name, each in self.members)
        return tuple(
            Member((name, name.removesuffix("_id")), made.key_kind, made.from_text, each.identity)
            for name, each, made in found
        )

    @property
    def is_computed(self) -> bool:
        """Whether the app itself keeps the value."""
        return bool(self.source or self.copied or self.counted)

    def followed(self, given: object) -> object:
        """What follows from a value of the source: the folded copy of a text, or what lies in a document."""
        if self.steps:
            return self._nameless.prepare(value_at(given, self.steps))
        return FOLDS[self.fold](given) if isinstance(given, str) else None

    def how(self, source: str) -> str:
        """How it follows from what is stored as ``source``, as fingerprints say it; empty for what does not."""
        return place_text(source, self.steps) if self.steps else f"{self.fold}({source})"

    @cached_property
    def _nameless(self) -> Attribute:
        return self.attribute(self.stored)

    def text(self, follows: str) -> str:
        """The fingerprint; ``follows`` is what the value follows from, by physical names."""
        return attribute_text(self.stored, self.kind, self.options, follows)

    def value(self, stored: Mapping[str, object] | None) -> object:
        """The Python value of an AttributeValue, or of one that the item lacks; raises ``InvalidValue``."""
        found = self.absent if stored is None else stored
        return None if found is None else self._nameless.from_attribute_value(dict(found))

    def stored_value(self, value: object) -> dict[str, Any] | None:
        """A Python value as it is stored; ``None`` is not."""
        prepared = self._nameless.prepare(value)
        return None if prepared is None else writer_of(self._nameless)(prepared)


def _source_of(attribute: CopiedAttribute) -> str:
    return f"{attribute.reference_field.attname}.{attribute.source.attr_name}"


def _members_of(attribute: Attribute) -> tuple[tuple[str, StoredAttribute], ...]:
    if not isinstance(attribute, ReferenceAttribute):
        return ()
    members = attributes_of_identity(attribute.field.related_model)
    return tuple((each.name, StoredAttribute.of(each, required=True, apart=True)) for each in members)


def stored_attributes_of(model: type[DynamoModel]) -> dict[str, StoredAttribute]:
    """Every attribute of a model, by its Python name, in the order of declaration."""
    layout = registry.layout_of(model)
    parts = [part for key in (layout.primary, *layout.indexes) for part in (*key.partition.parts, *key.sort.parts)]
    apart = {part.name for part in parts if part.path}
    return {
        name: StoredAttribute.of(each, required=layout.attributes[name].required, apart=name in apart)
        for name, each in registry.attributes_of(model).items()
    }


# Unique rules.


@dataclass(frozen=True)
class UniqueRule(MigrationValue):
    """Some attributes, by Python name, whose values taken together only one live object has.

    ``canonical`` are those whose texts are compared without regard to case. ``condition`` is in physical names, and
    ``name`` the constraint's, if it has a condition. ``members`` is a set whose members are unique as the attribute's
    values are.
    """

    attributes: tuple[str, ...]
    canonical: tuple[str, ...] = ()
    name: str = ""
    condition: Plain | None = None
    members: str = ""

    def __hash__(self) -> int:
        return hash((self.attributes, self.name))  # a condition holds dicts

    @classmethod
    def of(cls, rule: Rule) -> UniqueRule:
        """What is stored of a declared rule."""
        return cls(
            rule.fields,
            canonical=tuple(each.name for each in rule.attributes if each.canonical),
            name=rule.name,
            condition=None if rule.condition == EVERYTHING else plain(rule.condition),
            members="" if rule.members is None else rule.members.name,
        )

    @property
    def names(self) -> tuple[str, ...]:
        """All that is claimed, by Python name."""
        return (*self.attributes, self.members) if self.members else self.attributes
