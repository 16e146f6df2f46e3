"""DynamoDB's attribute values and Python's values, each turned into the other, and the size that DynamoDB counts.

Numbers stay exact both ways. This module must not know models, fields or requests.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.db import models
from django.db.models.expressions import CombinedExpression
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy
from django.utils.translation import gettext_lazy as _
from msgspec import Struct

from dynamo_single.exceptions import InvalidValue
from dynamo_single.orm.schema.keys.secret_values import MASK, hide, is_secret_name
from dynamo_single.table.request import MAX_DEPTH, MAX_DIGITS, MAX_EXPONENT, AttributeValue, StoredValue

# Show values in messages.
#
# A message never runs the ``__str__`` of a project's model: that may fail, and would replace the error that is to be
# reported, or read from the table. Attributes are not known here, so that not all secrets are recognized: conditions
# and expressions are shown without their values.

#: How much of a value is shown, and how deep lists and dictionaries are followed.
LONGEST = 100
_MEMBERS = 5
_LEVELS = 4
_OMITTED = "..."
_BRACKETS: dict[type, str] = {dict: "{}", list: "[]", tuple: "()", set: "{}", frozenset: "{}"}


def shown(value: object, longest: int = LONGEST) -> str:
    """Return any value in at most ``longest`` characters: an object of a model by its label and its ``pk``.

    A condition or an expression is shown without its values: ``Count(Q(name=...))``.
    """
    text = _text(value, _LEVELS)
    return text if len(text) <= longest else f"{text[:longest]}..."


def named(obj: models.Model) -> str:
    """Return an object of a model for a message: ``shop.Firm with pk 'f1'``."""
    try:
        parts = (getattr(type(obj), name, None) for name in getattr(obj, "_identity", ()))
        is_hidden = any(part.is_secret() for part in parts if part is not None)
        return f"{obj._meta.label} with pk {MASK if is_hidden else _plain(obj.pk)}"
    except Exception:
        # The value has another type than the key's, as in an object that is only half made. This is the text of another
        # error, which has to be raised.
        return f"a {obj._meta.label}"


def _text(value: object, levels: int) -> str:
    if isinstance(value, models.Model):
        return named(value)
    if isinstance(value, models.QuerySet | models.Manager):
        return f"a {type(value).__name__} of {value.model._meta.label}"  # its own repr() would evaluate it
    if isinstance(value, models.Q):
        return _condition(value, levels)
    if isinstance(value, models.Value):
        return f"Value({_text(value.value, levels)})"
    if hasattr(value, "resolve_expression"):
        return _expression(value, levels)
    brackets = _BRACKETS.get(type(value))
    if brackets is None or not levels:
        return _plain(value)
    return _several(value, brackets, levels - 1)


def _several(value: Any, brackets: str, levels: int) -> str:
    members = []
    for number, member in enumerate(value):
        if number == _MEMBERS:
            members.append(f"… {len(value)} in all")
            break
        text = _text(member, levels)
        members.append(f"{text}: {_of(member, value[member], levels)}" if isinstance(value, dict) else text)
    alone = "," if brackets == "()" and len(members) == 1 else ""
    return f"{brackets[0]}{', '.join(members)}{alone}{brackets[1]}"


def _of(name: object, value: object, levels: int) -> str:
    """Return a named value; it is masked if the name is that of a secret."""
    return MASK if isinstance(name, str) and is_secret_name(name) else _text(value, levels)


def _condition(condition: models.Q, levels: int) -> str:
    if not levels:
        return "Q(...)"
    parts = []
    for child in condition.children:
        parts.append(f"{child[0]}={_OMITTED}" if isinstance(child, tuple) else _text(child, levels - 1))
    joint = ", " if condition.connector == models.Q.AND else f" {condition.connector} "
    return f"{'~' if condition.negated else ''}Q({joint.join(parts)})"


def _expression(expression: Any, levels: int) -> str:
    if isinstance(expression, models.F):
        return repr(expression)
    if isinstance(expression, models.Value):
        return f"Value({_OMITTED})"
    sources: list[Any] = getattr(expression, "get_source_expressions", list)() if levels else []
    texts = [_part(each, levels - 1) for each in sources if each is not None]
    if isinstance(expression, CombinedExpression):
        return f" {expression.connector} ".join(texts)
    return f"{type(expression).__name__}({', '.join(texts) or _OMITTED})"


def _part(source: Any, levels: int) -> str:
    return _condition(source, levels) if isinstance(source, models.Q) else _expression(source, levels)


def _plain(value: object) -> str:
    try:
        return repr(hide(value) if isinstance(value, str) else value)
    except Exception:
        # An integer of thousands of digits, a list of thousands of levels, or a repr() of a project's own that fails.
        return f"<{type(value).__name__} that cannot be shown>"


# The errors of a value, for users who fill in a form: in their language, without Python names.  The message of an error
# names attributes and types for programmers.

#: Sentences that several places have.
HAS_TO_HAVE_VALUE = _("“%(name)s” must have a value.")
NESTED_TOO_DEEP = _("This has more than %(levels)d levels of nesting.")
#: The separator between the name of an attribute and a path in its value.
_INSIDE = re.compile(r"__|[.\[]")


def gettext_noop(message: str) -> str:
    """Return the same string; ``makemessages`` finds it by this name, and Django's function would need the settings."""
    return message


class Words(Struct, frozen=True):
    """A template of Django's lazy translations, with its values; converted to a string when needed."""

    template: str | Promise
    values: Mapping[str, object]

    def __str__(self) -> str:
        """In the language that is active."""
        return str(self.template) % self.values


def words(template: str | Promise, **values: object) -> Words:
    """A sentence; values may be lazy translations too."""
    return Words(template, values)


def words_at(path: str, template: str | Promise, **values: object) -> Words:
    """A sentence about a place: after the path to it, if it lies inside of a value; a form's field names the rest."""
    found = Words(template, values)
    return found if _INSIDE.search(path) is None else Words("%(path)s: %(text)s", {"path": path, "text": found})


def expecting(expects: str, path: str = "") -> Words:
    """Return the words for a value of the wrong type; the expected type is translated as well."""
    return words_at(path, _("This must be %(expects)s."), expects=gettext_lazy(expects))


Number = int | float | Decimal

MIN_EXPONENT = -130
MICROSECOND = timedelta(microseconds=1)
#: Every whole number below has no more digits than DynamoDB stores.
_SHORT = 10**MAX_DIGITS

_is_integer = re.compile(r"-?[0-9]+").fullmatch
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def to_attribute_value(value: object, *, path: str = "value", depth: int = 0) -> AttributeValue:
    """Turn a document or a scalar into an attribute value; ``path`` is what an error calls the value.

    A tuple is stored as a list. Sets hold one kind of value and are never empty, as DynamoDB wants them. ``depth`` is
    the number of maps and lists around the value.
    """
    return _to_attribute_value(value, path, depth)


def from_attribute_value(attribute_value: StoredValue) -> Any:
    """Turn an attribute value into Python's: a whole number into ``int``, others into ``Decimal``, never ``float``."""
    ((kind, value),) = attribute_value.items()
    if kind in ("S", "BOOL"):
        return value
    if kind == "N":
        return text_to_number(value)
    if kind == "M":
        return _from_map(value)
    if kind == "L":
        return _from_list(value)
    if kind == "NULL":
        return None
    if kind == "B":
        return bytes(value)
    if kind == "SS":
        return set(value)
    if kind in ("NS", "BS"):
        return {from_attribute_value({kind[0]: element}) for element in value}
    raise InvalidValue(f"{kind!r} is not a type of DynamoDB; there are S, N, B, BOOL, NULL, L, M, SS, NS and BS.")


def _from_map(entries: Mapping[str, StoredValue]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in entries.items():  # most are read here, which spares a call each
        (kind,) = value
        if kind == "S":
            found[name] = value["S"]
        elif kind == "N":
            text = value["N"]
            found[name] = int(text) if _is_integer(text) else Decimal(text)
        elif kind == "M":
            found[name] = _from_map(value["M"])
        else:
            found[name] = from_attribute_value(value)
    return found


def _from_list(elements: Iterable[StoredValue]) -> list[Any]:
    found: list[Any] = []
    for value in elements:
        (kind,) = value
        if kind == "S":
            found.append(value["S"])
        elif kind == "N":
            text = value["N"]
            found.append(int(text) if _is_integer(text) else Decimal(text))
        elif kind == "M":
            found.append(_from_map(value["M"]))
        else:
            found.append(from_attribute_value(value))
    return found


def number_to_text(value: Number, *, path: str = "value") -> str:
    """Write a number as DynamoDB takes it: exact, at most 38 significant digits, between 1E-130 and 9.99E+125."""
    if type(value) is int and -_SHORT < value < _SHORT:
        return str(value)
    negative, digits, exponent = split_number(value, path=path)
    if not digits:
        return "0"
    sign = "-" if negative else ""
    if isinstance(value, int):
        return sign + digits.ljust(exponent + 1, "0")
    point = exponent + 1
    if 0 < point <= MAX_DIGITS:
        whole, fraction = digits[:point].ljust(point, "0"), digits[point:]
    elif -6 <= exponent < 0:
        whole, fraction = "0", "0" * -point + digits
    else:
        whole, fraction = digits[0], digits[1:]
        return f"{sign}{whole}{'.' if fraction else ''}{fraction}E{exponent:+d}"
    return f"{sign}{whole}.{fraction}" if fraction else f"{sign}{whole}"


def text_to_number(text: str) -> int | Decimal:
    """Read DynamoDB's text of a number: ``int`` if it is written as a whole number, ``Decimal`` otherwise."""
    return int(text) if _is_integer(text) else Decimal(text)


def seconds(duration: timedelta) -> Decimal:
    """Give a duration as its number of seconds, exact to the microsecond."""
    return Decimal(duration // MICROSECOND).scaleb(-6)


def split_number(value: Number, *, path: str = "value") -> tuple[bool, str, int]:
    """Split a number into (is it negative, significant digits, exponent of the first digit); zero has no digits.

    Equal numbers of any Python type are split alike. Numbers that DynamoDB cannot store exactly are rejected.
    """
    if type(value) is int and -_SHORT < value < _SHORT:
        text = str(value).lstrip("-")  # which spares the way over a Decimal
        return (value < 0, text.rstrip("0"), len(text) - 1) if value else (False, "", 0)
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise InvalidValue(f"{path}: {_shown_at(path, value)} is not a number; give an int, a float or a Decimal.")
    if isinstance(value, int) and abs(value) >= 10 ** (MAX_EXPONENT + 1):
        # Checked before it is written out: Python refuses to print integers of thousands of digits.
        raise InvalidValue(
            f"{path}: the number is too large; DynamoDB stores numbers up to 9.99E+{MAX_EXPONENT}.",
            words=_out_of_range(path),
        )
    number = Decimal(repr(value)) if type(value) is float else Decimal(value)
    if not number.is_finite():
        raise InvalidValue(
            f"{path}: {_shown_at(path, value)} cannot be stored; DynamoDB has no NaN and no infinity. Use None.",
            words=words_at(path, _("This number cannot be stored.")),
        )
    text = str(number)
    written = text.lstrip("-").replace(".", "", 1) if "E" not in text else "".join(map(str, number.as_tuple().digits))
    digits = written.strip("0")
    if not digits:
        return False, "", 0
    exponent = number.adjusted()
    if len(digits) > MAX_DIGITS:
        raise InvalidValue(
            f"{path}: {_shown_at(path, value)} has {len(digits)} significant digits; DynamoDB stores {MAX_DIGITS}. "
            "Round it first, or store it as text.",
            words=words_at(
                path,
                _("This number has %(count)d digits; %(most)d can be stored. Round it."),
                count=len(digits),
                most=MAX_DIGITS,
            ),
        )
    if not MIN_EXPONENT <= exponent <= MAX_EXPONENT:
        raise InvalidValue(
            f"{path}: {_shown_at(path, value)} is out of range, which is 1E{MIN_EXPONENT} to 9.99E+{MAX_EXPONENT} and "
            "negatives.",
            words=_out_of_range(path),
        )
    return number.is_signed(), digits, exponent


def _out_of_range(path: str) -> Words:
    return words_at(path, _("This number is too large, or too close to zero, to be stored."))


def short_integer(value: object) -> int | None:
    """Give an ``int``, or text that spells one, which has no more digits than DynamoDB stores; ``None`` for any other.

    Most numbers are such, and need no ``Decimal``.
    """
    if type(value) is int:
        return value if -_SHORT < value < _SHORT else None
    if type(value) is not str or len(value) > MAX_DIGITS or not value.isascii():
        return None
    return int(value) if value.removeprefix("-").isdigit() else None


def checked_text(value: str, *, path: str = "value") -> str:
    """Give the text as a plain ``str``, or refuse it if it has no UTF-8 form (lone surrogates)."""
    if type(value) is str and value.isascii():
        return value
    # Without str.__str__ a string choice of an enumeration would keep its own class.
    text = str.__str__(value)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidValue(
            f"{path}: {_shown_at(path, text)} has a lone surrogate at position {error.start}, which has no UTF-8 form. "
            "Decode the text properly, or store it as bytes.",
            words=words_at(path, _("Character %(number)d of this string cannot be stored."), number=error.start + 1),
        ) from (None if is_secret_name(path) else error)  # the cause contains the text
    return text


def _shown_at(path: str, value: object) -> str:
    return MASK if is_secret_name(path) else shown(value)


def item_size(item: Mapping[str, StoredValue]) -> int:
    """Count an item's bytes by AWS's rule ("DynamoDB item sizes and formats"), which calls numbers approximate."""
    size = 0
    for name, value in item.items():
        text = value.get("S")
        size += _text_size(name) + (value_size(value) if text is None else _text_size(text))
    return size


def to_json(value: object) -> object:
    """Give a document as JSON holds it, or raise ``TypeError`` if JSON would give something else back.

    A ``Decimal`` becomes a ``float`` if that has the same digits. JSON cannot contain sets and bytes.
    """
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float) or (isinstance(value, Decimal) and Decimal(repr(float(value))) == value):
        return float(value)
    if isinstance(value, list):
        return [to_json(element) for element in value]
    if isinstance(value, dict):
        return {name: to_json(element) for name, element in value.items()}
    raise TypeError(f"{type(value).__name__} has no exact form in JSON.")


def binary_to_text(value: object) -> object:
    """Give an attribute value, or a part of one, with binary as base64 text, as DynamoDB's own JSON has it."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, list):
        return [binary_to_text(element) for element in value]
    if isinstance(value, Mapping):
        return {name: binary_to_text(element) for name, element in value.items()}
    return value


def _to_attribute_value(value: object, path: str, depth: int) -> AttributeValue:
    if value is None:
        return {"NULL": True}
    if isinstance(value, bool):
        return {"BOOL": value}
    if isinstance(value, str):
        return {"S": checked_text(value, path=path)}
    if isinstance(value, int | float | Decimal):
        return {"N": number_to_text(value, path=path)}
    if isinstance(value, bytes | bytearray | memoryview):
        return {"B": bytes(value)}
    if isinstance(value, AbstractSet):
        return _set(value, path)
    if isinstance(value, Mapping | list | tuple):
        if depth == MAX_DEPTH:
            raise InvalidValue(
                f"{path}: the document is nested deeper than {MAX_DEPTH} levels, DynamoDB's limit.",
                words=words(NESTED_TOO_DEEP, levels=MAX_DEPTH),
            )
        if isinstance(value, Mapping):
            return {"M": _map(value, path, depth + 1)}
        elements = enumerate(value)
        return {"L": [_to_attribute_value(element, f"{path}[{i}]", depth + 1) for i, element in elements]}
    raise InvalidValue(
        f"{path}: {type(value).__name__} {_shown_at(path, value)} cannot be stored in a document. Documents "
        "contain None, bool, numbers, strings, bytes, lists, dicts and sets. Convert it to one of these "
        "first."
    )


def _map(value: Mapping[object, object], path: str, depth: int) -> dict[str, AttributeValue]:
    entries = {}
    for name, element in value.items():
        if not isinstance(name, str):
            raise InvalidValue(
                f"{path}: the key {_shown_at(path, name)} is not text; DynamoDB's maps have text keys only."
            )
        if not name:
            raise InvalidValue(
                f"{path}: a map has an empty key, which DynamoDB refuses; give it a name.",
                words=words_at(path, _("A map has an empty key. Enter a name for it.")),
            )
        step = f".{name}" if _PLAIN_NAME.fullmatch(name) else f"[{name!r}]"
        entries[checked_text(name, path=path)] = _to_attribute_value(element, path + step, depth)
    return entries


def _set(value: AbstractSet[Any], path: str) -> AttributeValue:
    if not value:
        raise InvalidValue(
            f"{path}: DynamoDB has no empty set; leave the attribute out (None), or use a list, which may be empty.",
            words=words_at(path, _("A set cannot be empty.")),
        )
    if all(isinstance(element, str) for element in value):
        return {"SS": sorted(checked_text(element, path=path) for element in value)}
    if all(isinstance(element, bytes) for element in value):
        return {"BS": sorted(value)}
    if all(isinstance(element, int | float | Decimal) and not isinstance(element, bool) for element in value):
        # 0.1 and Decimal("0.1") are two members to Python and one number to DynamoDB, which refuses duplicates.
        return {"NS": sorted({number_to_text(element, path=path) for element in value}, key=Decimal)}
    raise InvalidValue(
        f"{path}: a set holds only text, only numbers or only bytes; use a list for a mixture.",
        words=words_at(path, _("A set holds only strings, only numbers or only binary values.")),
    )


def _text_size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def value_size(attribute_value: StoredValue) -> int:
    """Count the bytes of an attribute value, as ``item_size()`` does."""
    ((kind, value),) = attribute_value.items()
    if kind in ("NULL", "BOOL"):
        return 1
    if kind == "S":
        return _text_size(value)
    if kind == "B":
        return len(value)
    if kind == "N":
        return _number_size(value)
    if kind == "L":
        return 3 + sum(1 + value_size(element) for element in value)
    if kind == "M":
        return 3 + sum(1 + _text_size(name) + value_size(element) for name, element in value.items())
    return sum(value_size({kind[0]: element}) for element in value)


def _number_size(text: str) -> int:
    plain = text.removeprefix("-").replace(".", "", 1)
    if plain.isdigit() and plain.isascii():
        length = len(plain.strip("0"))
        return (length + 1) // 2 + 1 + (1 if length and text.startswith("-") else 0)
    number = Decimal(text)
    digits = "".join(map(str, number.as_tuple().digits)).strip("0")
    return (len(digits) + 1) // 2 + 1 + (1 if digits and number.is_signed() else 0)
