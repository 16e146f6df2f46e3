"""Replace ``django.db.models`` for upstream's models with our attributes, models and managers.

``ATTRIBUTES`` has one line for each kind of field. Names that are not listed here are Django's own. If a model cannot
be declared, each use of it raises the error of its declaration.
"""

from __future__ import annotations

import threading
from typing import Any

from django.db import models as django_models
from django.db.models.fields import NOT_PROVIDED

from dynamo_single import models
from dynamo_single.exceptions import ConfigurationError
from dynamo_single.orm.model.metaclass import ModelMeta
from dynamo_single.orm.schema.attributes.references import ON_DELETE
from dynamo_single.orm.schema.fields import base as fields_base
from tests.upstream import keys


class NumberField(fields_base.IntegerField):
    """An identifier that is counted up when an object is saved for the first time, as an SQL database does."""

    lock = threading.Lock()

    def pre_save(self, model_instance: Any, add: bool) -> Any:
        """Return the object's number, or for a new object the highest known number plus one."""
        number = getattr(model_instance, self.attname)
        with self.lock:
            last = getattr(self, "last", 0)
            if number is None:
                number = last + 1
                setattr(model_instance, self.attname, number)
            if isinstance(number, int):
                self.last = max(last, number)
        return number


class AutoAttribute(models.IntegerAttribute):
    """Django's ``AutoField``: a number that the object gets when it is created."""

    field_class = NumberField

    def __init__(self, verbose_name: Any = None, **options: Any) -> None:
        super().__init__(verbose_name or "ID", **{"blank": True, "editable": False, **options})


#: ``{field: (attribute, options of the attribute)}``. A kind of field that is not here is refused.
ATTRIBUTES: dict[str, tuple[Any, dict[str, Any]]] = {
    "AutoField": (AutoAttribute, {}),
    "BigAutoField": (AutoAttribute, {}),
    "SmallAutoField": (AutoAttribute, {}),
    "BigIntegerField": (models.IntegerAttribute, {}),
    "BinaryField": (models.BinaryAttribute, {}),
    "BooleanField": (models.BooleanAttribute, {}),
    "CharField": (models.UnicodeAttribute, {}),
    "DateField": (models.DateAttribute, {}),
    "DateTimeField": (models.TimestampAttribute, {}),
    "DecimalField": (models.DecimalAttribute, {}),
    "DurationField": (models.DurationAttribute, {}),
    "EmailField": (models.EmailAttribute, {"max_length": 254}),
    "FileField": (models.FileAttribute, {}),
    "FilePathField": (models.UnicodeAttribute, {}),
    "FloatField": (models.NumberAttribute, {}),
    "GenericIPAddressField": (models.IPAddressAttribute, {}),
    "ImageField": (models.ImageAttribute, {}),
    "IntegerField": (models.IntegerAttribute, {}),
    "JSONField": (models.JSONAttribute, {}),
    "PositiveBigIntegerField": (models.IntegerAttribute, {}),
    "PositiveIntegerField": (models.IntegerAttribute, {}),
    "PositiveSmallIntegerField": (models.IntegerAttribute, {}),
    "SlugField": (models.SlugAttribute, {}),
    "SmallIntegerField": (models.IntegerAttribute, {}),
    "TextField": (models.UnicodeAttribute, {"multiline": True}),
    "TimeField": (models.TimeAttribute, {}),
    "URLField": (models.URLAttribute, {}),
    "UUIDField": (models.UUIDAttribute, {}),
}
#: References: they take the other model first, and ``on_delete``.
REFERENCES: dict[str, tuple[Any, dict[str, Any]]] = {
    "ForeignKey": (models.ReferenceAttribute, {}),
    "OneToOneField": (models.OneToOneAttribute, {}),
}
#: Options of fields that no attribute has. Most of them control how an SQL database stores the field.
LEFT_OUT = {
    *("db_collation", "db_column", "db_comment", "db_constraint", "db_index", "db_tablespace"),
    *("parent_link", "related_query_name", "symmetrical", "to_field"),
    *("unique_for_date", "unique_for_month", "unique_for_year"),
}
#: The options of many-to-many fields that the app's relations have.
KEPT_OF_RELATIONS = {"verbose_name", "help_text", "blank", "limit_choices_to", "through", "through_fields"}


class Refusing(type):
    """The class of a model that cannot be declared."""

    error: Exception

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise cls.error

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        raise cls.error


def refused(name: str, error: Exception, namespace: dict[str, Any]) -> Any:
    """Return a class that raises the error on each use, for a model that cannot be declared."""
    found = Refusing(name, (), {"error": error})
    if (cell := namespace.get("__classcell__")) is not None:
        # Python compares what a method's super() would use with the class that the statement made.
        cell.cell_contents = found
    return found


class Unsupported:
    """A field that no attribute can take the place of; a model that has it is refused."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def contribute_to_class(self, cls: Any, name: str) -> None:
        """Refuse the model."""
        raise ConfigurationError(f"{cls.__name__}.{name}: {self.reason}")


def _made(attribute: Any, first: Any, options: dict[str, Any]) -> Any:
    """An attribute with a field's options."""
    options = {name: value for name, value in options.items() if name not in LEFT_OUT}
    options.setdefault("blank", False)
    if not hasattr(options.get("db_default"), "resolve_expression") and "db_default" in options:
        options["default"] = options.pop("db_default")
    if options.get("default") is NOT_PROVIDED:
        del options["default"]
    primary_key = options.pop("primary_key", False)
    try:
        made = attribute(first, **options)
    except (TypeError, ConfigurationError) as error:
        return Unsupported(str(error))
    made.is_primary_key = primary_key
    return made


class Field:
    """A replacement for a field's class: a call returns an attribute.

    A custom field of upstream's that derives from it returns the same attribute, without upstream's changes.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __call__(self, verbose_name: Any = None, name: Any = None, **options: Any) -> Any:
        if self.kind not in ATTRIBUTES:
            return Unsupported(f"there is no attribute for a {self.kind}.")
        attribute, fixed = ATTRIBUTES[self.kind]
        return _made(attribute, verbose_name, {**fixed, **options})

    def __mro_entries__(self, bases: Any) -> tuple[type, ...]:
        return (type(self.kind, (Own,), {"makes": self}),)


class Own:
    """A field of upstream's own."""

    makes: Field

    def __new__(cls, *args: Any, **options: Any) -> Any:
        """The attribute of the field that it derives from."""
        return cls.makes(*args, **options)

    @classmethod
    def register_lookup(cls, lookup: Any, lookup_name: str | None = None) -> Any:
        """Ignore the lookup, because custom lookups are SQL."""
        return lookup


class Reference(Field):
    """The same for a reference, which takes the other model first, and ``on_delete``."""

    def __call__(self, to: Any, on_delete: Any = None, *args: Any, **options: Any) -> Any:
        if isinstance(to, Refusing):
            return Unsupported(str(to.error))
        attribute, fixed = REFERENCES[self.kind]
        kept = on_delete if on_delete in ON_DELETE else django_models.DO_NOTHING
        return _made(attribute, to, {**fixed, **options, "on_delete": kept})


class ManyToManyField:
    """A relation, until the class that declares it is ours: ``ours()`` is the app's own.

    A relation of a model to itself goes one way, because the app has no symmetrical ones.
    """

    one_to_one = many_to_one = one_to_many = auto_created = primary_key = False
    remote_field = None

    def __init__(self, to: Any, related_name: str | None = None, **options: Any) -> None:
        self.to = to
        self.related_name = related_name
        self.options = options

    def ours(self, *, again: bool) -> Any:
        """The relation as a project ports it; ``again`` hides the other side, which the parent's relation has."""
        for model in (self.to, self.options.get("through")):
            if isinstance(model, Refusing):
                return Unsupported(str(model.error))
        related_name = "+" if again else self.related_name
        if self.to == "self" and self.options.get("symmetrical", True):
            related_name = "+"
        kept = {name: value for name, value in self.options.items() if name in KEPT_OF_RELATIONS}
        return models.ManyToMany(self.to, related_name=related_name, **kept)

    def contribute_to_class(self, cls: Any, name: str) -> None:
        """Nothing: upstream puts groups and permissions into classes of users, and the app's users have their own."""
        self.name = name


class Converting(ModelMeta):
    """Declares a model of upstream's as one of ours, or refuses it.

    One item cannot be two models, so that a child of a concrete model becomes a model of its own with the same
    attributes.
    """

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **kwargs: Any) -> Any:
        """The model, with the keys of the rule."""
        for base in bases:
            if isinstance(base, Refusing):
                return refused(name, base.error, namespace)
        keys.convert_meta(name, namespace)
        declared = dict(namespace)
        _take_relations(name, namespace)
        try:
            if any(isinstance(base, Converting) for base in bases):
                if not getattr(namespace.get("Meta"), "proxy", False):
                    bases = tuple(_abstract(mcs, base) for base in bases)
                keys.declare(name, bases, namespace, AutoAttribute)
            made: Any = super().__new__(mcs, name, bases, namespace, **kwargs)
        except ConfigurationError as error:
            return refused(name, error, declared)
        made._declared = (bases, declared)
        return made

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **kwargs: Any) -> None:
        super().__init__(name, cls.__bases__, namespace, **kwargs)


def _take_relations(model: str, namespace: dict[str, Any]) -> None:
    """Put the app's relations in the places of Django's, and remember the models of their edges for their keys."""
    for name, value in namespace.items():
        if isinstance(value, ManyToManyField):
            if isinstance(through := value.options.get("through"), str):
                to = model if value.to == "self" else value.to
                keys.EDGES[through.rpartition(".")[2]] = (model, to, value.options.get("through_fields"))
            namespace[name] = value.ours(again=isinstance(value, AgainDeclared))


def _abstract(mcs: Any, base: Any) -> Any:
    """Return the base as an abstract model; declare a concrete model a second time, with copies of its attributes."""
    if not isinstance(base, Converting) or base._meta.abstract:
        return base
    if base._meta.proxy:
        return _abstract(mcs, base._meta.concrete_model)
    bases, declared = base._declared
    copied = {name: _copied(value) for name, value in declared.items() if name not in ("__classcell__", "Keys")}
    meta: Any = declared.get("Meta", object)
    kept = {name: value for name, value in vars(meta).items() if name in ("ordering", "get_latest_by", "app_label")}
    copied["Meta"] = type("Meta", (), {**kept, "abstract": True})
    return mcs(f"{base.__name__}Fields", bases, copied)


class AgainDeclared(ManyToManyField):
    """A relation that a child has from a concrete parent."""


def _copied(value: Any) -> Any:
    if isinstance(value, ManyToManyField):
        return AgainDeclared(value.to, **value.options)
    if not isinstance(value, models.Attribute):
        return value
    copied = value.copy()
    copied.field_options = dict(value.field_options)
    if "related_name" in copied.field_options:
        copied.field_options["related_name"] = "+"
    return copied


class QuerySet(models.QuerySet):
    """Our queryset under Django's name."""


class Manager(models.Manager):
    """Our manager; its querysets may work in memory, because the tests are about Django's semantics."""

    def get_queryset(self) -> Any:
        """Every object."""
        return super().get_queryset().allow_in_memory()


class Model(models.Model, metaclass=Converting):
    """The base class of upstream's models."""

    objects = Manager()

    class Meta:
        abstract = True

    def _save_table(self, *args: Any, **options: Any) -> Any:
        # Fixtures save objects raw, so that no field's pre_save() runs.
        if isinstance(self._meta.pk, NumberField):
            self._meta.pk.pre_save(self, True)
        return super()._save_table(*args, **options)


def __getattr__(name: str) -> Any:
    if name in REFERENCES:
        return Reference(name)
    found = getattr(django_models, name)
    return Field(name) if isinstance(found, type) and issubclass(found, django_models.Field) else found
