"""Bind templates to keys of other tables, which may be raw, numbers, binary, or without a sort key.

The module does not depend on models.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import partial
from typing import Any, Final

from dynamo_single.conf.shapes import NO_SORT_KEY, KeyType, Shape
from dynamo_single.exceptions import ConfigurationError
from dynamo_single.orm.schema.keys.codecs import Codec, key_codec, raw_codec
from dynamo_single.orm.schema.keys.template import KeyPart, Template
from dynamo_single.table.names import PARTITION_KEY, SORT_KEY
from dynamo_single.table.shaped.sortable import text_of_number

#: Return the codec of a part of a template.
CodecOf = Callable[[KeyPart, str], Codec]
#: The kinds of values whose written form in a key is the stored one.
_AS_WRITTEN: Final = frozenset({"text", "uuid"})


def check_sort_key(label: str, shape: Shape, place: str, source: str) -> None:
    """Raise ``ConfigurationError`` if only one of a key and its table or index has a sort key."""
    if place == PARTITION_KEY or place in {f"{each.name}pk" for each in shape.indexes}:
        return
    has_sort = place in dict(shape.pairs)
    if source == NO_SORT_KEY and has_sort:
        raise ConfigurationError(
            f"A key of {label} has no sort key, but the table or index has one. If an object has its partition to "
            'itself, the sort key is a literal, such as "#METADATA".'
        )
    is_known = place == SORT_KEY or _names_index(shape, place)
    if source != NO_SORT_KEY and not has_sort and is_known and not shape.by_prefix:
        raise ConfigurationError(
            f"{label}: the key has the sort key {source!r}, but the table or index has no sort key. Leave it out."
        )


def _names_index(shape: Shape, place: str) -> bool:
    return shape.index(place.removesuffix("sk")) is not None


def shaped_template(
    label: str, shape: Shape, place: str, source: str, attributes: Mapping[str, Any], codec_of: CodecOf
) -> Template:
    """Return the bound template of a key attribute, by the app's own name of it."""
    check_sort_key(label, shape, place, source)
    parsed = Template.parse(source)
    key = dict(shape.pairs).get(place)
    kind: KeyType = "S" if key is None else key.type
    if kind != "S":
        return _typed(label, parsed, kind, attributes)
    if not shape.raw_keys or source == NO_SORT_KEY:
        return parsed.bind({part.shown: codec_of(part, source) for part in parsed.parts})
    return parsed.bind({part.shown: _raw(part, parsed, attributes, codec_of(part, source)) for part in parsed.parts})


def _typed(label: str, parsed: Template, kind: KeyType, attributes: Mapping[str, Any]) -> Template:
    """Return a template that is one number or binary value."""
    part = parsed.parts[0] if is_whole(parsed) else None
    attribute = None if part is None or part.path or part.spec else attributes.get(part.name)
    if part is None or attribute is None or attribute.attr_type != kind:
        what = {"N": "a number", "B": "a binary value"}[kind]
        raise ConfigurationError(
            f"{label}: the key {parsed.source!r} is {what} in the table, so it has to be one attribute of this type: "
            'such as "{views}".'
        )
    return parsed.bind({part.shown: key_codec(partial(_WRITERS[kind], attribute))})


def _number(attribute: Any, value: object) -> str:
    return text_of_number(str(Decimal(attribute.to_attribute_value(value)["N"])))


def _binary(attribute: Any, value: object) -> str:
    return bytes(attribute.to_attribute_value(value)["B"]).hex()


_WRITERS: Final = {"N": _number, "B": _binary}


def _raw(part: KeyPart, template: Template, attributes: Mapping[str, Any], codec: Codec) -> Codec:
    """Return the codec of a part without escapes.

    Values in front of a separator may contain characters that sort below it, and digits do not sort as numbers: such
    parts are not ordered.
    """
    is_last = not part.terminator
    whole = is_whole(template)
    if part.path or part.spec or codec.kind in _AS_WRITTEN:
        return raw_codec(codec, codec.write, ordered=codec.ordered and is_last and _sorts(codec), whole=whole)
    attribute = attributes[part.name]
    if attribute.attr_type not in ("S", "N"):
        return raw_codec(codec, codec.write, ordered=codec.ordered and is_last, whole=whole)
    sorts = attribute.attr_type == "S" and not attribute.only_equal
    return raw_codec(codec, partial(_stored, attribute), ordered=sorts and is_last, whole=whole)


def _sorts(codec: Codec) -> bool:
    # A number without leading zeros, in a key of several parts.
    return codec.kind != "number" or bool(codec.spec)


def _stored(attribute: Any, value: object) -> str:
    ((_, inner),) = attribute.to_attribute_value(value).items()
    return str(inner)


def is_whole(template: Template) -> bool:
    """Return whether one value is the whole key, so that no separator can end it."""
    return len(template.parts) == 1 and not template.parts[0].literal and not template.tail
