"""The attributes of a model: PynamoDB attributes that bring real Django fields along."""

from dynamo_single.orm.schema.attributes.base import Attribute
from dynamo_single.orm.schema.attributes.computed import CanonicalAttribute, ExtractedAttribute
from dynamo_single.orm.schema.attributes.dates import (
    DateAttribute,
    DurationAttribute,
    TimeAttribute,
    TimestampAttribute,
    TTLAttribute,
)
from dynamo_single.orm.schema.attributes.documents import (
    BinarySetAttribute,
    ListAttribute,
    MapAttribute,
    NumberSetAttribute,
    UnicodeSetAttribute,
)
from dynamo_single.orm.schema.attributes.files import FileAttribute, ImageAttribute
from dynamo_single.orm.schema.attributes.json_texts import JSONAttribute
from dynamo_single.orm.schema.attributes.references import (
    AuthorAttribute,
    ContentTypeAttribute,
    CopiedAttribute,
    CounterAttribute,
    OneToOneAttribute,
    ReferenceAttribute,
)
from dynamo_single.orm.schema.attributes.scalars import (
    BinaryAttribute,
    BooleanAttribute,
    DecimalAttribute,
    EmailAttribute,
    IdAttribute,
    IntegerAttribute,
    IPAddressAttribute,
    NumberAttribute,
    SlugAttribute,
    UnicodeAttribute,
    URLAttribute,
    UUIDAttribute,
    VersionAttribute,
)

__all__ = [
    "Attribute",
    "AuthorAttribute",
    "BinaryAttribute",
    "BinarySetAttribute",
    "BooleanAttribute",
    "CanonicalAttribute",
    "ContentTypeAttribute",
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
