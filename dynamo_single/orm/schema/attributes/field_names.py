"""The replacements for Django's fields and their options, for users who write them out of habit.

This module must not know attributes: it names them.
"""

from __future__ import annotations

from collections.abc import Collection

from django.db import models

from dynamo_single.exceptions import ConfigurationError

_TEXT = "UnicodeAttribute(max_length=...)"
_WHOLE = "IntegerAttribute()"
_MADE = (
    "IdAttribute(), which makes an identifier: DynamoDB counts no numbers up. A number that is given takes "
    "IntegerAttribute()"
)
_KEPT = "models.PROTECT or models.CASCADE; anything else is for the delete() of the other model"

#: Django's names, and their replacements.
NAMES = {
    "AutoField": _MADE,
    "BigAutoField": _MADE,
    "SmallAutoField": _MADE,
    "BigIntegerField": _WHOLE,
    "IntegerField": _WHOLE,
    "SmallIntegerField": _WHOLE,
    "PositiveBigIntegerField": "IntegerAttribute(validators=[MinValueValidator(0)])",
    "PositiveIntegerField": "IntegerAttribute(validators=[MinValueValidator(0)])",
    "PositiveSmallIntegerField": "IntegerAttribute(validators=[MinValueValidator(0)])",
    "BinaryField": "BinaryAttribute()",
    "BooleanField": "BooleanAttribute()",
    "NullBooleanField": "BooleanAttribute(null=True)",
    "CharField": _TEXT,
    "CommaSeparatedIntegerField": "NumberSetAttribute(), or ListAttribute() if the order matters",
    "CompositePrimaryKey": 'class Keys: primary = models.Key("ORDER#{customer}", "{number}"), which pk is made of',
    "DateField": "DateAttribute()",
    "DateTimeField": "TimestampAttribute()",
    "DecimalField": "DecimalAttribute(max_digits=..., decimal_places=...)",
    "DurationField": "DurationAttribute()",
    "EmailField": "EmailAttribute()",
    "Field": "Attribute, or one of its subclasses",
    "FileField": "FileAttribute(upload_to=...)",
    "FilePathField": _TEXT,
    "FloatField": "NumberAttribute()",
    "ForeignKey": "ReferenceAttribute(Company, on_delete=...)",
    "ForeignObject": "ReferenceAttribute(Company, on_delete=...)",
    "GeneratedField": "CanonicalAttribute(source=...) or CopiedAttribute(...), or set an attribute in save()",
    "GenericIPAddressField": "IPAddressAttribute()",
    "IPAddressField": 'IPAddressAttribute(protocol="IPv4")',
    "ImageField": "ImageAttribute(upload_to=...)",
    "Index": 'class Keys: by_name = models.IndexKey("gs1", "COMPANY", "{name}#{company_id}")',
    "JSONField": "MapAttribute() or ListAttribute(), which filters look into, or JSONAttribute() for JSON text",
    "ManyToManyField": 'ManyToMany("accounts.User", related_name="servers")',
    "OneToOneField": "OneToOneAttribute(Company, on_delete=...)",
    "SlugField": "SlugAttribute()",
    "TextField": "UnicodeAttribute(multiline=True)",
    "TimeField": "TimeAttribute()",
    "URLField": "URLAttribute()",
    "UUIDField": "UUIDAttribute()",
    "OrderWrt": "an attribute that holds the place, named in a sort key",
    "RESTRICT": _KEPT,
    "SET": _KEPT,
}

#: Options of Django's fields that attributes do not support, and the alternatives.
OPTIONS = {
    "db_collation": "DynamoDB compares bytes: add a CanonicalAttribute(source=...) to compare without case",
    "db_column": "attr_name=... is the name in the stored item",
    "db_comment": "leave it out",
    "db_constraint": "leave it out: DynamoDB does not check references",
    "db_default": "DynamoDB has no defaults: default=... is set when the object is made",
    "db_index": 'an index is declared in class Keys: by_name = models.IndexKey("gs1", ...)',
    "db_tablespace": "leave it out",
    "parent_link": "one item cannot be two models: derive from an abstract model",
    "primary_key": 'it is declared in class Keys: primary = models.Key("COMPANY#{company_id}", "#METADATA")',
    "related_query_name": "DynamoDB has no joins, so queries do not use this name; related_name= names the manager",
    "to_field": "a reference holds the other object's pk: leave it out",
    "unique_for_date": "keep the date in an attribute, and name both in Meta.unique_together",
    "unique_for_month": "keep the month in an attribute, and name both in Meta.unique_together",
    "unique_for_year": "keep the year in an attribute, and name both in Meta.unique_together",
}


def check_options(kind: str, options: Collection[str]) -> None:
    """Reject Django's options that attributes do not support; raise ``ConfigurationError`` with the alternative."""
    for name in options:
        if name in OPTIONS:
            raise ConfigurationError(f"{kind} does not take {name}: {OPTIONS[name]}.")


def missing_name(name: str) -> Exception:
    """The error for a name that ``dynamo_single.models`` does not have."""
    if name in NAMES:
        return ConfigurationError(f"dynamo_single.models has no {name}. Instead: {NAMES[name]}.")
    if name in models.__all__:
        return ConfigurationError(
            f"dynamo_single.models has no {name}. It is Django's: from django.db.models import {name}."
        )
    return AttributeError(f"module 'dynamo_single.models' has no attribute {name!r}")
