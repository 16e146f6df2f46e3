"""The declarations of values inside maps and lists: the attributes of keys and of elements.

A shape validates values. It changes only decimal numbers, which get their places, and the maps of map classes. This
module does not depend on the attributes that contain documents.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from decimal import Decimal
from functools import cached_property, partial
from typing import Any, Final

from django.core.exceptions import ValidationError
from django.db.models import Field
from django.utils.translation import gettext_lazy as _

from dynamo_single.exceptions import ConfigurationError, InvalidValue, MissingValue
from dynamo_single.orm.schema.attributes.base import NOT_PROVIDED, Attribute
from dynamo_single.orm.schema.attributes.computed import Steps
from dynamo_single.orm.schema.attributes.map_objects import MapObject, new_object, stored_value
from dynamo_single.orm.schema.attributes.scalars import (
    BooleanAttribute,
    DecimalAttribute,
    IntegerAttribute,
    NumberAttribute,
    UnicodeAttribute,
)
from dynamo_single.orm.schema.keys import values
from dynamo_single.orm.schema.keys.secret_values import MASK, Path, is_secret_name
from dynamo_single.orm.schema.keys.values import expecting, shown, words_at


class _Declared:
    """What a map and a list have in common: the declarations of the values inside."""

    def __init__(self, members: Iterable[Attribute | Shape]) -> None:
        self._members = tuple(members)
        self.has_decimals: bool = any(map(_has_decimals, self._members))

    @property
    def has_objects(self) -> bool:
        """Return whether values inside are, or contain, the objects of map classes."""
        return any(map(_has_objects, self._members))

    @cached_property
    def converts(self) -> bool:
        """Return whether ``placed()`` changes values."""
        return self.has_decimals or self.has_objects

    def has_secrets(self) -> bool:
        """Return whether a value inside is a secret, or contains one by its declaration."""
        return any(map(_has_secrets, self._members))


class Shape(_Declared):
    """The declared places of one map; all others may hold anything, and stay as they are.

    A nested class is a map with its own elements; a missing one is treated as empty.
    """

    #: The class of the map's values, if a map class declares the places.
    object_class: type[MapObject] | None = None

    def __init__(self, declared: type, members: Mapping[str, Attribute | Shape] | None = None) -> None:
        if not isinstance(declared, type):
            raise ConfigurationError(
                f"The schema of a map is a class that declares its places by attributes, not {shown(declared)}."
            )
        self.declared = declared
        self.members: dict[str, Attribute | Shape] = dict(_declared_members(declared) if members is None else members)
        if not self.members:
            raise ConfigurationError(f"{declared.__qualname__} declares no places: give it attributes.")
        super().__init__(self.members.values())
        #: The stored names of keys by their Python names, if they differ.
        self.renamed = {
            each.name: stored
            for stored, each in self.members.items()
            if isinstance(each, Attribute) and each.name != stored
        }

    @property
    def has_objects(self) -> bool:
        """Return whether values are, or contain, the objects of map classes."""
        return self.object_class is not None or super().has_objects

    def placed(self, value: object) -> object:
        """Return a map whose decimal numbers have their declared places; anything else unchanged.

        A map class converts a map to its object, and Python values of other types to stored values.
        """
        if self.object_class is not None and isinstance(value, self.declared) and isinstance(value, Attribute):
            return new_object(self.declared, {})  # Address() is an attribute, unless it is a value
        if not self.converts or not isinstance(value, Mapping):
            return value
        found = {name: _placed(self.members.get(name), each) for name, each in value.items()}
        return found if self.object_class is None else self.object_class(found)

    def stored_steps(self, steps: Steps) -> Steps:
        """Return a path with the stored names of its keys."""
        first = self.renamed.get(str(steps[0]), steps[0])
        return (first, *stored_steps(self.members.get(str(first)), steps[1:]))

    def check(self, value: object, said: str) -> None:
        """Raise ``InvalidValue`` for the first invalid element, ``MissingValue`` for one without a required value;
        ``said`` names the map in messages."""
        if not isinstance(value, Mapping):
            given = MASK if self.has_secrets() or is_secret_name(said) else shown(value)
            message = f"{said} is a map, and cannot be {type(value).__name__} {given}."
            raise InvalidValue(message, words=words_at(said, _("This must be a map.")))
        for name, member in self.members.items():
            _check(member, value.get(name), f"{said}__{name}")

    def check_at(self, steps: Steps, value: object, said: str) -> None:
        """Validate a value for a path inside the map; undeclared paths accept any value."""
        member = self.at(steps, said)
        if member is not None:
            _check(member, value, said)

    def at(self, steps: Steps, said: str) -> Attribute | Shape | None:
        """Return the declaration of a path; ``None`` without one. Raise ``InvalidValue`` for a path inside of a
        value."""
        if not steps:
            return self
        return _within(self.members.get(self.renamed.get(str(steps[0]), str(steps[0]))), steps[1:], said)

    def hides(self, path: Path) -> bool:
        """Return whether a path inside the map leads to a secret: by the declared places, else by their names."""
        return bool(path) and _hides(self.members.get(self.renamed.get(str(path[0]), str(path[0]))), path)


class Elements(_Declared):
    """The declaration of each element of a list: one attribute, or a map with declared elements.

    ``schema`` is the class of such a map, ``of`` an attribute; one of the two is given.
    """

    def __init__(self, schema: type | None, of: object) -> None:
        if schema is not None and of is not None:
            raise ConfigurationError(
                "A list has either schema=, for elements that are maps with declared places, or of=, for elements of "
                "one kind: leave one of them out."
            )
        self.declared = schema
        self.member: Attribute | Shape
        if schema is not None:
            self.member = Shape(schema)
        elif isinstance(of, type) and getattr(of, "object_class", None) is not None:
            self.member = as_declared(f"of={of.__name__}", "element", of())
        elif isinstance(of, Attribute):
            self.member = as_declared(f"of={type(of).__name__}()", "element", of)
        else:
            raise ConfigurationError(
                f"of={shown(of)} does not declare the elements of a list: pass an attribute such as "
                "of=models.NumberAttribute(), or schema= with a class if the elements are maps."
            )
        super().__init__((self.member,))

    def stored_steps(self, steps: Steps) -> Steps:
        """Return a path with the stored names of its keys."""
        return (steps[0], *stored_steps(self.member, steps[1:]))

    def placed(self, value: object) -> object:
        """Return a list whose decimal numbers have the places that are declared of them; anything else as it is."""
        if not self.converts or not isinstance(value, list | tuple):
            return value
        return [_placed(self.member, each) for each in value]

    def check(self, value: object, said: str) -> None:
        """Raise ``InvalidValue`` or ``MissingValue`` for the first element that is not as declared; ``said`` is what
        messages call the list."""
        if not isinstance(value, list | tuple):
            given = MASK if self.has_secrets() or is_secret_name(said) else shown(value)
            message = f"{said} is a list, and cannot be {type(value).__name__} {given}."
            raise InvalidValue(message, words=words_at(said, _("This must be a list.")))
        for number, each in enumerate(value):
            self._check(each, f"{said}__{number}")

    def check_at(self, steps: Steps, value: object, said: str) -> None:
        """Validate a value for an element, or for a path inside of one."""
        if len(steps) == 1 and isinstance(steps[0], int):
            self._check(value, said)
            return
        member = self.at(steps, said)
        if member is not None:
            _check(member, value, said)

    def at(self, steps: Steps, said: str) -> Attribute | Shape | None:
        """Return the declaration of an element, or of a path inside of one; ``None`` without one.

        Raises ``InvalidValue`` for a place inside of a value, and for one of a list that is no number.
        """
        if not isinstance(steps[0], int):
            raise InvalidValue(f"{said}: the places of a list are numbers from 0 up, not {steps[0]!r}.")
        return _within(self.member, steps[1:], said)

    def hides(self, path: Path) -> bool:
        """Return whether a path inside the list leads to a secret: by the declared places, else by their names."""
        return bool(path) and _hides(self.member, path)

    def _check(self, value: object, said: str) -> None:
        if isinstance(self.member, Shape):
            self.member.check(value, said)  # no element is absent: what is None is no map
        else:
            _check(self.member, value, said)


def with_decimal_places(shape: Shape | Elements | None, steps: Steps, value: object, said: str) -> object:
    """Return a value for a place of a document with the places of its decimal numbers."""
    return value if shape is None else _placed(shape.at(steps, said), value)


def _placed(member: Attribute | Shape | Elements | None, value: object) -> object:
    if isinstance(member, DecimalAttribute):
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
            return value
        try:
            return member.placed(value)
        except (ValueError, ArithmeticError):
            return value  # no number that DynamoDB has, which the check names by its path
    within = shape_of(member)
    if within is not None:
        return within.placed(value)
    if not isinstance(member, Attribute) or not member.in_map_class:
        return value
    is_python = type(value) not in _AS_STORED or (type(value) is bool and member.attr_type == "N")
    return stored_value(member, value) if is_python else value


#: The types that documents contain as they are.
_AS_STORED: Final = frozenset((str, int, bool, float, Decimal, bytes, type(None)))


def _has_objects(member: Attribute | Shape) -> bool:
    within = shape_of(member)
    return (isinstance(member, Attribute) and member.in_map_class) or (within is not None and within.has_objects)


def shape_of(member: Attribute | Shape | Elements | None) -> Shape | Elements | None:
    """Return the declarations inside a value; ``None`` without any."""
    return member.shape if isinstance(member, Attribute) else member


def stored_steps(member: Attribute | Shape | None, steps: Steps) -> Steps:
    """Return a path inside a value with the stored names of the keys that map classes declare."""
    within = shape_of(member)
    return steps if within is None or not steps else within.stored_steps(steps)


def _has_decimals(member: Attribute | Shape) -> bool:
    within = shape_of(member)
    return isinstance(member, DecimalAttribute) or (within is not None and within.has_decimals)


def _has_secrets(member: Attribute | Shape) -> bool:
    if isinstance(member, Attribute) and member.is_secret():
        return True
    within = shape_of(member)
    return within is not None and within.has_secrets()


@contextmanager
def hidden_value_errors(is_secret: bool, said: str) -> Iterator[None]:
    """Raise the ``InvalidValue`` of a secret without the value; ``said`` is what messages call it."""
    try:
        yield
    except MissingValue:
        raise
    except InvalidValue as error:
        if not is_secret:
            raise
        raise InvalidValue(
            f"{said}: the value does not fit its declaration. The value of a secret is not shown.", words=error.words
        ) from None


def is_element(steps: Steps) -> bool:
    """Return whether a path is an element of a list: after its removal the others close up without a gap."""
    return bool(steps) and isinstance(steps[-1], int)


def _hides(member: Attribute | Shape | None, path: Path) -> bool:
    if isinstance(member, Attribute):
        return member.hides(path[1:])
    if isinstance(path[0], str) and is_secret_name(path[0]):
        return True
    if member is not None:
        return member.hides(path[1:])
    return any(is_secret_name(step) for step in path if isinstance(step, str))


def _within(member: Attribute | Shape | None, steps: Steps, said: str) -> Attribute | Shape | None:
    if not steps or member is None:
        return member
    if isinstance(member, Shape):
        return member.at(steps, said)
    if member.attr_type not in ("M", "L"):
        raise InvalidValue(f"{said}: {member.name} is {member.expects}, which does not have elements.")
    shape = shape_of(member)
    return None if shape is None else shape.at(steps, said)


def sums_stay_right(member: Attribute | Shape | None) -> bool:
    """Return whether a path accepts any number, so that DynamoDB may compute it."""
    if not isinstance(member, Attribute):
        return member is None
    options = member.field_options
    bounds = ("choices", "validators", "max_digits", "decimal_places")
    is_plain = member.key_kind == "number" and not isinstance(member, IntegerAttribute)
    return is_plain and not any(options.get(name) for name in bounds)


def _declared_members(declared: type) -> Iterator[tuple[str, Attribute | Shape]]:
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
            yield name, as_declared(f"{declared.__qualname__}.{name}", name, each)


def as_declared(said: str, name: str, attribute: Attribute, *, has_default: bool = False) -> Attribute:
    """An attribute of a place, with a field of its own that no model has."""
    _check_declaration(said, attribute, has_default=has_default)
    attribute.name = attribute.name or name
    attribute.field = attribute.make_field()
    attribute.field.attribute = attribute
    attribute.field.set_attributes_from_name(name)
    return attribute


def _check_declaration(said: str, attribute: Attribute, *, has_default: bool) -> None:
    options = attribute.field_options
    for what, given in (
        ("computed", attribute.computed or attribute.settled or options.get("auto_now") or options.get("auto_now_add")),
        ("unique", attribute.unique),
        ("immutable", attribute.immutable),
        ("a reference", hasattr(type(attribute), "target")),
        ("given a default", options["default"] is not NOT_PROVIDED and not has_default),
    ):
        if given:
            raise ConfigurationError(
                f"{said} cannot be {what}: nested attributes are only validated. Declare a separate attribute next to "
                "the map or the list, or set a default for the map or the list itself."
            )


def _check(member: Attribute | Shape, value: object, said: str) -> None:
    if isinstance(member, Shape):
        member.check({} if value is None else value, said)
        return
    try:
        _check_member(member, value, said)
    except InvalidValue:  # whether a member is a secret takes longer than the check
        with hidden_value_errors(member.is_secret() or is_secret_name(said), said):
            raise


#: The types of values of which an attribute's validators decide alone, if there are no choices.
_VALIDATED: dict[type, type] = {
    UnicodeAttribute: str,
    IntegerAttribute: int,
    NumberAttribute: int,
    BooleanAttribute: bool,
    DecimalAttribute: Decimal,
}


def _is_valid(member: Attribute, value: object) -> bool:
    """Return whether a value is certainly as declared: most are, and the whole check takes ten times as long."""
    if _VALIDATED.get(type(member)) is not type(value) or value == "" or member.field.choices is not None:
        return False
    with suppress(Exception):
        given = member.lookup_value(value) if type(value) is Decimal else value
        for validator in member.field.validators:
            validator(given)
        return True
    return False


def _check_member(member: Attribute, value: object, said: str) -> None:
    if _is_valid(member, value):
        return
    if value is None:
        if not (member.null or (member.in_map_class and member.field.has_default())):
            message = f"{said} is missing: set it to {member.expects}, or declare it with null=True."
            raise MissingValue(message, words=words_at(said, _("This field must have a value.")))
        return
    if not _is_stored_alike(member, value, said):
        message = f"{said} must be {member.expects}, not {type(value).__name__} {shown(value)}."
        raise InvalidValue(message, words=expecting(member.expects, said))
    within = shape_of(member)
    if within is not None:
        within.check(value, said)
    if value == "" and member.in_map_class:
        return  # as save() accepts it of an attribute of a model
    try:
        prepared = _unrounded(member, value)
        # The nested values were validated above, with their whole path for messages.
        (member.field.validate if within is None else partial(Field.validate, member.field))(prepared, None)
        member.field.run_validators(prepared)
    except ValidationError as error:
        reasons = " ".join(error.messages)  # Django's, in the language that is active
        raise InvalidValue(f"{said}: {reasons}", words=words_at(said, "%(reasons)s", reasons=reasons)) from error


def _unrounded(attribute: Attribute, value: object) -> Any:
    """A value as the attribute takes it; a document keeps every place of a number, and its validators count them."""
    if member_of_map_class(attribute) and not isinstance(attribute, DecimalAttribute):
        return attribute.from_attribute_value(dict(values.to_attribute_value(value)))
    return attribute.lookup_value(value) if isinstance(attribute, DecimalAttribute) else attribute.prepare(value)


def _is_stored_alike(attribute: Attribute, value: object, said: str) -> bool:
    """Return whether a document contains the value as the attribute stores it: a date, for example, is a string."""
    given = values.to_attribute_value(value, path=said)
    try:
        if member_of_map_class(attribute) and not isinstance(attribute, DecimalAttribute):
            attribute.from_attribute_value(dict(given))  # another program may store the value in another form
            return True
        own = {attribute.attr_type: attribute.encode(_unrounded(attribute, value))}
    except InvalidValue:
        return False
    return own.keys() == given.keys() and values.from_attribute_value(own) == values.from_attribute_value(given)


def member_value(attribute: Attribute, steps: Sequence[str], value: object) -> object:
    """Return the stored form of a value that a filter compares with a place of a document."""
    member: Attribute | Shape | None = attribute
    for step in steps:
        within = shape_of(member)
        if within is None:
            return value
        member = within.members.get(step) if isinstance(within, Shape) else within.member
    return value if isinstance(member, DecimalAttribute) else _placed(member, value)


def member_of_map_class(attribute: Attribute) -> bool:
    """Return whether a map class declares the attribute, and its values have no places of their own."""
    return attribute.in_map_class and attribute.shape is None
