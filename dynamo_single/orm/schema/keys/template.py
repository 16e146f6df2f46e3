"""Key templates: how a model's values become partition and sort keys, and which keys a template can make at all.

A key is text of literals and values; ``#`` separates parts and never stands inside a value. Rendering is injective: two
different tuples of values never give one key. This module must not know models, queries or requests.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from string import Formatter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from django.db.models import Q
from django.utils.translation import gettext_lazy as _
from msgspec import Struct
from msgspec.structs import force_setattr, replace

from dynamo_single.conf.shapes import NO_SORT_KEY
from dynamo_single.exceptions import ConfigurationError, EmptyKeyPart, InvalidValue
from dynamo_single.orm.schema.keys.codecs import (
    KINDS,
    LAST,
    SEPARATOR,
    Codec,
    canonical,
    codec_for,
    padding_of,
    split_format,
)
from dynamo_single.orm.schema.keys.identity import NoIdentity, join_identity, split_identity
from dynamo_single.orm.schema.keys.shards import MARK, Sharding, Shards
from dynamo_single.orm.schema.keys.values import HAS_TO_HAVE_VALUE, words
from dynamo_single.table.masking import ESCAPE
from dynamo_single.table.request import PARTITION_KEY_LIMIT, SORT_KEY_LIMIT

__all__ = [
    "KINDS",
    "PARTITION_KEY_LIMIT",
    "SEPARATOR",
    "SORT_KEY_LIMIT",
    "Codec",
    "IndexKey",
    "Key",
    "KeyPart",
    "NoIdentity",
    "Template",
    "can_collide",
    "canonical",
    "codec_for",
    "in_shards",
    "join_identity",
    "prefix_end",
    "sharding_of",
    "split_identity",
]


# The strings that a key template can produce, and the overlap of two templates for any values.  A pattern is
# deterministic: the literal after a value begins with a character that the value cannot contain, so there is one way to
# read a string.

#: How much of a string a pattern can read: all of it as one of its own strings, all of it as the beginning of one, or
#: not.
Reading = Literal["whole", "beginning", "none"]


class Pattern(Struct, frozen=True):
    """Literals with a value between each two: one or more characters from ``$`` up, except the next literal's first.

    A pattern that ends with a value has an empty literal after it. A ``raw`` value may contain other characters, too,
    except the next literal's first character and the separator; a value that is the whole key may contain any.
    """

    literals: tuple[str, ...]
    raw: bool = False

    def read(self, text: str) -> Reading:
        """Return how much of a string matches this pattern."""
        place = 0
        for number, literal in enumerate(self.literals):
            if number:
                value = self._value(literal[:1]).match(text, place)
                if value is None:
                    return "beginning" if place == len(text) else "none"
                place = value.end()
            if not text.startswith(literal, place):
                return "beginning" if literal.startswith(text[place:]) else "none"
            place += len(literal)
        return "whole" if place == len(text) else "none"

    @property
    def is_whole(self) -> bool:
        """Whether one value is the whole text."""
        return self.literals == ("", "")

    def _value(self, following: str) -> re.Pattern[str]:
        return _raw_value(following, self.is_whole) if self.raw else _value(following)

    def _takes(self, character: str, following: str) -> bool:
        """Whether a value in front of a literal may contain a character."""
        if self.raw and (self.is_whole or character != SEPARATOR):
            return character != following
        return character >= ESCAPE and character != following

    def up_to(self, count: int) -> Pattern:
        """Return the pattern of the part before the value after ``count`` values."""
        return replace(self, literals=self.literals[: count + 1])

    def then(self, literal: str) -> Pattern:
        """The pattern with one value more, and this literal after it."""
        return replace(self, literals=(*self.literals, literal))

    def is_read_by(self, other: Pattern, *, wholly: bool) -> bool | None:
        """Return whether strings of this pattern match the other one, or begin a match unless ``wholly``.

        ``None`` if some are and some are not: then it depends on the values.
        """
        ours, theirs = self.literals[0], other.literals[0]
        if not (ours.startswith(theirs) or theirs.startswith(ours)):
            return False
        return self._follow(other, wholly=wholly)

    def _follow(self, other: Pattern, *, wholly: bool) -> bool | None:
        answers: set[bool] = set()
        seen: set[tuple[_Place, _Place]] = set()
        waiting: list[tuple[_Place, _Place]] = [(_START, _START)]
        characters = _characters(self, other)
        while waiting and len(answers) < 2:
            ours, theirs = waiting.pop()
            if (ours, theirs) in seen:
                continue
            seen.add((ours, theirs))
            if self._is_end(ours):
                answers.add(not wholly or other._is_end(theirs))
            for character, our_next in self._steps(ours, characters):
                their_next = other._after(theirs, character)
                if their_next is None:
                    # Every beginning continues to some string of this pattern, and the other one matches none of these.
                    answers.add(False)
                else:
                    waiting.append((our_next, their_next))
        return None if len(answers) == 2 else answers.pop()

    def _is_end(self, place: _Place) -> bool:
        last = len(self.literals) - 1
        if place.in_value:
            return place.number == last and not self.literals[last]
        return (place.number, place.offset) == (last, len(self.literals[last]))

    def _after(self, place: _Place, character: str) -> _Place | None:
        """Return the next state for a character, or ``None`` if it does not match there."""
        number, offset, in_value = place.number, place.offset, place.in_value
        if not in_value and offset < len(self.literals[number]):
            return _Place(number, offset + 1) if character == self.literals[number][offset] else None
        if not in_value:
            number += 1
            if number == len(self.literals):
                return None
        following = self.literals[number][:1]
        if self._takes(character, following):
            return _Place(number, in_value=True)
        return _Place(number, 1) if in_value and character == following else None

    def _steps(self, place: _Place, characters: str) -> Iterator[tuple[str, _Place]]:
        literal = self.literals[place.number]
        if not place.in_value and place.offset < len(literal):
            characters = literal[place.offset]
        for character in characters:
            after = self._after(place, character)
            if after is not None:
                yield character, after


class _Place(NamedTuple):
    """After ``offset`` characters of a literal, or inside the value in front of it."""

    number: int
    offset: int = 0
    in_value: bool = False


_START = _Place(0)


def _characters(*patterns: Pattern) -> str:
    """Return the characters that the patterns distinguish, and a representative for all other characters of a value."""
    named = {character for pattern in patterns for literal in pattern.literals for character in literal}
    other = next(character for code in range(ord(ESCAPE), 0x10FFFF) if (character := chr(code)) not in named)
    if any(pattern.raw for pattern in patterns):
        # A raw value may contain a character below the separator, too.
        named.add(next(character for code in range(1, ord(SEPARATOR)) if (character := chr(code)) not in named))
    return "".join(sorted({*named, other}))


@lru_cache(maxsize=64)
def _value(following: str) -> re.Pattern[str]:
    """Return a regular expression for a value's characters before a literal that begins with ``following``."""
    excluded = f"\\x00-{re.escape(chr(ord(ESCAPE) - 1))}{re.escape(following)}"
    return re.compile(f"[^{excluded}]+")


@lru_cache(maxsize=64)
def _raw_value(following: str, is_whole: bool) -> re.Pattern[str]:
    """Return the expression for a raw value in front of a literal that begins with ``following``."""
    return re.compile(".+" if is_whole else f"[^{SEPARATOR}{re.escape(following)}]+", re.DOTALL)


#: Django's suffix for the stored attribute of a reference.
_STORED = "_id"
_INDEX_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


class Key(Struct, frozen=True):
    """Declares a model's primary key by two templates; ``sharded`` divides each partition as ``Shards`` declares.

    A migration file has the ``Shards`` themselves there.
    """

    partition: str
    sort: str = ""
    sharded: bool | Shards = False

    def __post_init__(self) -> None:
        if not isinstance(self.sharded, bool | Shards):
            raise ConfigurationError(
                f"Key({self.partition!r}, {self.sort!r}, ...) takes a partition and a sort key. A key of an index is "
                "an IndexKey, which takes the index's name before these."
            )
        if not self.sort:
            force_setattr(self, "sort", NO_SORT_KEY)  # the model's layout checks that the table has none either
        for source in (self.partition, self.sort):
            placed = [part.name for part in Template.parse(source).parts if part.place]
            if placed:
                raise refusal(source, f"{{{placed[0]}}} is part of the identity and must not be missing")

    def deconstruct(self) -> tuple[str, list[object], dict[str, object]]:
        """Return the form for a migration file."""
        arguments: list[object] = [self.partition, self.sort]
        return "dynamo_single.models.Key", arguments, {"sharded": self.sharded} if self.sharded else {}


class IndexKey(Struct, frozen=True):
    """Declares the key of a model on one of the table's indexes; ``sharded`` as for ``Key``.

    With a ``condition``, a ``Q`` of the model's own attributes, the index contains only live objects that meet it, and
    the key serves only queries that include it. A migration file has the condition as tuples there.
    """

    index: str
    if TYPE_CHECKING:
        partition: str
    else:  # a missing partition is reported below, with the name of the index
        partition: str = ""
    sort: str = ""
    sharded: bool | Shards = False
    condition: Q | tuple[Any, ...] | None = None

    def __post_init__(self) -> None:
        if self.partition and not self.sort:
            force_setattr(self, "sort", NO_SORT_KEY)
        if not self.partition:
            raise ConfigurationError(
                f"IndexKey({self.index!r}, ...) takes the name of an index, a partition and a sort key, as in "
                'IndexKey("gs1", "COMPANY", "{name}").'
            )
        if not _INDEX_NAME.fullmatch(self.index):
            raise ConfigurationError(
                f"IndexKey({self.index!r}, ...): the first argument names one of the table's indexes, such as 'gs1'."
            )
        if self.condition is not None and not (isinstance(self.condition, Q | tuple) and self.condition):
            raise ConfigurationError(
                f"IndexKey({self.index!r}, ...): the condition must be a Q with at least one comparison, such "
                f"as condition=Q(status='open'), not {self.condition!r}."
            )
        Template.parse(self.partition)
        Template.parse(self.sort)

    def deconstruct(self) -> tuple[str, list[object], dict[str, object]]:
        """Return the form for a migration file."""
        options: dict[str, object] = {"sharded": self.sharded} if self.sharded else {}
        if self.condition is not None:
            options["condition"] = self.condition
        return "dynamo_single.models.IndexKey", [self.index, self.partition, self.sort], options


class KeyPart(Struct, frozen=True):
    """One variable of a template, with the literal text in front of it and the character that ends its value.

    With a ``path`` it is a part of the identity that the attribute ``name``, a reference, holds.
    """

    literal: str
    name: str
    spec: str
    terminator: str = ""
    codec: Codec | None = None
    path: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """The variable as the template writes it, without its format."""
        return ".".join((self.name.removesuffix(_STORED), *self.path)) if self.path else self.name

    @property
    def ordered(self) -> bool:
        """Whether keys that differ in this part first sort as its values do."""
        # A terminator above the escape character would sort after the characters of a longer value.
        return self.bound.ordered and self.terminator < ESCAPE

    @property
    def place(self) -> str:
        """The position of objects without a value, ``first`` or ``last``, if the key contains them."""
        return split_format(self.spec)[1]

    @property
    def form(self) -> str:
        """The format that the value is written in, such as ``canonical``; empty for the value as it is."""
        return split_format(self.spec)[0]

    @property
    def ending(self) -> str:
        """The character that ends the value in the key, if that is not ``#``, which no value contains."""
        return "" if self.terminator == SEPARATOR else self.terminator

    @property
    def bound(self) -> Codec:
        """The codec; an unbound template has none."""
        if self.codec is None:
            raise ConfigurationError(f"The key template's {{{self.shown}}} is not bound to an attribute.")
        return self.codec

    def encode(self, value: object) -> str:
        """Encode a value for this part."""
        try:
            return self.bound.encode(value, self.ending)
        except InvalidValue as error:
            raise type(error)(f"{self.name}: {error}") from error

    @property
    def encoder(self) -> Callable[[Any], str]:
        """``encode()`` as one function; for a string its errors do not name the attribute."""
        return self.bound.text_encoder(self.ending) or self.encode


#: How many parsed templates are kept. A declaration parses each of its own several times.
MAX_PARSED = 1024


class Template(Struct, frozen=True):
    """A parsed key template such as ``COMPANY#{company_id}``; ``bind`` it before rendering."""

    source: str
    parts: tuple[KeyPart, ...]
    tail: str
    # The rest is derived from the fields above, whatever is passed. The names of the attributes, each once, in order.
    variables: tuple[str, ...] = ()
    #: The keys that the template can make.
    pattern: Pattern = Pattern(())

    def __post_init__(self) -> None:
        literals = (*(part.literal for part in self.parts), self.tail)
        force_setattr(self, "variables", tuple(dict.fromkeys(part.name for part in self.parts)))
        raw = any(part.codec is not None and part.codec.raw for part in self.parts)
        force_setattr(self, "pattern", Pattern(literals, raw))

    @classmethod
    @lru_cache(maxsize=MAX_PARSED)
    def parse(cls, source: str) -> Template:
        """Read a template; raise a ``ConfigurationError`` that quotes it if keys could be ambiguous."""
        parts, tail = _parse(source)
        names = [part.shown for part in parts]
        for name in names:
            if names.count(name) > 1:
                raise refusal(source, f"{{{name}}} appears twice; use it once")
        return cls(source, parts, tail)

    @property
    def head(self) -> str:
        """The literal text in front of the first variable; the whole key if there is none."""
        return self.pattern.literals[0]

    def bind(self, codecs: Mapping[str, Codec]) -> Template:
        """Return this template with the encoder of each variable; ``codecs`` are by its ``shown`` name."""
        for part in self.parts:
            if part.shown not in codecs:
                raise refusal(self.source, f"there is no attribute {part.shown!r}")
        return replace(self, parts=tuple(replace(part, codec=codecs[part.shown]) for part in self.parts))

    def render(self, values: Mapping[str, object], *, limit: int | None = None) -> str:
        """Render the key; raise ``EmptyKeyPart`` for a missing or empty value, ``InvalidValue`` over ``limit``
        bytes."""
        key = self._written(values, len(self.parts))
        if limit is not None and (size := len(key) if key.isascii() else len(key.encode())) > limit:
            raise InvalidValue(
                f"The key {self.source!r} would have {size} bytes; DynamoDB takes {limit} there. "
                f"Shorten {', '.join(self.variables)}.",
                words=words(
                    _("A key of it would have %(size)d bytes; %(limit)d can be stored. Make this shorter: %(names)s."),
                    size=size,
                    limit=limit,
                    names=", ".join(self.variables),
                ),
            )
        return key

    def writer(self, limit: int, count: int | None = None) -> Callable[[Mapping[str, Any]], str | None]:
        """Return ``render()``, or ``prefix()``, as one function; it returns ``None`` for an empty part or a long key.

        It raises the errors of the values' encoders. Every value is required, and a string must be a ``str``.
        """
        parts = self.parts[:count]
        known: dict[str, Any] = {f"encode_{place}": part.encoder for place, part in enumerate(parts)}
        texts = [f"text_{place}" for place in range(len(parts))]
        lines = [f"{text} = encode_{place}(values[{parts[place].name!r}])" for place, text in enumerate(texts)]
        written = [each for part, text in zip(parts, texts, strict=True) for each in (repr(part.literal), text)]
        fits = " and ".join((*texts, f"(len(key) if key.isascii() else len(key.encode())) <= {limit}"))
        lines += [
            f"key = {' + '.join((*written, repr(self.pattern.literals[len(parts)])))}",
            f"return key if {fits} else None",
        ]
        body = "".join(f"    {line}\n" for line in lines)
        exec(f"def write(values):\n{body}", known)  # noqa: S102 - literals, positions and names of attributes
        write: Callable[[Mapping[str, Any]], str | None] = known["write"]
        return write

    def prefix(self, values: Mapping[str, object], count: int) -> str:
        """Write the key up to the boundary after ``count`` values: ``ORDER#1#`` does not start ``ORDER#10#``."""
        return self._written(values, min(count, len(self.parts)))

    def matches(self, text: str) -> bool:
        """Return whether the template can produce exactly this key."""
        return self.pattern.read(text) == "whole"

    def could_start_with(self, text: str) -> bool:
        """Return whether the template can produce a key that starts with this string."""
        return self.pattern.read(text) != "none"

    def could_equal(self, other: Template) -> bool:
        """Return whether the two templates can produce the same key."""
        return self.pattern.is_read_by(other.pattern, wholly=True) is not False

    def _written(self, values: Mapping[str, object], count: int) -> str:
        """The key up to the boundary after ``count`` values."""
        text = ""
        for part in self.parts[:count]:
            value = values.get(part.name)
            missing = not value if part.path else value is None and not part.place
            written = "" if missing else part.encode(value)
            if not written:
                raise EmptyKeyPart(
                    f"{part.name} is {'missing' if value is None else 'empty'}, and the key {self.source!r} needs it. "
                    f"Give {part.name} a value first.",
                    words=words(HAS_TO_HAVE_VALUE, name=part.name),
                )
            text += part.literal + written
        return text + self.pattern.literals[count]


def can_collide(first: tuple[Template, Template], second: tuple[Template, Template]) -> bool:
    """Return whether two pairs of (partition, sort) templates can produce the same primary key, for two different
    models."""
    return first[0].could_equal(second[0]) and first[1].could_equal(second[1])


def in_shards(partition: Template) -> Template:
    """A partition's template with the number of a shard at its end."""
    number = KeyPart(partition.tail + MARK, "shard", "", codec=codec_for("text"))
    return replace(partition, parts=(*partition.parts, number), tail="")


def sharding_of(shards: Shards, codec: Codec, primary: tuple[Template, Template]) -> Sharding:
    """Return the division of keys, given the codec of the hashed value and the templates of the primary key.

    The value counts as folded if the primary key does not distinguish all values: two objects of one address would
    otherwise be in different shards.
    """
    parts = [part for template in primary for part in template.parts if part.name == shards.attribute]
    codecs = tuple(part.bound for part in parts)
    told = frozenset[int]().union(*(each.leaves for each in codecs))
    if any(each.exact or (each.of and len(told) == each.of) for each in codecs):
        return Sharding(shards.attribute, shards.at, codec)
    fold = ",".join(":".join(filter(None, (".".join(part.path), part.form))) for part in parts)
    return Sharding(shards.attribute, shards.at, codec, fold, codecs)


def prefix_end(prefix: str) -> str:
    """Return a string after every key with a prefix and before all higher ones; it is never a key."""
    if prefix.endswith(SEPARATOR):
        return prefix[:-1] + ESCAPE
    return prefix + LAST


def refusal(source: str, reason: str) -> ConfigurationError:
    """Return the error for an invalid template."""
    return ConfigurationError(f"The key template {source!r} cannot be used: {reason}.")


def _parse(source: str) -> tuple[tuple[KeyPart, ...], str]:
    if not source:
        raise refusal(source, "it is empty; a key has at least a literal, such as '#METADATA'")
    parts: list[KeyPart] = []
    literal = ""
    for text, name, spec in _fields(source):
        literal += text
        if name is None:
            continue
        if parts:
            parts[-1] = replace(parts[-1], terminator=_terminator(source, literal, parts[-1].name, name))
        _check_variable(source, name, spec)
        first, *path = name.split(".")
        parts.append(KeyPart(literal, first + _STORED if path else first, spec, path=tuple(path)))
        literal = ""
    if parts and literal:
        parts[-1] = replace(parts[-1], terminator=_terminator(source, literal, parts[-1].name, ""))
    for reserved in (ESCAPE, LAST):
        if any(reserved in text for text in (literal, *(part.literal for part in parts))):
            raise refusal(source, f"{reserved!r} is reserved for encoded values and cannot appear in a literal")
    return tuple(parts), literal


def _fields(source: str) -> Iterator[tuple[str, str | None, str]]:
    try:
        for text, name, spec, conversion in Formatter().parse(source):
            if conversion:
                raise refusal(source, f"it converts with !{conversion}; write {{name}} or {{name:format}}")
            yield text, name, spec or ""
    except ValueError as error:
        raise refusal(source, f"its braces do not pair up ({error}); a brace itself is written twice") from error


def _check_variable(source: str, name: str, spec: str) -> None:
    if "[" in name:
        raise refusal(source, document_path_error(name))
    if not all(map(str.isidentifier, name.split("."))):
        raise refusal(source, f"{{{name}}} is not the name of an attribute")
    form = split_format(spec)[0]
    if form and form != "canonical" and not padding_of(form):
        raise refusal(
            source,
            f"the format {spec!r} is unknown; use 'canonical' for strings, '08d' for numbers, or 'first' and "
            "'last' (also after another format and a colon) for the position of objects without a value",
        )


def document_path_error(name: str) -> str:
    """Explain why keys cannot name a nested value, and the alternative."""
    steps = re.findall(r"\w+", name)
    own = next((step for step in reversed(steps[1:]) if step.isidentifier()), "value")
    return (
        f"{{{name}}} leads into a document, and DynamoDB cannot index nested values. Keep the value in an attribute of "
        f'its own as well, and name that: {own} = models.ExtractedAttribute("{"__".join(steps)}")'
    )


def _terminator(source: str, literal: str, name: str, following: str) -> str:
    if not literal:
        reason = f"nothing separates {{{name}}} from {{{following}}}, so two pairs of values could give the same key"
        raise refusal(source, f"{reason}; put {SEPARATOR!r} between them")
    if literal[0].isalnum():
        reason = f"the end of {{{name}}} is not visible in front of {literal[0]!r}"
        raise refusal(source, f"{reason}; put {SEPARATOR!r} between them")
    return literal[0]
