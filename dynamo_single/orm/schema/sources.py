"""What an attribute may follow from: a text, a document, or another object's attribute; all else is refused.

This module must not know keys.
"""

from __future__ import annotations

from collections.abc import Mapping

from dynamo_single.exceptions import ConfigurationError
from dynamo_single.orm.schema.attributes import (
    Attribute,
    CopiedAttribute,
    ExtractedAttribute,
    JSONAttribute,
    UnicodeAttribute,
)
from dynamo_single.orm.schema.attributes.documents import DocumentAttribute
from dynamo_single.orm.schema.attributes.following import FollowingAttribute
from dynamo_single.orm.schema.kinds import DynamoModel
from dynamo_single.table.items import StoredValue

Attributes = Mapping[str, Attribute]


def check_following(model: type[DynamoModel], attributes: Attributes, copy: FollowingAttribute) -> None:
    """Refuse what follows from no text or document, and what would change the primary key along with it."""
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


def _check_text(label: str, attributes: Attributes, copy: FollowingAttribute) -> None:
    source = attributes.get(copy.source)
    if not isinstance(source, UnicodeAttribute) or source.computed:
        texts = (name for name, each in attributes.items() if isinstance(each, UnicodeAttribute) and not each.computed)
        raise ConfigurationError(
            f"{label}: {copy.name} is made of {copy.source!r}, which is not a text attribute of the model. "
            f"Its texts are {', '.join(texts)}."
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
    """Refuse a copy from another table, and one that would change the primary key."""
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


def followed(copy: FollowingAttribute, source: Attribute, stored: StoredValue | None) -> StoredValue | None:
    """What is stored of a value that follows a stored one."""
    given = None if stored is None else source.from_attribute_value(dict(stored))
    value = copy.current({copy.source: given})
    return None if value is None else copy.to_attribute_value(value)
