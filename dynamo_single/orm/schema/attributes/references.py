"""The attribute that points at another object."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self, TypeVar

from django.db import models
from django.utils.functional import Promise

from dynamo_single.exceptions import ConfigurationError
from dynamo_single.orm.schema.attributes.base import Attribute, Label, Null, T
from dynamo_single.orm.schema.attributes.scalars import IntegerAttribute, UnicodeAttribute, UUIDAttribute
from dynamo_single.orm.schema.encoding.secrets import Path
from dynamo_single.orm.schema.fields import fields
from dynamo_single.orm.schema.fields.one_to_one import OneToOneField

if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault  # Python's own since 3.13

    #: A model that is named by a text is ``Any``, unless it is given: ``ReferenceAttribute["Person"]("Person")``.
    M = TypeVarWithDefault("M", bound=models.Model, default=Any)
    #: As ``Null``; a model that is given lets ``null=True`` be given as well: ``["Person", Literal[True]]``.
    Nullable = TypeVarWithDefault("Nullable", Literal[True], Literal[False], default=Literal[False], covariant=True)
else:
    M = Nullable = TypeVar("M")

#: For references to models in SQL: the attribute that stores a key of each of Django's field types.
SQL_KEYS: dict[str, type[Attribute]] = {
    "AutoField": IntegerAttribute,
    "BigAutoField": IntegerAttribute,
    "SmallAutoField": IntegerAttribute,
    "IntegerField": IntegerAttribute,
    "BigIntegerField": IntegerAttribute,
    "PositiveIntegerField": IntegerAttribute,
    "CharField": UnicodeAttribute,
    "UUIDField": UUIDAttribute,
}


#: What a deletion can do to what refers to an object, as Django names it.
ON_DELETE: Final = (models.CASCADE, models.PROTECT, models.SET_NULL, models.SET_DEFAULT, models.DO_NOTHING)


def _given(to: Any, label: object, related_name: object, null: object, options: Mapping[str, object]) -> dict[str, str]:
    """Return the arguments of a declaration as source text, by their names."""
    named = {"verbose_name": label, "related_name": related_name, "null": null or None, **options}
    given = {name: value for name, value in named.items() if value is not None}
    plain = (str, int, float)
    texts = {name: repr(value) if isinstance(value, plain) else "..." for name, value in given.items()}
    return {"to": repr(to) if isinstance(to, str) else to.__name__, **texts}


class StandIn(Attribute[T, Null]):
    """Prepares, stores and reads values as its ``target`` does, an attribute of this one's name."""

    #: The attribute that it stands in for; a subclass finds it when it is first asked for.
    target: Any
    #: All that is found so, which a copy of the attribute looks up again.
    looked_up: ClassVar[tuple[str, ...]] = ("target",)

    def copy(self) -> Self:
        """One whose target is looked up again."""
        duplicate = super().copy()
        for name in self.looked_up:
            duplicate.__dict__.pop(name, None)
        return duplicate

    def under_own_name(self, target: Attribute) -> Attribute:
        """Return a copy of the attribute that this one stands in for, with this one's name and secrecy."""
        duplicate = target.copy()
        duplicate.name, duplicate.secret = self.name, self.is_secret()
        return duplicate

    @property
    def attr_type(self) -> str:  # type: ignore[override]  # a plain class attribute elsewhere
        """DynamoDB's type of the target."""
        return str(self.target.attr_type)

    @property
    def key_kind(self) -> str | None:  # type: ignore[override]  # see attr_type
        """As the target is encoded."""
        kind: str | None = self.target.key_kind
        return kind

    def prepare(self, value: object) -> Any:
        """As the target does."""
        return self.target.prepare(value)

    def operand(self, value: object) -> dict[str, object]:
        """As the target compares it."""
        found: dict[str, object] = self.target.operand(value)
        return found

    def encode(self, value: object) -> Any:
        """As the target stores it."""
        return self.target.encode(value)

    def decode(self, inner: object) -> Any:
        """As the target reads it."""
        return self.target.decode(inner)

    def to_text(self, value: object) -> str:
        """As the target's value reads."""
        text: str = self.target.to_text(value)
        return text

    def from_text(self, text: str) -> Any:
        """As the target's value is read."""
        return self.target.from_text(text)


class StoredAgain(StandIn[T, Null]):
    """One whose value lies elsewhere too: it is also rounded and compared as its ``target`` is."""

    @property
    def rounds(self) -> bool:  # type: ignore[override]  # see attr_type
        """As the target does."""
        return bool(self.target.rounds)

    def floor(self, value: object) -> object:
        """As the target rounds."""
        return self.target.floor(value)

    def prepare(self, value: object) -> Any:
        """As the target does; a text that is translated only when it is asked for is one."""
        return super().prepare(str(value) if isinstance(value, Promise) else value)

    def lookup_value(self, value: object) -> object:
        """As the target does."""
        return self.target.lookup_value(value)


class ReferenceAttribute(StandIn[M, Nullable]):
    """A reference to another object: ``company = ReferenceAttribute(Company)`` stores ``company_id``, its ``pk``.

    To forms, the admin and ``select`` widgets it is a ``ForeignKey``. ``related_name`` as in Django. ``on_delete`` says
    what a deletion of the other object does: ``CASCADE``, ``PROTECT``, ``SET_NULL``, ``SET_DEFAULT`` or ``DO_NOTHING``.
    For all but the last, a key has to find the objects that refer to one: a Query for each such reference. The system
    check ``E035`` reports a reference without an ``on_delete``, which deletes as ``Children`` alone decide.

    With ``checked`` an object is created, or given another reference, only if the other object is there and not in the
    trash, which counts it: one transaction of two items, twice the units of each. Then ``on_delete`` holds exactly.
    """

    field_class: ClassVar[type[models.Field[Any, Any]]] = fields.ReferenceField
    #: Whether no two objects refer to one.
    one_to_one: ClassVar[bool] = False

    def __init__(
        self,
        to: type[M] | str,
        verbose_name: Label | None = None,
        *,
        related_name: str | None = None,
        on_delete: object = None,
        checked: bool = False,
        null: Nullable = False,  # type: ignore[assignment]  # see Attribute
        **options: Any,
    ) -> None:
        second: Any = verbose_name
        if callable(second) and not isinstance(second, Promise):
            # Django's second argument, which would be a label here in silence.
            verbose_name, on_delete = None, second
        #: Whether the declaration sets ``on_delete``, and what it has instead if it does not, for E035.
        self.says_on_delete = on_delete is not None
        self.declared = {} if self.says_on_delete else _given(to, verbose_name, related_name, null, options)
        if on_delete is None:
            on_delete = models.DO_NOTHING
        if on_delete not in ON_DELETE:
            known = ", ".join(f"models.{each.__name__}" for each in ON_DELETE)
            given = getattr(on_delete, "__name__", repr(on_delete))
            raise ConfigurationError(
                f"on_delete={given} cannot be kept. It can be {known}; anything else is for the delete() of the other "
                "model."
            )
        if checked and on_delete is models.DO_NOTHING:
            raise ConfigurationError(
                "checked=True is what lets an on_delete hold exactly: say one, such as on_delete=models.PROTECT."
            )
        if self.one_to_one and not options.setdefault("unique", True):
            raise ConfigurationError("A OneToOneAttribute is unique: a ReferenceAttribute need not be.")
        super().__init__(verbose_name, **options | {"null": null})
        self.checked = checked
        self.field_options |= {
            "to": to,
            "on_delete": on_delete,
            "related_name": related_name,
            "db_constraint": False,
            "db_index": False,
        }

    @cached_property
    def target(self) -> Attribute:
        """The attribute that stores the other model's ``pk``."""
        field: Any = self.field.target_field
        if isinstance(field, fields.IdentityField):
            target: Attribute = UnicodeAttribute()
        elif isinstance(field, fields.DynamoField):
            target = field.attribute
        elif field.get_internal_type() in SQL_KEYS:
            target = SQL_KEYS[field.get_internal_type()]()
        else:
            raise ConfigurationError(
                f"{self.name} refers to {field.model._meta.label}, whose primary key is a {type(field).__name__}; "
                f"references can store {', '.join(sorted(SQL_KEYS))}."
            )
        return self.under_own_name(target)

    def origins(self) -> Iterator[tuple[Attribute, Path]]:
        """Yield the attributes that the other model's ``pk`` is made of; those of a model in SQL are none."""
        model = self.field.remote_field.model
        attributes = () if isinstance(model, str) else getattr(model, "_identity", ())
        yield from ((getattr(model, name), ()) for name in attributes)

    def __set__(self, instance: object, value: object) -> None:
        if self.field.is_cached(instance):
            cached = self.field.get_cached_value(instance)
            if cached is None or cached.pk != value:
                self.field.delete_cached_value(instance)
        instance.__dict__[self.name] = value

    @property
    def expects(self) -> str:  # type: ignore[override]  # the class's, elsewhere
        """What it takes, for messages."""
        return f"a {self.field.related_model._meta.label} or its pk"


class OneToOneAttribute(ReferenceAttribute[M, Nullable]):
    """A reference to another object that no second object has: ``place = OneToOneAttribute(Place)``.

    It is unique, and a claim holds it so, unless it is the whole primary key. The other side is one object:
    ``place.restaurant``, by two GetItems, or by one where the place is the whole primary key; without one it is
    ``RelatedObjectDoesNotExist``, as in Django.
    """

    field_class = OneToOneField
    one_to_one = True
