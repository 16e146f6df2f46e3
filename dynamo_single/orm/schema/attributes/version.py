"""The attribute that counts the writes of an object, by which a writer notices another one.

This module must not know how or when items are written.
"""

from __future__ import annotations

from typing import Any, Literal

from dynamo_single.exceptions import ConfigurationError
from dynamo_single.orm.schema.attributes.base import Label
from dynamo_single.orm.schema.attributes.scalars import IntegerAttribute
from dynamo_single.table import names


class VersionAttribute(IntegerAttribute[Literal[True]]):
    """How often the object was written: 1 on creation, one more with each write, never set by hand.

    Saving or deleting an object that was read before another's write is ``StaleObject``. An object that is older than
    the attribute has none (``None``) until it is written.
    """

    computed = True
    #: In no key: ``update()`` counts without reading, so that no key could follow.
    key_kind = None
    origin = "the number of writes"

    def __init__(
        self, verbose_name: Label | None = None, *, help_text: Label = "", attr_name: str = names.VERSION
    ) -> None:
        if attr_name != names.VERSION:
            raise ConfigurationError(f"A VersionAttribute is stored as {names.VERSION!r}, not as {attr_name!r}.")
        super().__init__(verbose_name, null=True, editable=False, help_text=help_text, attr_name=attr_name)

    def next_after(self, version: Any) -> int:
        """The version of an object that is written once more."""
        return int(version or 0) + 1
