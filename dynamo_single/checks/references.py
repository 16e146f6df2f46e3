"""Check references, many-to-many relations, and models for an SQL database.

E030 reports an ``on_delete`` that could not be executed, E035 a reference without one, and E031 a many-to-many relation
whose edges could not be queried. E037 reports derived objects that expire with their sources. W911 reports a partition
that differs from the partition of a referenced object only in the format of a value.

W912 reports models for an SQL database in a project without one: a first model is easily derived from
``django.db.models.Model``, and nothing else reports this before its first query fails. E010 reports fields of SQL
models that refer to a model in DynamoDB in a way that cannot work.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from django.apps import AppConfig, apps
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning
from django.core.exceptions import FieldDoesNotExist
from django.db import models, router
from django.db.models import CASCADE, SET_DEFAULT, SET_NULL

from dynamo_single.backend.errors import ENGINE, is_stored_in_dynamodb, way_out
from dynamo_single.backend.router import uses_engine
from dynamo_single.exceptions import ConfigurationError
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.fields.base import column_of
from dynamo_single.orm.schema.keys.template import KeyPart, Template
from dynamo_single.orm.schema.layout import AccessKey, ModelLayout
from dynamo_single.orm.schema.references import (
    GenericReferrers,
    Referrers,
    generic_relations,
    references,
    says_on_delete,
)
from dynamo_single.orm.schema.references import declared_children as children_of
from dynamo_single.orm.schema.types import DynamoModel, ModelField

if TYPE_CHECKING:
    from dynamo_single.orm.schema.fields.base import ReferenceField


def check_on_delete(model: type[DynamoModel]) -> Iterator[Error]:
    """Yield E030 for each reference whose ``on_delete`` could not be executed."""
    for field in references(model):
        try:
            layout = registry.layout_of(model)
            found = list(_relation_problems(field, layout, field.remote_field.on_delete))
        except ConfigurationError:
            continue  # reported by E003
        for message, hint in found:
            name = field.remote_field.on_delete.__name__
            yield Error(f"{field.name}: on_delete={name} {message}", hint=hint, obj=model, id="dynamo_single.E030")
    yield from _check_generic_relations(model)


def _check_generic_relations(model: type[DynamoModel]) -> Iterator[Error]:
    """Yield E030 for each generic relation whose objects could not be found by a key."""
    for relation in [] if model._meta.proxy else generic_relations(model):
        children = GenericReferrers(model, relation)
        try:
            layout = registry.layout_of(children.model)
            kind, number = *children.conditions, children.field.attname
            if children.is_by_table or any(lists(key, layout, kind, number) for key in layout.indexes):
                continue
        except ConfigurationError:
            continue  # reported by E003
        short = layout.label.rpartition(".")[2]
        yield Error(
            f"{relation.name}: a deletion requires a query for the objects of the relation, but no key of "
            f"{layout.label} lists them.",
            hint=f"Declare a key of {short}, such as "
            f'models.IndexKey("gs1", "{short.upper()}#{{{kind}}}#{{{number}}}", ...).',
            obj=model,
            id="dynamo_single.E030",
        )


def check_says_on_delete(model: type[DynamoModel]) -> Iterator[Error]:
    """Yield E035 for each reference without an ``on_delete``; the hint is a line that does not change any deletion.

    This is a check rather than an error of ``__init__()``, so models that old migrations name can still be imported.
    """
    fields: list[Any] = [] if model._meta.proxy else [each for each in model._meta.concrete_fields if each.is_relation]
    for field in fields:
        if says_on_delete(field) or isinstance(field.related_model, str):
            continue
        try:
            layout = registry.layout_of(model)
            hint = _line_of(field, layout)
        except ConfigurationError:
            continue  # reported by E003
        yield Error(f"{field.name} has no on_delete.", hint=hint, obj=model, id="dynamo_single.E035")


def _line_of(field: Any, layout: ModelLayout) -> str:
    """Return the line that keeps what a deletion does today, and what else has to be changed with it."""
    target = field.related_model
    children = [each for each in children_of(target) if each.problem() is None and each.field == field]
    following = next((each for each in children if each.cascades), None)
    takes_along = following is not None and not any(_relation_problems(field, layout, CASCADE))
    arguments = [field.attribute.declared["to"]]
    arguments += [f"{name}={text}" for name, text in field.attribute.declared.items() if name != "to"]
    arguments.append(f"on_delete=models.{'CASCADE' if takes_along else 'DO_NOTHING'}")
    line = f"Write {field.name} = models.{type(field.attribute).__name__}({', '.join(arguments)})"
    if following is None:
        return (
            f"{line} to keep the current behavior, in which a deletion ignores this reference. Any other on_delete "
            "works as in Django."
        )
    label = f"{target._meta.object_name}.{following.name}"
    if takes_along:
        return f"{line}: {label} deletes these objects with their parent."
    if following.cascade:
        return f"{line}: {label} has cascade=True already."
    return f"{line}, and cascade=True in {label} = models.Children(...), which deletes these objects with their parent."


def check_derived_expiry(model: type[DynamoModel]) -> Iterator[Error]:
    """Yield E037 for derived objects whose sources expire: they would be read until DynamoDB deletes their items."""
    if not model.derived_by:
        return
    try:
        source: Any = model._meta.get_field(model.derived_by)
        target = source.related_model
        expires = target._options.purge_after is None and _expires(target)
        if not expires or registry.layout_of(model).expires is not None:
            return
    except (FieldDoesNotExist, AttributeError):
        return  # reported by E003
    yield Error(
        f"{target._meta.label} objects expire, and {model._meta.label} objects are derived from them "
        f"({model.derived_by}). Without a TTLAttribute, an expired object is read until DynamoDB deletes its item.",
        hint="Declare expires = models.TTLAttribute(null=True). Each write of the other object sets it.",
        obj=model,
        id="dynamo_single.E037",
    )


def check_many_to_many(model: type[DynamoModel]) -> Iterator[Error]:
    """Yield E031 for each many-to-many relation whose edges could not be queried."""
    relations: list[Any] = list(model._meta.local_many_to_many)
    for relation in relations:
        # E008 reports Django's own relations. Django's checks report edges that are not a model or have no references.
        # The keys of a kept relation are no edges.
        has_edges = hasattr(relation, "makes_edges") and not hasattr(relation, "kept_in")
        if has_edges and not isinstance(relation.remote_field.through, str):
            for message, hint in _edge_problems(relation):
                text = f"{relation.name}: {message}"
                yield Error(text, hint=hint, obj=model, id="dynamo_single.E031")


def check_partitions(model: type[DynamoModel]) -> Iterator[Warning]:
    """Yield W911 for a partition that differs from the partition of a referenced object only in the format of a value.

    Both keys work, so nothing else would report that the objects are stored in different partitions.
    """
    fields: list[Any] = [field for field in model._meta.concrete_fields if field.is_relation]
    for field in fields:
        try:
            layout = registry.layout_of(model)
            if not is_stored_in_dynamodb(field.related_model):
                continue
            target = registry.layout_of(field.related_model)
        except ConfigurationError:
            continue  # reported by E003
        own, theirs = layout.primary.partition, target.primary.partition
        differing = (
            _differing_values(own, theirs, field, len(target.identity) == 1) if layout.alias == target.alias else []
        )
        if differing:
            written = " and ".join(_written(part, other.spec) for part, other in differing)
            yield Warning(
                f"The partition {own.source!r} is not that of {target.label}, {theirs.source!r}: the formats differ, "
                f"so objects of {layout.label} are not stored next to their {field.name}.",
                hint=f"Write {written} to share the partition, or another literal for a separate partition. A "
                "migration moves stored objects.",
                obj=model,
                id="dynamo_single.W911",
            )


def _differing_values(
    own: Template, theirs: Template, field: ReferenceField, alone: bool
) -> list[tuple[KeyPart, KeyPart]]:
    """Return the values that two templates write in different formats; none unless everything else is equal.

    ``alone`` is whether a single value is the whole identity of the referenced object.
    """
    if own.pattern != theirs.pattern:
        return []
    pairs = list(zip(own.parts, theirs.parts, strict=True))
    if not all(part.name == field.attname and _is_same_value(part, other, alone) for part, other in pairs):
        return []
    return [(part, other) for part, other in pairs if part.spec != other.spec]


def _is_same_value(part: KeyPart, other: KeyPart, alone: bool) -> bool:
    """Return whether a part of a reference has the value that another part has in the referenced object's key."""
    return _steps(part.path) == _steps((other.name, *other.path)) if part.path else alone


def _steps(names: Iterable[str]) -> list[str]:
    """Return a path with each reference under its name, even if the path has the attribute that it stores."""
    return [name.removesuffix("_id") for name in names]


def _written(part: KeyPart, spec: str) -> str:
    return f"{{{part.shown}:{spec}}}" if spec else f"{{{part.shown}}}"


def _edge_problems(relation: Any) -> Iterator[tuple[str, str]]:
    through, target = relation.remote_field.through, relation.remote_field.model
    for each in (through, target):
        if not is_stored_in_dynamodb(each):
            yield f"{each._meta.label} is not stored in DynamoDB.", "Store both sides and the edges in DynamoDB."
            return
    label = through._meta.label
    references = (relation.m2m_field_name(), relation.m2m_reverse_field_name())
    if None in references:
        return
    ends = {through._meta.get_field(name).attname for name in references}
    layout = registry.layout_of(through)
    if {*layout.identity} != ends:
        both = "".join(f"#{{{name}}}" for name in sorted(ends))
        yield (
            f"the primary key of {label} does not consist of exactly its two references, so it does not identify an "
            "edge.",
            f"Name only {both.lstrip('#')} in the templates of its models.Key.",
        )
    yield from _unchecked(relation, references)
    if layout.soft_delete:
        yield f"{label} has a trash, which would keep each removed edge.", "Derive it from models.Model."
    for name in sorted(ends):
        by_table = {*layout.primary.partition.variables} == {name}
        if not by_table and not any(lists(key, layout, name) for key in layout.indexes):
            key = f'models.IndexKey("gs1", "{label.rpartition(".")[2].upper()}#{{{name}}}", ...)'
            yield f"no key of {label} lists the edges of one {name}.", f"Declare a key, such as {key}."


def _unchecked(relation: Any, references: Iterable[str]) -> Iterator[tuple[str, str]]:
    through = relation.remote_field.through
    for name in references:
        attribute = getattr(through._meta.get_field(name), "attribute", None)
        if relation.checked and not getattr(attribute, "checked", False):
            yield (
                f"it is checked, and {through._meta.label}.{name} is not: an edge could be created to an object that "
                "is deleted at the same time.",
                f"Write {name} = models.ReferenceAttribute(..., on_delete=models.CASCADE, checked=True) there.",
            )


def _relation_problems(field: Any, layout: ModelLayout, on_delete: object) -> Iterator[tuple[str, str]]:
    target = field.related_model
    label = target._meta.label
    if not is_stored_in_dynamodb(target):
        yield f"refers to {label}, which is in an SQL database: this app is not notified of its deletions.", _LEAVE_OUT
        return
    if target._options.alias != layout.alias:
        yield f"refers to {label}, which is in another table: a transaction of this app has one table.", _LEAVE_OUT
        return
    if target._options.purge_after is not None or _expires(target):
        made = field.model._meta.auto_created
        hint = f"Declare a model of the edges, through=..., whose {field.name} has on_delete=models.DO_NOTHING."
        yield (
            f"refers to {label}, whose objects expire: DynamoDB deletes them and does not notify the app.",
            (hint if made else _LEAVE_OUT),
        )
    for children in children_of(target):
        if (
            children.problem() is None
            and children.field == field
            and children.cascade not in (None, on_delete is CASCADE)
        ):
            yield (
                f"and {label}.{children.name} = Children(..., cascade={children.cascade}) contradict each other.",
                "Remove one of the two.",
            )
    if on_delete in (SET_NULL, SET_DEFAULT) and (field.attname in layout.identity or field.attribute.immutable):
        yield "would change a reference that is immutable or part of the primary key.", "Choose another on_delete."
    if field.attribute.checked and layout.expires is not None:
        yield "is checked, and its objects expire: the app cannot count what DynamoDB deletes.", "Remove checked=True."
    if field.attribute.checked and target.derived_by:
        yield (
            f"is checked, and {label} objects are derived from others: each change of those replaces them, with the "
            "number of objects that refer to them.",
            "Remove checked=True, or refer to the object that they are derived from.",
        )
    yield from _key_problems(field, layout)


def _expires(model: Any) -> bool:
    """Return whether the objects of a model expire."""
    name = registry.layout_of(model).expires
    return name is not None and not model._meta.get_field(name).attribute.provisional


_LEAVE_OUT = "Write on_delete=models.DO_NOTHING, and handle the reference in your own code."


def _key_problems(field: Any, layout: ModelLayout) -> Iterator[tuple[str, str]]:
    """Yield why the objects that refer to one object could not be found."""
    if Referrers(field.related_model, field).is_by_table:
        return
    short, reference = field.model._meta.object_name, field.attname
    if not any(lists(key, layout, reference) for key in layout.indexes):
        yield (
            f"requires a query for the objects that refer to it, but no key of {layout.label} lists them.",
            f'Declare a key, such as models.IndexKey("gs1", "{short.upper()}#{{{reference}}}", ...).',
        )
    if layout.soft_delete and layout.trash is None:
        yield (
            f"needs the objects in the trash too, and {layout.label} has no index for its trash.",
            f"Set {short}.Meta.trash_index.",
        )


def lists(key: AccessKey, layout: ModelLayout, *reference: str) -> bool:
    """Return whether a key of an index has all objects with the same reference in one partition."""
    rest = {*key.variables} - {*reference}
    whole = {*key.partition.variables} <= {*reference} and all(layout.attributes[name].required for name in rest)
    return whole and key.condition is None


#: E013, W902 and W903 report the alternatives to these apps if the project uses them.
_REPLACED: Final = frozenset(f"django.contrib.{name}" for name in ("admin", "auth", "contenttypes", "sessions"))


def check_sql_models(app_configs: Sequence[AppConfig] | None = None, **kwargs: object) -> list[CheckMessage]:
    """W912: one warning for each app, with all of its models that no database can store."""
    found: dict[tuple[AppConfig, str], list[type[models.Model]]] = defaultdict(list)
    for model in apps.get_models():
        config = model._meta.app_config
        if config is None or (app_configs is not None and config not in app_configs):
            continue
        if config.name not in _REPLACED and _is_table(model) and uses_engine(alias := router.db_for_write(model)):
            found[config, alias].append(model)
    return [_warning(config, alias, each) for (config, alias), each in found.items()]


def _is_table(model: type[models.Model]) -> bool:
    """Return whether a model has a separate table. Another check reports the user model."""
    options = model._meta
    is_user = options.label_lower == settings.AUTH_USER_MODEL.lower()
    return options.managed and not (options.proxy or options.swapped or is_user or is_stored_in_dynamodb(model))


def _warning(config: AppConfig, alias: str, unusable: Sequence[type[models.Model]]) -> Warning:
    names = ", ".join(model._meta.label for model in unusable)
    is_one = len(unusable) == 1
    return Warning(
        f"{names} {'is a model' if is_one else 'are models'} for an SQL database, but this project has no "
        f"such database (DATABASES[{alias!r}] is {ENGINE}): every query of {'it' if is_one else 'them'} "
        "raises an error.",
        hint=f"{way_out(unusable[0])}, or add an SQL database to DATABASES and send the app's models to it with "
        "DATABASE_ROUTERS.",
        obj=config.label,
        id="dynamo_single.W912",
    )


_INSTEAD = "Keep the other object's pk in a field of its own, or keep this model in DynamoDB too."


def check_references_from_sql(app_configs: Sequence[AppConfig] | None = None, **kwargs: object) -> list[CheckMessage]:
    """E010: return the messages for the references from SQL models of some apps to our models."""
    messages: list[CheckMessage] = []
    for model in apps.get_models():
        options: Any = model._meta
        if app_configs is not None and options.app_config not in app_configs:
            continue
        if is_stored_in_dynamodb(model) or uses_engine(router.db_for_write(model)):
            continue
        for field in (*options.local_fields, *options.local_many_to_many):
            target = field.related_model
            if isinstance(target, type) and is_stored_in_dynamodb(target):
                messages += _sql_problems(field, target)
    return messages


def _sql_problems(field: Any, target: Any) -> Iterator[Error]:
    where = f"{field.name} refers to {target._meta.label}, which is stored in DynamoDB"
    if field.many_to_many:
        hint = "Make the membership a separate model with a ForeignKey to each side, and query that model."
        yield _error(field, f"{where}: its objects would be found by a join, which no database can do.", hint)
        return
    if field.remote_field.field_name != target._meta.pk.name:
        text = f"{where}, by {field.remote_field.field_name}: only by its pk it can be read."
        yield _error(field, text, "Leave to_field out.")
    elif column_of(target._meta.pk) is None:
        kind = type(target._meta.pk.attribute).__name__
        yield _error(field, f"{where}: no column of SQL can hold its pk, which is a {kind}.", _INSTEAD)
    # Django 6.1: database-level options such as on_delete=DB_CASCADE.
    if hasattr(field.remote_field.on_delete, "on_delete_sql"):
        text = f"{where}: the database does not know when an object is deleted there."
        yield _error(field, text, "Use an on_delete that Django executes, such as models.CASCADE.")


def _error(field: ModelField, message: str, hint: str) -> Error:
    return Error(message, hint=hint, obj=field.model, id="dynamo_single.E010")
