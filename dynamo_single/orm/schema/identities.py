"""What the identities are made of that a model's references hold, so that a key can name a part: ``{project.tenant}``.

This module must not know layouts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dynamo_single.orm.schema.attributes import Attribute
from dynamo_single.orm.schema.attributes.references import ReferenceAttribute
from dynamo_single.orm.schema.encoding.codecs import Codec, some_value
from dynamo_single.orm.schema.encoding.identity import join_identity
from dynamo_single.orm.schema.encoding.keys import KeyPart, refusal
from dynamo_single.orm.schema.encoding.members import Member, codec_of_member
from dynamo_single.orm.schema.kinds import DynamoModel


def codec_of(model: type[DynamoModel], attributes: Mapping[str, Attribute], part: KeyPart, source: str) -> Codec:
    """How a key writes the part of an identity that a template names; ``ConfigurationError`` if there is none."""
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


def some_value_of(attribute: Attribute) -> object:
    """A value that an attribute of a key could have, for planning what does not depend on the value."""
    target = attribute.field.related_model if isinstance(attribute, ReferenceAttribute) else None
    members = attributes_of_identity(target) if target is not None else []
    if not members:
        return some_value(attribute.key_kind)
    values = [(each, some_value_of(each)) for each in members]
    if len(values) == 1:
        return values[0][1]
    return join_identity([each.to_text(value) for each, value in values])


def _member(attribute: Attribute) -> Member:
    field = attribute.field
    members = members_of(field.related_model) if isinstance(attribute, ReferenceAttribute) else ()
    return Member((attribute.name, field.name), attribute.key_kind, attribute.from_text, members)
