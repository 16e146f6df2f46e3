"""The parts of the identities that a model's references hold, so that a key can name one: ``{project.tenant}``.

This module must not know layouts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dynamo_single.exceptions import ConfigurationError
from dynamo_single.orm.schema.attributes import (
    Attribute,
    CopiedAttribute,
    ExtractedAttribute,
    JSONAttribute,
    UnicodeAttribute,
)
from dynamo_single.orm.schema.attributes.computed import ComputedAttribute
from dynamo_single.orm.schema.attributes.documents import DocumentAttribute
from dynamo_single.orm.schema.attributes.references import ReferenceAttribute
from dynamo_single.orm.schema.keys.codecs import Codec, example_value
from dynamo_single.orm.schema.keys.identity import join_identity
from dynamo_single.orm.schema.keys.reference_parts import Member, codec_of_member
from dynamo_single.orm.schema.keys.template import KeyPart, refusal
from dynamo_single.orm.schema.types import DynamoModel


def codec_of(model: type[DynamoModel], attributes: Mapping[str, Attribute], part: KeyPart, source: str) -> Codec:
    """Return how a key encodes a part of an identity; raise ``ConfigurationError`` if it does not exist."""
    reference = attributes.get(part.name)
    if not isinstance(reference, ReferenceAttribute):
        first = part.shown.partition(".")[0]
        references = [each.field.name for each in attributes.values() if isinstance(each, ReferenceAttribute)]
        raise refusal(
            source,
            f"{{{part.shown}}} is no part of another object's pk: {model._meta.label} has no reference {first!r}. It "
            f"has {', '.join(references) or 'none'}",
        )
    target: Any = reference.field.related_model
    return codec_of_member(part, target._meta.label, members_of(target), source)


def attributes_of_identity(model: Any) -> list[Attribute]:
    """The attributes of a model's identity, in the key's order; none of a model in SQL."""
    fields = {field.attname: field for field in model._meta.concrete_fields}
    return [fields[name].attribute for name in getattr(model, "_identity", ())]


def members_of(model: type[DynamoModel]) -> tuple[Member, ...]:
    """The members of a model's identity, and theirs."""
    return tuple(_member(each) for each in attributes_of_identity(model))


def example_value_of(attribute: Attribute) -> object:
    """A value that an attribute of a key could have, for planning what does not depend on the value."""
    target = attribute.field.related_model if isinstance(attribute, ReferenceAttribute) else None
    members = attributes_of_identity(target) if target is not None else []
    if not members:
        return example_value(attribute.key_kind)
    values = [(each, example_value_of(each)) for each in members]
    if len(values) == 1:
        return values[0][1]
    return join_identity([each.to_text(value) for each, value in values])


def _member(attribute: Attribute) -> Member:
    field = attribute.field
    members = members_of(field.related_model) if isinstance(attribute, ReferenceAttribute) else ()
    return Member((attribute.name, field.name), attribute.key_kind, attribute.from_text, members)


# The allowed sources of an attribute: a string, a document, or another object's attribute.

Attributes = Mapping[str, Attribute]


def check_computed(model: type[DynamoModel], attributes: Attributes, copy: ComputedAttribute) -> None:
    """Reject a source that is not a string or document, or that would change the primary key."""
    label = model._meta.label
    if isinstance(copy, ExtractedAttribute):
        _check_document(label, attributes, copy)
        way_out = "Put it into the key of an index."
    else:
        _check_text(label, attributes, copy)
        way_out = f"Write {{{copy.source}:canonical}} in the primary key."
    if copy.name in model._identity:
        raise ConfigurationError(
            f"{label}: {copy.name} follows {copy.origin}, and the primary key of an object never changes. {way_out}"
        )


def _check_text(label: str, attributes: Attributes, copy: ComputedAttribute) -> None:
    source = attributes.get(copy.source)
    if not isinstance(source, UnicodeAttribute) or source.computed:
        texts = (name for name, each in attributes.items() if isinstance(each, UnicodeAttribute) and not each.computed)
        raise ConfigurationError(
            f"{label}: {copy.name} is computed from {copy.source!r}, which is not a string attribute of the "
            f"model. Its string attributes are {', '.join(texts)}."
        )


def _check_document(label: str, attributes: Attributes, copy: ExtractedAttribute) -> None:
    source = attributes.get(copy.source)
    if not isinstance(source, DocumentAttribute | JSONAttribute):
        documents = [name for name, each in attributes.items() if isinstance(each, DocumentAttribute | JSONAttribute)]
        raise ConfigurationError(
            f"{label}: {copy.name} is extracted from {copy.path!r}, and {copy.source!r} is not a document of the "
            f"model. It has {', '.join(documents) or 'none: give it a MapAttribute'}."
        )
    is_misled = source.attr_type == "L" and isinstance(copy.steps[0] if copy.steps else "", str)
    if not copy.steps or "" in copy.steps or is_misled:
        raise ConfigurationError(
            f"{label}: {copy.name} is extracted from {copy.path!r}, which names no place inside {copy.source}: write "
            f'"{copy.source}__{"0" if source.attr_type == "L" else "author"}__lastname", for example.'
        )


def check_copied(model: type[DynamoModel], copy: CopiedAttribute) -> None:
    """Reject a copy from another table, and a copy that would change the primary key."""
    label, other = model._meta.label, copy.source.field.model
    if copy.source_model._options.alias != model._options.alias:
        raise ConfigurationError(
            f"{label}: {copy.name} is copied from {other._meta.label}, which is in another table: one transaction has "
            "one table here."
        )
    if copy.name in model._identity:
        raise ConfigurationError(
            f"{label}: {copy.name} follows {copy.origin}, and the primary key of an object never changes. "
            "Put it into the key of an index."
        )
