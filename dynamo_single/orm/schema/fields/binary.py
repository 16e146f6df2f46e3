"""Bytes in a form: how many are stored, and a file in their place."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.core.exceptions import ValidationError
from django.core.files import File
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from dynamo_single.table.limits import MAX_ITEM_SIZE


def size_in_words(value: object) -> str:
    """How many bytes there are; nothing for none."""
    if not isinstance(value, bytes | bytearray | memoryview):
        return ""
    count = len(value)
    return ngettext("%(count)d byte", "%(count)d bytes", count) % {"count": count}


class HeldBytes:
    """Stored bytes to a template: their number, and where they can be read, if they can."""

    def __init__(self, value: object, url: str = "") -> None:
        self.text = size_in_words(value)
        self.url = url

    def __str__(self) -> str:
        return self.text


class BinaryWidget(forms.ClearableFileInput):
    """A field for a file; beside it what is stored, and a box to clear it where it may be missing."""

    template_name = "dynamo_single/forms/binary.html"

    def url_of(self, name: str) -> str:
        """Where what is stored under a name can be read; nowhere here."""
        return ""

    def is_initial(self, value: object) -> bool:
        """Whether something is stored."""
        return isinstance(value, bytes | bytearray | memoryview) and len(value) > 0

    def get_context(self, name: str, value: Any, attrs: dict[str, object] | None) -> dict[str, object]:
        """Django's, with the number of bytes in the place of a file's address."""
        context: dict[str, Any] = super().get_context(name, value, attrs)
        if self.is_initial(value):
            context["widget"]["value"] = HeldBytes(value, self.url_of(name))
        return context


class BinaryFormField(forms.FileField):
    """Bytes in a form: a file that is uploaded; without one, what is stored stays.

    A file of more bytes than an item has is refused before it is read.
    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
    """

    widget = BinaryWidget

    default_error_messages: ClassVar[dict[str, Any]] = {
        "too_large": _("The file has %(size)d bytes; an item of DynamoDB has %(limit)d at most."),
    }

    def clean(self, data: Any, initial: Any = None) -> Any:
        """The bytes of the file, or what is stored; ``None`` where it is cleared."""
        found: Any = super().clean(data, initial)
        if not isinstance(found, File):
            return found or None
        if found.size is not None and found.size > MAX_ITEM_SIZE:
            params = {"size": found.size, "limit": MAX_ITEM_SIZE}
            raise ValidationError(self.error_messages["too_large"], code="too_large", params=params)
        found.seek(0)
        return found.read()

    def in_words(self, value: object) -> str:
        """How many bytes there are, for messages and the log."""
        return size_in_words(value)
