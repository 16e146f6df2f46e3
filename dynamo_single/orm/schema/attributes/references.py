"""The attribute that points at another object."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self, TypeVar

from django.conf import settings
from django.db import models, router
from django.db.models import Q
from django.utils.functional import Promise

from dynamo_single.backend.router import uses_engine
from dynamo_single.exceptions import ConfigurationError, NotSupported
from dynamo_single.lazy_modules import LazyModule
from dynamo_single.orm.schema.attributes.base import Attribute, Label, Null, T
from dynamo_single.orm.schema.attributes.scalars import (
    IntegerAttribute,
    UnicodeAttribute,
    UUIDAttribute,
    VersionAttribute,
)
from dynamo_single.orm.schema.fields import base
from dynamo_single.orm.schema.fields.simple import OneToOneField
from dynamo_single.orm.schema.keys.secret_values import Path, lookups_in
from dynamo_single.orm.schema.keys.values import gettext_noop, shown
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.table import names

if TYPE_CHECKING:
    from dynamo_single.backend import computed_models
else:
    computed_models = LazyModule("dynamo_single.backend.computed_models")

if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault  # Python's own since 3.13

    #: A model named by a string is ``Any``, unless you pass its type: ``ReferenceAttribute["Person"]("Person")``.
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


#: The SQL table of ContentType, whose objects are computed in a project without SQL.
CONTENT_TYPES: Final = "django_content_type"

#: The effects of a deletion on referring objects, with Django's names.
ON_DELETE: Final = (models.CASCADE, models.PROTECT, models.SET_NULL, models.SET_DEFAULT, models.DO_NOTHING)


def _given(to: Any, label: object, related_name: object, null: object, options: Mapping[str, object]) -> dict[str, str]:
    """Return the arguments of a declaration as source text, by their names."""
    named = {"verbose_name": label, "related_name": related_name, "null": null or None, **options}
    given = {name: value for name, value in named.items() if value is not None}
    plain = (str, int, float)
    texts = {name: repr(value) if isinstance(value, plain) else "..." for name, value in given.items()}
    return {"to": repr(to) if isinstance(to, str) else to.__name__, **texts}


class DelegatingAttribute(Attribute[T, Null]):
    """Prepares, stores and reads values as its ``target`` does, an attribute of this one's name."""

    #: The attribute that it represents; a subclass finds it on first access.
    target: Any
    #: The cached values, which a copy of the attribute looks up again.
    looked_up: ClassVar[tuple[str, ...]] = ("target",)

    def copy(self) -> Self:
        """Return a copy that looks up its target again."""
        duplicate = super().copy()
        for name in self.looked_up:
            duplicate.__dict__.pop(name, None)
        return duplicate

    def under_own_name(self, target: Attribute) -> Attribute:
        """Return a copy of the target, with this attribute's name and secrecy."""
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

    @property
    def holds_labels(self) -> bool:  # type: ignore[override]  # see attr_type
        """As the values of the target do."""
        return bool(self.target.holds_labels)

    def prepare(self, value: object) -> Any:
        """Prepare the value like the target."""
        return self.target.prepare(value)

    def operand(self, value: object) -> dict[str, object]:
        """Return a comparison value like the target."""
        found: dict[str, object] = self.target.operand(value)
        return found

    def encode(self, value: object) -> Any:
        """Encode the value like the target."""
        return self.target.encode(value)

    def decode(self, inner: object) -> Any:
        """Decode the value like the target."""
        return self.target.decode(inner)

    def to_text(self, value: object) -> str:
        """Return the reader of the target's value."""
        text: str = self.target.to_text(value)
        return text

    def from_text(self, text: str) -> Any:
        """Return the compiled reader of the target's value."""
        return self.target.from_text(text)


class RepeatedAttribute(DelegatingAttribute[T, Null]):
    """An attribute whose value also exists elsewhere: it rounds and compares like its ``target``."""

    @property
    def rounds(self) -> bool:  # type: ignore[override]  # see attr_type
        """As the target does."""
        return bool(self.target.rounds)

    def floor(self, value: object) -> object:
        """Round like the target."""
        return self.target.floor(value)

    def prepare(self, value: object) -> Any:
        """Return the target's description; a lazily translated string is allowed."""
        return super().prepare(str(value) if isinstance(value, Promise) else value)

    def lookup_value(self, value: object) -> object:
        """Return the target's result."""
        return self.target.lookup_value(value)


class ContentTypeId(int):
    """The ``id`` of a content type in a project without SQL, and the label of the model, from which it is computed."""

    label: str

    def __new__(cls, label: str) -> ContentTypeId:
        """Compute the ``id``; the model need not be installed."""
        made = super().__new__(cls, computed_models.identifier(label))
        made.label = label
        return made

    def __reduce__(self) -> tuple[type[ContentTypeId], tuple[str]]:
        return (ContentTypeId, (self.label,))


class ModelLabel(UnicodeAttribute[Null]):
    """The label of a model as text, which ``RenameModel`` replaces."""

    holds_labels = True


class ContentTypeAttribute(Attribute[int, Null]):
    """The ``id`` of a content type, stored as the label ``app_label.model``: how a reference to one is stored.

    Only for projects without SQL, in which the ``id`` is computed. A label of a model that is not installed is kept.
    """

    attr_type = "S"
    key_kind = "label"
    holds_labels = True
    expects = gettext_noop("a content type")
    only_equal = True
    field_class = base.IntegerField

    def clean(self, value: object) -> ContentTypeId:
        """Return the ``id`` with its label, of a content type, its ``id`` or its label."""
        if isinstance(value, ContentTypeId):
            return value
        if isinstance(value, str) and not value.isdecimal():
            if value.count(".") != 1:
                raise self.refuse(value)
            return ContentTypeId(value)
        from django.contrib.contenttypes.models import ContentType

        if not isinstance(value, ContentType):
            if not isinstance(value, str | int):
                raise self.refuse(value)
            try:
                value = ContentType.objects.get_for_id(int(value))
            except ContentType.DoesNotExist:
                raise self.refuse(value) from None
        return ContentTypeId(f"{value.app_label}.{value.model}")

    def encode(self, value: Any) -> str:
        """Return the label."""
        return str(value.label)

    def decode(self, inner: str) -> ContentTypeId:
        """Return the ``id`` of a stored label."""
        return ContentTypeId(inner)

    def to_text(self, value: object) -> str:
        """Return the label."""
        return self.clean(value).label


class ReferenceAttribute(DelegatingAttribute[M, Nullable]):
    """A reference to another object: ``company = ReferenceAttribute(Company)`` stores ``company_id``, its ``pk``.

    To forms, the admin and ``select`` widgets it is a ``ForeignKey``. ``related_name`` and ``limit_choices_to`` as in
    Django. ``on_delete`` sets the effect of deleting the other object: ``CASCADE``, ``PROTECT``, ``SET_NULL``,
    ``SET_DEFAULT`` or ``DO_NOTHING``. All except the last need a key that finds the referring objects: a Query for each
    such reference. The system check ``E035`` reports a reference without an ``on_delete``; its deletions depend on
    ``Children`` alone.

    With ``checked`` an object is created, or given another reference, only if the other object is there and not in the
    trash, which counts it: one transaction of two items, twice the units of each. Then ``on_delete`` holds exactly.
    """

    field_class: ClassVar[type[models.Field[Any, Any]]] = base.ReferenceField
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
        limit_choices_to: Any = None,
        null: Nullable = False,  # type: ignore[assignment]  # see Attribute
        **options: Any,
    ) -> None:
        second: Any = verbose_name
        if callable(second) and not isinstance(second, Promise):
            # Django's second argument, which would be a label here in silence.
            verbose_name, on_delete = None, second
        #: Whether the declaration sets ``on_delete``, and the replacement for E035 if it does not.
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
                "checked=True requires an on_delete that it can guarantee, such as on_delete=models.PROTECT."
            )
        if self.one_to_one and not options.setdefault("unique", True):
            raise ConfigurationError("A OneToOneAttribute is unique: a ReferenceAttribute need not be.")
        super().__init__(verbose_name, **options | {"null": null})
        self.checked = checked
        self.field_options |= {
            "to": to,
            "on_delete": on_delete,
            "related_name": related_name,
            "limit_choices_to": limit_choices_to,
            "db_constraint": False,
            "db_index": False,
        }

    @cached_property
    def target(self) -> Attribute:
        """The attribute that stores the other model's ``pk``."""
        field: Any = self.field.target_field
        if isinstance(field, base.IdentityField):
            target: Attribute = UnicodeAttribute()
        elif isinstance(attribute := getattr(field, "attribute", None), Attribute):
            target = attribute
        elif field.model._meta.db_table == CONTENT_TYPES and uses_engine(router.db_for_read(field.model)):
            target = ContentTypeAttribute()
        elif field.get_internal_type() in SQL_KEYS:
            target = SQL_KEYS[field.get_internal_type()]()
        else:
            raise ConfigurationError(
                f"{self.name} refers to {field.model._meta.label}, whose primary key is a {type(field).__name__}; "
                f"references can store {', '.join(sorted(SQL_KEYS))}."
            )
        return self.under_own_name(target)

    def origins(self) -> Iterator[tuple[Attribute, Path]]:
        """Yield the attributes of the other model's ``pk``; none for an SQL model."""
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

    It is unique, by a claim, unless it is the whole primary key. The other side is one object: ``place.restaurant``, by
    two GetItems, or by one if the place is the whole primary key; without one it raises ``RelatedObjectDoesNotExist``,
    as in Django.
    """

    field_class = OneToOneField
    one_to_one = True


# The attribute for an object's author, and the context that provides it.  The author always comes from the context,
# never from a value.

#: Returns the model and the ``pk`` of the acting user in this context; called only when an object is created. The model
#: is ``None`` if only the ``pk`` was given.
author: ContextVar[Callable[[], tuple[Any, Any]] | None] = ContextVar("author", default=None)


def current_author() -> tuple[Any, Any]:
    """Return the model, if it is known, and the ``pk`` of the acting user in this context; ``None`` without one."""
    who = author.get()
    return (None, None) if who is None else who()


class AuthorField(base.ReferenceField):
    """A reference to the user that is set by itself, once."""

    #: Who it is may have to be read.
    may_wait = True

    def _acting(self, model_instance: DynamoModel) -> Any:
        """Return the ``pk`` of the acting user; raise ``NotSupported`` for an object of another model than the
        author's."""
        model, pk = current_author()
        wanted: Any = self.remote_field.model._meta.concrete_model
        if pk is not None and model is not None and not issubclass(model._meta.concrete_model, wanted):
            raise NotSupported(
                f"{model_instance._meta.label}.{self.name} refers to {wanted._meta.label}, but the author in this "
                f"context is of {model._meta.label}. Create the object inside acting_as() with an object of "
                f"{wanted._meta.label}, or with None."
            )
        return self.attribute.prepare(pk)

    def pre_save(self, model_instance: Any, add: bool) -> Any:
        """Return the context's user for a new object; raise ``NotSupported`` if another was set manually."""
        given = model_instance.__dict__.get(self.attname)
        if not add:
            return given
        value = self._acting(model_instance)
        # A copy of a stored object, made by ``pk = None``, has its author still.
        read = (model_instance._stored or {}).get(self.attribute.attr_name)
        by_hand = given is not None and (read is None or self.attribute.from_attribute_value(read) != given)
        if by_hand and given != value:
            raise NotSupported(
                f"{model_instance._meta.label}.{self.name} cannot be set to {shown(given)}: it is the user that makes "
                "the object. Leave it out, or make the object within acting_as(user)."
            )
        setattr(model_instance, self.attname, value)
        return value


class AuthorAttribute(ReferenceAttribute[Any, Literal[True]]):
    """The author of an object, by CurrentUserMiddleware or ``acting_as()``; set once, on every creation path.

    It is one of ``AUTH_USER_MODEL``, unless ``to`` names another model, which need not be in DynamoDB.
    """

    field_class = AuthorField
    settled = True

    def __init__(self, to: Any = None, verbose_name: Label | None = None, *, attr_name: str = names.CREATED_BY) -> None:
        super().__init__(
            settings.AUTH_USER_MODEL if to is None else to,
            verbose_name,
            related_name="+",
            on_delete=models.DO_NOTHING,
            null=True,
            blank=True,
            editable=False,
            attr_name=attr_name,
        )


# Attributes that depend on other objects: a value copied along a reference, and the number of children.  Every write
# path maintains both; they are never set.


class CopiedAttribute(RepeatedAttribute[Any]):
    """An attribute of the object that a reference leads to: ``username = CopiedAttribute("user", "username")``.

    It has the source's type and can be used in the keys of indexes. Creating an object, or changing its reference,
    reads the source by one GetItem; the transaction is conditional on the source's value. When the source's value
    changes, a key finds its copies. They are updated in the same transaction, or in batches if they do not fit.

    A change that more than ``max_holders`` objects would have to follow is refused (``TooManyHolders``), or with
    ``beyond="job"`` written by itself with a mark: the copies follow when ``manage.py dynamo_rebuild`` is run.
    """

    computed = True
    field_class = base.CopiedField
    looked_up = ("reference_field", "source", "target")

    def __init__(
        self,
        reference: str,
        attribute: str,
        verbose_name: Label | None = None,
        *,
        help_text: Label = "",
        attr_name: str | None = None,
        max_holders: int | None = None,
        beyond: Literal["refuse", "job"] = "refuse",
        secret: bool | None = None,
    ) -> None:
        named: dict[str, Any] = {"help_text": help_text, "attr_name": attr_name, "secret": secret}
        super().__init__(verbose_name, null=True, blank=True, editable=False, **named)
        if max_holders is not None and (type(max_holders) is not int or max_holders < 1):
            raise ConfigurationError(f"max_holders={max_holders!r} must be an integer of at least 1.")
        if beyond not in ("refuse", "job"):
            raise ConfigurationError(f'beyond={beyond!r}: it can be "refuse", or "job" for manage.py dynamo_rebuild.')
        if beyond == "job" and max_holders is None:
            raise ConfigurationError(
                'beyond="job" requires max_holders, the number of objects beyond which it applies.'
            )
        self.max_holders = max_holders
        self.beyond = beyond
        self.reference = reference
        self.attribute = attribute

    @property
    def origin(self) -> str:  # type: ignore[override]  # a plain attribute elsewhere
        """What it is computed of, for messages."""
        return f"{self.reference}.{self.attribute}"

    @cached_property
    def reference_field(self) -> Any:
        """The reference to the source, or ``None`` if the model has none of that name."""
        found = (
            field
            for field in self.field.model._meta.concrete_fields
            if self.reference in (field.name, field.attname)
            and isinstance(getattr(field, "attribute", None), ReferenceAttribute)
        )
        return next(found, None)

    def origins(self) -> Iterator[tuple[Attribute, Path]]:
        """Yield the attribute that is copied; nothing if the declaration is wrong, which a check reports."""
        try:
            yield self.source, ()
        except ConfigurationError:
            return

    @property
    def source_model(self) -> Any:
        """The model that the value is copied from."""
        return self.reference_field.related_model._meta.concrete_model

    @cached_property
    def source(self) -> Attribute:
        """The copied attribute; raises ``ConfigurationError`` for an unsupported one."""
        label = self.field.model._meta.label
        if self.reference_field is None:
            raise ConfigurationError(
                f"{label}: {self.name} is copied along {self.reference!r}, which is not a reference of the model."
            )
        model = self.reference_field.related_model
        known = {
            name: field.attribute
            for field in (() if isinstance(model, str) else model._meta.concrete_fields)
            if isinstance(getattr(field, "attribute", None), Attribute)
            for name in (field.name, field.attname)
        }
        found: Attribute | None = known.get(self.attribute)
        if found is None or isinstance(found, CopiedAttribute | CounterAttribute):
            why = "is kept by the app itself" if found is not None else "is not an attribute of a model in DynamoDB"
            name = model if isinstance(model, str) else model._meta.label
            raise ConfigurationError(
                f"{label}: {self.name} cannot copy {name}.{self.attribute}, which {why}. Copy an attribute that is "
                "stored where it is set."
            )
        if found.field_options.get("auto_now") or isinstance(found, VersionAttribute):
            raise ConfigurationError(
                f"{label}: {self.name} cannot copy {model._meta.label}.{self.attribute}, which changes with every "
                "write."
            )
        return found

    @cached_property
    def target(self) -> Attribute:
        """The source's attribute under this one's name."""
        return self.under_own_name(self.source)

    def __set__(self, instance: object, value: object) -> None:
        if value == instance.__dict__.get(self.name):
            return  # Django's validation sets every value that it has looked at
        raise NotSupported(
            f"{self.name} is copied from {self.origin} and cannot be set: set {self.reference}, or change the "
            f"{self.attribute} of the other object."
        )

    @property
    def expects(self) -> str:  # type: ignore[override]  # see attr_type
        """The values that the source accepts."""
        expects: str = self.target.expects
        return expects


class CounterAttribute(IntegerAttribute):
    """The number of live children: ``member_count = CounterAttribute("members")`` with ``members = Children()``.

    With ``condition=Q(status="open")`` it counts only the children that meet it, by their own attributes. It changes
    only in the transaction that creates, deletes, restores or moves a child, or changes an attribute of the condition;
    an object in memory shows the number as it was read. Keys cannot contain it.
    """

    computed = True
    key_kind = None

    def __init__(
        self,
        children: str,
        verbose_name: Label | None = None,
        *,
        condition: Q | None = None,
        help_text: Label = "",
        attr_name: str | None = None,
        secret: bool | None = None,
    ) -> None:
        named: dict[str, Any] = {"help_text": help_text, "attr_name": attr_name, "secret": secret}
        super().__init__(verbose_name, default=0, blank=True, editable=False, **named)
        self.children = children
        self.condition = condition

    @property
    def origin(self) -> str:  # type: ignore[override]  # a plain attribute elsewhere
        """What it is computed of, for messages."""
        return self.children

    def origins(self) -> Iterator[tuple[Attribute, Path]]:
        """Yield the children's attributes that the condition names, since the number depends on their values."""
        try:
            model = getattr(self.field.model, self.children).model
        except (AttributeError, ConfigurationError):
            return  # which the layout reports
        for lookup in lookups_in(self.condition):
            name, *steps = lookup.split("__")
            attribute = getattr(model, name, None)
            if isinstance(attribute, Attribute):
                yield attribute, tuple(steps)

    def make_field(self) -> Any:
        """A field that fixtures leave out: loading the children counts them."""
        field: Any = super().make_field()
        field.serialize = False
        return field

    def __set__(self, instance: object, value: object) -> None:
        if value == instance.__dict__.get(self.name):
            return  # see CopiedAttribute
        raise NotSupported(
            f"{self.name} counts {self.children} and cannot be set: it changes with each of them that is created or "
            "deleted."
        )
