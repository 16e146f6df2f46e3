"""Read the Python values of attributes from a stored item, by one compiled function for each model and selection.

The functions are compiled as ``dataclasses`` compiles its methods: the source contains a project's names as literals,
and takes attributes as arguments. They decode the usual stored forms. For an item with another form, the app calls
``Attribute.from_attribute_value``, which decides and raises. Nothing here sends a request.
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
from dynamo_single.orm.schema.bindings import ModelBinding, Subject, fact
from dynamo_single.orm.schema.fields.fetching import ObjectState
from dynamo_single.table import names
from dynamo_single.table.request import MAX_DIGITS, Item

R = TypeVar("R")
Values = dict[str, Any]
Stored = Item

_PLAIN_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?", re.ASCII)

#: The errors of an unusual stored value; ``from_attribute_value`` then raises the detailed error.
_REFUSALS = (KeyError, ValueError, TypeError, ArithmeticError, RecursionError)

#: The source of a decoded value, by the method that decodes it; ``{stored}`` is the value inside the AttributeValue.
_SOURCES: dict[Any, str] = {
    Attribute.decode: "{stored}",
    IntegerAttribute.decode: "integer({stored})",
    NumberAttribute.decode: "number({stored})",
    BooleanAttribute.decode: "{stored}",
    DecimalAttribute.decode: "Decimal({stored})",
}


def values_reader(model: Subject, names: frozenset[str] | None = None) -> Callable[[Stored], Values]:
    """Return a function from an item to its values by attribute; ``names`` are the physical names in the item.

    A missing attribute has its default, or ``None``. The function raises ``InvalidValue`` for a stored value of
    another kind.
    """
    return _whole_reader(model) if names is None else _partial_reader(model, names)


def row_reader(model: Subject, names: Sequence[str]) -> Callable[[Stored], tuple[object, ...]]:
    """Return a function from an item to the values of some attributes in order; otherwise as ``values_reader``."""
    return _row_reader(model, tuple(names))


def value_reader(model: Subject, name: str) -> Callable[[Stored], Any]:
    """Return a function from an item to the value of one attribute; otherwise as ``values_reader``."""
    read = row_reader(model, (name,))
    return lambda item: read(item)[0]


def absent_value(attribute: Attribute) -> object:
    """Return the value of an attribute that is missing from an item, such as one older than the attribute.

    This is the default, except the result of a function such as a generator of identifiers, which would differ at each
    read.
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
    """Return the sources of the values of some attributes, as entries of a dict display."""
    infos = binding.layout.attributes
    sources = (_source(position, each, infos[name].stored) for position, (name, each) in enumerate(attributes.items()))
    return ", ".join(f"{name!r}: {source}" for name, source in zip(attributes, sources, strict=True))


def object_reader(binding: ModelBinding, slow: Callable[[Stored], Any]) -> Callable[[Stored], Any]:
    """Return a function from a whole item to its object.

    ``slow`` makes the object if the item is unusual or the model has receivers of ``pre_init`` or ``post_init``.
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
    """Return the source of one attribute's value; ``get`` in it is the item's method."""
    return value_source(position, attribute, f"get({stored!r})", f"found[{attribute.attr_type!r}]")


def value_source(position: int, attribute: Attribute, value: str, inside: str) -> str:
    """Return the source of an attribute's value, which uses the names of ``names_of()``.

    ``value`` is the source of the AttributeValue, or of ``None``. ``inside`` is the source of the value inside
    ``found``, as the AttributeValue is called in it.
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
    """Return whether an attribute overrides how it reads whole AttributeValues."""
    return type(attribute).from_attribute_value is not Attribute.from_attribute_value


def names_of(attributes: Sequence[Attribute]) -> dict[str, Any]:
    """Return the objects that the sources of some attributes' values name, with each attribute's position."""
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
    """Compile a function that returns ``result``; ``slow`` returns the same for any item, or raises.

    ``before`` contains the lines before the result; they may use the names in ``more``.
    """
    known = {**names_of(attributes), **more, "refusals": _REFUSALS, "slow": slow}
    lines = "".join(f"        {line}\n" for line in (*before, f"return {result}"))
    # The call of slow() is not in the except clause, so that its error has no other error as its context.
    source = f"    get = item.get\n    try:\n{lines}    except refusals:\n        pass\n    return slow(item)\n"
    exec(f"def read(item):\n{source}", known)  # noqa: S102 - literals and positions, as said above
    read: Callable[[Stored], R] = known["read"]
    return read


def _integer(text: str) -> int:
    # A sign is not a digit. The slow reader raises the error for a number that DynamoDB cannot store.
    if len(text) > MAX_DIGITS and len(text.lstrip("-")) > MAX_DIGITS:
        raise ValueError
    return int(text)


def _number(text: str) -> float:
    if len(text) > MAX_DIGITS or not _PLAIN_NUMBER.fullmatch(text):
        raise ValueError
    if "." not in text:
        return int(text)
    number = Decimal(text)
    return int(number) if number == number.to_integral_value() else float(number)
