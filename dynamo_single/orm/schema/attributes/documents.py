"""Attributes that hold maps, lists, sets and JSON text."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar, Final

from dynamo_single.exceptions import ConfigurationError
from dynamo_single.orm.schema.attributes.base import REFUSED, Absent, Attribute, Label, Null, T
from dynamo_single.orm.schema.attributes.map_objects import MapObject, new_object, object_class
from dynamo_single.orm.schema.attributes.shapes import Elements, Shape, as_declared, hidden_value_errors
from dynamo_single.orm.schema.fields import base
from dynamo_single.orm.schema.fields.forms import number_member
from dynamo_single.orm.schema.keys import documents, values
from dynamo_single.orm.schema.keys.documents import Encoded
from dynamo_single.orm.schema.keys.secret_values import MASK, Path
from dynamo_single.orm.schema.keys.values import gettext_noop
from dynamo_single.orm.schema.types import ModelField, are_plain
from dynamo_single.table.request import StoredValue

#: The options of a class that affect the storage of its documents.
ENCODING = ("prepare", "clean", "encode", "decode", "to_attribute_value")


class DocumentAttribute(Attribute[T, Null]):
    """The base of maps and lists: any nesting of DynamoDB's types; numbers come back as ``int`` or exact
    ``Decimal``."""

    field_class = base.DocumentField
    document = True
    python_types: tuple[type, ...] = ()
    #: The declarations of nested values.
    shape: Shape | Elements | None = None
    #: Whether values are, or contain, the objects of map classes.
    has_objects = False

    def __set__(self, instance: object, value: Any) -> None:
        if self.has_objects and self.shape is not None:
            value = self.shape.placed(value)
        instance.__dict__[self.name] = value

    def check_whole(self, value: object) -> None:
        """Validate a map or a list against the declarations of its nested values."""
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
        """Return whether a path leads to a secret: by the declarations of its elements, else by their names."""
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
            is_as_read = is_as_read and not self.shape.converts
        if stored is before:
            return Encoded(value, stored, size)
        return Encoded(documents.copied(value) if is_as_read else self.decode(stored[self.attr_type]), stored, size)

    def lookup_value(self, value: object) -> object:
        """Return the value with all decimal places of its numbers, as in a decimal attribute."""
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


class _MapClass(type):
    """The class of maps, and of the classes that declare the attributes of one, which it collects."""

    object_class: type[MapObject] | None
    shape: Shape | Elements | None

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any) -> Any:
        own = {each: value for each, value in namespace.items() if isinstance(value, Attribute)}
        rest = {each: value for each, value in namespace.items() if each not in own}
        cls: Any = super().__new__(mcs, name, bases, rest, **options)
        known: list[type[MapObject] | None] = [getattr(base, "object_class", None) for base in bases]
        inherited = [each.members for each in known if each is not None]
        if own or inherited:
            _collect(cls, rest, inherited, own)
        return cls

    if not TYPE_CHECKING:  # a checker reads the attributes and __init__()

        def __call__(cls, *args: object, **given: object) -> Any:
            """Return a value if attributes of the map are given, else an attribute of a model or a map."""
            members = {} if cls.object_class is None else cls.object_class.members
            if args or members.keys().isdisjoint(given):
                return super().__call__(*args, **given)
            if unknown := ", ".join(sorted(given.keys() - members.keys())):
                raise TypeError(f"{cls.__name__} has no attributes {unknown}. It has {', '.join(members)}.")
            return new_object(cls, given)

        def __getattr__(cls, name: str) -> Any:
            members = {} if name == "object_class" or cls.object_class is None else cls.object_class.members
            if name not in members:
                raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}")
            return members[name]

        def __instancecheck__(cls, instance: object) -> bool:
            objects = cls.object_class
            return super().__instancecheck__(instance) or (objects is not None and isinstance(instance, objects))


def _collect(
    cls: Any, namespace: Mapping[str, Any], inherited: list[Mapping[str, Attribute]], own: Mapping[str, Attribute]
) -> None:
    """Give a map class its shape and the class of its objects."""
    options = inspect.signature(Attribute.__init__).parameters.keys() | {"schema"}
    if clashing := ", ".join(sorted(own.keys() & options)):
        raise ConfigurationError(
            f"{cls.__qualname__} declares {clashing}, the name of an option of attributes. Use another name, and give "
            'the stored one as attr_name="...".'
        )
    for name, each in own.items():
        each.__set_name__(cls, name)
        as_declared(f"{cls.__qualname__}.{name}", name, each, has_default=True)
        _mark(each)
    members: dict[str, Attribute] = {}
    for each_base in (*reversed(inherited), own):
        members |= each_base
    cls.object_class = object_class(cls, namespace, members)
    shape = Shape(cls, {each.attr_name: each for each in members.values()})
    shape.object_class = cls.object_class
    cls.shape, cls.has_objects = shape, True
    if namespace.keys().isdisjoint(ENCODING):
        base = cls.__mro__[1]
        cls.declared_class = getattr(base, "declared_class", base)


def _mark(attribute: Attribute) -> None:
    attribute.in_map_class = True
    shape = attribute.shape
    if isinstance(shape, Elements) and isinstance(shape.member, Attribute):
        _mark(shape.member)


#: The names that code looks up on any attribute. An attribute of a map does not hide them.
_SOUGHT: Final = frozenset(("checked", "floor", "members", "model", "pk", "resolve_expression", "target", "unit"))


class MapAttribute(DocumentAttribute[dict[str, Any], Null], metaclass=_MapClass):
    """A map with text keys and values of any DynamoDB type, nested as they come.

    ``schema`` is a class that declares elements by attributes, and nested maps by nested classes. Every write that
    changes the map, or one of these elements, is validated against it: types, missing values, choices, lengths and
    validators (``InvalidValue``). Other keys may contain anything. Values are not converted, except that decimal
    numbers are written and read with the places of their ``DecimalAttribute``. Stored values are not validated.

    A subclass that declares attributes is a map class, as in PynamoDB: ``class Address(MapAttribute)``. A call with
    values of these, ``Address(city="Ulm")``, returns a value: a dict whose keys are also Python attributes. Another
    call returns an attribute, which holds its values to the declaration as ``schema`` does.
    """

    attr_type = "M"
    expects = gettext_noop("a dict")
    python_types = (dict,)
    object_class: ClassVar[type[MapObject] | None] = None

    def __init__(
        self,
        verbose_name: Label | None = None,
        *,
        schema: type | None = None,
        null: Null = False,  # type: ignore[assignment]  # see Attribute
        **options: Any,
    ) -> None:
        super().__init__(verbose_name, **options | {"null": null})
        if schema is not None and self.shape is not None:
            raise ConfigurationError(f"{type(self).__name__} declares the places of the map itself: omit schema.")
        if schema is not None:
            self.shape = Shape(schema)
            self.has_objects = self.shape.has_objects

    if not TYPE_CHECKING:  # PynamoDB's conditions name the attributes of a map so

        def __getattr__(self, name: str) -> Any:
            objects = type(self).object_class
            member = None if objects is None or name in _SOUGHT or name[0] == "_" else objects.members.get(name)
            if member is None:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            found = member.copy()
            found.attr_path = [*self.attr_path, found.attr_name]
            return found


class ListAttribute(DocumentAttribute[list[Any], Null]):
    """A list with values of any DynamoDB type.

    Elements that are maps can have a ``schema``, a class as in ``MapAttribute``. Elements of one type are declared by
    an attribute, ``of=models.NumberAttribute()``, or by a map class, ``of=Address``. Every write that changes the list,
    an element or a part of one is validated against it. Decimal numbers get their places, as in a map. Stored values
    are not validated.
    """

    attr_type = "L"
    expects = gettext_noop("a list")
    python_types = (list, tuple)

    def __init__(
        self,
        verbose_name: Label | None = None,
        *,
        schema: type | None = None,
        of: Attribute | type[MapAttribute] | None = None,
        null: Null = False,  # type: ignore[assignment]  # see Attribute
        **options: Any,
    ) -> None:
        super().__init__(verbose_name, **options | {"null": null})
        self.shape = None if schema is None and of is None else Elements(schema, of)
        self.has_objects = self.shape is not None and self.shape.has_objects


class SetAttribute(Attribute[set[T], Absent]):
    """The base of the three sets; an empty set is not stored, because DynamoDB has none."""

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
    """A set of strings."""

    attr_type = "SS"
    expects = gettext_noop("a set of strings")
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
