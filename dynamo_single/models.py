"""The public names for declaring models: ``from dynamo_single import models``."""

from dynamo_single.attributes import (
    Attribute,
    BinaryAttribute,
    BinarySetAttribute,
    BooleanAttribute,
    CanonicalAttribute,
    DateAttribute,
    DecimalAttribute,
    EmailAttribute,
    IdAttribute,
    IntegerAttribute,
    JSONAttribute,
    ListAttribute,
    MapAttribute,
    NumberAttribute,
    NumberSetAttribute,
    ReferenceAttribute,
    TimestampAttribute,
    TTLAttribute,
    UnicodeAttribute,
    UnicodeSetAttribute,
    UUIDAttribute,
)
from dynamo_single.collections import Children
from dynamo_single.keys import IndexKey, Key
from dynamo_single.manager import Manager, SoftDeleteManager
from dynamo_single.model import Model, SoftDeleteModel, TimestampedModel
from dynamo_single.queryset import QuerySet

__all__ = [
    "Attribute",
    "BinaryAttribute",
    "BinarySetAttribute",
    "BooleanAttribute",
    "CanonicalAttribute",
    "Children",
    "DateAttribute",
    "DecimalAttribute",
    "EmailAttribute",
    "IdAttribute",
    "IndexKey",
    "IntegerAttribute",
    "JSONAttribute",
    "Key",
    "ListAttribute",
    "Manager",
    "MapAttribute",
    "Model",
    "NumberAttribute",
    "NumberSetAttribute",
    "QuerySet",
    "ReferenceAttribute",
    "SoftDeleteManager",
    "SoftDeleteModel",
    "TTLAttribute",
    "TimestampAttribute",
    "TimestampedModel",
    "UUIDAttribute",
    "UnicodeAttribute",
    "UnicodeSetAttribute",
]
