"""Django fields of texts of a certain form: slugs, addresses of pages and of computers.

As ``fields`` does, they describe, validate and make form fields as Django's do.
"""

from __future__ import annotations

from typing import Any

from django.db import models

from dynamo_single.orm.schema.fields.fields import DynamoField
from dynamo_single.orm.schema.fields.lookups import Canonical


class SlugField(DynamoField, models.SlugField):  # type: ignore[type-arg]  # not generic at run time
    """A short text of letters, digits, hyphens and underscores."""


class URLField(DynamoField, models.URLField):  # type: ignore[type-arg]  # not generic at run time
    """The address of a page."""

    def formfield(self, **kwargs: object) -> Any:
        """What is typed without a scheme is https, which Django 6 assumes and Django 5.2 warns of."""
        return super().formfield(**{"assume_scheme": "https", **kwargs})


class IPAddressField(DynamoField, models.GenericIPAddressField):  # type: ignore[type-arg]  # not generic at run time
    """An IPv4 or IPv6 address."""


for _text_field in (SlugField, URLField, IPAddressField):
    _text_field.register_lookup(Canonical)
