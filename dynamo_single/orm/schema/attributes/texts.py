"""Attributes of texts of a certain form, which Django validates: slugs, addresses of pages and of computers.

``save()`` takes any text for them, as Django's fields do; forms and ``full_clean()`` take what Django's validators do.
"""

from __future__ import annotations

import ipaddress
from typing import Any

from django.core.exceptions import ValidationError
from django.db import models

from dynamo_single.orm.schema.attributes.base import Label, Null
from dynamo_single.orm.schema.attributes.scalars import UnicodeAttribute
from dynamo_single.orm.schema.encoding.words import gettext_noop
from dynamo_single.orm.schema.fields import texts


class SlugAttribute(UnicodeAttribute[Null]):
    """A short text for addresses, validated as Django's ``SlugField`` does; 50 characters unless ``max_length`` says.

    ``allow_unicode=True`` takes letters of all scripts.
    """

    field_class = texts.SlugField

    def __init__(
        self,
        verbose_name: Label | None = None,
        *,
        allow_unicode: bool = False,
        null: Null = False,  # type: ignore[assignment]  # see Attribute
        **options: Any,
    ) -> None:
        super().__init__(verbose_name, **options | {"null": null})
        self.field_options["allow_unicode"] = allow_unicode


class URLAttribute(UnicodeAttribute[Null]):
    """The address of a page, validated as Django's ``URLField`` does; 200 characters unless ``max_length`` says."""

    field_class = texts.URLField


class IPAddressAttribute(UnicodeAttribute[Null]):
    """An IPv4 or IPv6 address as text, validated as Django's ``GenericIPAddressField`` does.

    ``protocol`` is ``both``, ``IPv4`` or ``IPv6``; ``unpack_ipv4=True`` makes ``10.0.0.1`` of ``::ffff:10.0.0.1``. An
    IPv6 address is stored in its shortest form. Addresses sort as texts: ``10.0.0.10`` is below ``10.0.0.9``.
    """

    expects = gettext_noop("an IP address")
    field_class = texts.IPAddressField

    def __init__(
        self,
        verbose_name: Label | None = None,
        *,
        protocol: str = "both",
        unpack_ipv4: bool = False,
        null: Null = False,  # type: ignore[assignment]  # see Attribute
        **options: Any,
    ) -> None:
        super().__init__(verbose_name, **options | {"null": null})
        self.field_options |= {"protocol": protocol, "unpack_ipv4": unpack_ipv4}
        #: Knows the one form of an address.
        self.reader: Any = models.GenericIPAddressField(unpack_ipv4=unpack_ipv4)

    def stored_options(self) -> dict[str, object]:
        """What decides the one form of an address."""
        return {"unpack_ipv4": True} if self.field_options["unpack_ipv4"] else {}

    def prepare(self, value: object) -> str | None:
        """As Django stores it: what is empty is no address."""
        return None if value == "" else super().prepare(value)

    def clean(self, value: object) -> str:
        """Text, or an address of Python's ``ipaddress``; an IPv6 address in its one form."""
        if isinstance(value, ipaddress.IPv4Address | ipaddress.IPv6Address):
            value = str(value)
        text = super().clean(value)
        if ":" not in text:
            return text
        try:
            return str(self.reader.to_python(text))
        except ValidationError:
            return text  # the start of one, to be looked for; what is saved is validated by forms
