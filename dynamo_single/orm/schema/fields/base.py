"""Django fields for attributes that live in DynamoDB.

A field here describes, validates and makes form fields exactly as Django's does; storing a value is the attribute's
work. It must not know requests or querysets.

Django (privately) puts ``descriptor_class`` on the model: here the attribute, so that ``Order.qty > 0`` is a condition.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import partial
from typing import Any, Final

from django.core.checks import CheckMessage
from django.core.exceptions import ValidationError
from django.db import connections, models, router
from django.db.models.query_utils import DeferredAttribute
from django.utils.functional import cached_property
from django.utils.translation import gettext_lazy as _

from dynamo_single import clock
from dynamo_single.backend.router import uses_engine
from dynamo_single.exceptions import ConfigurationError, InvalidValue, NotSupported
from dynamo_single.orm.schema.fields.documents import (
    AttributeType,
    BinaryFormField,
    Canonical,
    FixtureDecoder,
    Size,
    from_fixture,
    to_fixture,
)
from dynamo_single.orm.schema.fields.fetching import ForwardDescriptor, is_known
from dynamo_single.orm.schema.fields.forms import (
    DocumentFormField,
    HidingField,
    LimitedChoiceField,
    NumberFormField,
    SetFormField,
    hide_errors,
    hide_value_errors,
    shown_once_stored,
    whole_or_float,
)
from dynamo_single.orm.schema.fields.references import ReverseDescriptor
from dynamo_single.orm.schema.keys.secret_values import MASK
from dynamo_single.orm.schema.keys.template import join_identity, split_identity
from dynamo_single.orm.schema.types import ModelField, StoredAttribute

# SQL models that refer to ours: a column with the ``pk``, and relations in Django's registry.

#: The suffix of a model's name in place of an SQL table's: a database names it if SQL uses the table.
IN_DYNAMODB: Final = " (in DynamoDB)"
#: How many characters of a ``pk`` a column holds: as many as every database of Django's can have in an index.
LONGEST_PK: Final = 255
#: Django's own log refers to the user, and is empty if users are in DynamoDB: the log is there too (E017).
LOG: Final = "admin.LogEntry"
#: The engine of Django's that stands for no database at all.
NO_DATABASE: Final = "django.db.backends.dummy"
#: Whose ``pk`` is text, in fields of Django's.
_TEXTS: Final = (models.CharField, models.TextField)


def is_in_dynamodb(model: object) -> bool:
    """Return whether a model, or its form in a migration's state, is stored in DynamoDB."""
    return isinstance(model, type) and issubclass(model, models.Model) and model._meta.db_table.endswith(IN_DYNAMODB)


def has_sql() -> bool:
    """Return whether any database of the project stores rows."""
    return any(map(_holds_rows, connections.settings))


def _holds_rows(alias: str) -> bool:
    return not uses_engine(alias) and connections.settings[alias]["ENGINE"] != NO_DATABASE


def relations_from_sql(model: Any) -> list[Any]:
    """The relations to a model of ours of SQL models that have rows."""
    return [
        related
        for related in model._meta.get_fields(include_hidden=True)
        if related.auto_created
        and not related.concrete
        and (related.one_to_one or related.one_to_many)
        and not is_in_dynamodb(related.related_model)
        and related.related_model._meta.label != LOG
        and _holds_rows(router.db_for_write(related.related_model))
    ]


def column_of(field: Any, **options: Any) -> ModelField | None:
    """Return Django's field for the column, or ``None`` if no field returns the value unchanged.

    Integers get a column of 64 bits, strings and several variables one of 255 characters: a database rejects larger
    values.
    """
    if field.is_relation:
        return column_of(field.target_field, **options)
    if isinstance(field, models.UUIDField):
        return models.UUIDField(**options)
    if isinstance(field, models.IntegerField):
        return models.BigIntegerField(**options)
    if isinstance(field, _TEXTS):
        return models.CharField(max_length=LONGEST_PK, **options)
    return None


class DynamoField(HidingField):
    """The base of all fields here: its attribute, and the model's primary key instead of ``id``."""

    attribute: StoredAttribute

    def descriptor_class(self, field: ModelField) -> object:  # type: ignore[override]  # Django calls it; any callable will do
        """Return the attribute, under its Python name; fields in a migration's state have none."""
        if not hasattr(self, "attribute"):
            return DeferredAttribute(field)
        self.attribute.field = self
        self.attribute.__set_name__(self.model, self.attname)
        return self.attribute

    def __deepcopy__(self, memo: dict[int, object]) -> DynamoField:
        """A field with an attribute of its own: Django copies an abstract model's fields to each subclass."""
        duplicate = super().__deepcopy__(memo)
        if hasattr(self, "attribute"):
            duplicate.attribute = self.attribute.copy()
        return duplicate

    def contribute_to_class(self, cls: Any, name: str, private_only: bool = False, **kwargs: object) -> None:
        """Become the primary key if this is the key's only variable.

        Raise ``ConfigurationError`` for a model of SQL: the copy would take the attribute away from its own model.
        """
        if hasattr(self, "attribute") and not hasattr(cls, "get_attributes"):
            raise ConfigurationError(
                f"{cls._meta.label} is a model for an SQL database, and {name!r} is a copy of a field of a model in "
                "DynamoDB. Packages such as django-simple-history copy fields in this way. Do not use them with models "
                "in DynamoDB; the admin's log records changes."
            )
        if not self.primary_key and getattr(cls, "_identity", ()) == (self._attname_for(name),):
            self.primary_key = True
        super().contribute_to_class(cls, name, private_only=private_only, **kwargs)

    def _attname_for(self, name: str) -> str:
        return f"{name}_id" if self.is_relation else name

    def get_prep_value(self, value: object) -> object:
        """A lookup's value in the attribute's Python form; nothing is cut off that a comparison needs."""
        return self.attribute.lookup_value(value)

    def formfield(self, **kwargs: Any) -> Any:
        """Django's form field, which a form of a stored object only shows if the attribute is immutable."""
        return shown_once_stored(self, super().formfield(**kwargs))

    @hide_value_errors
    def validate(self, value: object, model_instance: Any) -> None:
        """Django's validation, and then what the attribute can store."""
        super().validate(value, model_instance)
        self.validate_stored(value)

    def validate_stored(self, value: object) -> None:
        """Report a value that the attribute refuses as a validation error."""
        try:
            self.attribute.check_storable(value)
        except InvalidValue as error:
            raise ValidationError(error.in_words(), code="invalid_value") from error

    def db_type(self, connection: object) -> None:
        """No column in any SQL database."""
        return

    def rel_db_type(self, connection: Any) -> str | None:
        """Return the column of an SQL model's foreign key to this. ``None`` without one, which E010 reports."""
        column = column_of(self)
        return None if column is None else column.db_type(connection)


for _lookup in (AttributeType, Size):
    DynamoField.register_lookup(_lookup)


class TextField(DynamoField, models.CharField):  # type: ignore[type-arg]  # not generic at run time
    """One line of text; without ``max_length`` only the item's 400 KB bound it."""

    def _check_max_length_attribute(self, **kwargs: object) -> list[object]:
        return [] if self.max_length is None else super()._check_max_length_attribute(**kwargs)  # type: ignore[misc]  # private to Django


class LongTextField(DynamoField, models.TextField):  # type: ignore[type-arg]  # not generic at run time
    """Text of several lines."""


class EmailField(DynamoField, models.EmailField):  # type: ignore[type-arg]  # not generic at run time
    """An e-mail address."""


for _text_field in (TextField, LongTextField, EmailField):
    _text_field.register_lookup(Canonical)


class UUIDField(DynamoField, models.UUIDField):  # type: ignore[type-arg]  # not generic at run time
    """A UUID."""


class IntegerField(DynamoField, models.IntegerField):  # type: ignore[type-arg]  # not generic at run time
    """A whole number of up to 38 digits."""

    @cached_property
    def validators(self) -> list[Any]:
        """Only the declared validators: there is no column whose range would bound the value."""
        return [*self.default_validators, *self._validators]  # type: ignore[attr-defined]  # private to Django


# Django's own fields round a float before a value that is not a number can be rejected.
for _bound in (models.lookups.GreaterThanOrEqual, models.lookups.LessThan):
    IntegerField.register_lookup(_bound)


class NumberField(DynamoField, models.FloatField):  # type: ignore[type-arg]  # not generic at run time
    """A number, whole or not."""

    @hide_value_errors
    def to_python(self, value: Any) -> Any:
        """A whole number stays one, of however many digits; Django's would make a ``float`` of it."""
        found = super().to_python(value)
        return None if found is None else whole_or_float(value, found)

    def formfield(self, **kwargs: Any) -> Any:
        """A number that is exact where it is whole."""
        return super().formfield(**{"form_class": NumberFormField, **kwargs})


class DecimalField(DynamoField, models.DecimalField):  # type: ignore[type-arg]  # not generic at run time
    """An exact decimal number; without ``max_digits`` DynamoDB's 38 digits bound it."""

    def check(self, **kwargs: object) -> list[CheckMessage]:
        """Django's checks, whose bounds are optional here."""
        bounded = self.max_digits is not None and self.decimal_places is not None
        return super().check(**kwargs) if bounded else models.Field.check(self, **kwargs)


class BooleanField(DynamoField, models.BooleanField):  # type: ignore[type-arg]  # not generic at run time
    """True or false."""


class TimestampField(DynamoField, models.DateTimeField):  # type: ignore[type-arg]  # not generic at run time
    """A datetime."""

    def pre_save(self, model_instance: models.Model, add: bool) -> Any:
        """Return the app's current time if ``auto_now`` or ``auto_now_add`` is set."""
        if not (self.auto_now or (self.auto_now_add and add)):
            return super().pre_save(model_instance, add)
        setattr(model_instance, self.attname, moment := clock.now())
        return moment

    def save_form_data(self, instance: models.Model, data: object) -> None:
        """Return a form's value; a form cannot distinguish the two hours that clocks show twice, so the stored one is
        kept."""
        before = getattr(instance, self.attname)
        if isinstance(data, datetime) and isinstance(before, datetime) and data == before.replace(microsecond=0):
            data = data.replace(fold=before.fold)
        super().save_form_data(instance, data)


class DateField(DynamoField, models.DateField):  # type: ignore[type-arg]  # not generic at run time
    """A calendar day."""

    def pre_save(self, model_instance: models.Model, add: bool) -> Any:
        """Return the value as ``TimestampField``; the day is the process's, as in Django."""
        if not (self.auto_now or (self.auto_now_add and add)):
            return super().pre_save(model_instance, add)
        setattr(model_instance, self.attname, day := clock.today())
        return day


class BinaryField(DynamoField, models.BinaryField):  # type: ignore[type-arg]  # not generic at run time
    """Bytes."""

    def formfield(self, **kwargs: Any) -> Any:
        """A file that is uploaded."""
        return super().formfield(**{"form_class": BinaryFormField, **kwargs})


class DocumentField(DynamoField, models.JSONField):
    """A map or a list (or, for a JSON attribute, any JSON value)."""

    def get_prep_value(self, value: object) -> object:
        """Return the value unchanged: a lookup by a path compares with a part of the document."""
        return value

    @hide_value_errors
    def validate(self, value: object, model_instance: Any) -> None:
        """Without JSONField's own, which knows neither decimals nor sets."""
        models.Field.validate(self, value, model_instance)
        self.validate_stored(value)

    def formfield(self, **kwargs: Any) -> Any:
        """A JSON text area."""
        given = {"form_class": DocumentFormField, **kwargs}
        if given["form_class"] is DocumentFormField:
            given = {"holds": {"M": dict, "L": list}.get(self.attribute.attr_type), **given}
        return shown_once_stored(self, hide_errors(self, models.Field.formfield(self, **given)))

    @hide_value_errors
    def to_python(self, value: object) -> object:
        """The document, also from a fixture."""
        return from_fixture(self.attribute, value)

    def value_to_string(self, obj: Any) -> Any:
        """The document itself for serializers, or in DynamoDB's own JSON if it holds what JSON does not."""
        return to_fixture(self.attribute, self.value_from_object(obj))

    @property
    def decoder(self) -> Any:
        """The decoder with which Django's XML loader reads the JSON text."""
        return partial(FixtureDecoder, attribute=self.attribute) if hasattr(self, "attribute") else None

    @decoder.setter
    def decoder(self, value: object) -> None:
        """Return no decoder: Django sets the one declared on a JSONField."""


# A list contains one member; JSONField's own lookup of this name compares documents.
DocumentField.register_lookup(models.lookups.Contains)


class SetField(DynamoField):
    """A set of strings, numbers or binaries; an empty set is not stored."""

    empty_strings_allowed = False
    description = _("Set")
    member: Any = str

    def get_internal_type(self) -> str:
        """A type of its own."""
        return "SetField"

    def formfield(self, **kwargs: object) -> Any:
        """Write one member per line."""
        return super().formfield(**{"form_class": SetFormField, "member": self.member, **kwargs})

    @hide_value_errors
    def to_python(self, value: object) -> Any:
        """A ``set``, from any iterable but text."""
        value = from_fixture(self.attribute, value)
        if value is None or isinstance(value, set):
            return value
        if isinstance(value, str | bytes) or not isinstance(value, Iterable):
            raise ValidationError(_("Enter a set."), code="invalid")
        return set(value)

    def value_to_string(self, obj: Any) -> Any:
        """A sorted list for serializers, or DynamoDB's own JSON if JSON has no place for the members."""
        value = self.value_from_object(obj)
        return None if value is None else to_fixture(self.attribute, value, sorted(value))


class ReferenceField(DynamoField, models.ForeignKey[Any, Any]):  # type: ignore[misc]  # see descriptor_class
    """A foreign key to forms and to the admin; the stored attribute is the other object's ``pk``."""

    related_accessor_class: Any = ReverseDescriptor
    forward_related_accessor_class: Any = ForwardDescriptor

    def formfield(self, **kwargs: Any) -> Any:
        """Return Django's form field; a filter applies ``limit_choices_to``."""
        limited = {"form_class": LimitedChoiceField} if self.remote_field.limit_choices_to else {}
        return super().formfield(**{**limited, **kwargs})

    def get_prep_value(self, value: object) -> object:
        """The other object's ``pk`` in its stored form."""
        return self.attribute.prepare(value)

    @hide_value_errors
    def to_python(self, value: object) -> Any:
        """Return the other object's ``pk``; the one of a content type has the label that keys contain."""
        found = super().to_python(value)
        return self.attribute.prepare(found) if self.attribute.key_kind == "label" else found

    @hide_value_errors
    def validate(self, value: object, model_instance: Any) -> None:
        """Run Django's validation, which reads the other object, unless a form has just read it."""
        if value is None or not is_known(model_instance, self, value):
            super().validate(value, model_instance)
            return
        models.Field.validate(self, value, model_instance)
        self.validate_stored(value)


class CopiedField(DynamoField):
    """A value of another object: validated, compared and shown as the field that it is copied from."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{**kwargs, "serialize": False})

    @property
    def source(self) -> Any:
        """The field that it is copied from."""
        attribute: Any = self.attribute
        return attribute.source.field

    def get_lookup(self, lookup_name: str) -> Any:
        """The source's lookups."""
        return self.source.get_lookup(lookup_name)

    def get_transform(self, lookup_name: str) -> Any:
        """The source's parts."""
        return self.source.get_transform(lookup_name)

    @hide_value_errors
    def to_python(self, value: object) -> Any:
        """Return the source's value."""
        return self.source.to_python(value)


class IdentityField(TextField):
    """``pk`` of a model whose primary key has several variables: their values, joined into one text.

    It is not stored: the values are. ``names`` are the attributes, in the key's order.
    """

    def __init__(self, names: tuple[str, ...] = (), **kwargs: Any) -> None:
        self.names = names
        super().__init__(**{"primary_key": True, "editable": False, "blank": True, "serialize": False, **kwargs})

    def descriptor_class(self, field: ModelField) -> IdentityDescriptor:  # type: ignore[override]  # see DynamoField
        """A descriptor of its own, since there is no attribute."""
        return IdentityDescriptor(self)

    def get_prep_value(self, value: object) -> object:
        """Text as it is; the planner splits it into the key's values."""
        return None if value is None else str(value)

    @cached_property
    def attributes(self) -> tuple[StoredAttribute, ...]:
        """The attributes that it is made of, in the key's order."""
        meta: Any = self.model._meta
        return tuple(meta.get_field(name).attribute for name in self.names)

    def validate_stored(self, value: object) -> None:
        """Nothing: the values that it is made of are validated themselves."""

    def join(self, instance: object) -> str | None:
        """The instance's identity, or ``None`` while a value is missing."""
        return self.joined(getattr(instance, name) for name in self.names)

    def joined(self, values: Iterable[object]) -> str | None:
        """The identity that the attributes' values make, in the key's order; ``None`` while one is missing."""
        given = list(values)
        if None in given or "" in given:
            return None
        pairs = zip(self.attributes, given, strict=True)
        return join_identity([attribute.to_text(value) for attribute, value in pairs])

    def split(self, text: str) -> dict[str, Any]:
        """Return each attribute's value; raise ``InvalidValue`` if the text is not an identity of this model."""
        found = {}
        try:
            texts = split_identity(text, len(self.names))
            for name, attribute, part in zip(self.names, self.attributes, texts, strict=True):
                found[name] = attribute.from_text(part)
                if (spelled := attribute.to_text(found[name])) != part:
                    # Two spellings of one identity would be two URLs, and two cache entries, of one object.
                    raise InvalidValue(f"{text!r} is not a pk: {part!r} is spelled {spelled!r}.")
        except InvalidValue:
            if not any(attribute.is_secret() for attribute in self.attributes):
                raise
            raise InvalidValue(f"{MASK} is not a pk of {self.model._meta.label}, or is spelled differently.") from None
        return found


class IdentityDescriptor:
    """Reads the identity out of the attributes, and takes it apart when it is set."""

    def __init__(self, field: IdentityField) -> None:
        self.field = field

    def __get__(self, instance: object, owner: object) -> Any:
        return self if instance is None else self.field.join(instance)

    def __set__(self, instance: object, value: object) -> None:
        if value is None:
            self._forget(instance)
            return
        for name, part in self.field.split(str(value)).items():
            setattr(instance, name, part)

    def _forget(self, instance: object) -> None:
        """Reset generated values: ``pk = None`` is Django's way to copy an object."""
        meta: Any = self.field.model._meta
        made = [name for name in self.field.names if meta.get_field(name).has_default()]
        if not made:
            raise NotSupported(
                f"{meta.label}.pk cannot be set to None: it is made of {', '.join(self.field.names)}. Set those, and "
                "_state.adding = True for a copy, or make a new object."
            )
        for name in made:
            setattr(instance, name, None)
