"""Make an object's item in one pass: its prepared values, the item with its keys, and the size of the item.

The app compiles this function once for each binding, like ``readers``: its source contains names as literals. It
raises for any value that is not the usual one; ``ItemForm`` then writes the item, or raises the error. Nothing here
sends a request.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from functools import partial
from typing import Any, Final

from django.conf import settings
from msgspec import Struct

from dynamo_single import clock
from dynamo_single.orm.conditions.matching import matches
from dynamo_single.orm.items.encode import PLAIN, IndexKey, Values, index_keys, version_mark, writer_of
from dynamo_single.orm.items.encodings import NO_ITEM, Encodings
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.attributes import (
    Attribute,
    DecimalAttribute,
    IntegerAttribute,
    TimestampAttribute,
    UnicodeAttribute,
)
from dynamo_single.orm.schema.attributes.operations import is_expression
from dynamo_single.orm.schema.bindings import ModelBinding, fact
from dynamo_single.orm.schema.keys.template import KeyPart, Template
from dynamo_single.orm.schema.keys.values import item_size, value_size
from dynamo_single.orm.schema.layout import AccessKey
from dynamo_single.table import names
from dynamo_single.table.masking import unsafe_in
from dynamo_single.table.request import MAX_ITEM_SIZE, PARTITION_KEY_LIMIT, SORT_KEY_LIMIT, Item, NewItem, StoredValue

#: A value in its stored Python form, its AttributeValue, and the bytes of that with its name.
Written = tuple[Any, StoredValue, int]
#: The methods that determine the encoding of an attribute's value; ``floor`` cuts off a datetime.
_DECIDING: Final = ("prepare", "clean", "floor", "encode", "current", "to_attribute_value")


class Unusual(Exception):
    """``ItemForm`` has to write the item."""


class ItemWriter(Struct, frozen=True, eq=False):
    """How to write the items of one binding.

    - ``whole`` returns the prepared values, the item and its size in bytes, given an object's values by attribute, the
      item as it was read, if there is one, and what was encoded already. It raises any error if ``ItemForm`` has to
      decide. Unchanged documents, and documents without a value, keep their stored form.
    - ``parts`` write one value each, by attribute. The value is not ``None``.
    - ``in_keys`` contains the attributes that index keys depend on.
    - ``longest``: an object whose primary key has at most so many characters fits the trash's key.
    """

    whole: Callable[..., tuple[Values, NewItem, int]]
    parts: Mapping[str, Callable[..., Written]]
    in_keys: frozenset[str]
    longest: int


@fact
def item_writer(binding: ModelBinding) -> ItemWriter | None:
    """Return the writer of a model's items; ``None`` if its keys have shards, or a migration is renaming attributes."""
    layout = binding.layout
    attributes = registry.attributes_of(binding.model)
    stored = {name: layout.attributes[name].stored for name in attributes}
    live, trash = index_keys(binding)
    others = _FIXED.union(*(key.pair for key in (*live, *trash)))
    if layout.sharding is not None or layout.twins or others & {*stored.values()}:
        return None
    parts = {name: _part(stored[name], attribute) for name, attribute in attributes.items()}
    source = _Source({"Unusual": Unusual, "no_item": NO_ITEM})
    head = {names.ITEM_TYPE: {"S": layout.item_type}, **version_mark(binding)}
    source.line(f"prepared = {{}}; own = {{}}; size = {item_size(head)}")
    for name, attribute in attributes.items():
        _add_attribute(source, stored[name], attribute, parts[name])
    partition, sort = names.PARTITION_KEY, names.SORT_KEY
    _add_key(source, layout.primary, (partition, sort), "")
    copied = ", ".join(f"{name!r}: {source.value(value)}.copy()" for name, value in head.items())
    source.line(f"item = {{{partition!r}: {{'S': partition}}, {sort!r}: {{'S': sort}}, {copied}}}")
    is_live = f"prepared[{registry.DELETED_AT!r}] is None" if registry.DELETED_AT in attributes else "True"
    for keys, test in ((live, is_live), (trash, f"not ({is_live})")):
        if keys:
            source.line(f"if {test}:")
        for key in keys:
            _add_index_key(source, key)
    source.line("item.update(own)")
    source.line(f"if size > {MAX_ITEM_SIZE}: raise Unusual")
    source.line("return prepared, item, size")
    in_keys = frozenset(name for key in (*live, *trash) for name in key.key.named_attributes)
    room = min((_room(layout.primary, key.key) for key in trash), default=2 * SORT_KEY_LIMIT + PARTITION_KEY_LIMIT)
    return ItemWriter(source.function("values, before=no_item, encodings=None"), parts, in_keys, room)


#: The attributes of an item other than the model's attributes and index keys.
_FIXED: Final = frozenset({names.PARTITION_KEY, names.SORT_KEY, names.ITEM_TYPE, names.SCHEMA_VERSION})


class _Source:
    """The lines of a function, and the values that they name."""

    def __init__(self, known: dict[str, Any]) -> None:
        self.known = known
        self.lines: list[str] = []
        #: The local variables that contain parts of the primary key.
        self.rendered: dict[tuple[Any, ...], str] = {}

    def line(self, text: str, depth: int = 0) -> None:
        self.lines.append(" " * (depth + 1) + text)

    def value(self, value: object) -> str:
        """The name of a value."""
        name = f"_{len(self.known)}"
        self.known[name] = value
        return name

    def function(self, arguments: str) -> Callable[..., Any]:
        exec("\n".join([f"def write({arguments}):", *self.lines, ""]), self.known)  # noqa: S102 - see the docstring
        made: Callable[..., Any] = self.known["write"]
        return made


def _is_own(attribute: Attribute, kind: type[Attribute]) -> bool:
    """Return whether an attribute writes values exactly as one of our classes does."""
    return isinstance(attribute, kind) and all(
        getattr(type(attribute), name, None) is getattr(kind, name, None) for name in _DECIDING
    )


def _document_part(stored: str, attribute: Attribute) -> Callable[..., Written]:
    length, checked = len(stored.encode()), attribute.shape is not None

    def write(value: Any, before: StoredValue | None = None, encodings: Encodings | None = None) -> Written:
        _refuse_expression(value)
        found = (Encodings() if encodings is None else encodings).of(attribute, value, before)
        if found.stored is None:
            raise Unusual
        if checked and before is None:  # composing the write validates a changed document
            attribute.check_whole(found.value)
        return found.value, found.stored, length + found.size

    return write


def _part(stored: str, attribute: Attribute) -> Callable[..., Written]:
    if attribute.document:
        return _document_part(stored, attribute)
    encode = writer_of(attribute)

    def write(value: Any) -> Written:
        if type(value) not in PLAIN and is_expression(value):
            raise Unusual
        prepared = attribute.prepare(value)
        if prepared is None:
            raise Unusual
        found = encode(prepared)
        return prepared, found, item_size({stored: found})

    size = len(stored.encode())
    if _is_own(attribute, TimestampAttribute):
        return partial(_moment, attribute, size, write)
    if isinstance(attribute, DecimalAttribute) and _is_own(attribute, DecimalAttribute):
        return write if attribute.quantum or attribute.max_digits else partial(_decimal, size, write)
    return write


#: A number with few digits, as ``number_to_text()`` encodes it: without insignificant zeros.
_short_decimal: Final = re.compile(r"(?:[1-9][0-9]{0,11}|0)(?:\.[0-9]{0,11}[1-9])?", re.ASCII).fullmatch


def _decimal(size: int, write: Callable[[Any], Written], value: Any) -> Written:
    """Write a number without declared places, as ``DecimalAttribute`` prepares and encodes a short one."""
    if type(value) is not Decimal or not _short_decimal(text := str(value)):
        return write(value)
    return value, {"N": text}, size + (len(text.replace(".", "").strip("0")) + 1) // 2 + 1


def _moment(attribute: Any, size: int, write: Callable[[Any], Written], value: Any) -> Written:
    """Encode a datetime, as ``TimestampAttribute`` prepares and encodes one in UTC."""
    if type(value) is not datetime.datetime or value.tzinfo is not datetime.UTC or not settings.USE_TZ:
        return write(value)
    units = (value - clock.EPOCH) // attribute.unit
    text = str(units)
    length = len(text.strip("-0")) if units else 0
    return clock.EPOCH + units * attribute.unit, {"N": text}, size + (length + 1) // 2 + 1 + (units < 0)


def _add_attribute(source: _Source, stored: str, attribute: Attribute, part: Callable[..., Written]) -> None:
    name = attribute.name
    if attribute.document:
        source.line(f"if {name!r} not in values: size += {source.value(partial(_keep, stored))}(before, own)")
        _add_value(source, stored, attribute, part, f"elif (value := values[{name!r}]) is None:")
        return
    if type(attribute).current is Attribute.current:
        source.line(f"value = values[{name!r}]")
    else:
        source.line(f"{source.value(_refuse_expression)}(values.get({name!r}))")
        source.line(f"value = {source.value(attribute.current)}(values)")
    _add_value(source, stored, attribute, part, "if value is None:")


def _keep(stored: str, before: Item, own: NewItem) -> int:
    """Put a document into an item as it was read, and return its bytes with its name."""
    if before is NO_ITEM:
        raise Unusual
    if stored not in before:
        return 0
    own[stored] = found = dict(before[stored])
    return len(stored.encode()) + value_size(found)


def _add_value(
    source: _Source, stored: str, attribute: Attribute, part: Callable[..., Written], if_missing: str
) -> None:
    name = attribute.name
    source.line(if_missing)
    source.line(f"prepared[{name!r}] = None" if attribute.null else "raise Unusual", 1)
    if _is_own(attribute, IntegerAttribute):
        # As short_integer(), number_to_text() and item_size() have it.
        source.line("elif type(value) is int and -1000000000000000 < value < 1000000000000000:")
        source.line(f"text = str(value); prepared[{name!r}] = value; own[{stored!r}] = {{'N': text}}", 1)
        source.line(f"size += {len(stored.encode()) + 1} + (len(text.strip('-0')) + 1) // 2 + (value < 0)", 1)
    if _is_own(attribute, UnicodeAttribute):
        source.line("elif type(value) is str and value.isascii():")
        source.line(f"prepared[{name!r}] = value; own[{stored!r}] = {{'S': value}}", 1)
        source.line(f"size += {len(stored.encode())} + len(value)", 1)
    source.line("else:")
    given = f"value, before.get({stored!r}), encodings" if attribute.document else "value"
    source.line(f"prepared[{name!r}], own[{stored!r}], more = {source.value(part)}({given})", 1)
    source.line("size += more", 1)


def _refuse_expression(value: object) -> None:
    if type(value) not in PLAIN and is_expression(value):
        raise Unusual


def _add_index_key(source: _Source, key: IndexKey) -> None:
    depth = 1
    if key.conditioned:
        asked = [stored for _, stored, _ in key.conditioned]
        source.line(f"if {source.value(partial(_is_met, key, asked))}(own):", depth)
        depth += 1
    optional = []
    for name, required in key.needs:
        if required:
            source.line(f"if prepared[{name!r}] is None or prepared[{name!r}] == '': raise Unusual", depth)
        else:
            optional.append(f"prepared[{name!r}] is not None and prepared[{name!r}] != ''")
    source.line(f"if {' and '.join(optional) or 'True'}:", depth)
    _add_key(source, key.key, key.pair, " " * (depth + 1))
    one, other = key.pair
    source.line(f"item[{one!r}] = {{'S': partition}}; item[{other!r}] = {{'S': sort}}", depth + 1)


def _is_met(key: IndexKey, asked: list[str], own: Item) -> bool:
    return matches(key.condition, {name: own[name] for name in asked if name in own})


def _add_key(source: _Source, key: AccessKey, pair: tuple[str, str], indent: str) -> None:
    """Add the lines that render both halves of a key and count their bytes."""
    depth = len(indent)
    for target, template, limit in (
        ("partition", key.partition, PARTITION_KEY_LIMIT),
        ("sort", key.sort, SORT_KEY_LIMIT),
    ):
        _add_text(source, target, template, depth)
        source.line(f"length = len({target}) if {target}.isascii() else len({target}.encode())", depth)
        source.line(f"if length > {limit}: raise Unusual", depth)
        source.line(f"size += length + {len(pair[target == 'sort'].encode())}", depth)


def _add_text(source: _Source, target: str, template: Template, depth: int) -> None:
    texts = []
    for number, part in enumerate(template.parts):
        codec = part.bound
        rendered = (part.name, codec, part.path, part.place, part.ending)
        if (known := source.rendered.get(rendered)) is not None:
            texts += [repr(part.literal), known]
            continue
        local = f"part_{number}"
        if not depth:
            # Every object's write has the primary key, so index keys can use its parts.
            local = source.rendered[rendered] = f"own_part_{len(source.rendered)}"
        source.line(f"{local} = prepared[{part.name!r}]", depth)
        if (codec.kind, codec.spec, codec.place, codec.member) == ("text", "", "", ()) and not part.path:
            unsafe = source.value(unsafe_in(part.ending).search)
            source.line(f"if type({local}) is not str or not {local} or {unsafe}({local}):", depth)
            source.line(f"{local} = {source.value(key_part(part))}({local})", depth + 1)
        else:
            source.line(f"{local} = {source.value(key_part(part))}({local})", depth)
        texts += [repr(part.literal), local]
    texts.append(repr(template.pattern.literals[len(template.parts)]))
    source.line(f"{target} = {' + '.join(texts)}", depth)


def key_part(part: KeyPart) -> Callable[[Any], str]:
    """Return what writes a value into a part of a key; it raises if ``Template.render()`` has to decide."""
    encode, terminator, place, path = part.bound.encode, part.ending, part.place, part.path
    is_moment = part.bound.kind == "timestamp" and not (part.spec or terminator)

    def write(value: Any) -> str:
        if is_moment and type(value) is datetime.datetime and value.tzinfo is datetime.UTC:
            return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        if (not value) if path else (value is None and not place):
            raise Unusual
        written = encode(value, terminator)
        if not written:
            raise Unusual
        return written

    return write


def _room(primary: AccessKey, trash: AccessKey) -> int:
    """Return how long a primary key may be, so that its identity certainly fits the trash's key."""
    parts = trash.sort.parts
    if any(part.ending or part.spec or part.path for part in (*primary.partition.parts, *primary.sort.parts, *parts)):
        return 0
    return SORT_KEY_LIMIT - sum(map(len, trash.sort.pattern.literals)) - _LONGEST_VALUE * len(parts)


#: More characters than any value has in a key, except strings.
_LONGEST_VALUE: Final = 64


def asymmetrical(attributes: Mapping[str, Attribute]) -> Iterator[str]:
    """Yield the attributes of a project's own classes, which may read another value than they write."""
    methods = (*_DECIDING, "decode", "from_attribute_value")
    for name, attribute in attributes.items():
        owners = (each for each in type(attribute).__mro__ if not vars(each).keys().isdisjoint(methods))
        if not all(each.__module__.startswith(("dynamo_single.", "pynamodb.")) for each in owners):
            yield name
