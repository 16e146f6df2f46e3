"""Generators of random values for model_bakery: ``BAKER_CUSTOM_FIELDS_GEN = GENERATORS`` in the settings of the tests.

This module imports neither models nor model_bakery, so that settings can import it.
"""

from __future__ import annotations

from typing import Final

_FIELDS: Final = "dynamo_single.orm.schema.fields"
_BAKERY: Final = "model_bakery.random_gen"
_OURS: Final = "dynamo_single.contrib.model_bakery.generators"

#: The path of a generator for each class of a field.
GENERATORS: Final[dict[str, str]] = {
    f"{_FIELDS}.base.TextField": f"{_OURS}.text",
    f"{_FIELDS}.base.IdentityField": f"{_OURS}.nothing",
    f"{_FIELDS}.base.CopiedField": f"{_OURS}.nothing",
    f"{_FIELDS}.base.LongTextField": f"{_BAKERY}.gen_text",
    f"{_FIELDS}.base.EmailField": f"{_OURS}.email",
    f"{_FIELDS}.base.UUIDField": f"{_BAKERY}.gen_uuid",
    f"{_FIELDS}.base.IntegerField": f"{_BAKERY}.gen_integer",
    f"{_FIELDS}.base.NumberField": f"{_BAKERY}.gen_float",
    f"{_FIELDS}.base.DecimalField": f"{_OURS}.decimal",
    f"{_FIELDS}.base.BooleanField": f"{_BAKERY}.gen_boolean",
    f"{_FIELDS}.base.TimestampField": f"{_OURS}.moment",
    f"{_FIELDS}.base.DateField": f"{_BAKERY}.gen_date",
    f"{_FIELDS}.base.BinaryField": f"{_BAKERY}.gen_byte_string",
    f"{_FIELDS}.base.DocumentField": f"{_OURS}.document",
    f"{_FIELDS}.base.SetField": f"{_OURS}.members",
    f"{_FIELDS}.base.ReferenceField": f"{_BAKERY}.gen_related",
    f"{_FIELDS}.simple.OneToOneField": f"{_BAKERY}.gen_related",
    f"{_FIELDS}.simple.SlugField": f"{_OURS}.slug",
    f"{_FIELDS}.simple.URLField": f"{_OURS}.url",
    f"{_FIELDS}.simple.IPAddressField": f"{_BAKERY}.gen_ipv4",
    f"{_FIELDS}.simple.TimeField": f"{_BAKERY}.gen_time",
    f"{_FIELDS}.simple.DurationField": f"{_BAKERY}.gen_interval",
    f"{_FIELDS}.simple.FileField": f"{_BAKERY}.gen_file_field",
    f"{_FIELDS}.simple.ImageField": f"{_BAKERY}.gen_image_field",
    "dynamo_single.orm.schema.attributes.references.AuthorField": f"{_OURS}.nothing",
}
