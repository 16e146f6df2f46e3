"""Documents in forms and fixtures: indented JSON with exact numbers, and an encoding for types that JSON lacks.

A set or binary within a map or a list is ``{"$dynamodb": {"SS": ["a", "b"]}}``: DynamoDB's own JSON, as in fixtures.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django import forms
from django.core.exceptions import ValidationError
from django.core.files import File
from django.db import models
from django.db.models.fields.json import KeyTransformFactory
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from dynamo_single.exceptions import InvalidValue
from dynamo_single.lazy_modules import LazyModule
from dynamo_single.orm.schema.keys import values
from dynamo_single.orm.schema.keys.values import binary_to_text, shown, to_json
from dynamo_single.table.answers import with_bytes
from dynamo_single.table.request import MAX_ITEM_SIZE

if TYPE_CHECKING:
    import simplejson
else:
    simplejson = LazyModule("simplejson")


# Bytes in a form: how many are stored, and a file in their place.


def size_in_words(value: object) -> str:
    """Return the number of bytes as words; empty without bytes."""
    if not isinstance(value, bytes | bytearray | memoryview):
        return ""
    count = len(value)
    return ngettext("%(count)d byte", "%(count)d bytes", count) % {"count": count}


class StoredBytes:
    """Stored bytes in a template: their number, and their URL, if there is one."""

    def __init__(self, value: object, url: str = "") -> None:
        self.text = size_in_words(value)
        self.url = url

    def __str__(self) -> str:
        return self.text


class BinaryWidget(forms.ClearableFileInput):
    """A file input, with the stored value, and a box to clear it if it is optional."""

    template_name = "dynamo_single/forms/binary.html"

    def url_of(self, name: str) -> str:
        """Return the URL of a stored value; there is none here."""
        return ""

    def is_initial(self, value: object) -> bool:
        """Return whether there is a stored value."""
        return isinstance(value, bytes | bytearray | memoryview) and len(value) > 0

    def get_context(self, name: str, value: Any, attrs: dict[str, object] | None) -> dict[str, object]:
        """Return Django's context, with the number of bytes instead of a file's URL."""
        context: dict[str, Any] = super().get_context(name, value, attrs)
        if self.is_initial(value):
            context["widget"]["value"] = StoredBytes(value, self.url_of(name))
        return context


class BinaryFormField(forms.FileField):
    """Bytes in a form: a file that is uploaded; without one, what is stored stays.

    A file of more bytes than an item has is refused before it is read.
    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
    """

    widget = BinaryWidget

    default_error_messages: ClassVar[dict[str, Any]] = {
        "too_large": _("The file has %(size)d bytes; a DynamoDB item can have at most %(limit)d."),
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
        """Return the number of bytes, for messages and the log."""
        return size_in_words(value)


# Django lookups for comparisons that DynamoDB supports and SQL does not: canonical forms, sizes and stored types.  They
# are declarations that fields register; ``comparisons`` reads them.

#: The names that DynamoDB has for the types of values.
STORED_TYPES = ("S", "N", "B", "BOOL", "NULL", "M", "L", "SS", "NS", "BS")


class Canonical(models.lookups.Exact):
    """Equal except for case, composition and outer white space: the comparison of ``{name:canonical}`` in a key."""

    lookup_name = "canonical"


class AttributeType(models.Lookup):
    """Whether a value is stored as one of DynamoDB's types."""

    lookup_name = "attribute_type"
    prepare_rhs = False

    def get_prep_lookup(self) -> Any:
        """Return the type's name; raise ``InvalidValue`` for an unknown one."""
        if not hasattr(self.rhs, "resolve_expression") and self.rhs not in STORED_TYPES:
            raise InvalidValue(f"attribute_type takes one of {', '.join(STORED_TYPES)}, not {shown(self.rhs)}.")
        return super().get_prep_lookup()


class SizeField(models.IntegerField):  # type: ignore[type-arg]  # not generic at run time
    """The value that a size is compared with."""

    def get_prep_value(self, value: object) -> int:
        """A whole number; raises ``InvalidValue`` for anything else."""
        if isinstance(value, bool) or not isinstance(value, int):
            raise InvalidValue(f"size is compared with whole numbers, not with {shown(value)}.")
        return value


class Size(models.Transform):
    """How large a value is: a text's UTF-16 code units, bytes of binary, members of a set, elements of a list or map.

    ``data__size=3`` compares the number of a map's keys. ``size`` is a key of the map only if more steps follow.
    """

    lookup_name = "size"
    output_field = SizeField()

    def get_transform(self, lookup_name: str) -> Any:
        """A step further into a document whose key is called ``size``."""
        # The meaning of size__size is undefined.
        if isinstance(self.lhs.output_field, models.JSONField) and lookup_name != self.lookup_name:
            return KeyTransformFactory(lookup_name)
        return super().get_transform(lookup_name)


# Values in fixtures that JSON does not have: as DynamoDB's own JSON, and back.

#: The only key of a map that represents, in a fixture, a value that JSON would change.
FIXTURE_KEY = "$dynamodb"


def to_fixture(attribute: Any, value: object, shown: object = None) -> object:
    """A value, or ``shown`` in its place, as a JSON serializer can write it and ``from_fixture`` reads it back."""
    if value is None:
        return None
    marked = isinstance(value, dict) and set(value) == {FIXTURE_KEY}
    try:
        if not marked:
            return to_json(value if shown is None else shown)
    except TypeError:
        pass
    return {FIXTURE_KEY: binary_to_text(attribute.to_attribute_value(value))}


def from_fixture(attribute: Any, value: object) -> object:
    """The value that ``to_fixture`` wrote; any other is given back as it is."""
    if not isinstance(value, dict) or set(value) != {FIXTURE_KEY}:
        return value
    try:
        return attribute.from_attribute_value(with_bytes(value[FIXTURE_KEY]))
    except (InvalidValue, ValueError, TypeError, AttributeError) as error:
        raise ValidationError(
            _("A map whose only key is %(key)s represents a value in DynamoDB's JSON."),
            code="invalid",
            params={"key": FIXTURE_KEY},
        ) from error


class FixtureDecoder(json.JSONDecoder):
    """JSON text of a fixture."""

    def __init__(self, *, attribute: Any, **options: Any) -> None:
        super().__init__(**options)
        self.attribute = attribute

    def decode(self, s: str, *args: Any) -> object:
        """The value that was written."""
        return from_fixture(self.attribute, super().decode(s, *args))


#: The maximum nesting; a deeper text is rejected before Python's own limit.
_MAX_LEVELS: Final = 250


def document_text(value: object, *, marked: bool = True, indent: int | None = 2) -> str:
    """A document as JSON text, its keys sorted, since a stored map has no order.

    Types that JSON lacks are ``marked``, unless the document is stored as JSON without such types.
    """
    found = _as_json(value) if marked else value
    return str(simplejson.dumps(found, use_decimal=True, ensure_ascii=False, sort_keys=True, indent=indent))


def document_of(text: str, *, marked: bool = True) -> object:
    """Parse a document; ``ValidationError`` names the position of an error, by line and column or by the path."""
    try:
        found = json.loads(text, parse_float=Decimal, parse_constant=_no_number, object_pairs_hook=_each_once)
    except json.JSONDecodeError as error:
        params = {"line": error.lineno, "column": error.colno}
        raise ValidationError(
            _("Enter valid JSON: see line %(line)d, column %(column)d."), "invalid", params
        ) from error
    except (ValueError, RecursionError) as error:  # a whole number of thousands of digits, or too deep
        raise ValidationError(_("Enter valid JSON, with shorter numbers or fewer levels."), "invalid") from error
    return _from_json(found, "", 0) if marked else found


def _each_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _value in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValidationError(_('The key "%(key)s" occurs twice in one object.'), "invalid", {"key": twice})
    return found


def _no_number(text: str) -> object:
    raise ValidationError(_("%(text)s is not a valid JSON number."), "invalid", {"text": text})


def _as_json(value: object) -> object:
    if isinstance(value, dict):
        if value.keys() == {FIXTURE_KEY}:
            return _as_marked(value)
        return {name: _as_json(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(each) for each in value]
    return _as_marked(value) if isinstance(value, set | frozenset | bytes) else value


def _as_marked(value: object) -> object:
    return {FIXTURE_KEY: values.binary_to_text(values.to_attribute_value(value))}


def _from_json(value: object, path: str, level: int) -> object:
    if level > _MAX_LEVELS:
        raise ValidationError(_("Enter valid JSON, with shorter numbers or fewer levels."), "invalid")
    if isinstance(value, list):
        return [_from_json(each, f"{path}[{place}]", level + 1) for place, each in enumerate(value)]
    if not isinstance(value, dict):
        return value
    if value.keys() != {FIXTURE_KEY}:
        return {name: _from_json(each, f"{path}.{name}" if path else name, level + 1) for name, each in value.items()}
    try:
        return values.from_attribute_value(with_bytes(value[FIXTURE_KEY]))
    except (InvalidValue, ValueError, TypeError, AttributeError, ArithmeticError) as error:
        text = _("%(path)s: a map whose only key is %(key)s represents a value in DynamoDB's JSON.")
        raise ValidationError(text, "invalid", {"path": path or "$", "key": FIXTURE_KEY}) from error
