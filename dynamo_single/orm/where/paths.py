"""Names that lead out of an object, or into one of its attributes: what is refused of them, and the way out.

DynamoDB has no joins and returns attributes whole. This module must not know plans or querysets.
"""

from __future__ import annotations

from typing import Any, Literal

from django.db.models.fields.related_descriptors import ReverseManyToOneDescriptor, ReverseOneToOneDescriptor

from dynamo_single.exceptions import NotSupported
from dynamo_single.orm.schema.attributes.documents import SetAttribute
from dynamo_single.orm.schema.children import Children
from dynamo_single.orm.schema.kinds import DynamoModel, ModelField

Use = Literal["values", "order_by"]


def refuse_path(model: type[DynamoModel], name: str, use: Use) -> None:
    """Raise ``NotSupported`` for ``company__name`` and ``data__price`` where an attribute is to be named."""
    first, _, rest = name.lstrip("-+").partition("__")
    field: Any = next((each for each in model._meta.concrete_fields if first in (each.name, each.attname)), None)
    if field is None or not rest or not hasattr(field, "attribute"):
        return
    label, asked = model._meta.label, f"{use}({name!r})"
    if field.is_relation:
        other, last = field.related_model._meta.label, rest.rpartition("__")[2]
        copy = f'{first}_{last} = models.CopiedAttribute("{field.name}", "{last}")'
        way = {
            "values": f"Read objects with select_related({field.name!r}), or keep a copy: {copy}",
            "order_by": f"Sort in Python, or keep a copy that a sort key names: {copy}",
        }
        raise NotSupported(f"{label}: {asked} needs {other}, and DynamoDB has no joins. {way[use]}.")
    way = {
        "values": f"Name {first!r} and take what you need in Python, or keep it in an attribute of its own",
        "order_by": "Sort in Python, or keep the value in an attribute of its own, which a sort key names",
    }
    if field.attribute.document and not isinstance(field.attribute, SetAttribute):
        kept = f'{rest.rpartition("__")[2]} = models.ExtractedAttribute("{field.name}__{rest}")'
        way["order_by"] = f"Say .allow_in_memory(limit=...), or keep it in an attribute that a sort key names: {kept}"
    raise NotSupported(f"{label}: {asked} leads into {first}, and DynamoDB {_CANNOT[use]}. {way[use]}.")


_CANNOT = {
    "values": "charges whole items, so that parts of attributes are not asked for",
    "order_by": "orders by the sort key only",
}


def elsewhere(model: type[DynamoModel], name: str) -> str | None:
    """Where to ask what ``filter(orders__status=...)`` asks, if the name's first part is a relation of the model."""
    first, _, rest = name.partition("__")
    relation: Any = getattr(model, first, None)
    if isinstance(relation, ReverseOneToOneDescriptor):
        return of_those_that_refer(relation.related.field, rest)
    if isinstance(relation, Children | ReverseManyToOneDescriptor):
        return of_those_that_refer(relation.field, rest)
    way_out: str | None = relation.way_out(rest) if hasattr(relation, "way_out") else None
    return way_out


def reference_between(model: type[DynamoModel], other: type[DynamoModel]) -> Any:
    """The first reference of a model to another one; ``None`` if it has none."""
    fields: Any = model._meta.concrete_fields
    related = (field for field in fields if field.is_relation)
    wanted = other._meta.concrete_model
    return next((field for field in related if field.related_model._meta.concrete_model is wanted), None)


def of_those_that_refer(reference: ModelField, path: str) -> str:
    """How to find objects by what refers to them: those are asked, and give the keys."""
    other = reference.model._meta.object_name
    asked = f"{path}=..." if path else "..."
    return (
        f"DynamoDB has no joins. Ask {other} itself: "
        f"filter(pk__in={other}.objects.filter({asked}).values_list({reference.attname!r}, flat=True))"
    )
