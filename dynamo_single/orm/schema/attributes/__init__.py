"""The attributes of a model: PynamoDB attributes that bring real Django fields along."""

from dynamo_single.orm.schema.attributes.authors import AuthorAttribute
from dynamo_single.orm.schema.attributes.base import Attribute
from dynamo_single.orm.schema.attributes.canonical import CanonicalAttribute
from dynamo_single.orm.schema.attributes.derived import CopiedAttribute, CounterAttribute
from dynamo_single.orm.schema.attributes.documents import (
    BinarySetAttribute,
    JSONAttribute,
    ListAttribute,
    MapAttribute,
    NumberSetAttribute,
    UnicodeSetAttribute,
)
from dynamo_single.orm.schema.attributes.extracted import ExtractedAttribute
from dynamo_single.orm.schema.attributes.files import FileAttribute, ImageAttribute
from dynamo_single.orm.schema.attributes.references import OneToOneAttribute, ReferenceAttribute
from dynamo_single.orm.schema.attributes.scalars import (
    BinaryAttribute,
    BooleanAttribute,
    DecimalAttribute,
    EmailAttribute,
    IdAttribute,
    IntegerAttribute,
    NumberAttribute,
    UnicodeAttribute,
    UUIDAttribute,
)
from dynamo_single.orm.schema.attributes.texts import IPAddressAttribute, SlugAttribute, URLAttribute
from dynamo_single.orm.schema.attributes.times import (
    DateAttribute,
    DurationAttribute,
    TimeAttribute,
    TimestampAttribute,
    TTLAttribute,
)
from dynamo_single.orm.schema.attributes.version import VersionAttribute

__all__ = [
    "Attribute",
    "AuthorAttribute",
    "BinaryAttribute",
    "BinarySetAttribute",
    "BooleanAttribute",
    "CanonicalAttribute",
    "CopiedAttribute",
    "CounterAttribute",
    "DateAttribute",
    "DecimalAttribute",
    "DurationAttribute",
    "EmailAttribute",
    "ExtractedAttribute",
    "FileAttribute",
    "IPAddressAttribute",
    "IdAttribute",
    "ImageAttribute",
    "IntegerAttribute",
    "JSONAttribute",
    "ListAttribute",
    "MapAttribute",
    "NumberAttribute",
    "NumberSetAttribute",
    "OneToOneAttribute",
    "ReferenceAttribute",
    "SlugAttribute",
    "TTLAttribute",
    "TimeAttribute",
    "TimestampAttribute",
    "URLAttribute",
    "UUIDAttribute",
    "UnicodeAttribute",
    "UnicodeSetAttribute",
    "VersionAttribute",
]
