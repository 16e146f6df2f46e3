"""Django lookups for what DynamoDB compares and SQL does not: canonical forms, sizes and stored types.

They are declarations that fields register; ``comparisons`` reads them. This module must not know attributes or queries.
"""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models.fields.json import KeyTransformFactory

from dynamo_single.exceptions import InvalidValue
from dynamo_single.orm.schema.encoding.shown import shown

#: The names that DynamoDB has for the types of values.
STORED_TYPES = ("S", "N", "B", "BOOL", "NULL", "M", "L", "SS", "NS", "BS")


class Canonical(models.lookups.Exact):
    """Equal but for case, composition and outer white space: what ``{name:canonical}`` in a key compares by."""

    lookup_name = "canonical"


class AttributeType(models.Lookup):
    """Whether a value is stored as one of DynamoDB's types."""

    lookup_name = "attribute_type"
    prepare_rhs = False

    def get_prep_lookup(self) -> Any:
        """The type's name; raises ``InvalidValue`` for one that there is not."""
        if not hasattr(self.rhs, "resolve_expression") and self.rhs not in STORED_TYPES:
            raise InvalidValue(f"attribute_type takes one of {', '.join(STORED_TYPES)}, not {shown(self.rhs)}.")
        return super().get_prep_lookup()


class SizeField(models.IntegerField):  # type: ignore[type-arg]  # not generic at run time
    """What a size is compared with."""

    def get_prep_value(self, value: object) -> int:
        """A whole number; raises ``InvalidValue`` for anything else."""
        if isinstance(value, bool) or not isinstance(value, int):
            raise InvalidValue(f"size is compared with whole numbers, not with {shown(value)}.")
        return value


class Size(models.Transform):
    """How large a value is: a text's UTF-16 code units, bytes of binary, members of a set, elements of a list or map.

    ``data__size=3`` asks how many keys a map has. Only where more steps follow, ``size`` is a key of it.
    """

    lookup_name = "size"
    output_field = SizeField()

    def get_transform(self, lookup_name: str) -> Any:
        """A step further into a document whose key is called ``size``."""
        # What size__size would mean nobody can tell.
        if isinstance(self.lhs.output_field, models.JSONField) and lookup_name != self.lookup_name:
            return KeyTransformFactory(lookup_name)
        return super().get_transform(lookup_name)
