"""Names that lead out of an object, or into one of its attributes: what is refused of them, and the way out.

DynamoDB has no joins and returns attributes whole. This module must not know plans or querysets.
"""

from __future__ import annotations

from typing import Any, Literal

from django.db.models.fields.related_descriptors import ReverseManyToOneDescriptor, ReverseOneToOneDescriptor

from dynamo_single.exceptions import NotSupported
from dynamo_single.orm.conditions.wording import COMPUTE_IN_PYTHON, SORT_IN_PYTHON, extracted, sentence
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
            "values": f"Read objects: [... for each in queryset.select_related({field.name!r})]. Or keep a copy: "
            f"{copy}",
            "order_by": f"{sentence(SORT_IN_PYTHON)}. Or keep a copy that a sort key names: {copy}",
        }
        raise NotSupported(f"{label}: {asked} needs {other}, and DynamoDB has no joins. {way[use]}.")
    way = {
        "values": f"Name {first!r}, or {COMPUTE_IN_PYTHON}",
        "order_by": f"Either {SORT_IN_PYTHON}. Or keep the value in a separate attribute that a sort key names",
    }
    if field.attribute.document and not isinstance(field.attribute, SetAttribute):
        kept = f"{rest.rpartition('__')[2]} = {extracted(f'{field.name}__{rest}')}"
        way["order_by"] = f"Call .allow_in_memory(limit=1000), or keep it in an attribute that a sort key names: {kept}"
    raise NotSupported(f"{label}: {asked} leads into {first}, and DynamoDB {_CANNOT[use]}. {way[use]}.")


_CANNOT = {
    "values": "charges for whole items, so that parts of attributes are not read",
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
    other, values = reference.model._meta.object_name, f"values_list({reference.attname!r}, flat=True)"
    without = f"exclude(pk__in={other}.objects.{values})"
    if path in ("isnull", reference.model._meta.pk.name):
        return (
            f"DynamoDB has no joins. Query {other} first: {without} returns the objects without one, "
            f"filter(pk__in={other}.objects.{values}) those with one, and filter(pk__in={other}.objects.filter(pk=...)."
            f"{values}) that of a known one"
        )
    asked = f"filter(pk__in={other}.objects.filter({f'{path}=...' if path else '...'}).{values})"
    known = "" if path else f"; {without} returns the objects without one"
    return f"DynamoDB has no joins. Query {other} first: {asked}{known}"


#: How many references lead to another model at most, and how many ways there are named.
MAX_STEPS = 4
MAX_WAYS = 3


def of_those_referred_to(model: type[DynamoModel], field: ModelField) -> str:
    """How to find objects by what they refer to: that is queried first, and one reference after the other follows."""
    wanted: Any = field.model._meta.concrete_model
    level: list[list[Any]] = [[]]
    for _ in range(MAX_STEPS):
        # At each step the references that lead on from the last model of each chain.
        level = [[*chain, each] for chain in level for each in _references(chain[-1].related_model if chain else model)]
        found = [chain for chain in level if chain[-1].related_model._meta.concrete_model is wanted]
        if found:
            ways = " or ".join(_chained(chain, f"{field.name}=...") for chain in found[:MAX_WAYS])
            return f"DynamoDB has no joins. Query {wanted._meta.object_name} first: {ways}"
    return f"DynamoDB has no joins. Query {wanted._meta.object_name} first and filter by its objects"


def measured_elsewhere(model: type[DynamoModel], field: ModelField, measure: str) -> str:
    """How to aggregate another model's attribute: of what refers to this model, or of what it refers to."""
    measured: Any = field.model
    back, forward = reference_between(measured, model), reference_between(model, measured)
    if back is not None and forward is None and not field.model._meta.auto_created:
        other = field.model._meta.object_name
        groups = f"values({back.attname!r}).annotate({measure}({field.name!r}))"
        return f"Group {other} by its reference: {other}.objects.allow_in_memory(limit=1000).order_by().{groups}"
    along = "" if forward is None else f".select_related({forward.name!r})"
    return f"{sentence(COMPUTE_IN_PYTHON.removesuffix(']'))}{along}]"


def _references(model: Any) -> list[Any]:
    return [field for field in model._meta.concrete_fields if field.is_relation]


def _chained(chain: list[Any], condition: str) -> str:
    for reference in reversed(chain):
        condition = f"{reference.name}__in={reference.related_model._meta.object_name}.objects.filter({condition})"
    return condition


def excluded(model: type[DynamoModel], query: Any) -> Any:
    """The reference that ``exclude(orders__status=...)`` goes over, of which Django makes a query of its own."""
    tables = {each.table_name for each in query.alias_map.values()}
    relations = (each for each in model._meta.related_objects if each.one_to_many or each.one_to_one)
    return next((each.field for each in relations if each.related_model._meta.db_table in tables), None)


def without(reference: ModelField) -> str:
    """How to find objects by what does not refer to them."""
    other, values = reference.model._meta.object_name, f"values_list({reference.attname!r}, flat=True)"
    return (
        f"DynamoDB has no joins. Query {other} first: exclude(pk__in={other}.objects.{values}) returns the objects "
        f"without one, filter(pk__in={other}.objects.{values}) those with one, and "
        f"exclude(pk__in={other}.objects.filter(...).{values}) those without one of some kind"
    )


def over_edges(model: type[DynamoModel], field: ModelField) -> str | None:
    """How to find objects by what a many-to-many relation leads to, or by its edges; ``None`` if there is none."""
    other: Any = field.model
    meta: Any = model._meta
    ends = [(each.name, each, each.m2m_field_name(), each.m2m_reverse_field_name()) for each in meta.many_to_many]
    for each in meta.related_objects:
        if each.many_to_many and each.get_accessor_name():
            relation = each.field
            ends.append(
                (each.get_accessor_name(), relation, relation.m2m_reverse_field_name(), relation.m2m_field_name())
            )
    for accessor, relation, near, far in ends:
        through = relation.remote_field.through
        target = through._meta.get_field(far).related_model
        if other._meta.concrete_model is through:
            asked = f"{field.name}=..."
        elif other._meta.concrete_model is target._meta.concrete_model:
            asked = f"{far}__in={target._meta.object_name}.objects.filter({field.name}=...)"
        else:
            continue
        own = through._meta.get_field(near).attname
        # A model that is made for a relation has no name in a module.
        made = through._meta.auto_created
        edges = f"{model._meta.object_name}.{accessor}.through" if made else through._meta.object_name
        return (
            f"DynamoDB has no joins. Query {edges} first: "
            f"filter(pk__in={edges}.objects.filter({asked}).values_list({own!r}, flat=True))"
        )
    return None
