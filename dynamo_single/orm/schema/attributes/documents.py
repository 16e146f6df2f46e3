"""Attributes that hold maps, lists, sets and JSON text."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from dynamo_single.exceptions import InvalidValue
from dynamo_single.later import Later
from dynamo_single.orm.schema.attributes.base import Absent, Attribute, Label, Null, T
from dynamo_single.orm.schema.attributes.shapes import Elements, Shape, hiding
from dynamo_single.orm.schema.encoding import values
from dynamo_single.orm.schema.encoding.secrets import MASK, Path
from dynamo_single.orm.schema.encoding.words import NESTED_TOO_DEEP, gettext_noop, words
from dynamo_single.orm.schema.fields import fields
from dynamo_single.orm.schema.fields.forms import number_member
from dynamo_single.orm.schema.kinds import ModelField

if TYPE_CHECKING:
    import simplejson
else:
    simplejson = Later("simplejson")

#: A whole number that is written with an exponent beyond this stays a ``Decimal``; Python's ``float`` ends there.
_MOST_DIGITS = 309
#: How deep lists and dicts of a ``JSONAttribute`` may be nested. DynamoDB stores text and has no limit; Python's parser
#: ends at its recursion limit of 1,000, which a web request has used up in part when it reads the value again.
MAX_JSON_DEPTH = 200


class DocumentAttribute(Attribute[T, Null]):
    """What maps and lists share: any nesting of DynamoDB's types; numbers come back as ``int`` or exact ``Decimal``."""

    field_class = fields.DocumentField
    document = True
    python_types: tuple[type, ...] = ()
    #: What is declared of what lies inside.
    shape: Shape | Elements | None = None

    def check_whole(self, value: object) -> None:
        """Hold a map or a list to what is declared of what lies inside."""
        if self.shape is not None and value is not None:
            with hiding(self.is_secret(), self.name):
                self.shape.check(value, self.name)

    def shown(self, value: object) -> str:
        """Return a value for a message; it is masked if the document is a secret, or declares one inside."""
        return MASK if self.shape is not None and self.shape.has_secrets() else super().shown(value)

    def hides_inside(self, path: Path) -> bool:
        """Return whether a path leads to a secret: by what is declared of its places, else by their names."""
        return super().hides_inside(path) if self.shape is None else self.shape.hides(path)

    def clean(self, value: object) -> Any:
        """The value in the types that reading it back gives."""
        if not isinstance(value, self.python_types):
            raise self.refuse(value)
        if self.shape is None:
            return self.decode(self.encode(value))
        with hiding(self.shape.has_secrets(), self.name):
            return self.decode(self.encode(self.shape.placed(value)))

    def lookup_value(self, value: object) -> object:
        """The value with all of the places of its numbers, as that of a decimal number."""
        prepared = self.prepare(value)
        if prepared is None or self.shape is None or not self.shape.has_decimals:
            return prepared
        return values.from_attribute_value({self.attr_type: self.encode(value)})

    def encode(self, value: object) -> Any:
        """The inside of an M or L AttributeValue."""
        return values.to_attribute_value(value, path=self.name)[self.attr_type]

    def decode(self, inner: object) -> Any:
        """A ``dict`` or a ``list``."""
        found = values.from_attribute_value({self.attr_type: inner})
        return found if self.shape is None else self.shape.placed(found)


class MapAttribute(DocumentAttribute[dict[str, Any], Null]):
    """A map with text keys and values of any DynamoDB type, nested as they come.

    ``schema`` is a class that declares places of it by attributes, and maps in it by nested classes. Every write that
    changes the map, or one of these places, is held to it: kinds, missing values, choices, lengths and validators
    (``InvalidValue``). All other keys may hold anything. Nothing is converted, except that decimal numbers are written
    and read with the places of their ``DecimalAttribute``. Nothing that is stored is checked.
    """

    attr_type = "M"
    expects = gettext_noop("a dict")
    python_types = (dict,)

    def __init__(
        self,
        verbose_name: Label | None = None,
        *,
        schema: type | None = None,
        null: Null = False,  # type: ignore[assignment]  # see Attribute
        **options: Any,
    ) -> None:
        super().__init__(verbose_name, **options | {"null": null})
        self.shape = None if schema is None else Shape(schema)


class ListAttribute(DocumentAttribute[list[Any], Null]):
    """A list with values of any DynamoDB type.

    Elements that are maps can have a ``schema``, a class as ``MapAttribute`` takes it; elements of one kind are
    declared by an attribute, ``of=models.NumberAttribute()``. Every write that changes the list, an element or a place
    in one is held to it. Decimal numbers get their places, as in a map. Nothing that is stored is checked.
    """

    attr_type = "L"
    expects = gettext_noop("a list")
    python_types = (list, tuple)

    def __init__(
        self,
        verbose_name: Label | None = None,
        *,
        schema: type | None = None,
        of: Attribute | None = None,
        null: Null = False,  # type: ignore[assignment]  # see Attribute
        **options: Any,
    ) -> None:
        super().__init__(verbose_name, **options | {"null": null})
        self.shape = None if schema is None and of is None else Elements(schema, of)


class JSONAttribute(Attribute[Any, Null]):
    """Any JSON value, stored as text; DynamoDB cannot look inside (a ``MapAttribute`` can be filtered by path).

    Lists and dicts may be nested 200 levels deep; what is deeper is ``InvalidValue``.

    Equal values have one text: keys are sorted, and numbers lose the zeros that add nothing to them.
    """

    attr_type = "S"
    expects = gettext_noop("a value that JSON can hold")
    document = True
    field_class = fields.DocumentField

    def clean(self, value: object) -> Any:
        """The value as JSON gives it back: whole numbers as ``int``, others as exact ``Decimal``."""
        # Without an encoding, bytes are refused as anything else that JSON has no place for.
        text = simplejson.dumps(value, use_decimal=True, allow_nan=False, ensure_ascii=False, encoding=None)
        # Each level has a bracket, so that what has few of them need not be walked.
        if text.count("[") + text.count("{") > MAX_JSON_DEPTH and _is_deeper(value, MAX_JSON_DEPTH):
            raise InvalidValue(
                f"{self.name}: the value is nested deeper than {MAX_JSON_DEPTH} levels.",
                words=words(NESTED_TOO_DEEP, levels=MAX_JSON_DEPTH),
            )
        return self.decode(values.checked_text(text, path=self.name))

    def encode(self, value: object) -> str:
        """JSON text."""
        return str(simplejson.dumps(value, use_decimal=True, ensure_ascii=False, sort_keys=True))

    def decode(self, inner: str) -> Any:
        """From JSON text."""
        return json.loads(inner, parse_float=_json_number)


def _is_deeper(value: object, levels: int) -> bool:
    found = [value]
    for _level in range(levels):
        found = [member for each in found for member in _nested_values(each)]
    return any(isinstance(each, _NESTED) for each in found)


def _nested_values(value: object) -> Any:
    if isinstance(value, _NESTED):
        return value.values() if isinstance(value, dict) else value
    return ()


_NESTED = (dict, list, tuple)


def _json_number(text: str) -> int | Decimal:
    number = Decimal(text)
    if number == number.to_integral_value() and number.adjusted() < _MOST_DIGITS:
        return int(number)
    sign, digits, exponent = number.as_tuple()
    kept = "".join(map(str, digits)).rstrip("0")
    return Decimal((sign, tuple(map(int, kept)), int(exponent) + len(digits) - len(kept)))


class SetAttribute(Attribute[set[T], Absent]):
    """What the three sets share; an empty set is not stored, since DynamoDB has none."""

    field_class = fields.SetField
    document = True
    member_types: tuple[type, ...] = ()

    def __init__(
        self,
        verbose_name: Label | None = None,
        *,
        null: Absent = True,  # type: ignore[assignment]  # see Attribute
        **options: Any,
    ) -> None:
        super().__init__(verbose_name, **options | {"null": null})

    def prepare(self, value: object) -> set[T] | None:
        """A ``set``, or ``None`` if there is nothing in it."""
        return super().prepare(value) or None

    def clean(self, value: object) -> set[T]:
        """A set of the right kind of members."""
        if not isinstance(value, set | frozenset | list | tuple):
            raise self.refuse(value)
        if any(isinstance(member, bool) or not isinstance(member, self.member_types) for member in value):
            raise self.refuse(value)
        if not value:
            return set()
        result: set[T] = values.from_attribute_value(values.to_attribute_value(set(value), path=self.name))
        return result

    def encode(self, value: set[T]) -> Any:
        """The inside of a set AttributeValue."""
        return values.to_attribute_value(value, path=self.name)[self.attr_type]

    def decode(self, inner: object) -> set[T]:
        """A ``set``."""
        result: set[T] = values.from_attribute_value({self.attr_type: inner})
        return result


class UnicodeSetAttribute(SetAttribute[str, Absent]):
    """A set of texts."""

    attr_type = "SS"
    expects = gettext_noop("a set of texts")
    member_types = (str,)


class NumberSetAttribute(SetAttribute[Any, Absent]):
    """A set of numbers."""

    attr_type = "NS"
    expects = gettext_noop("a set of numbers")
    member_types = (int, float, Decimal)

    def make_field(self) -> ModelField:
        """A set field whose lines are numbers."""
        field = super().make_field()
        field.member = number_member  # type: ignore[attr-defined]  # our SetField's
        return field


class BinarySetAttribute(SetAttribute[bytes, Absent]):
    """A set of byte strings."""

    attr_type = "BS"
    expects = gettext_noop("a set of bytes")
    member_types = (bytes,)

    def __init__(
        self,
        verbose_name: Label | None = None,
        *,
        null: Absent = True,  # type: ignore[assignment]  # see Attribute
        **options: Any,
    ) -> None:
        super().__init__(verbose_name, **{"editable": False, "null": null, **options})
