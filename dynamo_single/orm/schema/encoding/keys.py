"""Key templates: how a model's values become partition and sort keys, and which keys a template can make at all.

A key is text of literals and values; ``#`` separates parts and never stands inside a value. Rendering is injective: two
different tuples of values never give one key. This module must not know models, queries or requests.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from string import Formatter
from typing import TYPE_CHECKING, Any

from django.db.models import Q
from django.utils.translation import gettext_lazy as _
from msgspec import Struct
from msgspec.structs import force_setattr, replace

from dynamo_single.exceptions import ConfigurationError, EmptyKeyPart, InvalidValue
from dynamo_single.orm.schema.encoding.codecs import (
    KINDS,
    LAST,
    Codec,
    canonical,
    codec_for,
    padding_of,
    split_format,
)
from dynamo_single.orm.schema.encoding.identity import NoIdentity, join_identity, split_identity
from dynamo_single.orm.schema.encoding.patterns import Pattern
from dynamo_single.orm.schema.encoding.shards import MARK, Sharding, Shards
from dynamo_single.orm.schema.encoding.words import HAS_TO_HAVE_VALUE, words
from dynamo_single.table.escaping import ESCAPE
from dynamo_single.table.limits import PARTITION_KEY_LIMIT, SORT_KEY_LIMIT

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

SEPARATOR = "#"

#: What Django adds to a reference's name for what it stores.
_STORED = "_id"
_INDEX_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


class Key(Struct, frozen=True):
    """Declares a model's primary key by two templates; ``sharded`` divides each partition as ``Shards`` says.

    A migration file has the ``Shards`` themselves there.
    """

    partition: str
    if TYPE_CHECKING:
        sort: str
    else:  # what is missing is reported below, with a sort key
        sort: str = ""
    sharded: bool | Shards = False

    def __post_init__(self) -> None:
        if not isinstance(self.sharded, bool | Shards):
            raise ConfigurationError(
                f"Key({self.partition!r}, {self.sort!r}, ...) takes a partition and a sort key. A key of an index is "
                "an IndexKey, which takes the index's name before these."
            )
        if not self.sort:
            raise ConfigurationError(
                f"Key({self.partition!r}) has no sort key. Where an object has its partition to itself it is a "
                f'literal: Key({self.partition!r}, "#METADATA").'
            )
        for source in (self.partition, self.sort):
            placed = [part.name for part in Template.parse(source).parts if part.place]
            if placed:
                raise refusal(source, f"{{{placed[0]}}} is part of what an object is known by, which has to be there")

    def deconstruct(self) -> tuple[str, list[object], dict[str, object]]:
        """How a migration file writes it."""
        return (
            "dynamo_single.models.Key",
            [self.partition, self.sort],
            {"sharded": self.sharded} if self.sharded else {},
        )


class IndexKey(Struct, frozen=True):
    """Declares the key of a model on one of the table's indexes; ``sharded`` as for ``Key``.

    With a ``condition``, a ``Q`` of the model's own attributes, only live objects that meet it are in the index, and
    the key answers only queries that ask for it. A migration file has the condition as tuples there.
    """

    index: str
    if TYPE_CHECKING:
        partition: str
        sort: str
    else:  # as above
        partition: str = ""
        sort: str = ""
    sharded: bool | Shards = False
    condition: Q | tuple[Any, ...] | None = None

    def __post_init__(self) -> None:
        if not self.partition or not self.sort:
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
                f"IndexKey({self.index!r}, ...): the condition is a Q that asks for something, as in "
                f"condition=Q(status='open'), not {self.condition!r}."
            )
        Template.parse(self.partition)
        Template.parse(self.sort)

    def deconstruct(self) -> tuple[str, list[object], dict[str, object]]:
        """How a migration file writes it."""
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
        """Where objects without a value stand, ``first`` or ``last``, if the key holds them."""
        return split_format(self.spec)[1]

    @property
    def form(self) -> str:
        """The format that the value is written in, such as ``canonical``; empty for the value as it is."""
        return split_format(self.spec)[0]

    @property
    def bound(self) -> Codec:
        """The codec; a template that is not bound has none."""
        if self.codec is None:
            raise ConfigurationError(f"The key template's {{{self.shown}}} is not bound to an attribute.")
        return self.codec

    def encode(self, value: object) -> str:
        """Write a value as it stands in this part."""
        try:
            return self.bound.encode(value, "" if self.terminator == SEPARATOR else self.terminator)
        except InvalidValue as error:
            raise type(error)(f"{self.name}: {error}") from error


class Template(Struct, frozen=True):
    """A parsed key template such as ``COMPANY#{company_id}``; ``bind`` it before rendering."""

    source: str
    parts: tuple[KeyPart, ...]
    tail: str
    # What follows is worked out of the above, whatever is given.
    #: The names of the attributes, each once, in order.
    variables: tuple[str, ...] = ()
    #: The keys that the template can make.
    pattern: Pattern = Pattern(())

    def __post_init__(self) -> None:
        literals = (*(part.literal for part in self.parts), self.tail)
        force_setattr(self, "variables", tuple(dict.fromkeys(part.name for part in self.parts)))
        force_setattr(self, "pattern", Pattern(literals))

    @classmethod
    def parse(cls, source: str) -> Template:
        """Read a template; what could give ambiguous keys is a ``ConfigurationError`` that quotes it."""
        parts, tail = _parse(source)
        names = [part.shown for part in parts]
        for name in names:
            if names.count(name) > 1:
                raise refusal(source, f"{{{name}}} stands in it twice; once is enough")
        return cls(source, parts, tail)

    @property
    def head(self) -> str:
        """The literal text in front of the first variable; the whole key if there is none."""
        return self.pattern.literals[0]

    def bind(self, codecs: Mapping[str, Codec]) -> Template:
        """Give this template with what writes the values of each variable; ``codecs`` are by how it is ``shown``."""
        for part in self.parts:
            if part.shown not in codecs:
                raise refusal(self.source, f"there is no attribute {part.shown!r}")
        return replace(self, parts=tuple(replace(part, codec=codecs[part.shown]) for part in self.parts))

    def render(self, values: Mapping[str, object], *, limit: int | None = None) -> str:
        """Write the key; a missing or empty value is an ``EmptyKeyPart``, over ``limit`` bytes an ``InvalidValue``."""
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

    def render_or_none(self, values: Mapping[str, object], *, limit: int | None = None) -> str | None:
        """Write the key of an index, or ``None`` if a part is missing, so that the item stays out of the index."""
        try:
            return self.render(values, limit=limit)
        except EmptyKeyPart:
            return None

    def prefix(self, values: Mapping[str, object], count: int) -> str:
        """Write the key up to the boundary after ``count`` values: ``ORDER#1#`` does not start ``ORDER#10#``."""
        return self._written(values, min(count, len(self.parts)))

    def matches(self, text: str) -> bool:
        """Whether the template can make exactly this key."""
        return self.pattern.read(text) == "whole"

    def could_start_with(self, text: str) -> bool:
        """Whether the template can make a key that starts with this text."""
        return self.pattern.read(text) != "none"

    def could_equal(self, other: Template) -> bool:
        """Whether the two templates can make one and the same key."""
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
    """Whether two pairs of (partition, sort) templates can make one primary key, for two different models' items."""
    return first[0].could_equal(second[0]) and first[1].could_equal(second[1])


def in_shards(partition: Template) -> Template:
    """A partition's template with the number of a shard at its end."""
    number = KeyPart(partition.tail + MARK, "shard", "", codec=codec_for("text"))
    return replace(partition, parts=(*partition.parts, number), tail="")


def sharding_of(shards: Shards, codec: Codec, primary: tuple[Template, Template]) -> Sharding:
    """Return by what keys are divided, given the codec of the hashed value and the templates of the primary key.

    The value counts as folded if the primary key does not tell each value from every other: two objects of one address
    would then lie in different shards.
    """
    parts = [part for template in primary for part in template.parts if part.name == shards.attribute]
    codecs = tuple(part.bound for part in parts)
    told = frozenset[int]().union(*(each.leaves for each in codecs))
    if any(each.exact or (each.of and len(told) == each.of) for each in codecs):
        return Sharding(shards.attribute, shards.at, codec)
    fold = ",".join(":".join(filter(None, (".".join(part.path), part.form))) for part in parts)
    return Sharding(shards.attribute, shards.at, codec, fold, codecs)


def prefix_end(prefix: str) -> str:
    """Give a text that sorts after every key with a prefix and in front of all higher ones; it is never a key."""
    if prefix.endswith(SEPARATOR):
        return prefix[:-1] + ESCAPE
    return prefix + LAST


def refusal(source: str, reason: str) -> ConfigurationError:
    """What is raised for a template that cannot be used."""
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
            raise refusal(source, f"{reserved!r} is reserved for the writing of values and cannot stand in a literal")
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
        raise refusal(source, leads_into_a_document(name))
    if not all(map(str.isidentifier, name.split("."))):
        raise refusal(source, f"{{{name}}} is not the name of an attribute")
    form = split_format(spec)[0]
    if form and form != "canonical" and not padding_of(form):
        raise refusal(
            source,
            f"the format {spec!r} is unknown; there are 'canonical' for text and '08d' for numbers, and 'first' and "
            "'last', also after another one and a colon, for where objects without a value stand",
        )


def leads_into_a_document(name: str) -> str:
    """Why no key can name a value inside a document, and what can."""
    steps = re.findall(r"\w+", name)
    own = next((step for step in reversed(steps[1:]) if step.isidentifier()), "value")
    return (
        f"{{{name}}} leads into a document, and DynamoDB cannot index nested values. Keep the value in an attribute of "
        f'its own as well, and name that: {own} = models.ExtractedAttribute("{"__".join(steps)}")'
    )


def _terminator(source: str, literal: str, name: str, following: str) -> str:
    if not literal:
        reason = f"nothing separates {{{name}}} from {{{following}}}, so that two pairs of values could give one key"
        raise refusal(source, f"{reason}; put {SEPARATOR!r} between them")
    if literal[0].isalnum():
        reason = f"the end of {{{name}}} is not visible in front of {literal[0]!r}"
        raise refusal(source, f"{reason}; put {SEPARATOR!r} between them")
    return literal[0]
