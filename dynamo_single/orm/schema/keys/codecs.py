"""How one value is written inside a key: unable to forge a separator, and sorting as the value does.

Every character of a written value is ``$`` (0x24) or higher, and the usual separator ``#`` (0x23) is below them all:
a value that another one continues sorts in front of it, also with more key after. DynamoDB sorts keys by their UTF-8
bytes, which is Python's own order of ``str``. This module must not know templates, models or requests.
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
from dynamo_single.table.masking import CODES, ESCAPE
from dynamo_single.table.shaped.sortable import number_text

#: Higher than all that stands in a key: the last code point, which is escaped inside values.
LAST = "\U0010ffff"
#: What stands for an empty text, and for a missing value before all others or after them, where a template says so.
#: No value is written so: what escapes a character has another one after ``$``, or ``0`` and ``1`` after the one below.
EMPTY = ESCAPE * 2
MISSING = {"first": ESCAPE, "last": "\U0010fffe2"}
#: Sorts after all values and in front of what stands for a missing one after them.
LAST_VALUE = "\U0010fffe1" + LAST
#: The format of a key part that is written without regard to case.
CANONICAL = "canonical"
#: The separator of a key's parts, which sorts below all characters of an escaped value.
SEPARATOR = "#"
KINDS = ("text", "number", "boolean", "date", "time", "timestamp", "duration", "uuid")

#: The beginning of the kinds of datetimes in other formats.
_MOMENT_KIND = "timestamp "
_PADDED = re.compile(r"0([1-9][0-9]?)d")
_MAX_PADDING = 38


@dataclass(frozen=True, slots=True)
class Codec:
    """Writes the values of one attribute into keys.

    ``ordered``: the written texts sort as the values do. ``prefixable``: what starts a value also starts its text.
    ``exact``: two values with one text are the same value. With a ``place``, ``first`` or ``last``, missing values and
    empty texts are written too. One that writes a ``member`` of an identity alone has the positions that
    lead there; ``leaves`` are those of the identity's ``of`` single values that it writes.
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
        """What encodes texts as ``encode()`` does, without a call of Python for one that it has just encoded.

        ``None`` for another kind of values. It takes ``str`` only, which has a hash.
        """
        is_usual = self.kind == "text" and not (self.place or self.raw)
        return partial(_encoded, self.write, terminator) if is_usual else None


#: An item's keys, and those of the next one, are made of the same texts and numbers again and again.
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
    """Give the digits that a format such as ``08d`` asks for, or 0 if it is no such format."""
    found = _PADDED.fullmatch(spec)
    return int(found[1]) if found and int(found[1]) <= _MAX_PADDING else 0


def canonical(text: str) -> str:
    """Give the form in which two texts that differ only in case, composition or outer white space are the same."""
    text = unicodedata.normalize("NFD", text.strip()).casefold()
    # Casefolding can leave characters that fold once more when recomposed, so it is done on both sides.
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", text).casefold()).strip()


def escape(text: str, terminator: str = "") -> str:
    """Escape what may not stand inside a value; each character by itself, so that prefixes stay prefixes."""
    unsafe, codes = _escaping(terminator)
    return text.translate(codes) if unsafe.search(text) else text


def unsafe_in(terminator: str) -> re.Pattern[str]:
    """Return the expression for characters to escape in front of a terminator; ``""`` means ``#``."""
    return _escaping(terminator)[0]


@lru_cache(maxsize=64)
def _escaping(terminator: str) -> tuple[re.Pattern[str], dict[int, str]]:
    """Return the expression for characters to escape, and the escape of each."""
    codes = _escapes(terminator)
    return re.compile(f"[{''.join(re.escape(chr(code)) for code in codes)}]"), codes


def _escapes(terminator: str) -> dict[int, str]:
    codes = dict(CODES)
    if terminator > ESCAPE:
        # Some of the codes above contain the terminator too: "$_" stands for a space.
        clashing = [code for code, escaped in codes.items() if terminator in escaped]
        codes |= {code: f"{ESCAPE}u{code:06x}" for code in (*clashing, ord(terminator))}
    return codes


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


_PLAIN = {
    "text": Codec("text", "", _text, prefixable=True),
    "number": Codec("number", "", _number),
    "boolean": Codec("boolean", "", _boolean),
    "date": Codec("date", "", _date),
    "time": Codec("time", "", _time),
    "timestamp": Codec("timestamp", "", _timestamp),
    "duration": Codec("duration", "", _duration),
    "uuid": Codec("uuid", "", _uuid),
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
}


def raw_codec(codec: Codec, write: Callable[[Any], str], *, ordered: bool, whole: bool) -> Codec:
    """Return a codec that writes values without escapes."""
    return replace(codec, write=write, ordered=ordered, raw=True, whole=whole, prefixable=codec.kind == "text")


def key_codec(write: Callable[[Any], str]) -> Codec:
    """Return the codec of a key that is a number or binary in the table, whose strings have the same order."""
    return Codec("number", "", write, whole=True)
