"""E030: references whose ``on_delete`` could not be carried out; E035: references without one.

E031: many-to-many relations without edges to ask.

W911: a partition that is written as that of another model's objects, but for the format of a value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from django.core.checks import Error, Warning
from django.core.exceptions import FieldDoesNotExist
from django.db.models import CASCADE, SET_DEFAULT, SET_NULL

from dynamo_single.backend.errors import is_stored_in_dynamodb
from dynamo_single.exceptions import ConfigurationError
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.children import declared as children_of
from dynamo_single.orm.schema.children import says_on_delete
from dynamo_single.orm.schema.encoding.keys import KeyPart, Template
from dynamo_single.orm.schema.kinds import DynamoModel
from dynamo_single.orm.schema.layout import AccessKey, ModelLayout
from dynamo_single.orm.schema.referrers import Referrers, references

if TYPE_CHECKING:
    from dynamo_single.orm.schema.fields.fields import ReferenceField


def check_on_delete(model: type[DynamoModel]) -> Iterator[Error]:
    """What is wrong with the references of a model."""
    for field in references(model):
        try:
            layout = registry.layout_of(model)
            found = list(_problems(field, layout, field.remote_field.on_delete))
        except ConfigurationError:
            continue  # E003 says so
        for message, hint in found:
            name = field.remote_field.on_delete.__name__
            yield Error(f"{field.name}: on_delete={name} {message}", hint=hint, obj=model, id="dynamo_single.E030")


def check_says_on_delete(model: type[DynamoModel]) -> Iterator[Error]:
    """E035: a reference without an ``on_delete``, with the line to write, which changes no deletion.

    A check rather than an error of ``__init__()``, so that models which old migrations name can still be imported.
    """
    fields: list[Any] = [] if model._meta.proxy else [each for each in model._meta.concrete_fields if each.is_relation]
    for field in fields:
        if says_on_delete(field) or isinstance(field.related_model, str):
            continue
        try:
            layout = registry.layout_of(model)
            hint = _line_of(field, layout)
        except ConfigurationError:
            continue  # E003 says so
        yield Error(f"{field.name} has no on_delete.", hint=hint, obj=model, id="dynamo_single.E035")


def _line_of(field: Any, layout: ModelLayout) -> str:
    """Return the line that says what a deletion does today, and what else has to be written with it."""
    target = field.related_model
    children = [each for each in children_of(target) if each.problem() is None and each.field == field]
    following = next((each for each in children if each.cascades), None)
    takes_along = following is not None and not any(_problems(field, layout, CASCADE))
    arguments = [field.attribute.declared["to"]]
    arguments += [f"{name}={text}" for name, text in field.attribute.declared.items() if name != "to"]
    arguments.append(f"on_delete=models.{'CASCADE' if takes_along else 'DO_NOTHING'}")
    line = f"Write {field.name} = models.{type(field.attribute).__name__}({', '.join(arguments)})"
    if following is None:
        return f"{line} for what a deletion does today: nothing. Or another on_delete, as in Django."
    label = f"{target._meta.object_name}.{following.name}"
    if takes_along:
        return f"{line}: {label} takes these objects along."
    if following.cascade:
        return f"{line}: {label} says cascade=True already."
    return f"{line}, and cascade=True in {label} = models.Children(...), which takes these objects along."


def check_derived_expiry(model: type[DynamoModel]) -> Iterator[Error]:
    """E037: objects that follow from others which expire, and would be read until DynamoDB deletes their items."""
    if not model.derived_by:
        return
    try:
        source: Any = model._meta.get_field(model.derived_by)
        target = source.related_model
        expires = target._options.purge_after is None and _expires(target)
        if not expires or registry.layout_of(model).expires is not None:
            return
    except (ConfigurationError, FieldDoesNotExist, AttributeError):
        return  # E003 says so
    yield Error(
        f"{target._meta.label} objects expire, and {model._meta.label} objects follow from them ({model.derived_by}): "
        "without a TTLAttribute, an expired one is read until DynamoDB deletes its item.",
        hint="Declare expires = models.TTLAttribute(null=True): each write of the other object sets it.",
        obj=model,
        id="dynamo_single.E037",
    )


def check_many_to_many(model: type[DynamoModel]) -> Iterator[Error]:
    """What is wrong with the many-to-many relations of a model."""
    relations: list[Any] = list(model._meta.local_many_to_many)
    for relation in relations:
        # Django's own are E008; its checks report edges that are no model, or have no references.
        if hasattr(relation, "makes_edges") and not isinstance(relation.remote_field.through, str):
            for message, hint in _edge_problems(relation):
                text = f"{relation.name}: {message}"
                yield Error(text, hint=hint, obj=model, id="dynamo_single.E031")


def check_partitions(model: type[DynamoModel]) -> Iterator[Warning]:
    """W911: a partition that is the one of what a reference leads to, but for the format of a value.

    Both keys work, so that nothing else would say that the objects lie elsewhere.
    """
    fields: list[Any] = [field for field in model._meta.concrete_fields if field.is_relation]
    for field in fields:
        try:
            layout = registry.layout_of(model)
            if not is_stored_in_dynamodb(field.related_model):
                continue
            target = registry.layout_of(field.related_model)
        except ConfigurationError:
            continue  # E003 says so
        own, theirs = layout.primary.partition, target.primary.partition
        differing = _differing(own, theirs, field, len(target.identity) == 1) if layout.alias == target.alias else []
        if differing:
            written = " and ".join(_written(part, other.spec) for part, other in differing)
            yield Warning(
                f"The partition {own.source!r} is not that of {target.label}, {theirs.source!r}: the formats differ, "
                f"so that objects of {layout.label} do not lie beside their {field.name}.",
                hint=f"Write {written} for one partition, or another literal for a partition of their own. Stored "
                "objects move by a migration.",
                obj=model,
                id="dynamo_single.W911",
            )


def _differing(own: Template, theirs: Template, field: ReferenceField, alone: bool) -> list[tuple[KeyPart, KeyPart]]:
    """The values that two templates write in different formats; none unless all else is the same.

    ``alone`` says that a single value is the whole identity of what the reference leads to.
    """
    if own.pattern != theirs.pattern:
        return []
    pairs = list(zip(own.parts, theirs.parts, strict=True))
    if not all(part.name == field.attname and _is_of(part, other, alone) for part, other in pairs):
        return []
    return [(part, other) for part, other in pairs if part.spec != other.spec]


def _is_of(part: KeyPart, other: KeyPart, alone: bool) -> bool:
    """Whether a part of a reference has the value that another has in the keys of what it leads to."""
    return _steps(part.path) == _steps((other.name, *other.path)) if part.path else alone


def _steps(names: Iterable[str]) -> list[str]:
    """A path in which each reference is called by its name, whether it is written so or by what it stores."""
    return [name.removesuffix("_id") for name in names]


def _written(part: KeyPart, spec: str) -> str:
    return f"{{{part.shown}:{spec}}}" if spec else f"{{{part.shown}}}"


def _edge_problems(relation: Any) -> Iterator[tuple[str, str]]:
    through, target = relation.remote_field.through, relation.remote_field.model
    for each in (through, target):
        if not is_stored_in_dynamodb(each):
            yield f"{each._meta.label} is not stored in DynamoDB.", "Keep both sides and the edges in one place."
            return
    label = through._meta.label
    references = (relation.m2m_field_name(), relation.m2m_reverse_field_name())
    if None in references:
        return
    ends = {through._meta.get_field(name).attname for name in references}
    try:
        layout = registry.layout_of(through)
    except ConfigurationError:
        return  # E003 says so
    if {*layout.identity} != ends:
        both = "".join(f"#{{{name}}}" for name in sorted(ends))
        yield (
            f"the primary key of {label} is not its two references and nothing else, so that it could not be told "
            "whether an edge is there.",
            f"Declare it so: models.Key and its templates name {both.lstrip('#')}.",
        )
    yield from _unchecked(relation, references)
    if layout.soft_delete:
        yield f"{label} has a trash, where an edge would stay that is not added again.", "Derive it from models.Model."
    for name in sorted(ends):
        by_table = {*layout.primary.partition.variables} == {name}
        if not by_table and not any(lists(key, layout, name) for key in layout.indexes):
            key = f'models.IndexKey("gs1", "{label.rpartition(".")[2].upper()}#{{{name}}}", ...)'
            yield f"no key of {label} lists the edges of one {name}.", f"Declare one, such as {key}."


def _unchecked(relation: Any, references: Iterable[str]) -> Iterator[tuple[str, str]]:
    through = relation.remote_field.through
    for name in references:
        attribute = getattr(through._meta.get_field(name), "attribute", None)
        if relation.checked and not getattr(attribute, "checked", False):
            yield (
                f"it is checked, and {through._meta.label}.{name} is not: an edge could be created to an object that "
                "is deleted at the same time.",
                f"Write it there: {name} = models.ReferenceAttribute(..., on_delete=models.CASCADE, checked=True).",
            )


def _problems(field: Any, layout: ModelLayout, on_delete: object) -> Iterator[tuple[str, str]]:
    target = field.related_model
    label = target._meta.label
    if not is_stored_in_dynamodb(target):
        yield f"is about {label}, which is in an SQL database: nothing here hears of its deletions.", _LEAVE_OUT
        return
    if target._options.alias != layout.alias:
        yield f"is about {label}, which is in another table: one transaction has one table here.", _LEAVE_OUT
        return
    if target._options.purge_after is not None or _expires(target):
        made = field.model._meta.auto_created
        hint = f"Name a model of the edges, through=..., whose {field.name} has on_delete=models.DO_NOTHING."
        yield (
            f"is about {label}, whose objects expire: DynamoDB deletes them, and nobody hears of it.",
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
                "Say it in one of the two places.",
            )
    if on_delete in (SET_NULL, SET_DEFAULT) and (field.attname in layout.identity or field.attribute.immutable):
        yield "would change what never changes: it is a part of the primary key, or immutable.", "Take another one."
    if field.attribute.checked and layout.expires is not None:
        yield "is checked, and the objects with it expire: nobody counts what DynamoDB deletes.", "Leave checked out."
    if field.attribute.checked and target.derived_by:
        yield (
            f"is checked, and {label} objects follow from others: they are written whole whenever those change, and do "
            "not keep who refers to them.",
            "Leave checked out, or refer to the object that they follow from.",
        )
    yield from _key_problems(field, layout)


def _expires(model: Any) -> bool:
    """Whether objects expire to which others refer."""
    name = registry.layout_of(model).expires
    return name is not None and not model._meta.get_field(name).attribute.provisional


_LEAVE_OUT = "Write on_delete=models.DO_NOTHING, and decide in code of your own what becomes of the reference."


def _key_problems(field: Any, layout: ModelLayout) -> Iterator[tuple[str, str]]:
    """What keeps the objects that refer to one from being found."""
    if Referrers(field.related_model, field).is_by_table:
        return
    short, reference = field.model._meta.object_name, field.attname
    if not any(lists(key, layout, reference) for key in layout.indexes):
        yield (
            f"needs the objects that refer to one, and no key of {layout.label} lists them.",
            f'Declare one, such as models.IndexKey("gs1", "{short.upper()}#{{{reference}}}", ...).',
        )
    if layout.soft_delete and layout.trash is None:
        yield (
            f"needs the objects in the trash too, and {layout.label} has no index for its trash.",
            f"Set {short}.Meta.trash_index.",
        )


def lists(key: AccessKey, layout: ModelLayout, reference: str) -> bool:
    """Whether a key of an index has all objects with one reference in one partition."""
    rest = {*key.variables} - {reference}
    whole = {*key.partition.variables} <= {reference} and all(layout.attributes[name].required for name in rest)
    return whole and key.condition is None
