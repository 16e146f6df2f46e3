"""The base of all attributes: Django's options, the descriptor, and storing one value.

An attribute is a PynamoDB attribute (it builds conditions, ``Order.qty > 0``) that brings a Django field along. It
must not know requests, querysets or keys; ``key_kind`` only names how its values are encoded in one.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Self, TypeVar, overload

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models.expressions import Combinable
from django.utils.functional import Promise
from pynamodb.attributes import Attribute as PynamoDBAttribute

from dynamo_single.exceptions import ConfigurationError, InvalidValue, UnreadableItem
from dynamo_single.orm.schema.attributes.field_names import check_options
from dynamo_single.orm.schema.attributes.operations import Operation
from dynamo_single.orm.schema.fields.base import DynamoField
from dynamo_single.orm.schema.fields.fetching import DeferredValue, fetch
from dynamo_single.orm.schema.keys.documents import Encoded, like
from dynamo_single.orm.schema.keys.secret_values import MASK, Path, is_secret_name
from dynamo_single.orm.schema.keys.values import expecting, gettext_noop, shown, value_size
from dynamo_single.orm.schema.types import DynamoModel, ModelField, StoredAttribute
from dynamo_single.table.request import StoredValue

if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault  # Python's own since 3.13

    #: The values of an attribute; an ``Attribute`` alone is one of any values.
    T = TypeVarWithDefault("T", default=Any)

    #: The type of the ``null`` option: ``Literal[True]`` makes the values ``T | None``. A subclass without it has
    #: ``bool``, and values of ``T``.
    Null = TypeVarWithDefault("Null", Literal[True], Literal[False], bool, default=bool, covariant=True)
    #: The same for attributes that always have ``null=True``.
    Absent = TypeVarWithDefault("Absent", Literal[True], Literal[False], bool, default=Literal[True], covariant=True)
else:
    T = TypeVar("T")
    Null = Absent = TypeVar("Null")

NOT_PROVIDED = models.NOT_PROVIDED
#: Text, or a lazy translation of it.
Label = str | Promise
#: The errors of a value that an attribute does not take; ``Attribute.refusing()`` words them.
REFUSED = (ValidationError, ValueError, TypeError, ArithmeticError, RecursionError)
#: An admin site's additional secrets: a function of a model and an attribute, by either of its names.
AlsoSecret = Callable[[Any, str], bool]


@lru_cache(maxsize=256)
def _with_form(declared: Any, form: type, members: tuple[tuple[str, object], ...]) -> Any:
    """Return a class of attributes that stores its values in a form; it has the name of the declared class."""
    named = {"__module__": declared.__module__, "__qualname__": declared.__qualname__, "declared_class": declared}
    return type(declared.__name__, (form, declared), {**named, **dict(members)})


class Attribute(PynamoDBAttribute[T], Generic[T, Null]):
    """One attribute of a model.

    Options are Django's: ``null`` (stored only when set), ``blank`` (follows ``null`` unless given), ``default``,
    ``choices``, ``validators``, ``help_text``, ``verbose_name``, ``max_length``, ``editable``, ``unique``,
    ``error_messages``. ``attr_name`` is the name in the stored item, if it differs from the Python name. ``canonical``
    makes a unique string unique without regard to case. An ``immutable`` value never changes once the object is
    created: a write that would change it raises ``ImmutableAttribute``. ``secret`` sets whether the value is a secret;
    by default the sources of the attribute decide, and then the names. Only the primary key
    contains an attribute ``in_key_only``, in a table with raw keys.
    """

    field_class: ClassVar[type[models.Field[Any, Any]]]
    #: How values are encoded in a key; ``None`` if they cannot be part of one.
    key_kind: str | None = None
    #: Whether a lookup may compare with values between two that can be stored, as half a millisecond is.
    rounds: ClassVar[bool] = False
    #: Whether the value is computed from other attributes and never set.
    computed: ClassVar[bool] = False
    #: Whether values name models, by their labels or their permissions, so that ``RenameModel`` changes them.
    holds_labels: ClassVar[bool] = False
    #: The source of a computed value, for messages.
    origin: str = ""
    #: Whether the value has parts that several writers may change: it is saved by its difference.
    document: ClassVar[bool] = False
    #: The declarations of nested values, of a map or list that has any: a ``Shape`` or ``Elements``.
    shape: Any = None
    #: Whether filters support only equality, because stored values do not sort as the values do.
    only_equal: ClassVar[bool] = False
    #: Whether a map class declares the attribute, so that documents accept its Python values as well as stored ones.
    in_map_class: bool = False
    #: Whether the value is set once, on creation, by the app itself.
    settled: ClassVar[bool] = False
    #: The form of its values that ``stored_as`` chose; empty for the class's own form.
    stored_as: str = ""
    #: The Django field of the model that this attribute belongs to.
    field: Any

    def __init_subclass__(cls, **kwargs: object) -> None:
        """Let any class of Django's fields be named as ``field_class``."""
        super().__init_subclass__(**kwargs)
        named = cls.__dict__.get("field_class")
        if isinstance(named, type) and not issubclass(named, DynamoField):
            cls.field_class = type(named.__name__, (DynamoField, named), {"__module__": named.__module__})

    if not TYPE_CHECKING:  # what an attribute takes is stated by its __init__()

        def __new__(cls, *args: object, **options: object) -> Any:
            """Refuse Django's options that no attribute takes, whichever attribute it is."""
            check_options(cls.__name__, options)
            return super().__new__(cls)

        def __class_getitem__(cls, parameters: object) -> type:
            """Return the class itself: its parameters are for type checkers, and Python before 3.13 does not support
            defaults."""
            return cls

    def __init__(
        self,
        verbose_name: Label | None = None,
        *,
        null: Null = False,  # type: ignore[assignment]  # that is what null is without an argument
        blank: bool | None = None,
        default: object = NOT_PROVIDED,
        choices: Iterable[Any] | Callable[[], Iterable[Any]] | None = None,
        validators: Iterable[Callable[[Any], None]] = (),
        help_text: Label = "",
        max_length: int | None = None,
        editable: bool = True,
        unique: bool = False,
        canonical: bool = False,
        error_messages: dict[str, object] | None = None,
        attr_name: str | None = None,
        immutable: bool = False,
        secret: bool | None = None,
        in_key_only: bool = False,
    ) -> None:
        super().__init__(null=null, attr_name=attr_name)
        if secret not in (None, True, False):
            raise ConfigurationError(f"{type(self).__name__}(secret={shown(secret)}): secret is True or False.")
        if isinstance(default, list | dict | set | bytearray):
            raise ConfigurationError(
                f"A default of {shown(default)} would be shared by all objects: give the callable "
                f"{type(default).__name__} instead."
            )
        self.name = ""
        self.unique = unique
        self.immutable = immutable
        self.canonical = canonical
        self.secret = secret
        self.in_key_only = in_key_only
        self.field_options: dict[str, Any] = {
            "verbose_name": verbose_name,
            "null": null,
            "blank": null if blank is None else blank,
            "default": default,
            "choices": choices,
            "validators": tuple(validators),
            "help_text": help_text,
            "editable": editable,
            "unique": unique,
            "error_messages": error_messages,
        }
        if max_length is not None:
            self.field_options["max_length"] = max_length

    __hash__ = object.__hash__

    def store_as(self, name: str | None, forms: Mapping[str, type | None], **members: object) -> None:
        """Store the values in one of some forms; ``None`` is the class's own.

        A form is a class whose methods, such as ``encode()`` and ``decode()``, and ``members`` replace the class's.
        The attribute gets a subclass with both, so that code that depends on the class notices the form.
        """
        if name is None:
            return
        if not isinstance(name, str) or name not in forms:
            known = ", ".join(map(repr, forms))
            raise ConfigurationError(f"{type(self).__name__}(stored_as={shown(name)}): use {known}, or omit it.")
        form = forms[name]
        if form is not None:
            self.stored_as = name
            own: Any = type(self)
            formed: Any = _with_form(own, form, tuple(members.items()))
            self.__class__ = formed

    def origins(self) -> Iterator[tuple[Attribute, Path]]:
        """Yield the attributes whose values, or a value at a path inside, this one repeats."""
        yield from ()

    def is_secret(self, also: AlsoSecret | None = None) -> bool:
        """Return whether the value is a secret: by the option, its sources, its names, or ``also``."""
        names = (self.name, self.attr_name or self.name)
        if self.secret is None:
            found = any(map(is_secret_name, names)) or any(origin.hides(path) for origin, path in self.origins())
        else:
            found = self.secret
        return found or (also is not None and self.is_added((), also))

    def is_added(self, path: Path, also: AlsoSecret) -> bool:
        """Return whether a site adds the value at a path inside the value, or what it is made of, to the secrets."""
        model = getattr(getattr(self, "field", None), "model", None)
        names = (self.name, self.attr_name or self.name, *(step for step in path if isinstance(step, str)))
        return any(also(model, name) for name in names) or any(
            origin.is_added(at, also) for origin, at in self.origins()
        )

    def hides(self, path: Path, also: AlsoSecret | None = None) -> bool:
        """Return whether the value at a path inside the value is a secret, because of any step that leads there."""
        return self.is_secret() or self.hides_inside(path) or (also is not None and self.is_added(path, also))

    def hides_inside(self, path: Path) -> bool:
        """Return whether a step of a path inside the value, which is no secret itself, leads to one."""
        return any(is_secret_name(step) for step in path if isinstance(step, str))

    def make_field(self) -> ModelField:
        """A new Django field for this attribute."""
        return self.field_class(**self.field_options)

    def contribute_to_class(self, cls: Any, name: str) -> None:
        """Put the Django field, and with it this attribute, on the model class."""
        if self.immutable and (self.computed or self.field_options.get("auto_now")):
            follows = self.origin or "other attributes" if self.computed else "every write (auto_now_add=True does not)"
            raise ConfigurationError(f"{cls.__name__}.{name} follows {follows}, so it cannot be immutable.")
        field: Any = self.make_field()
        stored: StoredAttribute = self  # which a type checker compares with the types of fields
        field.attribute = stored
        cls.add_to_class(name, field)

    def __set_name__(self, owner: type, name: str) -> None:  # a model, or the class of a map's schema
        self.name = name
        super().__set_name__(owner, name)

    @overload
    def __get__(self, instance: None, owner: object) -> Self: ...
    @overload
    def __get__(self: Attribute[T, Literal[True]], instance: object, owner: object) -> T | None: ...
    @overload
    def __get__(self, instance: object, owner: object) -> T: ...
    def __get__(self, instance: object, owner: object) -> Any:
        if instance is None:
            return self
        try:
            return instance.__dict__[self.name]
        except KeyError:
            pass  # read beyond, so that its errors have no context of ours
        return self.missing_value(instance)

    def missing_value(self, instance: Any) -> Any:
        """Load the value of an instance without one, if ``only()`` or ``defer()`` omitted it."""
        if instance._stored is not None:
            fetch(DeferredValue(self.name, self.field), instance)
            if self.name not in instance.__dict__:
                raise type(instance).DoesNotExist(f"{shown(instance)} is not stored, or was deleted.")
        return instance.__dict__.get(self.name)

    def __set__(self, instance: object, value: T | Combinable | Operation | None) -> None:
        instance.__dict__[self.name] = value

    def __delete__(self, instance: DynamoModel) -> None:
        """Clear an object's value: it is loaded on access, and a save does not change it."""
        if self.name not in instance.__dict__:
            raise AttributeError(self.name)
        instance._forget(self.name)

    def current(self, values: Mapping[str, object]) -> object:
        """The value to store of an object with these values by attribute: its own, or what is computed of them."""
        return values.get(self.name)

    def prepare(self, value: object) -> T | None:
        """Return the value in its stored Python form; raise ``InvalidValue`` for another type of value."""
        if value is None:
            return None
        try:
            return self.clean(value)
        except REFUSED:
            with self.refusing(value):  # not around each value that is right
                raise

    @contextmanager
    def refusing(self, value: object) -> Iterator[None]:
        """Raise ``InvalidValue`` for any error about a value; it contains a secret neither itself nor in its causes."""
        try:
            yield
        except InvalidValue as error:
            if type(error) is not InvalidValue or not self.is_secret():
                raise
            raise self.refuse(value) from None
        except (ValidationError, ValueError, TypeError, ArithmeticError) as error:
            raise self.refuse(value) from None if self.is_secret() else error
        except RecursionError as error:
            raise InvalidValue(f"{self.name}: the value is nested too deep, or contains itself.") from error

    def clean(self, value: object) -> T:
        """``prepare`` for a value that is not ``None``."""
        raise NotImplementedError

    def check_whole(self, value: object) -> None:
        """Raise ``InvalidValue`` for a prepared value that breaks a declaration other than its type."""

    def check_storable(self, value: object) -> None:
        """Raise ``InvalidValue`` for any value that cannot be stored."""
        self.prepare(value)
        # As it was given: forms report the places that a write would round.
        self.check_whole(self.lookup_value(value))

    def lookup_value(self, value: object) -> object:
        """A lookup's value in the same Python form, as fine as it was given."""
        return self.prepare(value)

    #: The description of accepted values in ``refuse``; Django's translations contain its words.
    expects: ClassVar[str] = gettext_noop("another kind of value")

    def shown(self, value: object) -> str:
        """Return a value for a message; it is masked if the attribute is a secret, or can contain one."""
        return MASK if self.is_secret() else shown(value)

    def refuse(self, value: object) -> InvalidValue:
        """Return the error for a value of the wrong kind."""
        given = self.shown(value)
        return InvalidValue(
            f"{self.name or type(self).__name__} must be {self.expects}, not {type(value).__name__} {given}.",
            words=expecting(self.expects),
        )

    def encode(self, value: T) -> Any:
        """A prepared value as the inside of an AttributeValue."""
        return value

    def decode(self, inner: Any) -> T:
        """The inside of an AttributeValue as the Python value."""
        result: T = inner
        return result

    def to_attribute_value(self, value: object) -> dict[str, object]:
        """Any value as an AttributeValue; ``None`` as DynamoDB's NULL."""
        prepared = self.prepare(value)
        return {"NULL": True} if prepared is None else {self.attr_type: self.encode(prepared)}

    def encoded(self, value: object, before: StoredValue | None = None) -> Encoded:
        """Return any value, prepared and encoded; ``before`` is the stored AttributeValue that it is compared with.

        An unchanged document keeps the form that is stored. Raises ``InvalidValue`` as ``prepare()``.
        """
        prepared = self.prepare(value)
        if prepared is None:
            return Encoded(None, None, 0)
        is_own = type(self).to_attribute_value is Attribute.to_attribute_value
        # A prepared value is not prepared again.
        stored = {self.attr_type: self.encode(prepared)} if is_own else self.to_attribute_value(prepared)
        return Encoded(prepared, like(stored, before), value_size(stored))

    def operand(self, value: object) -> dict[str, object]:
        """Return a value for a comparison with stored values, as an AttributeValue."""
        return self.to_attribute_value(value)

    def from_attribute_value(self, stored: dict[str, object]) -> T | None:
        """The Python value of a stored AttributeValue; raises ``UnreadableItem`` if another type is stored."""
        if self.attr_type not in stored:
            if "NULL" in stored:
                return None
            raise UnreadableItem(
                f"The stored item holds {self.attr_name} as {next(iter(stored), 'nothing')!s}, and {self.name} reads "
                f"{self.attr_type}."
            )
        try:
            return self.decode(stored[self.attr_type])
        except (ValueError, TypeError, ArithmeticError, RecursionError) as error:
            held = self.shown(stored)
            raise UnreadableItem(
                f"The stored item holds {held} in {self.attr_name}, and {self.name} reads {self.expects}."
            ) from None if held == MASK else error

    def serialize(self, value: object) -> object:
        """For PynamoDB's conditions and writes: the inside of an AttributeValue."""
        prepared = self.prepare(value)
        return None if prepared is None else self.encode(prepared)

    def deserialize(self, value: object) -> T:
        """Return the Python value for PynamoDB; raise ``UnreadableItem`` if the stored value cannot be read."""
        found: Any = self.from_attribute_value({self.attr_type: value})
        result: T = found
        return result

    def to_text(self, value: object) -> str:
        """The value as text, for ``pk`` and for messages."""
        return str(self.prepare(value))

    def from_text(self, text: str) -> T:
        """The value of ``to_text``; raises ``InvalidValue`` for text that is none."""
        value = self.prepare(text)
        if value is None:
            raise self.refuse(text)
        return value

    def stored_options(self) -> dict[str, object]:
        """Return the arguments of the declaration that affect stored values, except ``attr_name``.

        Migration files keep them, so that items of then can be read without the model of now. A subclass of a project
        whose ``__init__`` has such arguments overrides this.
        """
        return {"stored_as": self.stored_as} if self.stored_as else {}

    def copy(self) -> Self:
        """An attribute of its own for a subclass of the model."""
        duplicate = copy.copy(self)
        duplicate.attr_path = list(self.attr_path)
        return duplicate
