"""Read the subject, operator and value of one Django lookup.

Django resolves names, lookups and values; this module extracts them from the result. It uses Django's lookup classes,
and does not create conditions or depend on keys, plans or requests.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Literal

from django.db.models import Exists, Transform, lookups
from django.db.models.expressions import Col, CombinedExpression, Expression, ResolvedOuterRef, Value
from django.db.models.fields import json, related_lookups
from django.db.models.fields.related_descriptors import ReverseManyToOneDescriptor, ReverseOneToOneDescriptor
from msgspec import Struct
from msgspec.structs import replace

from dynamo_single.exceptions import InvalidValue, NotSupported
from dynamo_single.orm.conditions.terms import MAX_MEMBERS, And, Compare, Condition, Or
from dynamo_single.orm.conditions.wording import (
    COMPUTE_IN_PYTHON,
    FILTER_IN_MEMORY,
    FILTER_IN_PYTHON,
    SORT_IN_PYTHON,
    capitalized,
    extraction_advice,
)
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.attributes import CanonicalAttribute
from dynamo_single.orm.schema.attributes.computed import FOLDS
from dynamo_single.orm.schema.attributes.documents import SetAttribute
from dynamo_single.orm.schema.attributes.shapes import member_value, stored_steps
from dynamo_single.orm.schema.fields.base import DynamoField, IdentityField
from dynamo_single.orm.schema.fields.documents import AttributeType, Canonical, Size
from dynamo_single.orm.schema.keys.secret_values import MASK
from dynamo_single.orm.schema.keys.values import checked_text, shown
from dynamo_single.orm.schema.references import Children
from dynamo_single.orm.schema.types import DynamoModel, ModelField

# Names that lead to another object, or into an attribute: the unsupported uses and their alternatives.  DynamoDB has no
# joins and returns attributes whole.

Use = Literal["values", "order_by"]


def refuse_path(model: type[DynamoModel], name: str, use: Use) -> None:
    """Raise ``NotSupported`` for ``company__name`` and ``data__price`` if an attribute name is required."""
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
            "order_by": f"{capitalized(SORT_IN_PYTHON)}. Or call .allow_in_memory(limit=1000), which reads the related "
            f"objects. Or keep a copy that a sort key names: {copy}",
        }
        raise NotSupported(f"{label}: {asked} needs {other}, and DynamoDB has no joins. {way[use]}.")
    way = {
        "values": f"Name {first!r}, or {COMPUTE_IN_PYTHON}",
        "order_by": f"Either {SORT_IN_PYTHON}. Or keep the value in a separate attribute that a sort key names",
    }
    if field.attribute.document and not isinstance(field.attribute, SetAttribute):
        kept = f"{rest.rpartition('__')[2]} = {extraction_advice(f'{field.name}__{rest}')}"
        way["order_by"] = f"Call .allow_in_memory(limit=1000), or keep it in an attribute that a sort key names: {kept}"
    raise NotSupported(f"{label}: {asked} leads into {first}, and DynamoDB {_CANNOT[use]}. {way[use]}.")


_CANNOT = {
    "values": "charges for whole items, so reading a part of an attribute saves nothing",
    "order_by": "orders by the sort key only",
}


def relation_advice(model: type[DynamoModel], name: str) -> str | None:
    """Return the alternative to ``filter(orders__status=...)`` if the name's first part is a relation of the model."""
    first, _, rest = name.partition("__")
    relation: Any = getattr(model, first, None)
    if isinstance(relation, ReverseOneToOneDescriptor):
        return referrer_advice(relation.related.field, rest)
    if isinstance(relation, Children | ReverseManyToOneDescriptor):
        return referrer_advice(relation.field, rest)
    way_out: str | None = relation.way_out(rest) if hasattr(relation, "way_out") else None
    return way_out


def reference_between(model: type[DynamoModel], other: type[DynamoModel]) -> Any:
    """Return the first reference of a model to another; ``None`` if it has none."""
    fields: Any = model._meta.concrete_fields
    related = (field for field in fields if field.is_relation)
    wanted = other._meta.concrete_model
    return next((field for field in related if field.related_model._meta.concrete_model is wanted), None)


def referrer_advice(reference: ModelField, path: str) -> str:
    """Explain how to find objects by referring objects: query those first, and use their keys."""
    other, values = reference.model._meta.object_name, f"values_list({reference.attname!r}, flat=True)"
    without = f"exclude(pk__in={other}.objects.{values})"
    if path in ("isnull", reference.model._meta.pk.name):
        return (
            f"DynamoDB has no joins. Query {other} first: {without} returns the objects without one, "
            f"filter(pk__in={other}.objects.{values}) the objects with one, and "
            f"filter(pk__in={other}.objects.filter(pk=...).{values}) the object of a known one"
        )
    asked = f"filter(pk__in={other}.objects.filter({f'{path}=...' if path else '...'}).{values})"
    known = "" if path else f"; {without} returns the objects without one"
    return f"DynamoDB has no joins. Query {other} first: {asked}{known}"


#: How many references lead to another model at most, and how many ways there are named.
MAX_STEPS = 4
MAX_WAYS = 3


def reference_advice(model: type[DynamoModel], field: ModelField) -> str:
    """Explain how to find objects by referenced objects: query those first, then follow each reference."""
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


def aggregate_advice(model: type[DynamoModel], field: ModelField, measure: str) -> str:
    """Explain how to aggregate an attribute of a referring or referenced model."""
    measured: Any = field.model
    back, forward = reference_between(measured, model), reference_between(model, measured)
    if back is not None and forward is None and not field.model._meta.auto_created:
        other = field.model._meta.object_name
        groups = f"values({back.attname!r}).annotate({measure}({field.name!r}))"
        return f"Group {other} by its reference: {other}.objects.allow_in_memory(limit=1000).order_by().{groups}"
    along = "" if forward is None else f".select_related({forward.name!r})"
    return f"{capitalized(COMPUTE_IN_PYTHON.removesuffix(']'))}{along}]"


def _references(model: Any) -> list[Any]:
    return [field for field in model._meta.concrete_fields if field.is_relation]


def _chained(chain: list[Any], condition: str) -> str:
    for reference in reversed(chain):
        condition = f"{reference.name}__in={reference.related_model._meta.object_name}.objects.filter({condition})"
    return condition


def excluded_reference(model: type[DynamoModel], query: Any) -> Any:
    """The reference that ``exclude(orders__status=...)`` goes over, of which Django makes a query of its own."""
    tables = {each.table_name for each in query.alias_map.values()}
    relations = (each for each in model._meta.related_objects if each.one_to_many or each.one_to_one)
    return next((each.field for each in relations if each.related_model._meta.db_table in tables), None)


def exclusion_advice(reference: ModelField) -> str:
    """Explain how to find objects without a referring object."""
    other, values = reference.model._meta.object_name, f"values_list({reference.attname!r}, flat=True)"
    return (
        f"DynamoDB has no joins. Query {other} first: exclude(pk__in={other}.objects.{values}) returns the "
        f"objects without one, filter(pk__in={other}.objects.{values}) the objects with one, and "
        f"exclude(pk__in={other}.objects.filter(...).{values}) the objects without a matching one"
    )


def edge_advice(model: type[DynamoModel], field: ModelField) -> str | None:
    """Explain how to find objects by a many-to-many relation, or by its edges; return ``None`` without one."""
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


#: Lookups with an exact DynamoDB equivalent, and our operator for each.
OPERATORS: dict[type[Any], str] = {
    lookups.Exact: "exact",
    lookups.In: "in",
    lookups.GreaterThan: "gt",
    lookups.GreaterThanOrEqual: "gte",
    lookups.LessThan: "lt",
    lookups.LessThanOrEqual: "lte",
    lookups.Range: "range",
    lookups.StartsWith: "startswith",
    lookups.Contains: "contains",
    lookups.IsNull: "isnull",
    Canonical: "canonical",
    AttributeType: "attribute_type",
}
#: Lookups for keys of a map. Django's other lookups of these names derive from them and differ.
KEY_LOOKUPS: dict[type[Any], str] = {
    json.HasKey: "has_key",
    json.HasKeys: "has_keys",
    json.HasAnyKeys: "has_any_keys",
}
#: Lookups that compare a folded copy instead of the string itself.
FOLDED = {"iexact": "exact", "icontains": "contains", "istartswith": "startswith"}
#: Lookups without an exact DynamoDB equivalent, and their alternatives.
ADVICE = {
    "iendswith": "keep the folded string reversed in a separate attribute and use startswith on that, or ",
    "endswith": "keep the string reversed in a separate attribute and use startswith on that, or ",
    "regex": "",
    "iregex": "",
    "contained_by": "",
    "search": "keep the words in a UnicodeSetAttribute and use contains on that, or ",
    "trigram_similar": "",
    "trigram_word_similar": "",
}
#: The lookups that cannot be computed in memory either.
SQL_LOOKUPS = ("search", "trigram_similar", "trigram_word_similar")
DOCUMENT_TYPES = {"M", "L"}
POSITION = re.compile("[0-9]+")
#: How many places the steps of one lookup may mean; each step that is a number doubles them.
MAX_PLACES = 64


class Subject(Struct, frozen=True):
    """The subject of a comparison: an attribute, a path in it, or the size of one of these."""

    field: Any
    steps: tuple[str, ...] = ()
    sized: bool = False

    @property
    def name(self) -> str:
        """As ``filter()`` takes it."""
        return "__".join((self.field.attname, *self.steps, *(("size",) if self.sized else ())))


def operator_of(node: object) -> str:
    """The operator of ours that a lookup is; raises ``NotSupported`` by name for any other."""
    name = getattr(node, "lookup_name", None)
    if isinstance(node, json.HasKeyLookup) and type(node) in KEY_LOOKUPS:
        return KEY_LOOKUPS[type(node)]
    for kind in type(node).__mro__:
        if kind in OPERATORS and name == kind.lookup_name:
            return OPERATORS[kind]
    if name in ADVICE:
        otherwise = FILTER_IN_PYTHON if name in SQL_LOOKUPS else FILTER_IN_MEMORY
        raise NotSupported(f"DynamoDB has no exact equivalent of the lookup {name!r}: {ADVICE[name]}{otherwise}.")
    if isinstance(node, related_lookups.RelatedLookupMixin) or name is None:
        raise NotSupported(
            f"DynamoDB cannot evaluate a condition of the type {type(node).__name__}. {capitalized(FILTER_IN_PYTHON)}."
        )
    known = sorted({*OPERATORS.values(), *KEY_LOOKUPS.values(), *FOLDED})
    raise NotSupported(f"The lookup {name!r} is not supported. Use one of {', '.join(known)}, or {FILTER_IN_PYTHON}.")


def subject_of(model: type[DynamoModel], side: Any) -> Subject:
    """Return the subject of a side of a lookup; raise ``NotSupported`` for values outside the model's items."""
    steps: list[str] = []
    sized = isinstance(side, Size)
    if sized:
        side = side.lhs
    while isinstance(side, json.KeyTransform | Size):
        # After "size" there are further steps, so it is no size but a key of that name.
        steps.insert(0, side.key_name if isinstance(side, json.KeyTransform) else "size")
        side = side.lhs
    if not isinstance(side, Col):
        raise _computed(model, side)
    field = compared_field(model, side)
    for step in steps:
        checked_text(step, path=f"a place in {field.attname}")
    if steps and field.attribute.attr_type not in DOCUMENT_TYPES:
        raise NotSupported(
            f"DynamoDB cannot look into the JSON string of {field.attname}. To filter by a path, make it a "
            f"MapAttribute. Otherwise {FILTER_IN_MEMORY}."
        )
    return Subject(field, _stored_names(field, steps) if steps else (), sized)


def _stored_names(field: DynamoField, steps: Sequence[str]) -> tuple[str, ...]:
    attribute: Any = field.attribute  # which fields know by a protocol
    return tuple(map(str, stored_steps(attribute, tuple(steps))))


def paths_of(subject: Subject) -> list[tuple[str | int, ...]]:
    """The places that the steps of a lookup can mean: ``7`` is a key of a map and a position of a list."""
    field = subject.field
    if not subject.steps:
        return [()]
    first, *rest = subject.steps
    if field.attribute.attr_type == "M":
        paths: list[tuple[str | int, ...]] = [(first,)]
    elif POSITION.fullmatch(first):
        paths = [(int(first),)]
    else:
        raise NotSupported(
            f"{field.attname}__{first} is not supported: {field.attname} is a list, whose elements have numbers "
            f"from 0 up: {field.attname}__0=..."
        )
    for step in rest:
        keyed: list[tuple[str | int, ...]] = [(*path, step) for path in paths]
        counted = [(*path, int(step)) for path in paths] if POSITION.fullmatch(step) else []
        paths = [*counted, *keyed]
        if len(paths) > MAX_PLACES:
            raise NotSupported(
                f"{field.attname}__{'__'.join(subject.steps)} can mean more than {MAX_PLACES} paths, since each "
                f"number is a key of a map or a position of a list. {capitalized(FILTER_IN_MEMORY)}."
            )
    return paths


def compared_field(model: type[DynamoModel], side: Col) -> DynamoField:
    """The field that is compared; another model's is refused."""
    field: Any = side.target
    if isinstance(field, DynamoField) and is_own(model, side):
        return field
    refused = f"Cannot filter {model._meta.label} by {field.model._meta.label}.{field.name}"
    edges = edge_advice(model, field)
    if edges is not None:
        raise NotSupported(f"{refused}: {edges}.")
    back = reference_between(field.model, model)
    if back is not None and reference_between(model, field.model) is None:
        raise NotSupported(f"{refused}: {referrer_advice(back, field.name)}.")
    raise NotSupported(f"{refused}: {reference_advice(model, field)}.")


def is_own(model: type[DynamoModel], side: Col) -> bool:
    """Return whether a column belongs to the model, rather than to a referenced object, even of the same model."""
    meta: Any = model._meta.concrete_model._meta  # type: ignore[union-attr]  # not None once a model is made
    field: Any = side.target
    return field.model._meta.concrete_model._meta is meta and side.alias in (meta.db_table, None)


def _computed(model: type[DynamoModel], side: object) -> NotSupported:
    """Return the error for a condition that would have to compute from the stored value."""
    # Django's own Exists(), which it makes for exclude() over a relation, has none of this app's options.
    if (
        isinstance(side, Exists)
        and not hasattr(side.query, "asked")
        and (reference := excluded_reference(model, side.query)) is not None
    ):
        label = model._meta.label
        return NotSupported(f"Cannot filter {label} by objects that refer to it: {exclusion_advice(reference)}.")
    source = getattr(side, "lhs", None)
    if not isinstance(side, Transform) or not isinstance(source, Col):
        return NotSupported(
            f"{_called(side)} in a condition is not supported: DynamoDB compares stored attributes and does not "
            f"compute. Keep the computed value in a separate attribute, or {FILTER_IN_MEMORY}."
        )
    name, part = source.target.name, side.lookup_name
    return NotSupported(
        f"{name}__{part} is not supported: DynamoDB compares stored attributes and does not compute. Keep the {part} "
        f"in a separate attribute, or {FILTER_IN_MEMORY}."
    )


def _called(expression: object) -> str:
    return "F()" if isinstance(expression, Col | CombinedExpression) else type(expression).__name__


def direct_value(node: Any) -> Any:
    """Return the value of a lookup; reject a queryset or an expression."""
    return plain_value(node.rhs)


def plain_value(value: Any) -> Any:
    """Return one of a lookup's values, as in ``direct_value``."""
    if isinstance(value, Value):
        return value.value
    if isinstance(value, ResolvedOuterRef):
        raise ValueError(
            "OuterRef() names an attribute of an outer query. Use this queryset in Subquery() or Exists()."
        )
    if isinstance(value, Expression) or hasattr(value, "resolve_expression"):
        if hasattr(value, "model"):
            raise NotSupported(
                "A queryset is not supported as the value of this lookup. Use __in, read the value first: "
                f"queryset.first(). Or {FILTER_IN_MEMORY}."
                if hasattr(value, "asked")
                else f"A queryset of {value.model._meta.label} is not supported as a value, because it is not stored "
                "in DynamoDB. Read its values first: list(queryset.values_list('pk', flat=True))."
            )
        raise NotSupported(
            f"{_called(value)} in this condition is not supported: DynamoDB compares two attributes as stored "
            f"and does not compute. Keep the computed value in a separate attribute, or {FILTER_IN_MEMORY}."
        )
    return value


def value_of(node: object, subject: Subject, operator: str) -> object:
    """Return the value of a lookup in the form that its operator needs."""
    value, field = direct_value(node), subject.field
    if operator in _VALUES:
        return _VALUES[operator](subject, value)
    if subject.steps and not subject.sized:
        return member_value(field.attribute, subject.steps, value)
    if subject.steps or subject.sized or isinstance(field, IdentityField):
        return value
    return field.get_prep_value(value) if field.attribute.rounds else field.attribute.prepare(value)


def null_test(name: str, value: object) -> bool:
    """Return the value of ``isnull``; Django accepts only ``True`` or ``False``."""
    if not isinstance(value, bool):
        raise InvalidValue(f"{name}__isnull takes True or False, not a {type(value).__name__}.")
    return value


def range_bounds(name: str, value: Any) -> tuple[object, object]:
    """The bounds of a range."""
    bounds = tuple(value)
    if len(bounds) != 2 or None in bounds:
        raise InvalidValue(f"{name}__range takes two bounds, the lower one first, not {shown(bounds)}.")
    return bounds


def _bounds(subject: Subject, value: object) -> tuple[object, ...]:
    bounds = range_bounds(subject.name, value)
    if subject.steps and not subject.sized:
        return tuple(member_value(subject.field.attribute, subject.steps, bound) for bound in bounds)
    if subject.sized:
        return bounds
    return tuple(subject.field.get_prep_value(bound) for bound in bounds)


def _contained(subject: Subject, value: object) -> object:
    """Return the single member that a set or a list should contain."""
    is_plural = isinstance(value, list | set | tuple | dict)
    if not subject.steps and subject.field.attribute.attr_type in {"SS", "NS", "BS", "L"} and is_plural:
        given = MASK if subject.field.attribute.is_secret() else shown(value)
        raise InvalidValue(f"{subject.field.attname}__contains takes one member, not {given}.")
    return value


def membership_values(name: str, value: Any) -> tuple[object, ...]:
    """The values of an ``in`` without ``None``, which nothing equals; raises ``NotSupported`` for too many.

    Each is a key of its own, or a partition: without a bound one statement would send any number of requests.
    """
    found = tuple(member for member in value if member is not None)
    if len(found) > MAX_MEMBERS:
        raise NotSupported(
            f"{name}__in has {len(found)} values; one query accepts {MAX_MEMBERS}. Send several queries: for "
            f"start in range(0, len(values), {MAX_MEMBERS}): queryset.filter({name}__in=values[start : start "
            f"+ {MAX_MEMBERS}]). If prefetch_related() reads them, use iterator(chunk_size=...) or a slice."
        )
    return found


def _members(subject: Subject, value: object) -> tuple[object, ...]:
    found = membership_values("pk" if isinstance(subject.field, IdentityField) else subject.name, value)
    if not subject.steps or subject.sized:
        return found
    return tuple(member_value(subject.field.attribute, subject.steps, each) for each in found)


def _key(subject: Subject, key: object) -> object:
    return checked_text(key, path=f"a key of {subject.field.attname}") if isinstance(key, str) else key


#: How the value of a lookup is read that is not the attribute's own value.
_VALUES: dict[str, Callable[[Subject, Any], Any]] = {
    "isnull": lambda subject, value: null_test(subject.name, value),
    "has_key": lambda subject, value: _key(subject, str(value)),
    "has_keys": lambda subject, value: tuple(_key(subject, key) for key in value),
    "has_any_keys": lambda subject, value: tuple(_key(subject, key) for key in value),
    "attribute_type": lambda subject, value: value,
    "in": lambda subject, value: _members(subject, value),
    "range": _bounds,
    "contains": _contained,
}


# Comparisons without regard to case: by a folded copy of a string, or by a key or a claim with its canonical form.
# DynamoDB compares bytes, so there is no third way.

#: DynamoDB's types for strings, and for numbers encoded as strings.
_SEARCHED = ("S", "N", "SS", "NS")


def folded_condition(field: DynamoField, lookup: str, operator: str, value: object) -> Condition:
    """Compare a string by its folded form; raise ``NotSupported`` if the model has no copy."""
    attribute, name = field.attribute, field.attname
    if attribute.key_kind != "text":
        exact = f"use {name} without __iexact, or " if operator == "exact" else ""
        raise NotSupported(
            f"{name}__{lookup} is not supported: {name} is not a string, and only strings have case. "
            f"{capitalized(exact + FILTER_IN_MEMORY)}."
        )
    text = attribute.prepare(value)
    copy = folded_copy_of(field)
    if copy is not None:
        return Compare(copy.name, operator, copy.folded(text))
    if operator == "exact" and (attribute.canonical or _is_in_canonical_key(field)):
        return Compare(name, "canonical", text)
    ways_out = [f"add {name}_folded = models.CanonicalAttribute(source={name!r}), which the lookup then compares"]
    if operator == "exact":
        ways_out.append(f"put {{{name}:canonical}} into a key")
    raise NotSupported(
        f"{name}__{lookup} is not supported: DynamoDB compares bytes. Keep a folded copy: "
        f"{', or '.join(ways_out)}. Otherwise {FILTER_IN_MEMORY}."
    )


def python_condition(field: DynamoField, lookup: str, value: object) -> Condition:
    """Compare a part of a string, of an encoded number, or of a set member in Python.

    A folded copy finds values that the string itself would not, such as those without accents. A comparison that a key
    supports uses only the copy.
    """
    attribute, name = field.attribute, field.attname
    if attribute.attr_type not in _SEARCHED:
        raise NotSupported(
            f"{name}__{lookup} is not supported: {name} has the type {type(attribute).__name__}, which is not a "
            f"string. {capitalized(FILTER_IN_MEMORY)}."
        )
    text = checked_text(str(value), path=name)
    copy = folded_copy_of(field) if attribute.key_kind == "text" and lookup in FOLDED else None
    folded_text = "" if copy is None else copy.folded(text)
    if copy is None or not folded_text:
        return Compare(name, lookup, text)
    of_copy = Compare(copy.name, FOLDED[lookup], folded_text)
    return Or((of_copy, Compare(name, lookup, text))) if lookup == "icontains" else of_copy


def folded_copy_of(field: Any) -> CanonicalAttribute | None:
    """Return the copy whose fold removes least from a string."""
    copies = [
        attribute
        for attribute in registry.attributes_of(field.model).values()
        if isinstance(attribute, CanonicalAttribute) and attribute.source == field.attname
    ]
    folds = list(FOLDS)
    return min(copies, key=lambda copy: folds.index(copy.fold), default=None)


def _is_in_canonical_key(field: Any) -> bool:
    layout = registry.layout_of(field.model)
    parts = (part for key in layout.keys for part in (*key.partition.parts, *key.sort.parts))
    return any(part.name == field.attname and part.bound.spec == "canonical" for part in parts)


def with_canonical_equality(model: type[DynamoModel], condition: Condition) -> Condition:
    """Return a condition whose equalities with canonical identities compare by the canonical form.

    These are parts ``{name:canonical}`` of the primary key, and ``canonical=True`` attributes that a key has so. Within
    a negation the text itself is compared, as DynamoDB does it.
    """
    names = identity_texts(model)
    return _canonically(names, condition) if names else condition


def _canonically(names: frozenset[str], condition: Condition) -> Condition:
    if isinstance(condition, And | Or):
        return type(condition)(tuple(_canonically(names, child) for child in condition.children))
    if not isinstance(condition, Compare) or condition.operator != "exact" or condition.path:
        return condition
    return replace(condition, operator="canonical") if condition.attribute in names and condition.value else condition


@cache
def identity_texts(model: type[DynamoModel]) -> frozenset[str]:
    """Return the strings of a model with a canonical identity: equality with them ignores case."""
    layout = registry.layout_of(model)
    primary = (*layout.primary.partition.parts, *layout.primary.sort.parts)
    found = {part.name for part in primary if part.bound.spec == "canonical"}
    for name, attribute in registry.attributes_of(model).items():
        if attribute.unique and attribute.canonical and _is_in_canonical_key(attribute.field):
            found.add(name)
    return frozenset(found)
