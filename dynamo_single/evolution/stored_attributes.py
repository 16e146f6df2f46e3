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
from dynamo_single.orm.conditions.wording import Plain, plain_condition
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
from dynamo_single.orm.schema.attributes.computed import FOLDS, ComputedAttribute, Steps, value_at
from dynamo_single.orm.schema.attributes.references import ReferenceAttribute
from dynamo_single.orm.schema.fingerprints import attribute_class, attribute_text, counted_by, form_of, place_text
from dynamo_single.orm.schema.identities import attributes_of_identity
from dynamo_single.orm.schema.keys.reference_parts import Member
from dynamo_single.orm.schema.types import DynamoModel


class MigrationValue:
    """A frozen dataclass that a migration file writes as a call, omitting arguments that equal their defaults."""

    def deconstruct(self) -> tuple[str, list[Any], dict[str, Any]]:
        """Return the public path, the positional arguments (fields without defaults) and the keyword arguments."""
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
    """One attribute of historical items.

    ``kind`` is the class that encodes it: its name in ``dynamo_single.models``, or the dotted path of a custom class. A
    reference has the kind of the key that it stores.
    """

    kind: str
    #: The physical name.
    stored: str
    #: True if every item has the attribute, so a key with it is always complete.
    required: bool = True
    #: The AttributeValue that stands for the value of an item without the attribute.
    absent: Mapping[str, Any] | None = None
    #: The other options of the declaration that affect how values are stored.
    options: Mapping[str, Any] = field(default_factory=dict)
    #: The attribute that a folded copy is built from, and the fold; see ``CanonicalAttribute``.
    source: str = ""
    fold: str = ""
    #: The path of an extracted value inside the document ``source``; see ``ExtractedAttribute``.
    steps: Steps = ()
    #: The source of a copied value: the reference, and the physical name of the other object's attribute.
    copied: str = ""
    #: The children that a ``CounterAttribute`` counts, and the condition on them.
    counted: str = ""
    #: Whether the target of the reference counts the objects that refer to it.
    checked: bool = False
    #: If a key names parts of a reference: the attributes of the stored identity, by Python names and in order.
    members: tuple[tuple[str, StoredAttribute], ...] = ()

    @classmethod
    def of(cls, attribute: Attribute, *, required: bool, apart: bool = False) -> StoredAttribute:
        """Return the stored form of a declared attribute.

        ``apart`` marks a reference whose parts a key names. Raises ``ConfigurationError`` if the attribute's class
        cannot be created again from its options.
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
            source=attribute.source if isinstance(attribute, ComputedAttribute) else "",
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
        """Return an attribute that encodes and decodes these values but does not belong to a model."""
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
        """The attributes of the stored identity; empty unless a key names parts of the reference."""
        found = ((name, each, each.attribute(name)) for name, each in self.members)
        return tuple(
            Member((name, name.removesuffix("_id")), made.key_kind, made.from_text, each.identity)
            for name, each, made in found
        )

    @property
    def is_computed(self) -> bool:
        """Whether the app itself maintains the value."""
        return bool(self.source or self.copied or self.counted)

    def followed(self, given: object) -> object:
        """Return the value for a source value: the folded copy of a string, or a value extracted from a document."""
        if self.steps:
            return self._nameless.prepare(value_at(given, self.steps))
        return FOLDS[self.fold](given) if isinstance(given, str) else None

    def how(self, source: str) -> str:
        """Return how fingerprints describe the dependence on the attribute that is stored as ``source``."""
        return place_text(source, self.steps) if self.steps else f"{self.fold}({source})"

    @cached_property
    def _nameless(self) -> Attribute:
        return self.attribute(self.stored)

    def text(self, follows: str) -> str:
        """Return the fingerprint; ``follows`` describes what the value depends on, by physical names."""
        return attribute_text(self.stored, self.kind, self.options, follows)

    def value(self, stored: Mapping[str, object] | None) -> object:
        """Return the Python value of an AttributeValue or of a missing one; raise ``InvalidValue`` for a bad type."""
        found = self.absent if stored is None else stored
        return None if found is None else self._nameless.from_attribute_value(dict(found))

    def stored_value(self, value: object) -> dict[str, Any] | None:
        """Return a Python value as an AttributeValue; ``None`` is not stored."""
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
    """Return every attribute of a model by its Python name, in the order of declaration."""
    layout = registry.layout_of(model)
    parts = [part for key in (layout.primary, *layout.indexes) for part in (*key.partition.parts, *key.sort.parts)]
    apart = {part.name for part in parts if part.path}
    return {
        name: StoredAttribute.of(each, required=layout.attributes[name].required, apart=name in apart)
        for name, each in registry.attributes_of(model).items()
    }


@dataclass(frozen=True)
class UniqueRule(MigrationValue):
    """Some attributes, by Python name, whose combined values only one live object may have.

    ``canonical`` names the attributes that are compared without regard to case. ``condition`` uses physical names, and
    ``name`` is the name of a constraint with a condition. ``members`` names a set whose members must be unique too,
    among themselves and against the attribute's values.
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
        """Return the stored form of a declared rule."""
        return cls(
            rule.fields,
            canonical=tuple(each.name for each in rule.attributes if each.canonical),
            name=rule.name,
            condition=None if rule.condition == EVERYTHING else plain_condition(rule.condition),
            members="" if rule.members is None else rule.members.name,
        )

    @property
    def names(self) -> tuple[str, ...]:
        """All attributes that the rule claims, by Python name."""
        return (*self.attributes, self.members) if self.members else self.attributes
