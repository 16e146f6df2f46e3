"""The references to a model whose ``on_delete`` affects deletions.

Such a reference is followed as declared ``Children`` are. This module must not know how anything is read or written.
"""

from __future__ import annotations

from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from django.apps import apps
from django.db.models import CASCADE, DO_NOTHING, PROTECT, SET_DEFAULT, SET_NULL
from django.db.models.fields.related_descriptors import create_reverse_many_to_one_manager

from dynamo_single.exceptions import ConfigurationError
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.attributes.references import ContentTypeAttribute, ReferenceAttribute
from dynamo_single.orm.schema.bindings import ModelBinding, fact, shared
from dynamo_single.orm.schema.fields.references import saving_manager_class
from dynamo_single.orm.schema.types import DynamoModel, ModelField
from dynamo_single.table import names

if TYPE_CHECKING:
    from django.contrib.contenttypes.fields import GenericRelation
    from typing_extensions import TypeVar as TypeVarWithDefault  # Python's own since 3.13

    #: A model named by a string is unknown to a type checker, unless you pass it: ``Children["Person"]("Person")``.
    Child = TypeVarWithDefault("Child", bound=DynamoModel, default=Any)
else:
    Child = TypeVar("Child")


# ``Children``: the objects of another model that refer to an object.


class Children(Generic[Child]):
    """The referring objects of another model: ``people = Children("Person")`` creates ``company.people``.

    ``company.people`` is a manager like Django's manager of a reverse foreign key. ``prefetch_related("people")`` on
    one company reads it and all of its people with one Query if their keys share the company's partition.

    With ``cascade`` the children are deleted and restored with their parent: into the trash and back if they have soft
    delete, and permanently. By default the reference's ``on_delete`` decides: only ``CASCADE`` includes them. The
    methods of a ``manager`` class take precedence over Django's.
    """

    #: The values that the children have in addition to the reference.
    conditions: Any = MappingProxyType({})

    def __init__(
        self,
        model: str | type[Child],
        *,
        field: str | None = None,
        cascade: bool | None = None,
        manager: type | None = None,
    ) -> None:
        self.to = model
        self.manager = manager
        self.field_name = field
        self.cascade = cascade

    def __set_name__(self, owner: type[DynamoModel], name: str) -> None:
        self.owner = owner
        self.name = name

    @cached_property
    def model(self) -> Any:
        """The children's model."""
        if not isinstance(self.to, str):
            return self.to
        label, _, name = self.to.rpartition(".")
        try:
            return apps.get_model(label or self.owner._meta.app_label, name)
        except LookupError as error:
            raise ConfigurationError(
                f"{self.owner._meta.label}.{self.name} = Children({self.to!r}): there is no such model."
            ) from error

    @cached_property
    def field(self) -> Any:
        """The children's reference to this model."""
        found = [
            field
            for field in self.model._meta.concrete_fields
            if field.is_relation
            and issubclass(self.owner, field.related_model._meta.concrete_model)
            and self.field_name in (None, field.name)
        ]
        if len(found) != 1:
            problem = "no reference" if not found else f"{len(found)} references"
            raise ConfigurationError(
                f"{self.owner._meta.label}.{self.name}: {self.model._meta.label} has {problem} to "
                f"{self.owner._meta.object_name}. Declare one ReferenceAttribute, or name it: Children(..., field=...)."
            )
        return found[0]

    @property
    def cascades(self) -> bool:
        """Whether the children are deleted and restored with their parent."""
        if self.cascade is not None:
            return self.cascade
        if says_on_delete(self.field):
            return self.field.remote_field.on_delete is CASCADE
        # E035 reports the reference; until it has an on_delete, earlier cascades continue to work.
        return registry.has_soft_delete(self.owner) and registry.has_soft_delete(self.model)

    @property
    def is_by_table(self) -> bool:
        """Whether the children of one parent are a part of the table itself, which can be read consistently."""
        return {*registry.layout_of(self.model).primary.partition.variables} <= {self.field.attname}

    def __get__(self, instance: object, owner: object) -> Any:
        return self if instance is None else self._manager_class(instance)

    def problem(self) -> str | None:
        """Return the error in the declaration, if any."""
        try:
            _ = self.field
        except ConfigurationError as error:
            return str(error)
        return None

    def queryset_of(self, pk: object) -> Any:
        """The children of the object with a ``pk``, as the relation gives them; ``None`` if a manager narrows them."""
        # As Django does it: the default manager's class is created again, without its arguments.
        manager = self.model._default_manager.__class__()
        manager.model = self.model
        queryset = manager.get_queryset()
        return queryset.filter(**{self.field.attname: pk}) if queryset._is_plain() else None

    @cached_property
    def _manager_class(self) -> type:
        base: Any = saving_manager_class(
            create_reverse_many_to_one_manager(self.model._default_manager.__class__, self.field.remote_field)
        )
        name = self.name

        class ChildrenManager(base):  # type: ignore[misc]  # made at run time, as Django does
            """Django's manager of a reverse foreign key, with its prefetched objects under this name."""

            def get_queryset(self) -> Any:
                cached = getattr(self.instance, "_prefetched_objects_cache", {}).get(name)
                return super().get_queryset() if cached is None else cached

            def get_prefetch_querysets(self, instances: object, querysets: object = None) -> Any:
                result = super().get_prefetch_querysets(instances, querysets)
                return (*result[:4], name, *result[5:])

            def _remove_prefetched_objects(self) -> None:
                getattr(self.instance, "_prefetched_objects_cache", {}).pop(name, None)

        return (
            ChildrenManager
            if self.manager is None
            else type(self.manager.__name__, (self.manager, ChildrenManager), {})
        )


def says_on_delete(field: Any) -> bool:
    """Return whether the declaration of a reference sets ``on_delete``; a ``ForeignKey`` of Django's always does."""
    return getattr(getattr(field, "attribute", None), "says_on_delete", True)


def declared_children(model: type[DynamoModel]) -> tuple[Children, ...]:
    """The children that a model declares, or inherits the declaration of."""
    found: dict[str, Any] = {}
    for owner in reversed(model.__mro__):
        found.update({name: value for name, value in vars(owner).items() if isinstance(value, Children)})
    return tuple(found.values())


class Referrers(Children):
    """The objects of a model that refer to an ``owner`` by one reference; no attribute of the owner gives them."""

    def __init__(self, owner: Any, field: Any) -> None:
        super().__init__(field.model, field=field.name)
        self.owner = owner
        self.name = f"{field.model._meta.label}.{field.name}"


class GenericReferrers(Children):
    """The objects of a model that refer to an ``owner`` by a content type and an identifier: a ``GenericRelation``."""

    def __init__(self, owner: type[DynamoModel], relation: GenericRelation) -> None:
        super().__init__(relation.remote_field.model, field=relation.object_id_field_name)
        self.owner = owner
        self.relation = relation
        self.name = relation.name

    @cached_property
    def field(self) -> ModelField:
        """The field of the identifier."""
        found: ModelField = self.model._meta.get_field(self.relation.object_id_field_name)
        return found

    @cached_property
    def conditions(self) -> dict[str, object]:
        """The content type of the owner."""
        kind = self.relation.get_content_type()
        attname = self.model._meta.get_field(self.relation.content_type_field_name).attname
        return {attname: kind.pk}

    @property
    def cascades(self) -> bool:
        """Django deletes the objects with their owner."""
        return True

    @property
    def is_by_table(self) -> bool:
        """Whether they are a part of the table itself, which can be read consistently."""
        variables = {*registry.layout_of(self.model).primary.partition.variables}
        return variables <= {self.field.attname, *self.conditions}


def generic_relations(model: Any) -> list[GenericRelation]:
    """Return the generic relations of a model to models of its table."""
    relations = [field for field in model._meta.private_fields if hasattr(field, "object_id_field_name")]
    known = {each: each._options.alias for each in registry.all_models()}
    return [each for each in relations if known.get(each.remote_field.model) == model._options.alias]


@fact
def cascading_children(binding: ModelBinding) -> tuple[Children, ...]:
    """Return the children that are deleted with an object.

    Declared children come first, then references with only a ``CASCADE``, then generic relations.
    """
    model: Any = binding.model._meta.concrete_model
    children = [each for each in declared_children(model) if each.problem() is None]
    fields = {each.field for each in children}
    return (
        *(each for each in children if each.cascades),
        *(each for each in referrers(model, CASCADE) if each.field not in fields),
        *(GenericReferrers(model, each) for each in generic_relations(model)),
    )


@fact
def cascading_to_trash(binding: ModelBinding) -> tuple[Children, ...]:
    """Return the children that are moved to the trash with an object: those whose model has one."""
    return tuple(children for children in cascading_children(binding) if registry.has_soft_delete(children.model))


@fact
def cascading_parents(binding: ModelBinding) -> tuple[tuple[type[DynamoModel], Any], ...]:
    """Return the models whose deletion cascades to a model's objects, each with the reference to it."""
    model: Any = binding.model._meta.concrete_model
    related = [field.related_model for field in model._meta.concrete_fields if field.is_relation]
    targets = {each._meta.concrete_model for each in related if each is not None and not isinstance(each, str)}
    parents = (parent for parent in registry.all_models() if parent._meta.concrete_model in targets)
    every = ((parent, each) for parent in parents for each in cascading_children(parent))
    return tuple((parent, each.field) for parent, each in every if each.model._meta.concrete_model is model)


def cascading_names(model: type[DynamoModel]) -> frozenset[str]:
    """Return the stored names of the references through which a deletion cascades to a model's objects.

    Omit references in the primary key, which never change.
    """
    fields = [field for _, field in cascading_parents(model)]
    return frozenset(field.attribute.attr_name for field in fields if field.attname not in model._identity)


def protecting_references(model: type[DynamoModel]) -> tuple[Children, ...]:
    """Return the references that protect the object that they lead to."""
    return referrers(model, PROTECT)


def resetting_references(model: type[DynamoModel]) -> tuple[Children, ...]:
    """Return the references that are set to nothing, or to their default, when the object is permanently deleted."""
    return (*referrers(model, SET_NULL), *referrers(model, SET_DEFAULT))


def referrers(model: type[DynamoModel], on_delete: object) -> tuple[Children, ...]:
    """Return the references to a model with an ``on_delete``, in the order in which the models are declared."""
    return _by_handler(model).get(on_delete, ())


@fact
def _by_handler(binding: ModelBinding) -> dict[object, tuple[Children, ...]]:
    model: Any = binding.model._meta.concrete_model
    found: dict[object, tuple[Children, ...]] = {}
    for holder, field in _by_target().get(model, ()):
        if holder._options.alias == model._options.alias:
            on_delete = field.remote_field.on_delete
            found[on_delete] = (*found.get(on_delete, ()), Referrers(model, field))
    return found


@shared
def _by_target() -> dict[type[DynamoModel], list[tuple[type[DynamoModel], Any]]]:
    """Return the references to each model, with the models that have them."""
    found: dict[type[DynamoModel], list[tuple[type[DynamoModel], Any]]] = {}
    for holder in registry.all_models():
        for field in references(holder):
            found.setdefault(field.related_model._meta.concrete_model, []).append((holder, field))
    return found


def references(holder: type[DynamoModel]) -> list[Any]:
    """A model's own references with an ``on_delete`` that a deletion of the other object has to follow."""
    if holder._meta.proxy:
        return []  # its objects belong to the other class
    fields: list[Any] = list(holder._meta.concrete_fields)
    return [
        field
        for field in fields
        if isinstance(getattr(field, "attribute", None), ReferenceAttribute)
        and field.remote_field.on_delete is not DO_NOTHING
        and not isinstance(field.related_model, str)
        # Content types are computed, so they are never deleted.
        and not isinstance(field.attribute.target, ContentTypeAttribute)
    ]


@fact
def checked_references(binding: ModelBinding) -> tuple[tuple[str, Children], ...]:
    """Return the checked references to a model, each with the physical name of the count that an object has of it."""
    found = (each for some in _by_handler(binding).values() for each in some)
    return tuple((count_name(each.field), each) for each in found if each.field.attribute.checked)


def count_name(field: Any) -> str:
    """The physical name of the count of the objects that refer to one by a checked reference."""
    return name_of_count(field.model._options.item_type, field.attribute.attr_name)


@fact
def references_to(binding: ModelBinding) -> tuple[tuple[Any, bool], ...]:
    """Return all references to a model, each with whether a key must find its objects.

    ``Children`` and an ``on_delete`` require a key. Omit references of derived objects, which change with their source.
    """
    model: Any = binding.model
    owned = {children.field for children in declared_children(model)}
    found: list[tuple[Any, bool]] = []
    for other in registry.all_models():
        # A model that overrides is_derived() has other objects too.
        is_derived = other.derived_by and sum("is_derived" in vars(each) for each in other.__mro__) == 1
        fields: list[Any] = list(other._meta.concrete_fields)
        for field in fields:
            follows = is_derived and other.derived_by in (field.name, field.attname)
            if field.is_relation and issubclass(model, field.related_model) and not follows:
                found.append((field, field in owned or field.remote_field.on_delete is not DO_NOTHING))
    return tuple(found)


def name_of_count(item_type: str, stored: str) -> str:
    """Return the same by the type of the referring items, and by the reference's physical name."""
    return f"{names.REFERRED_PREFIX}{item_type}.{stored}"


def referenced_models(holder: type[DynamoModel]) -> list[tuple[Any, Any]]:
    """The models of the same table that a model refers to with an ``on_delete``, each with the reference."""
    targets = ((field.related_model._meta.concrete_model, field) for field in references(holder))
    known = registry.all_models()
    return [each for each in targets if each[0] in known and each[0]._options.alias == holder._options.alias]
