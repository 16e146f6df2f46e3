"""The metaclass that makes one class a PynamoDB model and a Django model at once.

Django's ``ModelBase.__new__`` really runs, with a ``Meta`` that holds Django's options only; then PynamoDB's
``MetaModel.__init__`` collects the attributes. ``docs/private-names.md`` lists what is private to the two
libraries here and elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from django.apps import apps
from django.core import checks
from django.db.models.base import ModelBase
from django.db.models.options import DEFAULT_NAMES
from django.utils.translation import gettext_lazy as _
from pynamodb.attributes import Attribute as PynamoDBAttribute
from pynamodb.indexes import Index
from pynamodb.models import MetaModel

from dynamo_single.exceptions import ConfigurationError, ObjectMissing, SeveralObjects
from dynamo_single.lazy_modules import LazyModule
from dynamo_single.orm.query.manager import BaseManager, Manager
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.attributes import Attribute, IdAttribute, TTLAttribute
from dynamo_single.orm.schema.bindings import current
from dynamo_single.orm.schema.fields.base import IN_DYNAMODB, IdentityField
from dynamo_single.orm.schema.keys.template import Key, Template, document_path_error, refusal
from dynamo_single.orm.schema.types import DynamoModel, Options
from dynamo_single.orm.schema.upgrades import FormerOptions
from dynamo_single.table.table import get_table

if TYPE_CHECKING:
    from dynamo_single.orm.items import unique_rules
    from dynamo_single.orm.schema.layout import IndexCondition
    from dynamo_single.orm.where import declared_conditions
else:
    declared_conditions = LazyModule("dynamo_single.orm.where.declared_conditions")
    unique_rules = LazyModule("dynamo_single.orm.items.unique_rules")

# E021: this app is used but not installed, so its checks, commands and router are missing.  The app's startup does not
# run, so it cannot report this; the first use registers this check.

NAME = "dynamo_single"


def ask_for_app() -> None:
    """Register the check that the app is installed, for a model that is declared while apps load."""
    if apps.apps_ready and not apps.is_installed(NAME):
        checks.register(check_installed, checks.Tags.models)


def check_installed(app_configs: object = None, **kwargs: object) -> list[checks.CheckMessage]:
    """E021, unless the app is installed."""
    if apps.is_installed(NAME):
        return []
    return [
        checks.Error(
            f"INSTALLED_APPS does not contain {NAME!r}, but the project uses models of {NAME}.models. Without the app, "
            "no check covers their keys, and there is no command dynamo_setup.",
            hint=f"Add {NAME!r} to INSTALLED_APPS.",
            id="dynamo_single.E021",
        )
    ]


M = TypeVar("M", bound=DynamoModel)

#: The attributes that PynamoDB's metaclass collects.
_COLLECTED = (PynamoDBAttribute, Index)
#: The options of ``class Meta`` that are this app's own.
OWN_OPTIONS = {"id_prefix", "item_type", "purge_after", "shared", "table", "trash_index"}
#: Options of an earlier release, which E023 reports.
FORMER_OPTIONS = {"schema_version", "upgrades"}
#: Django's options that this app decides.
DECIDED = {
    "managed": "the table is set up by manage.py dynamo_setup",
    "auto_created": "Django means the tables behind many-to-many fields by it",
    "db_table": "the table's name is in settings.DYNAMO_SINGLE",
    "base_manager_name": "relations read through a manager that hides no object",
}
#: Django's options that only an SQL database supports, and the alternatives.
SQL_ONLY = {
    "indexes": (
        'an index is declared in class Keys: by_name = models.IndexKey("gs1", ...), which names a value inside a '
        "document by an ExtractedAttribute"
    ),
    "order_with_respect_to": "keep the place in an attribute, and name it in a sort key",
    "db_table_comment": "all models share one table",
    "db_tablespace": "all models share one table",
    "required_db_features": "leave it out",
    "required_db_vendor": "leave it out",
    "select_on_save": "leave it out: save() never reads first",
}
#: The permissions of a model with soft delete in addition to Django's, unless its ``Meta`` sets them.
TRASH_PERMISSIONS = ("restore", "hard_delete")
#: The manager that every model has for relations. A name of its own, since a project may replace any other.
BASE_MANAGER = "_unfiltered"


class SettingsMeta(type):
    """``Model.Meta`` as PynamoDB reads it: every value comes from the settings on access."""

    _table_alias = "default"

    @property
    def table_name(cls) -> str:
        """The table's name."""
        return get_table(cls._table_alias).name

    @property
    def region(cls) -> str:
        """The AWS region."""
        return get_table(cls._table_alias).settings.region

    @property
    def host(cls) -> str | None:
        """The endpoint, if it is not AWS's own."""
        return get_table(cls._table_alias).settings.endpoint_url

    @property
    def max_retry_attempts(cls) -> int:
        """How often PynamoDB's batch writer sends unprocessed items again."""
        return get_table(cls._table_alias).settings.max_attempts


def _find_from_db(cls: Any) -> None:
    """Record whether a model and those derived from it have a ``from_db()`` of their own, and forget their readers."""
    root: Any = [base for base in cls.__mro__ if isinstance(base, ModelMeta)][-1]
    cls._has_from_db = getattr(cls.from_db, "__func__", None) is not root.from_db.__func__
    binding = current().bindings.get(cls)
    if binding is not None:
        binding.facts.clear()
    for each in cls.__subclasses__():
        _find_from_db(each)


class ModelMeta(MetaModel, ModelBase):
    """The metaclass of every model."""

    #: The names that PynamoDB collects, and a marker during the collection.
    _collected: list[str]
    _is_collecting: bool

    if TYPE_CHECKING:
        # The manager of a model that declares none: a declared one may then be of any class, as in django-stubs.
        def __getattr__(cls: type[M], name: Literal["objects"]) -> Manager[M]: ...  # type: ignore[misc]  # of models only

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **kwargs: Any) -> Any:
        """Make the class as Django does."""
        parents = [base for base in bases if isinstance(base, ModelMeta)]
        declared = namespace.get("Meta")
        _check_options(name, declared)
        meta: Any = _django_meta(declared, parents, name)
        namespace["Meta"] = meta
        proxy = bool(getattr(meta, "proxy", False))
        concrete = bool(parents) and not getattr(meta, "abstract", False)
        _check_bases(name, parents, proxy=proxy)
        _check_slips(name, namespace)
        if concrete and not proxy:
            _let_complete(name, namespace, parents, meta)
            _declare_identity(name, namespace, parents)
            _declare_purging(name, namespace, parents, meta)
        # PynamoDB's metaclass would make these itself, unrelated to Django's.
        namespace.setdefault("DoesNotExist", ObjectMissing)
        cls: Any = ModelBase.__new__(mcs, name, bases, namespace, **kwargs)
        if not parents:
            # After all managers of all models, so that it is never the default one.
            cls.add_to_class(BASE_MANAGER, BaseManager())
        if concrete:
            ask_for_app()
            _finish(cls, meta, proxy=proxy)
        _find_from_db(cls)
        return cls

    def __setattr__(cls, name: str, value: object) -> None:
        """Set an attribute of the class; a ``from_db()`` that replaces another one is called from then on."""
        super().__setattr__(name, value)
        if name == "from_db":
            _find_from_db(cls)

    def __delattr__(cls, name: str) -> None:
        """Delete an attribute of the class; the ``from_db()`` of its base is called again."""
        super().__delattr__(name)
        if name == "from_db":
            _find_from_db(cls)

    def __dir__(cls) -> Iterable[str]:
        """Return all names; while PynamoDB collects the attributes, theirs alone, since it searches all names twice."""
        return cls._collected if "_is_collecting" in vars(cls) else super().__dir__()

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, object], **kwargs: object) -> None:
        """Let PynamoDB collect the attributes."""
        model: Any = cls
        options = getattr(model, "_options", None)
        item_type = options.item_type if options else None
        cls._collected = _collected_names(cls)
        cls._is_collecting = True
        try:
            MetaModel.__init__(cls, name, bases, {"DoesNotExist": model.DoesNotExist}, discriminator=item_type)
        finally:
            del cls._is_collecting
        if options is not None and not model._meta.proxy:
            registry.register(model)
            for field in model._meta.local_many_to_many:
                # Django's own E008 would report that it is not stored.
                getattr(field, "declared", lambda model: None)(model)


def _collected_names(cls: type) -> list[str]:
    """Return the names of the attributes and indexes that a class has or inherits."""
    found = [name for name, value in vars(cls).items() if isinstance(value, _COLLECTED)]
    for base in cls.__bases__:
        known = vars(base).get("_collected")
        found += _collected_names(base) if known is None else known
    return found


def _check_options(name: str, declared: object) -> None:
    """Reject options that are unknown, that this app sets, or that DynamoDB does not support."""
    for key in sorted(_names(declared)):
        if key in DECIDED:
            raise ConfigurationError(f"{name}.Meta.{key} cannot be set: {DECIDED[key]}.")
        if key not in OWN_OPTIONS | FORMER_OPTIONS and key not in DEFAULT_NAMES:
            raise ConfigurationError(
                f"{name}.Meta has no option {key!r}. There are Django's and {', '.join(sorted(OWN_OPTIONS))}; name, "
                "region, capacity and billing of the table are in settings.DYNAMO_SINGLE."
            )
        if key in SQL_ONLY and getattr(declared, key):
            raise ConfigurationError(
                f"{name}.Meta.{key} is for SQL databases, and DynamoDB would not follow it. Instead: {SQL_ONLY[key]}."
            )
    for constraint in getattr(declared, "constraints", ()):
        unique_rules.check_constraint(name, constraint)


def _check_slips(name: str, namespace: Mapping[str, object]) -> None:
    """Refuse an attribute without its parentheses, or with a comma after them: the model would be without it."""
    for key, value in namespace.items():
        if isinstance(value, type) and issubclass(value, Attribute) and value.__name__ != key:
            raise ConfigurationError(f"{name}.{key} is the class {value.__name__}: write {value.__name__}(...).")
        if isinstance(value, tuple) and len(value) == 1 and isinstance(value[0], Attribute):
            raise ConfigurationError(f"{name}.{key} is a tuple of an attribute: take the comma after it away.")


def _names(declared: Any) -> set[str]:
    """Return the options of a ``Meta`` and its base classes, except those that ``_django_meta`` added."""
    classes = () if declared is None else declared.__mro__[:-1]
    written = (vars(each) for each in classes if "_made_for_django" not in vars(each))
    return {key for options in written for key in options if not key.startswith("_")}


def _django_meta(declared: Any, parents: list[Any], name: str) -> type:
    """The ``Meta`` for Django: as declared, or as the first abstract parent has it."""
    bases: tuple[type, ...] = (declared,) if declared else tuple(p.Meta for p in parents[:1] if p._meta.abstract)
    decided = {"managed": False, "db_table": name.lower() + IN_DYNAMODB, "base_manager_name": BASE_MANAGER}
    return type("Meta", bases, {**decided, "_made_for_django": True})


def _check_bases(name: str, parents: list[Any], *, proxy: bool) -> None:
    for parent in parents:
        if not parent._meta.abstract and not proxy:
            raise ConfigurationError(
                f"{name} inherits from {parent.__name__}, which is not abstract. One item cannot be two models: make "
                f"{parent.__name__} abstract (class Meta: abstract = True), or {name} a proxy (proxy = True)."
            )


def _let_complete(name: str, namespace: dict[str, object], parents: Sequence[object], meta: Any) -> None:
    """Let a base class complete the declaration of a model that is derived from it."""
    complete = next((parent._before_declaration for parent in parents if hasattr(parent, "_before_declaration")), None)
    if complete is not None:
        complete(name, namespace, meta)
    elif hasattr(meta, "id_prefix"):
        raise ConfigurationError(
            f"{name}.Meta.id_prefix has no effect: the model is no record. Derive it from models.Record, or declare "
            f"an IdAttribute(prefix={meta.id_prefix!r})."
        )


def _declare_identity(name: str, namespace: dict[str, object], parents: Sequence[object]) -> None:
    """Find the primary key's variables; several of them get an identity field."""
    keys = namespace.get("Keys") or next((parent.Keys for parent in parents if hasattr(parent, "Keys")), None)
    primary = getattr(keys, "primary", None)
    for other in (each for each in registry.keys_of(keys) if each != "primary"):
        raise ConfigurationError(
            f"{name}.Keys.{other} is a Key, which only the primary one is, by the name primary. A further key is on an "
            f'index of the table: {other} = models.IndexKey("gs1", ...).'
        )
    if not isinstance(primary, Key):
        raise ConfigurationError(f"{name} has no primary key. Declare {_identity_of(name, namespace)}.")
    templates = (Template.parse(primary.partition), Template.parse(primary.sort))
    names = tuple(dict.fromkeys(variable for template in templates for variable in template.variables))
    if not names:
        raise ConfigurationError(
            f"{name}: the primary key {primary.partition!r}, {primary.sort!r} names no attribute, so that there could "
            "only ever be one object. Name one: {...}."
        )
    namespace["_identity"] = names
    if len(names) > 1:
        namespace["identity"] = _Contributed(names)


def _identity_of(name: str, namespace: Mapping[str, object]) -> str:
    """A primary key for a model without one, as it would be declared, with the attribute that it is made of."""
    made = (key for key, value in namespace.items() if isinstance(value, IdAttribute))
    variable = next(made, f"{name.lower()}_id")
    attribute = "" if variable in namespace else f"{variable} = models.IdAttribute() and "
    return f'{attribute}class Keys: primary = models.Key("{name.upper()}#{{{variable}}}", "#METADATA")'


def _declare_purging(name: str, namespace: dict[str, object], parents: Sequence[object], meta: object) -> None:
    """Give a model with ``Meta.purge_after`` the attribute by which DynamoDB empties its trash."""
    after = getattr(meta, "purge_after", None)
    if after is None:
        return
    if not isinstance(after, timedelta) or after <= timedelta():
        raise ConfigurationError(
            f"{name}.Meta.purge_after = {after!r} is no time: give timedelta(days=30), for example."
        )
    if not any(hasattr(parent, registry.DELETED_AT) for parent in parents):
        raise ConfigurationError(
            f"{name}.Meta.purge_after has no effect: the model has no soft delete. Derive it from "
            "models.SoftDeleteModel, or leave the option out."
        )
    if registry.PURGE_AT in namespace:
        raise ConfigurationError(
            f"{name}.{registry.PURGE_AT} is the attribute of Meta.purge_after: call yours otherwise."
        )
    inherited = (getattr(parent, attribute, None) for parent in parents for attribute in dir(parent))
    if any(isinstance(each, TTLAttribute) for each in (*namespace.values(), *inherited)):
        raise ConfigurationError(
            f"{name} has a TTLAttribute and Meta.purge_after, and an item expires at one time only: the first deletion "
            "would lose it. Leave one of them out."
        )
    namespace[registry.PURGE_AT] = TTLAttribute(_("kept until"), editable=False)


def _check_paths(cls: Any) -> None:
    """Refuse a key that names a value inside a document, as in ``{data.price}``: a path leads through references."""
    fields = {field.attname: field for field in cls._meta.concrete_fields}
    for key in (cls.Keys.primary, *registry.index_keys(cls.Keys).values()):
        for source in (key.partition, key.sort):
            for part in Template.parse(source).parts:
                if part.path and part.name not in fields and part.shown.partition(".")[0] in fields:
                    raise refusal(source, document_path_error(part.shown))


class _Contributed:
    """Adds the identity field when Django contributes the namespace's fields."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names

    def contribute_to_class(self, cls: Any, name: str) -> None:
        cls.add_to_class(name, IdentityField(self.names, verbose_name=_("identity")))


def _finish(cls: Any, meta: object, *, proxy: bool) -> None:
    """Set what Django's own metaclass sets otherwise."""
    if not proxy:
        _check_paths(cls)
        if getattr(meta, "trash_index", None) and not hasattr(cls, registry.DELETED_AT):
            raise ConfigurationError(
                f"{cls.__name__}.Meta.trash_index has no effect: the model has no soft delete. Derive it from "
                "models.SoftDeleteModel, or leave the option out."
            )
        cls._options = Options(
            item_type=getattr(meta, "item_type", cls._meta.object_name),
            alias=getattr(meta, "table", "default"),
            trash_index=getattr(meta, "trash_index", None),
            purge_after=getattr(meta, "purge_after", None),
            primary=cls.Keys.primary,
            index_keys=registry.index_keys(cls.Keys),
            read_condition=_condition_reader,
            former=FormerOptions.of(meta),
            shards=registry.shards_of(cls.Keys),
            shared=_shared(cls, getattr(meta, "shared", False)),
        )
        for exception, base in (("DoesNotExist", ObjectMissing), ("MultipleObjectsReturned", SeveralObjects)):
            qualname = f"{cls.__qualname__}.{exception}"
            setattr(cls, exception, type(exception, (base,), {"__module__": cls.__module__, "__qualname__": qualname}))
    _declare_unique_key(cls)
    if hasattr(cls, registry.DELETED_AT) and not hasattr(meta, "default_permissions"):
        cls._meta.default_permissions = (*cls._meta.default_permissions, *TRASH_PERMISSIONS)
    cls.Meta = SettingsMeta("Meta", (), {"_table_alias": cls._options.alias})


def _shared(cls: Any, given: object) -> bool | str:
    """Return ``Meta.shared``; raise ``ConfigurationError`` unless it is a boolean or the path of a class."""
    if isinstance(given, bool) or (isinstance(given, str) and "." in given):
        return given
    raise ConfigurationError(
        f"{cls.__name__}.Meta.shared is {given!r}. Write True, or the path of the other program's class, such as "
        '"legacy.models.Thread".'
    )


def _condition_reader(model: type[DynamoModel], name: str, given: object) -> Callable[[], IndexCondition] | None:
    """Return what reads the condition of a key, if it has one."""
    return None if given is None else declared_conditions.condition_reader(model, name, given)


def _declare_unique_key(cls: type[DynamoModel]) -> None:
    """Let forms, formsets and serialisers ask whether a primary key of several editable attributes is taken.

    They check by the names of attributes that are unique together, as for Django's ``CompositePrimaryKey``. Generated
    values are not checked.
    """
    fields = {field.attname: field for field in cls._meta.local_fields}
    key = [fields[name] for name in cls._identity if name in fields]
    asked = len(key) == len(cls._identity) > 1 and all(field.editable for field in key)
    cls._unique_key = tuple(field.name for field in key) if asked else ()
    declared = cls._meta.unique_together
    if asked and all(set(names) != set(cls._unique_key) for names in declared):
        cls._meta.unique_together = (*declared, cls._unique_key)
