"""Attributes that hold maps, lists, sets and JSON text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from decimal import Decimal
from functools import partial
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import Field
from django.utils.translation import gettext_lazy as _

from dynamo_single.exceptions import ConfigurationError, InvalidValue, MissingValue
from dynamo_single.orm.schema.attributes.base import NOT_PROVIDED, REFUSED, Absent, Attribute, Label, Null, T
from dynamo_single.orm.schema.attributes.computed import Steps
from dynamo_single.orm.schema.attributes.scalars import (
    BooleanAttribute,
    DecimalAttribute,
    IntegerAttribute,
    NumberAttribute,
    UnicodeAttribute,
)
from dynamo_single.orm.schema.fields import base
from dynamo_single.orm.schema.fields.forms import number_member
from dynamo_single.orm.schema.keys import documents, values
from dynamo_single.orm.schema.keys.documents import Encoded
from dynamo_single.orm.schema.keys.secret_values import MASK, Path, is_secret_name
from dynamo_single.orm.schema.keys.values import expecting, gettext_noop, shown, words_at
from dynamo_single.orm.schema.types import ModelField, are_plain
from dynamo_single.table.request import StoredValue

# What the places of a map and the elements of a list have to hold, where a model says so: as attributes would.
#
# A shape looks at values and changes none, except that it gives decimal numbers their places.


class Shape:
    """The declared places of one map; all others may hold anything, and stay as they are.

    A nested class is a map with places of its own; one that is absent is as an empty one.
    """

    def __init__(self, declared: type) -> None:
        if not isinstance(declared, type):
            raise ConfigurationError(
                f"The schema of a map is a class that declares its places by attributes, not {shown(declared)}."
            )
        self.declared = declared
        self.members: dict[str, Attribute | Shape] = dict(_declared_members(declared))
        if not self.members:
            raise ConfigurationError(f"{declared.__qualname__} declares no places: give it attributes.")
        self.has_decimals: bool = any(map(_has_decimals, self.members.values()))

    def placed(self, value: object) -> object:
        """Return a map whose decimal numbers have the places that are declared of them; anything else as it is."""
        if not self.has_decimals or not isinstance(value, Mapping):
            return value
        return {name: _placed(self.members.get(name), each) for name, each in value.items()}

    def check(self, value: object, said: str) -> None:
        """Raise ``InvalidValue`` for the first place that holds what it may not, ``MissingValue`` for one that lacks
        what it needs; ``said`` is what messages call the map."""
        if not isinstance(value, Mapping):
            given = MASK if self.has_secrets() or is_secret_name(said) else shown(value)
            message = f"{said} is a map, and cannot be {type(value).__name__} {given}."
            raise InvalidValue(message, words=words_at(said, _("This must be a map.")))
        for name, member in self.members.items():
            _check(member, value.get(name), f"{said}__{name}")

    def check_at(self, steps: Steps, value: object, said: str) -> None:
        """The same of a value for a place inside the map; what was declared of no place may be anything."""
        member = self.at(steps, said)
        if member is not None:
            _check(member, value, said)

    def at(self, steps: Steps, said: str) -> Attribute | Shape | None:
        """What is declared of a place; ``None`` for nothing. Raises ``InvalidValue`` for a place inside of a value."""
        if not steps:
            return self
        return _within(self.members.get(str(steps[0])), steps[1:], said)

    def has_secrets(self) -> bool:
        """Return whether a declared place is a secret."""
        return any(map(_has_secrets, self.members.values()))

    def hides(self, path: Path) -> bool:
        """Return whether a path inside the map leads to a secret: by the declared places, else by their names."""
        return bool(path) and _hides(self.members.get(str(path[0])), path)


class Elements:
    """What is declared of each element of one list: the same attribute, or a map with declared places.

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
        elif isinstance(of, Attribute):
            self.member = _as_declared(f"of={type(of).__name__}()", "element", of)
        else:
            raise ConfigurationError(
                f"of={shown(of)}: the elements of a list are declared by an attribute, such as "
                "of=models.NumberAttribute(), or by schema= and a class if they are maps with declared places."
            )
        self.has_decimals: bool = _has_decimals(self.member)

    def placed(self, value: object) -> object:
        """Return a list whose decimal numbers have the places that are declared of them; anything else as it is."""
        if not self.has_decimals or not isinstance(value, list | tuple):
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
        """The same of a value for an element, or for a place inside of one."""
        if len(steps) == 1 and isinstance(steps[0], int):
            self._check(value, said)
            return
        member = self.at(steps, said)
        if member is not None:
            _check(member, value, said)

    def at(self, steps: Steps, said: str) -> Attribute | Shape | None:
        """What is declared of an element, or of a place inside of one; ``None`` for nothing.

        Raises ``InvalidValue`` for a place inside of a value, and for one of a list that is no number.
        """
        if not isinstance(steps[0], int):
            raise InvalidValue(f"{said}: the places of a list are numbers from 0 up, not {steps[0]!r}.")
        return _within(self.member, steps[1:], said)

    def has_secrets(self) -> bool:
        """Return whether the elements are secrets, or contain one by their declaration."""
        return _has_secrets(self.member)

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
    within: Shape | Elements | None = getattr(member, "shape", None) if isinstance(member, Attribute) else member
    return value if within is None else within.placed(value)


def _has_decimals(member: Attribute | Shape) -> bool:
    within: Any = getattr(member, "shape", None) if isinstance(member, Attribute) else member
    return isinstance(member, DecimalAttribute) or (within is not None and bool(within.has_decimals))


def _has_secrets(member: Attribute | Shape) -> bool:
    if isinstance(member, Attribute) and member.is_secret():
        return True
    within: Any = getattr(member, "shape", None) if isinstance(member, Attribute) else member
    return within is not None and bool(within.has_secrets())


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
    """Whether a place is an element of a list: without it, the others close up, and nothing is missing."""
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
        raise InvalidValue(f"{said}: {member.name} takes {member.expects}, which has no places inside.")
    shape: Shape | Elements | None = getattr(member, "shape", None)
    return None if shape is None else shape.at(steps, said)


def sums_stay_right(member: Attribute | Shape | None) -> bool:
    """Whether any number may stand in a place, so that DynamoDB may compute it."""
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
            yield name, _as_declared(f"{declared.__qualname__}.{name}", name, each)


def _as_declared(said: str, name: str, attribute: Attribute) -> Attribute:
    """An attribute of a place, with a field of its own that no model has."""
    _check_declaration(said, attribute)
    attribute.name = attribute.name or name
    attribute.field = attribute.make_field()
    attribute.field.attribute = attribute
    attribute.field.set_attributes_from_name(name)
    return attribute


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
                "an attribute of its own beside the map or the list, or the map or the list itself a default."
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
        if not member.null:
            message = f"{said} is missing: it takes {member.expects}, or null=True."
            raise MissingValue(message, words=words_at(said, _("This field must have a value.")))
        return
    if not _is_stored_alike(member, value, said):
        message = f"{said} takes {member.expects}, not {type(value).__name__} {shown(value)}."
        raise InvalidValue(message, words=expecting(member.expects, said))
    within: Shape | Elements | None = getattr(member, "shape", None)
    if within is not None:
        within.check(value, said)
    try:
        prepared = _unrounded(member, value)
        # What is inside was looked at above, where messages know the whole path.
        (member.field.validate if within is None else partial(Field.validate, member.field))(prepared, None)
        member.field.run_validators(prepared)
    except ValidationError as error:
        reasons = " ".join(error.messages)  # Django's, in the language that is active
        raise InvalidValue(f"{said}: {reasons}", words=words_at(said, "%(reasons)s", reasons=reasons)) from error


def _unrounded(attribute: Attribute, value: object) -> Any:
    """A value as the attribute takes it; a document keeps every place of a number, and its validators count them."""
    return attribute.lookup_value(value) if isinstance(attribute, DecimalAttribute) else attribute.prepare(value)


def _is_stored_alike(attribute: Attribute, value: object, said: str) -> bool:
    """Whether a document holds the value as the attribute would: a date lies in it as the text that it is stored as."""
    given = values.to_attribute_value(value, path=said)
    try:
        own = {attribute.attr_type: attribute.encode(_unrounded(attribute, value))}
    except InvalidValue:
        return False
    return own.keys() == given.keys() and values.from_attribute_value(own) == values.from_attribute_value(given)


#: What of a class decides how its documents are stored and read.
ENCODING = ("prepare", "clean", "encode", "decode", "to_attribute_value")


class DocumentAttribute(Attribute[T, Null]):
    """What maps and lists share: any nesting of DynamoDB's types; numbers come back as ``int`` or exact ``Decimal``."""

    field_class = base.DocumentField
    document = True
    python_types: tuple[type, ...] = ()
    #: What is declared of what lies inside.
    shape: Shape | Elements | None = None

    def check_whole(self, value: object) -> None:
        """Hold a map or a list to what is declared of what lies inside."""
        if self.shape is not None and value is not None:
            with hidden_value_errors(self.is_secret(), self.name):
                self.shape.check(value, self.name)

    def check_storable(self, value: object) -> None:
        """Raise ``InvalidValue`` for a document that cannot be stored: in one pass if nothing is declared of it."""
        if self.shape is None:
            self.check_whole(self.prepare(value))
        else:
            super().check_storable(value)

    def shown(self, value: object) -> str:
        """Return a value for a message; it is masked if the document is a secret, or declares one inside."""
        return MASK if self.shape is not None and self.shape.has_secrets() else super().shown(value)

    def hides_inside(self, path: Path) -> bool:
        """Return whether a path leads to a secret: by what is declared of its places, else by their names."""
        return super().hides_inside(path) if self.shape is None else self.shape.hides(path)

    def clean(self, value: object) -> Any:
        """Return a copy of the value in the types that reading it back gives."""
        if not isinstance(value, self.python_types):
            raise self.refuse(value)
        if are_plain(type(self), ("encode", "decode")):
            return self._encoded(value, None).value
        if self.shape is None:
            return self.decode(self.encode(value))
        with hidden_value_errors(self.shape.has_secrets(), self.name):
            return self.decode(self.encode(self.shape.placed(value)))

    def encoded(self, value: object, before: StoredValue | None = None) -> Encoded:
        """Return a document, prepared and encoded in one pass; an unchanged one as given, with its decimal places."""
        if not isinstance(value, self.python_types) or not are_plain(type(self), ENCODING):
            return super().encoded(value, before)
        try:
            return self._encoded(value, before)
        except REFUSED:
            with self.refusing(value):
                raise

    def _encoded(self, value: object, before: StoredValue | None) -> Encoded:
        if self.shape is None:
            stored, size, is_as_read = documents.encode(value, before, self.name)
        else:
            with hidden_value_errors(self.shape.has_secrets(), self.name):
                value = self.shape.placed(value)
                stored, size, is_as_read = documents.encode(value, before, self.name)
            is_as_read = is_as_read and not self.shape.has_decimals
        if stored is before:
            return Encoded(value, stored, size)
        return Encoded(documents.copied(value) if is_as_read else self.decode(stored[self.attr_type]), stored, size)

    def lookup_value(self, value: object) -> object:
        """The value with all of the places of its numbers, as that of a decimal number."""
        prepared = self.prepare(value)
        if prepared is None or self.shape is None or not self.shape.has_decimals:
            return prepared
        return values.from_attribute_value({self.attr_type: self.encode(value)})

    def encode(self, value: object) -> Any:
        """The inside of an M or L AttributeValue."""
        return values.to_attribute_value(value, path=self.name)[self.attr_type]

    def decode(self, inner: object) -> Any:
        """A ``dict`` or a ``list``."""
        found = values.from_attribute_value({self.attr_type: inner})
        return found if self.shape is None else self.shape.placed(found)


class MapAttribute(DocumentAttribute[dict[str, Any], Null]):
    """A map with text keys and values of any DynamoDB type, nested as they come.

    ``schema`` is a class that declares places of it by attributes, and maps in it by nested classes. Every write that
    changes the map, or one of these places, is held to it: kinds, missing values, choices, lengths and validators
    (``InvalidValue``). All other keys may hold anything. Nothing is converted, except that decimal numbers are written
    and read with the places of their ``DecimalAttribute``. Nothing that is stored is checked.
    """

    attr_type = "M"
    expects = gettext_noop("a dict")
    python_types = (dict,)

    def __init__(
        self,
        verbose_name: Label | None = None,
        *,
        schema: type | None = None,
        null: Null = False,  # type: ignore[assignment]  # see Attribute
        **options: Any,
    ) -> None:
        super().__init__(verbose_name, **options | {"null": null})
        self.shape = None if schema is None else Shape(schema)


class ListAttribute(DocumentAttribute[list[Any], Null]):
    """A list with values of any DynamoDB type.

    Elements that are maps can have a ``schema``, a class as ``MapAttribute`` takes it; elements of one kind are
    declared by an attribute, ``of=models.NumberAttribute()``. Every write that changes the list, an element or a place
    in one is held to it. Decimal numbers get their places, as in a map. Nothing that is stored is checked.
    """

    attr_type = "L"
    expects = gettext_noop("a list")
    python_types = (list, tuple)

    def __init__(
        self,
        verbose_name: Label | None = None,
        *,
        schema: type | None = None,
        of: Attribute | None = None,
        null: Null = False,  # type: ignore[assignment]  # see Attribute
        **options: Any,
    ) -> None:
        super().__init__(verbose_name, **options | {"null": null})
        self.shape = None if schema is None and of is None else Elements(schema, of)


class SetAttribute(Attribute[set[T], Absent]):
    """What the three sets share; an empty set is not stored, since DynamoDB has none."""

    field_class = base.SetField
    document = True
    member_types: tuple[type, ...] = ()

    def __init__(
        self,
        verbose_name: Label | None = None,
        *,
        null: Absent = True,  # type: ignore[assignment]  # see Attribute
        **options: Any,
    ) -> None:
        super().__init__(verbose_name, **options | {"null": null})

    def prepare(self, value: object) -> set[T] | None:
        """A ``set``, or ``None`` if there is nothing in it."""
        return super().prepare(value) or None

    def clean(self, value: object) -> set[T]:
        """A set of the right kind of members."""
        if not isinstance(value, set | frozenset | list | tuple):
            raise self.refuse(value)
        if any(isinstance(member, bool) or not isinstance(member, self.member_types) for member in value):
            raise self.refuse(value)
        if not value:
            return set()
        result: set[T] = values.from_attribute_value(values.to_attribute_value(set(value), path=self.name))
        return result

    def encode(self, value: set[T]) -> Any:
        """The inside of a set AttributeValue."""
        return values.to_attribute_value(value, path=self.name)[self.attr_type]

    def decode(self, inner: object) -> set[T]:
        """A ``set``."""
        result: set[T] = values.from_attribute_value({self.attr_type: inner})
        return result


class UnicodeSetAttribute(SetAttribute[str, Absent]):
    """A set of texts."""

    attr_type = "SS"
    expects = gettext_noop("a set of texts")
    member_types = (str,)


class NumberSetAttribute(SetAttribute[Any, Absent]):
    """A set of numbers."""

    attr_type = "NS"
    expects = gettext_noop("a set of numbers")
    member_types = (int, float, Decimal)

    def make_field(self) -> ModelField:
        """A set field whose lines are numbers."""
        field = super().make_field()
        field.member = number_member  # type: ignore[attr-defined]  # our SetField's
        return field


class BinarySetAttribute(SetAttribute[bytes, Absent]):
    """A set of byte strings."""

    attr_type = "BS"
    expects = gettext_noop("a set of bytes")
    member_types = (bytes,)

    def __init__(
        self,
        verbose_name: Label | None = None,
        *,
        null: Absent = True,  # type: ignore[assignment]  # see Attribute
        **options: Any,
    ) -> None:
        super().__init__(verbose_name, **{"editable": False, "null": null, **options})
