"""Translate PynamoDB's attributes and map classes."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

from pynamodb import attributes as pynamodb

from dynamo_single import models
from dynamo_single.contrib.inspection import names
from dynamo_single.contrib.inspection.names import literal
from dynamo_single.contrib.inspection.proposal import ProposedAttribute, ProposedMap
from dynamo_single.orm.schema.keys.secret_values import is_secret_name

#: The attributes of ``models`` and their options by PynamoDB's classes; a subclass comes before its base.
_KINDS: Final[dict[type[Any], tuple[str, dict[str, str]]]] = {
    pynamodb.VersionAttribute: ("VersionAttribute", {}),
    pynamodb.TTLAttribute: ("TTLAttribute", {}),
    pynamodb.UTCDateTimeAttribute: ("TimestampAttribute", {"stored_as": '"pynamodb"'}),
    pynamodb.JSONAttribute: ("JSONAttribute", {"stored_as": '"text"'}),
    pynamodb.NumberAttribute: ("NumberAttribute", {}),
    pynamodb.BooleanAttribute: ("BooleanAttribute", {}),
    pynamodb.UnicodeAttribute: ("UnicodeAttribute", {}),
    pynamodb.BinaryAttribute: ("BinaryAttribute", {}),
    pynamodb.UnicodeSetAttribute: ("UnicodeSetAttribute", {}),
    pynamodb.NumberSetAttribute: ("NumberSetAttribute", {}),
    pynamodb.BinarySetAttribute: ("BinarySetAttribute", {}),
    pynamodb.ListAttribute: ("ListAttribute", {}),
    pynamodb.MapAttribute: ("MapAttribute", {}),
}
_SETS: Final = ("SS", "NS", "BS")
#: The attributes inside a map, where the app counts and deletes nothing.
_IN_MAPS: Final = {"TTLAttribute": "IntegerAttribute", "VersionAttribute": "IntegerAttribute"}
#: Names that attributes of a map class cannot have.
_RESERVED_IN_MAPS: Final = frozenset({*inspect.signature(models.MapAttribute.__init__).parameters, "schema"})


class Translator:
    """Translates attributes, and collects the map classes that they use, each after the classes that it uses."""

    def __init__(self, taken: str) -> None:
        """``taken`` is the name of the model."""
        self.maps: list[ProposedMap] = []
        self._taken = {taken, "models"}
        self._names: dict[type[Any], str] = {}

    def attribute(self, name: str, attribute: Any, notes: list[str], *, in_map: bool = False) -> ProposedAttribute:
        """Return the attribute of a model or a map class."""
        notes, declared = [*notes], type(attribute)
        if isinstance(attribute, pynamodb.DiscriminatorAttribute):
            notes = ["PynamoDB's discriminator"]
            return ProposedAttribute(name, "UnicodeAttribute", attribute.attr_name, {"null": "True"}, notes)
        base = next((each for each in _KINDS if isinstance(attribute, each)), None)
        if base is None:
            note = f"{declared.__name__} stores it as {attribute.attr_type}, which no attribute reads"
            return ProposedAttribute(name, "", attribute.attr_name, {}, [note])
        kind, options = _KINDS[base][0], dict(_KINDS[base][1])
        kind = _IN_MAPS.get(kind, kind) if in_map else kind
        if getattr(attribute, "legacy_encoding", False):
            options["stored_as"] = '"base64"'
        if kind == "VersionAttribute":
            return ProposedAttribute(name, kind, attribute.attr_name, options, notes)
        if attribute.null or attribute.attr_type in _SETS or notes or kind == "TTLAttribute":
            options["null"] = "True"
        _add_default(name, attribute, options, notes)
        if kind == "NumberAttribute":
            notes.append("IntegerAttribute() if it has only integers")
        found = ProposedAttribute(name, kind, attribute.attr_name, options, notes)
        self._add_documents(found, attribute, declared, base)
        return found

    def _add_documents(self, found: ProposedAttribute, attribute: Any, declared: type[Any], base: type[Any]) -> None:
        """Name the map class of a map or of the elements of a list."""
        elements = getattr(attribute, "element_type", None)
        if base is pynamodb.MapAttribute and (name := self._map_class(declared)):
            found.kind, found.is_local = name, True
        elif elements is not None and (name := self._map_class(elements)):
            found.options["of"] = name
        elif elements is not None:
            found.notes.append(f"a list of {elements.__name__}")
        elif declared is not base and declared is not pynamodb.DynamicMapAttribute:
            found.notes.append(f"{declared.__name__} may convert the value: compare its serialize() and deserialize()")

    def _map_class(self, declared: type[Any]) -> str:
        """Return the name of the map class for a class of PynamoDB; empty if that declares no attributes."""
        if not issubclass(declared, pynamodb.MapAttribute):
            return ""
        if declared not in self._names:
            members = dict(in_order(declared))
            if not members:
                return ""
            name = names.unused(declared.__name__, self._taken, separator="")
            self._taken.add(name)
            self._names[declared] = name
            taken: list[str] = []
            attributes = []
            for member, attribute in members.items():
                own = names.python_name(member, taken) if member in _RESERVED_IN_MAPS or member in taken else member
                own = f"{own}_field" if own in _RESERVED_IN_MAPS else own
                taken.append(own)
                attributes.append(self.attribute(own, attribute, [], in_map=True))
            if not any(each.kind for each in attributes):
                self._names[declared] = ""
                return ""
            self.maps.append(ProposedMap(name, attributes))
        return self._names[declared]


def in_order(owner: type[Any]) -> Iterator[tuple[str, Any]]:
    """Yield the attributes of a class in the order of their declaration; PynamoDB orders them by name."""
    declared = [*dict.fromkeys(name for kind in reversed(owner.__mro__) for name in vars(kind))]
    found: Mapping[str, Any] = owner.get_attributes()
    yield from sorted(found.items(), key=lambda each: declared.index(each[0]) if each[0] in declared else 0)


def _add_default(name: str, attribute: Any, options: dict[str, str], notes: list[str]) -> None:
    default = attribute.default if attribute.default is not None else attribute.default_for_new
    if default is None:
        return
    if is_secret_name(name):
        notes.append("PynamoDB's class has a default")
    elif callable(default):
        notes.append(f"default={getattr(default, '__module__', '')}.{getattr(default, '__qualname__', '')}")
    elif isinstance(default, str):
        options["default"] = literal(default)
    elif isinstance(default, bool | int | float | Decimal) and math.isfinite(default):
        options["default"] = str(default) if not isinstance(default, Decimal) else literal(str(default))
    else:
        notes.append(f"PynamoDB's class has a default of the type {type(default).__name__}")
