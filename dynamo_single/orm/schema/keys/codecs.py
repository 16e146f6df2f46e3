"""How one value is written inside a key: unable to forge a separator, and sorting as the value does.

Every character of an encoded value is ``$`` (0x24) or higher, and the usual separator ``#`` (0x23) is below them all. A
value that another one continues therefore sorts before it, even with more key after it. DynamoDB sorts keys by their
UTF-8 bytes, which is Python's own order of ``str``. This module does not depend on templates, models or requests.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time, timedelta
from functools import lru_cache, partial
from typing import Any
from uuid import UUID

from django.conf import settings
from django.utils.translation import gettext_lazy as _

from dynamo_single import clock
from dynamo_single.conf import COMPANION_PREFIX
from dynamo_single.exceptions import ConfigurationError, InvalidValue
from dynamo_single.orm.schema.keys.datetimes import ISO, datetime_format
from dynamo_single.orm.schema.keys.values import Words, checked_text, seconds, shown, split_number, words
from dynamo_single.table.masking import ESCAPE, escape
from dynamo_single.table.shaped.sortable import number_text

#: Higher than every character in a key: the last code point, which is escaped inside values.
LAST = "\U0010ffff"
#: The encoding of an empty string, and of a missing value before or after all others, if a template sets this. No value
#: has this encoding: an escape has another character after ``$``, or ``0`` and ``1`` after the character below.
EMPTY = ESCAPE * 2
MISSING = {"first": ESCAPE, "last": "\U0010fffe2"}
#: Sorts after all values and before the encoding of missing values after them.
LAST_VALUE = "\U0010fffe1" + LAST
#: The format of a key part that is written without regard to case.
CANONICAL = "canonical"
#: The separator of a key's parts, which sorts below all characters of an escaped value.
SEPARATOR = "#"
KINDS = ("text", "number", "boolean", "date", "time", "timestamp", "duration", "uuid", "label")

#: The beginning of the kinds of datetimes in other formats.
_MOMENT_KIND = "timestamp "
_PADDED = re.compile(r"0([1-9][0-9]?)d")
_MAX_PADDING = 38


@dataclass(frozen=True, slots=True)
class Codec:
    """Writes the values of one attribute into keys.

    ``ordered``: the encoded strings sort as the values do. ``prefixable``: a prefix of a value is also a prefix of its
    encoding. ``exact``: two values with the same encoding are equal. With a ``place``, ``first`` or ``last``, missing
    values and empty strings are encoded too. A codec for a ``member`` of an identity has the positions that lead there;
    ``leaves`` are those of the identity's ``of`` single values that it encodes.
    """

    kind: str
    spec: str
    write: Callable[[Any], str] = field(compare=False, repr=False)
    ordered: bool = True
    prefixable: bool = False
    exact: bool = True
    place: str = ""
    member: tuple[int, ...] = ()
    leaves: frozenset[int] = frozenset()
    of: int = 0
    #: Whether the table's keys contain values without escapes; a value with the separator is then refused.
    raw: bool = False
    #: Whether the value is the whole key, so that no separator can end it.
    whole: bool = False

    def encode(self, value: object, terminator: str = "") -> str:
        """Write a value; ``terminator`` is the character that ends it in the key, if that is not ``#``."""
        if self.raw:
            return self._raw(value, terminator)
        if self.place:
            return MISSING[self.place] if value is None else escape(self.write(value), terminator) or EMPTY
        if type(value) in _REMEMBERED:
            return _encoded(self.write, terminator, value)
        return escape(self.write(value), terminator)

    def _raw(self, value: object, terminator: str) -> str:
        text = self.write(value)
        if self.whole and text.startswith(COMPANION_PREFIX):
            raise InvalidValue(
                f"{shown(value)} begins with {COMPANION_PREFIX!r}, like the keys of the app's own items. Nothing was "
                "written. Use another value.",
                words=words(_("This begins with characters that are reserved.")),
            )
        if not self.whole and (SEPARATOR in text or (terminator and terminator in text)):
            found = SEPARATOR if SEPARATOR in text else terminator
            raise InvalidValue(
                f"{shown(value)} contains {found!r}, which separates the parts of a key in a table with RAW_KEYS. "
                "Nothing was written. Use a value without it.",
                words=words(_("This contains a character that is reserved.")),
            )
        return text

    def text_encoder(self, terminator: str) -> Callable[[str], str] | None:
        """Return a function that encodes strings like ``encode()``, and caches the last one without a Python call.

        ``None`` for another kind of values. It takes ``str`` only, which has a hash.
        """
        is_usual = self.kind == "text" and not (self.place or self.raw)
        return partial(_encoded, self.write, terminator) if is_usual else None


#: The keys of one item, and those of the next, contain the same strings and numbers.
_REMEMBERED = frozenset({str, int})


@lru_cache(maxsize=512)
def _encoded(write: Callable[[object], str], terminator: str, value: object) -> str:
    return escape(write(value), terminator)


def codec_for(kind: str, spec: str = "") -> Codec:
    """Give the codec of an attribute kind (one of ``KINDS``) and a template's format."""
    spec, place = split_format(spec)
    if place:
        return replace(codec_for(kind, spec), place=place)
    if kind.startswith(_MOMENT_KIND):
        if spec:
            raise ConfigurationError(f"The format {spec!r} does not fit a timestamp attribute; write {{name}}.")
        return _moment_codec(kind)
    if kind not in KINDS:
        raise ConfigurationError(
            f"A key cannot contain a {kind} value: nested values, sets and binary values cannot be indexed. "
            f"Keys contain {', '.join(KINDS)}. Copy the part to search for into a separate attribute."
        )
    if not spec:
        return _PLAIN[kind]
    if spec == CANONICAL and kind == "text":
        return Codec(kind, spec, _canonical, ordered=False, exact=False)
    if kind == "number" and (padding := padding_of(spec)):
        return Codec(kind, spec, partial(_padded, padding))
    allowed = {"text": "{name:canonical} or {name}", "number": "{name:08d} or {name}"}.get(kind, "{name}")
    raise ConfigurationError(f"The format {spec!r} does not fit a {kind} attribute; write {allowed}.")


def moment_kind(name: str) -> str:
    """Return the kind of datetimes in a format; keys contain the stored string."""
    return "timestamp" if name == ISO else f"{_MOMENT_KIND}{name}"


@lru_cache(maxsize=64)
def _moment_codec(kind: str) -> Codec:
    write = datetime_format(kind.removeprefix(_MOMENT_KIND)).write
    return Codec(kind, "", partial(_written_moment, write))


def _written_moment(write: Callable[[datetime], str], value: object) -> str:
    return write(_checked_moment(value))


def split_format(spec: str) -> tuple[str, str]:
    """A template's format without the place of missing values, and that place: ``first``, ``last`` or none."""
    form, _, place = spec.rpartition(":")
    return (form, place) if place in MISSING else (spec, "")


def padding_of(spec: str) -> int:
    """Return the digits of a format such as ``08d``, or 0 for another format."""
    found = _PADDED.fullmatch(spec)
    return int(found[1]) if found and int(found[1]) <= _MAX_PADDING else 0


def canonical(text: str) -> str:
    """Return the normal form of strings that differ only in case, composition or outer white space."""
    text = unicodedata.normalize("NFD", text.strip()).casefold()
    # Casefolding can leave characters that fold again when recomposed, so it is done on both sides.
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", text).casefold()).strip()


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise InvalidValue(f"{shown(value)} is not text.")
    return checked_text(value)


def _canonical(value: object) -> str:
    return canonical(_text(value))


def _number(value: Any) -> str:
    return number_text(*split_number(value))


def _padded(width: int, value: Any) -> str:
    negative, digits, exponent = split_number(value)
    if negative or len(digits) > exponent + 1:
        raise InvalidValue(
            f"{shown(value)} does not fit the key format 0{width}d, which holds whole numbers from 0 up.",
            words=_fitting(width),
        )
    if digits and exponent >= width:
        message = f"{shown(value)} does not fit the key format 0{width}d, which ends at {'9' * width}."
        raise InvalidValue(message, words=_fitting(width))
    return (digits.ljust(exponent + 1, "0") if digits else "0").zfill(width)


def _fitting(width: int) -> Words:
    return words(_("The number must be an integer from 0 to %(most)s."), most="9" * width)


def _boolean(value: object) -> str:
    if not isinstance(value, bool):
        raise InvalidValue(f"{shown(value)} is not a boolean.")
    return "1" if value else "0"


def _date(value: object) -> str:
    if not isinstance(value, date) or isinstance(value, datetime):
        raise InvalidValue(f"{shown(value)} is not a date.")
    return value.isoformat()


def _timestamp(value: object) -> str:
    return _checked_moment(value).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _checked_moment(value: object) -> datetime:
    if not isinstance(value, datetime):
        raise InvalidValue(f"{shown(value)} is not a datetime.")
    if settings.USE_TZ and value.utcoffset() is None:
        raise InvalidValue(
            f"{shown(value)} has no time zone, so its place in time is unknown; use django.utils.timezone."
        )
    try:
        return clock.in_utc(value)
    except OverflowError as error:
        message = f"{shown(value)} is outside the years 1 to 9999 in UTC."
        raise InvalidValue(message, words=words(_("This is outside of the years 1 to 9999."))) from error


def _time(value: object) -> str:
    if not isinstance(value, time) or value.tzinfo is not None:
        raise InvalidValue(f"{shown(value)} is not a time of day without a zone.")
    return value.isoformat()


def _duration(value: object) -> str:
    if not isinstance(value, timedelta):
        raise InvalidValue(f"{shown(value)} is not a duration.")
    return _number(seconds(value))


def _uuid(value: object) -> str:
    if not isinstance(value, UUID):
        raise InvalidValue(f"{shown(value)} is not a UUID.")
    return str(value)


def _label(value: Any) -> str:
    return _text(getattr(value, "label", value))


_PLAIN = {
    "text": Codec("text", "", _text, prefixable=True),
    "number": Codec("number", "", _number),
    "boolean": Codec("boolean", "", _boolean),
    "date": Codec("date", "", _date),
    "time": Codec("time", "", _time),
    "timestamp": Codec("timestamp", "", _timestamp),
    "duration": Codec("duration", "", _duration),
    "uuid": Codec("uuid", "", _uuid),
    "label": Codec("label", "", _label, ordered=False),
}


def example_value(kind: str | None) -> object:
    """A value of a kind of key, for planning what does not depend on the value."""
    kind = "timestamp" if (kind or "").startswith(_MOMENT_KIND) else kind
    return _EXAMPLES.get(kind or "", "1")


_EXAMPLES: dict[str, object] = {
    "number": 1,
    "boolean": True,
    "date": clock.EPOCH.date(),
    "time": clock.EPOCH.time(),
    "timestamp": clock.EPOCH,
    "duration": timedelta(1),
    "uuid": UUID(int=1),
    "label": "app.model",
}


def raw_codec(codec: Codec, write: Callable[[Any], str], *, ordered: bool, whole: bool) -> Codec:
    """Return a codec that writes values without escapes."""
    return replace(codec, write=write, ordered=ordered, raw=True, whole=whole, prefixable=codec.kind == "text")


def key_codec(write: Callable[[Any], str]) -> Codec:
    """Return the codec of a key that is a number or binary in the table, whose strings have the same order."""
    return Codec("number", "", write, whole=True)
