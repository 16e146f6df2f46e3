"""The attribute that holds any JSON value as text."""

from __future__ import annotations

import json
from contextlib import suppress
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

from dynamo_single.exceptions import InvalidValue
from dynamo_single.lazy_modules import LazyModule
from dynamo_single.orm.schema.attributes.base import Attribute, Label, Null
from dynamo_single.orm.schema.attributes.documents import ENCODING
from dynamo_single.orm.schema.fields import base
from dynamo_single.orm.schema.keys import values
from dynamo_single.orm.schema.keys.documents import Encoded
from dynamo_single.orm.schema.keys.values import NESTED_TOO_DEEP, gettext_noop, words
from dynamo_single.orm.schema.types import are_plain
from dynamo_single.table.request import StoredValue

if TYPE_CHECKING:
    import simplejson
else:
    simplejson = LazyModule("simplejson")

#: A whole number that is written with an exponent beyond this stays a ``Decimal``; Python's ``float`` ends there.
_MOST_DIGITS = 309
#: How deep lists and dicts of a ``JSONAttribute`` may be nested. DynamoDB stores text and has no limit; Python's parser
#: ends at its recursion limit of 1,000, which a web request has used up in part when it reads the value again.
MAX_JSON_DEPTH = 200


class JSONAttribute(Attribute[Any, Null]):
    """Any JSON value, stored as text; DynamoDB cannot look inside (a ``MapAttribute`` can be filtered by path).

    Lists and dicts may have 200 levels of nesting; more raise ``InvalidValue``.

    Equal values have one text: keys are sorted, and numbers lose the zeros that add nothing to them. A save
    keeps the text of another program, such as PynamoDB's ``JSONAttribute``, until its value changes.
    ``stored_as="text"`` is the only form.
    """

    attr_type = "S"
    expects = gettext_noop("a value that JSON can hold")
    document = True
    only_equal = True
    field_class = base.DocumentField

    def __init__(
        self,
        verbose_name: Label | None = None,
        *,
        stored_as: Literal["text"] | None = None,
        null: Null = False,  # type: ignore[assignment]  # see Attribute
        **options: Any,
    ) -> None:
        super().__init__(verbose_name, **options | {"null": null})
        self.store_as(stored_as, {"text": None})

    def clean(self, value: object) -> Any:
        """The value as JSON gives it back: whole numbers as ``int``, others as exact ``Decimal``."""
        return self.decode(self._text(value, sort_keys=False))

    def _text(self, value: object, *, sort_keys: bool) -> str:
        # Without an encoding, bytes are refused as anything else that JSON has no place for.
        text = simplejson.dumps(
            value, use_decimal=True, allow_nan=False, ensure_ascii=False, encoding=None, sort_keys=sort_keys
        )
        # Each level has a bracket, so that what has few of them need not be walked.
        if text.count("[") + text.count("{") > MAX_JSON_DEPTH and _is_deeper(value, MAX_JSON_DEPTH):
            raise InvalidValue(
                f"{self.name}: the value is nested deeper than {MAX_JSON_DEPTH} levels.",
                words=words(NESTED_TOO_DEEP, levels=MAX_JSON_DEPTH),
            )
        return values.checked_text(text, path=self.name)

    def encoded(self, value: object, before: StoredValue | None = None) -> Encoded:
        """Return a value, prepared and encoded: encoded once if reading would return the same, apart from its
        numbers."""
        if value is None or not are_plain(type(self), ENCODING):
            return super().encoded(value, before)
        with suppress(Exception):  # such as keys that cannot be sorted; errors are worded below
            return self._encoded(value, before)
        with suppress(ValueError):
            if before is not None and "S" in before and repr(self.decode(before["S"])) == repr(value):
                # Another program may store what this attribute does not write, such as NaN and lone surrogates.
                return Encoded(value, before, values.value_size(before))
        return super().encoded(value, before)

    def _encoded(self, value: object, before: StoredValue | None) -> Encoded:
        text = self._text(value, sort_keys=True)
        if before is not None and before.get("S") == text:
            return Encoded(value, before, values.value_size(before))
        literals: list[str] = []
        numbers: list[int | Decimal] = []

        def number(literal: str) -> int | Decimal:
            literals.append(literal)
            numbers.append(_json_number(literal))
            return numbers[-1]

        prepared = json.loads(text, parse_float=number)
        if prepared != value or [*map(str, numbers)] != literals:
            text = self.encode(prepared)
        if before is not None and self._is_stored_as(before, prepared, text):
            return Encoded(value, before, values.value_size(before))
        stored = {"S": text}
        return Encoded(prepared, stored, values.value_size(stored))

    def _is_stored_as(self, before: StoredValue, prepared: object, text: str) -> bool:
        """Return whether a stored text, which another system may have written, has the same meaning."""
        held = self.decode(before["S"]) if "S" in before else None
        return held == prepared and "S" in before and self.encode(held) == text

    def encode(self, value: object) -> str:
        """JSON text."""
        return str(simplejson.dumps(value, use_decimal=True, ensure_ascii=False, sort_keys=True))

    def decode(self, inner: str) -> Any:
        """From JSON text."""
        # As PynamoDB: other programs do not escape all control characters.
        return json.loads(inner, parse_float=_json_number, strict=False)


def _is_deeper(value: object, levels: int) -> bool:
    found = [value]
    for _level in range(levels):
        if not found:
            return False
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
