"""Documents as people read and write them: indented JSON, exact in its numbers, with a form for what JSON lacks.

A set or binary within a map or a list is ``{"$dynamodb": {"SS": ["a", "b"]}}``: DynamoDB's own JSON, as in fixtures.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from dynamo_single.exceptions import InvalidValue
from dynamo_single.later import Later
from dynamo_single.orm.schema.encoding import values
from dynamo_single.orm.schema.fields.fixtures import FIXTURE_KEY

if TYPE_CHECKING:
    import simplejson
else:
    simplejson = Later("simplejson")

#: Levels that are read; a text of more is refused before Python's own bound.
_MAX_LEVELS: Final = 250


def document_text(value: object, *, marked: bool = True, indent: int | None = 2) -> str:
    """A document as JSON text, its keys sorted, since a stored map has no order.

    What JSON lacks is ``marked``, unless the document is stored as JSON and has none of it.
    """
    found = _as_json(value) if marked else value
    return str(simplejson.dumps(found, use_decimal=True, ensure_ascii=False, sort_keys=True, indent=indent))


def document_of(text: str, *, marked: bool = True) -> object:
    """The document of a text; ``ValidationError`` says where it is none, by line and column or by the path in it."""
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
    raise ValidationError(_("%(text)s is no number of JSON."), "invalid", {"text": text})


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
        return values.from_attribute_value(values.text_to_binary(value[FIXTURE_KEY]))
    except (InvalidValue, ValueError, TypeError, AttributeError, ArithmeticError) as error:
        text = _("%(path)s: a map with the one key %(key)s holds a value in DynamoDB's JSON.")
        raise ValidationError(text, "invalid", {"path": path or "$", "key": FIXTURE_KEY}) from error
