"""What the places of a map have to hold, where a model says so: each is declared as an attribute would be.

A shape looks at values and changes none. This module must not know how or when items are written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from django.core.exceptions import ValidationError

from dynamo_single.exceptions import ConfigurationError, InvalidValue, MissingValue
from dynamo_single.orm.schema.attributes.base import NOT_PROVIDED, Attribute
from dynamo_single.orm.schema.attributes.extracted import Steps
from dynamo_single.orm.schema.attributes.scalars import IntegerAttribute
from dynamo_single.orm.schema.encoding import values
from dynamo_single.orm.schema.encoding.shown import shown


class Shape:
    """The declared places of one map; all others may hold anything, and stay as they are.

    A nested class is a map with places of its own; one that is absent is as an empty one.
    """

    def __init__(self, declared: type) -> None:
        if not isinstance(declared, type):
            raise ConfigurationError(
                f"The schema of a map is a class that declares its places by attributes, not {shown(declared)}."
            )
        self.members: dict[str, Attribute | Shape] = dict(_members(declared))
        if not self.members:
            raise ConfigurationError(f"{declared.__qualname__} declares no places: give it attributes.")

    def check(self, value: object, said: str) -> None:
        """Raise ``InvalidValue`` for the first place that holds what it may not, ``MissingValue`` for one that lacks
        what it needs; ``said`` is what messages call the map."""
        if not isinstance(value, Mapping):
            raise InvalidValue(f"{said} is a map, and cannot be {type(value).__name__} {shown(value)}.")
        for name, member in self.members.items():
            _check(member, value.get(name), f"{said}__{name}")

    def check_at(self, steps: Steps, value: object, said: str) -> None:
        """The same of a value for a place inside the map; what was declared of no place may be anything."""
        member = self.at(steps, said)
        if member is not None:
            _check(member, value, said)

    def at(self, steps: Steps, said: str) -> Attribute | Shape | None:
        """What is declared of a place; ``None`` for nothing. Raises ``InvalidValue`` for a place inside of a value."""
        found: Attribute | Shape | None = self
        for number, step in enumerate(steps):
            if isinstance(found, Attribute):
                within = getattr(found, "shape", None)
                if found.attr_type not in ("M", "L"):
                    raise InvalidValue(f"{said}: {found.name} takes {found.expects}, which has no places inside.")
                if within is None:
                    return None
                return within.at(steps[number:], said)  # type: ignore[no-any-return]  # of a MapAttribute
            found = found.members.get(step) if found is not None and isinstance(step, str) else None
        return found


def sums_stay_right(member: Attribute | Shape | None) -> bool:
    """Whether any number may stand in a place, so that DynamoDB may compute it."""
    if not isinstance(member, Attribute):
        return member is None
    options = member.field_options
    bounds = ("choices", "validators", "max_digits", "decimal_places")
    is_plain = member.key_kind == "number" and not isinstance(member, IntegerAttribute)
    return is_plain and not any(options.get(name) for name in bounds)


def _members(declared: type) -> Iterator[tuple[str, Attribute | Shape]]:
    found: dict[str, Any] = {}
    for owner in reversed(declared.__mro__[:-1]):
        found |= {name: each for name, each in vars(owner).items() if not name.startswith("__")}
    for name, each in found.items():
        if isinstance(each, type):
            yield name, Shape(each)
        elif not isinstance(each, Attribute):
            raise ConfigurationError(
                f"{declared.__qualname__}.{name} is {shown(each)}: a place is declared by an attribute, such as "
                "models.DecimalAttribute(null=True), or by a class for a map with places of its own."
            )
        else:
            _check_declaration(f"{declared.__qualname__}.{name}", each)
            each.field = each.make_field()
            each.field.attribute = each
            each.field.set_attributes_from_name(name)
            yield name, each


def _check_declaration(said: str, attribute: Attribute) -> None:
    options = attribute.field_options
    for what, given in (
        ("computed", attribute.computed or attribute.settled or options.get("auto_now") or options.get("auto_now_add")),
        ("unique", attribute.unique),
        ("immutable", attribute.immutable),
        ("a reference", hasattr(type(attribute), "target")),
        ("given a default", options["default"] is not NOT_PROVIDED),
    ):
        if given:
            raise ConfigurationError(
                f"{said} cannot be {what}: what it declares is checked, and nothing is made of it. Give such a value "
                "an attribute of its own beside the map, or the map itself a default."
            )


def _check(member: Attribute | Shape, value: object, said: str) -> None:
    if isinstance(member, Shape):
        member.check({} if value is None else value, said)
        return
    if value is None:
        if not member.null:
            raise MissingValue(f"{said} is missing: it takes {member.expects}, or null=True.")
        return
    if not _is_stored_alike(member, value, said):
        raise InvalidValue(f"{said} takes {member.expects}, not {type(value).__name__} {shown(value)}.")
    try:
        prepared = member.prepare(value)
        member.field.validate(prepared, None)
        member.field.run_validators(prepared)
    except ValidationError as error:
        raise InvalidValue(f"{said}: {' '.join(error.messages)}") from error


def _is_stored_alike(attribute: Attribute, value: object, said: str) -> bool:
    """Whether a document holds the value as the attribute would: a date lies in it as the text that it is stored as."""
    given = values.to_attribute_value(value, path=said)
    try:
        own = attribute.to_attribute_value(value)
    except InvalidValue:
        return False
    return own.keys() == given.keys() and values.from_attribute_value(own) == values.from_attribute_value(given)
