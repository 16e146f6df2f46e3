"""System checks of models: mistakes that would otherwise show up with the first object.

Django itself calls ``Model.check()``. The messages of that method do not belong here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error
from django.db.models import DO_NOTHING, CheckConstraint, Field
from django.db.models.base import ModelBase
from pynamodb.attributes import Attribute as PynamoDBAttribute

from dynamo_single.checks.adoption import check_companion, check_shared
from dynamo_single.checks.keys import check_collisions, check_single_key
from dynamo_single.checks.references import (
    check_derived_expiry,
    check_many_to_many,
    check_on_delete,
    check_partitions,
    check_says_on_delete,
    lists,
)
from dynamo_single.checks.shapes import check_shape
from dynamo_single.conf import table_settings
from dynamo_single.exceptions import ConfigurationError
from dynamo_single.orm.effects import check_constraints, copy_updates, counters
from dynamo_single.orm.items import unique_rules
from dynamo_single.orm.model.many_to_many import ManyToMany
from dynamo_single.orm.model.model import Model
from dynamo_single.orm.query.queryset import QuerySet
from dynamo_single.orm.results.state import assume_complete_keys
from dynamo_single.orm.schema import attributes, registry
from dynamo_single.orm.schema.attributes import field_names
from dynamo_single.orm.schema.attributes.shapes import Elements, Shape
from dynamo_single.orm.schema.fields.base import DynamoField
from dynamo_single.orm.schema.fingerprints import form_of
from dynamo_single.orm.schema.references import Children, declared_children
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.table import names


def check_models(app_configs: Sequence[AppConfig] | None = None, **kwargs: object) -> list[CheckMessage]:
    """Return the messages for the models of some apps. Collisions are checked among all models."""
    labels = None if app_configs is None else {config.label for config in app_configs}
    models = [model for model in registry.all_models() if labels is None or model._meta.app_label in labels]
    messages = [message for model in models for message in check_model(model)]
    return [*messages, *check_collisions(models)]


def check_model(model: type[DynamoModel]) -> list[CheckMessage]:
    """Return the messages for one model and its references. Reads no table; every key is assumed to be complete."""
    checks: tuple[Callable[[type[DynamoModel]], Iterator[CheckMessage]], ...] = (
        _check_names,
        _check_layout,
        _check_children,
        check_says_on_delete,
        check_on_delete,
        check_many_to_many,
        check_derived_expiry,
        check_partitions,
        _check_copies,
        _check_counters,
        _check_stored,
        _check_schema,
        _check_typed_maps,
        _check_unique,
        _check_former_options,
        _check_managers,
        _check_shards,
        check_single_key,
        check_companion,
        check_shared,
        check_shape,
    )
    with assume_complete_keys():
        return [message for check in checks for message in _as_far_as_valid(check(model))]


def _as_far_as_valid(messages: Iterator[CheckMessage]) -> Iterator[CheckMessage]:
    """Yield the messages of a check, up to an invalid declaration that it depends on: E003, E006 or E009 reports it."""
    with suppress(ConfigurationError):
        yield from messages


def _error(model: type[DynamoModel], id: str, message: str, hint: str | None = None) -> Error:
    return Error(message, hint=hint, obj=model, id=f"dynamo_single.{id}")


def _check_managers(model: type[DynamoModel]) -> Iterator[Error]:
    """E018: a manager that creates Django's own querysets, which query SQL."""
    for manager in model._meta.managers:
        if not isinstance(manager.get_queryset(), QuerySet):
            yield _error(
                model,
                "E018",
                f"The manager {manager.name!r} returns Django's own querysets, which query an SQL database.",
                "Make it a dynamo_single.models.Manager, or Manager.from_queryset() of a subclass of its QuerySet.",
            )


def _check_former_options(model: type[DynamoModel]) -> Iterator[Error]:
    """E023: ``Meta.schema_version`` or ``Meta.upgrades``, which nothing reads any more."""
    former = model._options.former
    if former is not None:
        text = "declares Meta.schema_version or Meta.upgrades, and items are no longer upgraded when they are read."
        way_out = former.way_out(model._meta.app_label, model.__name__)
        yield _error(model, "E023", f"{model._meta.label} {text}", way_out)


def _check_shards(model: type[DynamoModel]) -> Iterator[Error]:
    """E024: a part of the app that would need the key of a sharded object without its time."""
    if model._options.shards is None or not model._options.primary.sharded:
        return
    for children in declared_children(model):
        yield _unsharded(
            model,
            f"{children.name} are its children",
            "Remove the Children, and use the reference's manager.",
        )
    with suppress(ConfigurationError):  # E003 reports the other model
        for copy in registry.copied_from(model):
            text = f"{copy.field.model._meta.label}.{copy.name} is copied from it"
            yield _unsharded(model, text, "Read it along with select_related().")
    for other in registry.all_models():
        for field in other._meta.concrete_fields:
            on_delete = getattr(field.remote_field, "on_delete", DO_NOTHING)
            if field.related_model is model and on_delete is not DO_NOTHING:
                text = f"{other._meta.label}.{field.name} has an on_delete"
                yield _unsharded(
                    model, text, "Write on_delete=models.DO_NOTHING, and delete those objects by yourself."
                )
    if model.derived_from or model.derived_by:
        yield _unsharded(model, "objects are derived from it, or it from others", "Save those objects by themselves.")


def _unsharded(model: type[DynamoModel], what: str, hint: str) -> Error:
    why = (
        "to write such an object, its item and shard must be known, and the shard depends on a time that they do "
        "not have"
    )
    way = f"{hint} Or let keys on indexes alone be sharded=True, and the primary key's partition have its identity."
    return _error(model, "E024", f"The primary key of {model._meta.label} is sharded, and {what}: {why}.", way)


def _check_names(model: type[DynamoModel]) -> Iterator[Error]:
    """E001: a Python name that models already use; E002: a stored name that is reserved or used twice."""
    python_names = set(dir(Model))
    indexes = (None, *table_settings(model._options.alias).indexes)
    reserved = {names.ITEM_TYPE, *(name for index in indexes for name in names.key_names(index))}
    taken: dict[str, str] = {}
    for name, attribute in registry.attributes_of(model).items():
        if {name, attribute.field.name} & python_names:
            yield _error(
                model,
                "E001",
                f"The attribute name {attribute.field.name!r} is a method or a property of every model.",
                "Call the attribute something else; attr_name= keeps the name in the stored item.",
            )
        stored = attribute.attr_name
        if stored in reserved:
            yield _error(
                model,
                "E002",
                f"{name} would be stored as {stored!r}, the name of a key or of the item's type.",
                "Give it another name, or another attr_name=.",
            )
        if stored in taken:
            yield _error(model, "E002", f"{taken[stored]} and {name} would both be stored as {stored!r}.")
        taken[stored] = name


def _check_layout(model: type[DynamoModel]) -> Iterator[Error]:
    """E003: an invalid key; E004: an index that is not in the settings; E005: two keys on one index."""
    if model._options.former is not None:
        return  # E023 reports it
    try:
        layout = registry.layout_of(model)
        for key in layout.indexes:
            _ = key.condition
    except ConfigurationError as error:
        yield _error(model, "E003", str(error))
        return
    table = table_settings(layout.alias)
    configured = table.indexes
    used: dict[str, str] = {}
    for key in layout.index_keys:
        index = str(key.index)
        if index not in configured:
            yield _error(
                model,
                "E004",
                f"The key {key.name} is on the index {index!r}, which the table does not have.",
                f"Its indexes are {', '.join(configured) or 'none'}: "
                f"{_with_index(layout.alias, configured, index)} and run {table.command('dynamo_setup')}, "
                "or use another index.",
            )
        if index in used and key is not layout.trash:
            yield _error(
                model,
                "E005",
                f"The keys {used[index]} and {key.name} are both on the index {index!r}, but an item has one "
                "key on an index.",
                "Put one of them on another index.",
            )
        used.setdefault(index, key.name)


def _with_index(alias: str, configured: Sequence[str], index: str) -> str:
    """Return how to add an index to a setting: to its dictionary or its URL."""
    setting = f"DYNAMO_SINGLE[{alias!r}]"
    if isinstance(getattr(settings, "DYNAMO_SINGLE", {}).get(alias), str):
        return f"write indexes={','.join((*configured, index))} in the query of the URL {setting}"
    return f"add {index!r} to INDEXES of {setting}"


def _check_children(model: type[DynamoModel]) -> Iterator[Error]:
    """E006: ``Children`` without a model, or whose model does not refer to this one; E014: an impossible cascade."""
    for children in declared_children(model):
        problem = children.problem()
        if problem:
            yield _error(model, "E006", problem)
            continue
        with suppress(ConfigurationError):  # E003 reports that model
            yield from _check_cascade(model, children)


def _check_cascade(model: type[DynamoModel], children: Children) -> Iterator[Error]:
    """E014: children that should be deleted with their parent but cannot be."""
    child, own, other = children.model, registry.has_soft_delete(model), registry.has_soft_delete(children.model)
    name, parent, label, short = children.name, model._meta.object_name, child._meta.label, child._meta.object_name
    if not children.cascades:
        return
    if child._options.alias != model._options.alias:
        text = f"{name}: {label} is in another table, and cannot be deleted in one transaction with its parent."
        yield _error(model, "E014", text, "Set Children(..., cascade=False), or store both in one table.")
        return
    layout, reference = registry.layout_of(child), children.field.attname
    if not children.is_by_table and not any(lists(key, layout, reference) for key in layout.indexes):
        text = f"{name}: no key of {label} lists the children of one {parent}, to which deletions should cascade."
        index = f'models.IndexKey("gs1", "{short.upper()}#{{{reference}}}", ...)'
        yield _error(model, "E014", text, f"Declare one, such as {index}, or set Children(..., cascade=False).")
    if not children.is_by_table and other and layout.trash is None:
        text = f"{name}: {label} has no index for its trash, which is needed to find the children of a deleted parent."
        yield _error(model, "E014", text, f"Set {short}.Meta.trash_index, or set Children(..., cascade=False).")
    if own and other and model._options.purge_after is not None and layout.expires is None:
        text = f"{name}: {parent} is purged by Meta.purge_after, and {label} would stay in the trash."
        yield _error(model, "E014", text, f"Set {short}.Meta.purge_after too, or set Children(..., cascade=False).")
    if own and other and _form_of_trash(model) != _form_of_trash(child):
        text = f"{name}: {parent} and {label} store deleted_at in different forms, but share its value in the trash."
        yield _error(model, "E014", text, "Declare deleted_at with the same stored_as in both.")


def _form_of_trash(model: type[DynamoModel]) -> object:
    return form_of(registry.attributes_of(model)[registry.DELETED_AT])


def _check_copies(model: type[DynamoModel]) -> Iterator[Error]:
    """E015: a copy that cannot be updated, because no key finds the objects that contain it."""
    for copy in registry.copied_of(model):
        registry.layout_of(model)
        if problem := copy_updates.holder_key_problem(copy):
            yield _error(
                model,
                "E015",
                f"{copy.name} is copied from {copy.origin}, but no key finds the objects that refer to it. {problem}",
                f"Add a key whose partition is made of {{{copy.reference_field.attname}}} alone.",
            )


def _check_counters(model: type[DynamoModel]) -> Iterator[Error]:
    """E016: a counter that does not name ``Children``, or names children that cannot be counted."""
    for counter in registry.counters_of(model):
        if problem := counters.counter_problem(counter):
            yield _error(model, "E016", f"{counter.name} cannot count {counter.children}: {problem[0]}", problem[1])


def _check_stored(model: type[DynamoModel]) -> Iterator[Error]:
    """E008: a declaration that looks like an attribute of the model but would not be stored."""
    for field in (*model._meta.concrete_fields, *model._meta.many_to_many):
        # With an automatic id, E003 reports the actual mistake.
        if not isinstance(field, DynamoField | ManyToMany) and not field.auto_created:
            yield _not_stored(model, field)
    own = (*registry.attributes_of(model).values(), *Model._attributes.values(), *model._meta.private_fields)
    ours = {id(attribute) for attribute in own}
    for owner in model.__mro__:
        for name, value in vars(owner).items():
            if not isinstance(value, PynamoDBAttribute | Field) or getattr(model, name, None) is not value:
                continue
            if not isinstance(owner, ModelBase):
                yield _of_mixin(model, name, owner)
            elif id(value) not in ours:
                yield _of_pynamodb(model, name, value)


def _check_schema(model: type[DynamoModel]) -> Iterator[Error]:
    """E034: a ``class Data`` that declares nested values although no attribute uses it as its schema."""
    shapes = [attribute.shape for attribute in registry.attributes_of(model).values()]
    used = {shape.declared for shape in shapes if shape is not None}
    for owner in model.__mro__:
        declared = vars(owner).get("Data")
        if isinstance(declared, type) and declared not in used and _declares(declared):
            yield _error(
                model,
                "E034",
                f"{owner.__name__}.Data declares the elements of a map, but no attribute uses it.",
                "Name it, data = models.MapAttribute(default=dict, schema=Data), or derive the model from "
                "models.Record, whose data it declares where it is written in the record's own class.",
            )


def _declares(declared: type) -> bool:
    found = vars(declared).values()
    return any(isinstance(each, PynamoDBAttribute) or (isinstance(each, type) and _declares(each)) for each in found)


def _not_stored(model: type[DynamoModel], field: Any) -> Error:
    text = f"{field.name} is Django's {type(field).__name__}, a column of an SQL database: it would not be stored."
    if field.many_to_many:
        hint = "Use models.ManyToMany of dynamo_single, or a model of the memberships with two references."
        if _label(field.related_model) in {"auth.Group", "auth.Permission"}:
            hint = (
                "Permissions are strings here, and groups are items: derive the model from "
                "dynamo_single.auth.PermissionsMixin, and declare groups = Groups(...) for groups."
            )
        return _error(model, "E008", text, hint)
    instead = field_names.NAMES.get(type(field).__name__, "an attribute")
    return _error(model, "E008", text, f"dynamo_single.models has instead: {instead}.")


def _label(model: type[DynamoModel]) -> str:
    return model if isinstance(model, str) else str(model._meta.label)


def _of_pynamodb(model: type[DynamoModel], name: str, value: object) -> Error:
    text = (
        f"{name} is PynamoDB's own {type(value).__name__}, which brings no Django field along: it would not be stored."
    )
    namesake = type(value).__name__ in attributes.__all__
    hint = f"Use {'models.' + type(value).__name__ if namesake else 'an attribute'} of dynamo_single."
    return _error(model, "E008", text, hint)


def _of_mixin(model: type[DynamoModel], name: str, owner: type) -> Error:
    text = f"{name} is declared on {owner.__name__}, which is no model: it would not be stored."
    hint = f"Make {owner.__name__} an abstract model: derive it from models.Model, with class Meta: abstract = True."
    return _error(model, "E008", text, hint)


def _check_unique(model: type[DynamoModel]) -> Iterator[Error]:
    """E009: unique values that cannot be claimed."""
    for name, attribute in registry.attributes_of(model).items():
        try:
            claimable = not attribute.unique or attribute.key_kind is not None
        except (ConfigurationError, ValueError):
            continue  # E003 reports a reference to an unknown model
        if not claimable:
            yield _error(
                model,
                "E009",
                f"{name} cannot be unique: the values of a {type(attribute).__name__} cannot be compared by a key.",
                "Remove unique=True, or store the value in a separate string, number or datetime.",
            )
            return
    with suppress(ValueError):  # as above; a rule of several attributes examines each of them
        try:
            unique_rules.rules_of(model)
            if any(isinstance(each, CheckConstraint) for each in model._meta.constraints):
                check_constraints.rules_of(model)
        except ConfigurationError as error:
            yield _error(model, "E009", str(error))


def _check_typed_maps(model: type[DynamoModel]) -> Iterator[Error]:
    """Yield E036 for each class of maps with declared attributes, including those inside lists and schemas.

    Values would not be validated against them.
    """
    for name, attribute in registry.attributes_of(model).items():
        for said, each, instead in _nested_members(name, attribute):
            kind = type(each)
            declared = [*_declared_in(kind)]
            if declared:
                instead = "ListAttribute" if each.attr_type == "L" else instead
                named = ", ".join(declared)
                yield Error(
                    f"{said} is a {kind.__name__}, which declares {named}: values would not be validated against that.",
                    hint=f"Let {kind.__name__} be a plain class, without a base, and name it: "
                    f"{said.rpartition('.')[2]} = models.{instead}(schema={kind.__name__}).",
                    obj=model,
                    id="dynamo_single.E036",
                )


def _nested_members(said: str, member: Any, instead: str = "MapAttribute") -> Iterator[tuple[str, Any, str]]:
    """Yield a member and its nested members, each with its path and the attribute that accepts a schema."""
    if isinstance(member, Shape):
        for name, each in member.members.items():
            yield from _nested_members(f"{said}.{name}", each)
        return
    yield said, member, instead
    shape = member.shape
    if isinstance(shape, Shape):
        yield from _nested_members(said, shape)
    elif isinstance(shape, Elements):
        yield from _nested_members(said, shape.member, "ListAttribute")


def _declared_in(kind: type) -> Iterator[str]:
    for each in kind.__mro__:
        yield from (name for name, value in vars(each).items() if isinstance(value, PynamoDBAttribute))
