"""What reads the Python values of attributes out of a stored item: one function for each model and selection, compiled.

A function is compiled as ``dataclasses`` compiles its methods: of what a project gives, its source holds the names as
literals, and the attributes are handed over. It decodes the forms that are usually stored; for an item with any other
form it begins again with ``Attribute.from_attribute_value``, which decides, and raises. Nothing here sends a request.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from types import MappingProxyType
from typing import Any, TypeVar

from django.db import DEFAULT_DB_ALIAS
from django.db.models.signals import post_init, pre_init

from dynamo_single.orm.items.stored import NAME
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.attributes import (
    Attribute,
    BooleanAttribute,
    DecimalAttribute,
    IntegerAttribute,
    NumberAttribute,
)
from dynamo_single.orm.schema.bindings import ModelBinding, Subject, binding_of, fact
from dynamo_single.orm.schema.fields.fetching import ObjectState
from dynamo_single.table import names
from dynamo_single.table.request import MAX_DIGITS, Item

R = TypeVar("R")
Values = dict[str, Any]
Stored = Item

_PLAIN_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?", re.ASCII)

#: What a stored form may be refused with; ``from_attribute_value`` then says what is wrong.
_REFUSALS = (KeyError, ValueError, TypeError, ArithmeticError, RecursionError)

#: The source of a decoded value by the method that decodes it; ``{stored}`` is the inside of the AttributeValue.
_SOURCES: dict[Any, str] = {
    Attribute.decode: "{stored}",
    IntegerAttribute.decode: "integer({stored})",
    NumberAttribute.decode: "number({stored})",
    BooleanAttribute.decode: "{stored}",
    DecimalAttribute.decode: "Decimal({stored})",
}


def values_reader(model: Subject, names: frozenset[str] | None = None) -> Callable[[Stored], Values]:
    """What gives an item's values by attribute; ``names`` are the physical names that were read, if not all.

    What the item lacks has the attribute's default, or ``None``. Raises ``InvalidValue`` for a stored value of another
    kind.
    """
    return _upgrading(model, _whole_reader(model) if names is None else _partial_reader(model, names))


def row_reader(model: Subject, names: Sequence[str]) -> Callable[[Stored], tuple[object, ...]]:
    """What gives an item's values of some attributes in their order; as ``values_reader`` otherwise."""
    return _upgrading(model, _row_reader(model, tuple(names)))


def value_reader(model: Subject, name: str) -> Callable[[Stored], Any]:
    """What gives the value of one attribute; as ``values_reader`` otherwise."""
    read = row_reader(model, (name,))
    return lambda item: read(item)[0]


def _upgrading(model: Subject, read: Callable[[Stored], R]) -> Callable[[Stored], R]:
    """What reads items of earlier schema versions as the present one has them, where a model has versions."""
    schema = binding_of(model).layout.schema
    return read if schema is None else lambda item: read(schema.current(item))


def absent_value(attribute: Attribute) -> object:
    """The value of an attribute that a stored item lacks, perhaps since it is older than the attribute.

    The attribute's default, but nothing that is made again with each reading, such as an identifier.
    """
    default = attribute.field_options["default"]
    made = callable(default) and default not in (dict, list, set)
    return None if attribute.null or made or not attribute.field.has_default() else attribute.field.get_default()


@fact
def _whole_reader(binding: ModelBinding) -> Callable[[Stored], Values]:
    return _values_reader(binding, registry.attributes_of(binding.model))


@fact
def _partial_reader(binding: ModelBinding, names: frozenset[str]) -> Callable[[Stored], Values]:
    attributes, infos = registry.attributes_of(binding.model), binding.layout.attributes
    return _values_reader(binding, {name: each for name, each in attributes.items() if infos[name].stored in names})


@fact
def _row_reader(binding: ModelBinding, names: tuple[str, ...]) -> Callable[[Stored], tuple[object, ...]]:
    attributes = [registry.attributes_of(binding.model)[name] for name in names]
    stored = [binding.layout.attributes[name].stored for name in names]
    pairs = [*zip(attributes, stored, strict=True)]
    entries = "".join(f"{_source(position, *each)}, " for position, each in enumerate(pairs))
    slow = [_slow_reader(*each) for each in pairs]
    return _compiled(f"({entries})", attributes, lambda item: tuple(read(item) for read in slow))


def _values_reader(binding: ModelBinding, attributes: Mapping[str, Attribute]) -> Callable[[Stored], Values]:
    infos = binding.layout.attributes
    slow = {name: _slow_reader(each, infos[name].stored) for name, each in attributes.items()}
    return _compiled(
        f"{{{_entries(binding, attributes)}}}",
        [*attributes.values()],
        lambda item: {name: read(item) for name, read in slow.items()},
    )


def _entries(binding: ModelBinding, attributes: Mapping[str, Attribute]) -> str:
    """The sources of the values of some attributes, as they stand in a dict."""
    infos = binding.layout.attributes
    sources = (_source(position, each, infos[name].stored) for position, (name, each) in enumerate(attributes.items()))
    return ", ".join(f"{name!r}: {source}" for name, source in zip(attributes, sources, strict=True))


def object_reader(binding: ModelBinding, slow: Callable[[Stored], Any]) -> Callable[[Stored], Any]:
    """What makes the object of a whole item; ``slow`` makes that of an item that is not as usual, or raises.

    So it does where somebody is told of each object.
    """
    attributes = registry.attributes_of(binding.model)
    lines = (
        f"if get({names.ITEM_TYPE!r}) != item_type or before(model) or after(model): raise KeyError",
        "state = State()",
        "state.adding = False",
        "state.db = database",
        "made = new(model)",
        f"made.__dict__ = {{{_entries(binding, attributes)}, '_state': state, {NAME!r}: item}}",
    )
    more = {
        "model": binding.model,
        "new": binding.model.__new__,
        "item_type": {"S": binding.layout.item_type},
        "before": pre_init.has_listeners,
        "after": post_init.has_listeners,
        "State": ObjectState,
        "database": DEFAULT_DB_ALIAS,
    }
    return _compiled("made", [*attributes.values()], slow, lines, more)


def _slow_reader(attribute: Attribute, stored: str) -> Callable[[Stored], object]:
    def read(item: Stored) -> Any:
        found = item.get(stored)
        return absent_value(attribute) if found is None else attribute.from_attribute_value(dict(found))

    return read


def _source(position: int, attribute: Attribute, stored: str) -> str:
    """The source of one attribute's value; ``get`` is the item's."""
    return value_source(position, attribute, f"get({stored!r})", f"found[{attribute.attr_type!r}]")


def value_source(position: int, attribute: Attribute, value: str, inside: str) -> str:
    """The source of an attribute's value, by what ``names_of()`` gives.

    ``value`` is the source of the AttributeValue, or ``None``; ``inside`` that of what is in one, which is ``found``.
    """
    if is_read_whole(attribute):
        found = f"read_{position}(dict(found))"
    else:
        known = None if _has_places(attribute) else _SOURCES.get(type(attribute).decode)
        found = (known or f"decode_{position}({{stored}})").format(stored=inside)
    absent = "None" if attribute.null else f"absent(attribute_{position})"
    return f"{found} if (found := {value}) is not None else {absent}"


def _has_places(attribute: Attribute) -> bool:
    return isinstance(attribute, DecimalAttribute) and attribute.quantum is not None


def is_read_whole(attribute: Attribute) -> bool:
    """Whether an attribute reads AttributeValues in a way of its own, and not what is inside of one."""
    return type(attribute).from_attribute_value is not Attribute.from_attribute_value


def names_of(attributes: Sequence[Attribute]) -> dict[str, Any]:
    """What the sources of some attributes' values name; each attribute has its position among them."""
    known: dict[str, Any] = {"Decimal": Decimal, "integer": _integer, "number": _number, "absent": absent_value}
    for position, attribute in enumerate(attributes):
        known |= {
            f"attribute_{position}": attribute,
            f"decode_{position}": attribute.decode,
            f"read_{position}": attribute.from_attribute_value,
        }
    return known


def _compiled(
    result: str,
    attributes: Sequence[Attribute],
    slow: Callable[[Stored], R],
    before: Sequence[str] = (),
    more: Mapping[str, object] = MappingProxyType({}),
) -> Callable[[Stored], R]:
    """The function that gives a ``result``; ``slow`` gives the same one of any item, or raises.

    ``before`` are lines in front of it, which may name what is in ``more``.
    """
    known = {**names_of(attributes), **more, "refusals": _REFUSALS, "slow": slow}
    lines = "".join(f"        {line}\n" for line in (*before, f"return {result}"))
    # The slow way is not taken in the except clause, so that its error has no other one as its context.
    source = f"    get = item.get\n    try:\n{lines}    except refusals:\n        pass\n    return slow(item)\n"
    exec(f"def read(item):\n{source}", known)  # noqa: S102 - literals and positions, as said above
    read: Callable[[Stored], R] = known["read"]
    return read


def _integer(text: str) -> int:
    # Of a longer text the slow way counts the digits, the sign apart.
    if len(text) > MAX_DIGITS:
        raise ValueError
    return int(text)


def _number(text: str) -> float:
    if len(text) > MAX_DIGITS or not _PLAIN_NUMBER.fullmatch(text):
        raise ValueError
    if "." not in text:
        return int(text)
    number = Decimal(text)
    return int(number) if number == number.to_integral_value() else float(number)
