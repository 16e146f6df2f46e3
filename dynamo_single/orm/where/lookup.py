"""What one lookup of Django's compares, how, and with what.

Django resolves names, lookups and values; this module takes them out of what it made of one lookup. It knows Django's
lookup classes and must not make conditions, nor know keys, plans or requests.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from django.db.models import Exists, Transform, lookups
from django.db.models.expressions import Col, CombinedExpression, Expression, Value
from django.db.models.fields import json, related_lookups
from msgspec import Struct

from dynamo_single.exceptions import InvalidValue, NotSupported
from dynamo_single.orm.conditions.terms import MAX_MEMBERS
from dynamo_single.orm.conditions.wording import FILTER_IN_PYTHON, sentence
from dynamo_single.orm.schema.encoding.secrets import MASK
from dynamo_single.orm.schema.encoding.shown import shown
from dynamo_single.orm.schema.encoding.values import checked_text
from dynamo_single.orm.schema.fields.fields import DynamoField, IdentityField
from dynamo_single.orm.schema.fields.lookups import AttributeType, Canonical, Size
from dynamo_single.orm.schema.kinds import DynamoModel
from dynamo_single.orm.where import paths

#: Lookups that DynamoDB answers exactly, and the operator of ours that each one is.
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
#: What asks for keys of a map. Django's other lookups of these names derive from them and ask something else.
KEY_LOOKUPS: dict[type[Any], str] = {
    json.HasKey: "has_key",
    json.HasKeys: "has_keys",
    json.HasAnyKeys: "has_any_keys",
}
#: What a copy without case is compared by in the place of the text itself.
FOLDED = {"iexact": "exact", "icontains": "contains", "istartswith": "startswith"}
#: Lookups that DynamoDB has no exact answer for, and what to do instead.
ADVICE = {
    "iendswith": "keep the folded text reversed in an attribute of its own and use startswith on that, or ",
    "endswith": "keep the text reversed in an attribute of its own and use startswith on that, or ",
    "regex": "",
    "iregex": "",
    "contained_by": "",
    "search": "keep the words in a UnicodeSetAttribute and use contains on that, or ",
    "trigram_similar": "",
    "trigram_word_similar": "",
}
DOCUMENT_TYPES = {"M", "L"}
POSITION = re.compile("[0-9]+")
#: How many places the steps of one lookup may mean; each step that is a number doubles them.
MAX_PLACES = 64


class Subject(Struct, frozen=True):
    """What is compared: an attribute, a place in it, or the size of one of these."""

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
        raise NotSupported(f"The lookup {name!r} has no exact answer in DynamoDB: {ADVICE[name]}{FILTER_IN_PYTHON}.")
    if isinstance(node, related_lookups.RelatedLookupMixin) or name is None:
        raise NotSupported(
            f"DynamoDB cannot evaluate a condition of the type {type(node).__name__}. {sentence(FILTER_IN_PYTHON)}."
        )
    known = sorted({*OPERATORS.values(), *KEY_LOOKUPS.values(), *FOLDED})
    raise NotSupported(f"The lookup {name!r} is not supported. Use one of {', '.join(known)}, or {FILTER_IN_PYTHON}.")


def subject_of(model: type[DynamoModel], side: Any) -> Subject:
    """What a side of a lookup is; raises ``NotSupported`` for what is not stored with the model's items."""
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
    field = column(model, side)
    for step in steps:
        checked_text(step, path=f"a place in {field.attname}")
    if steps and field.attribute.attr_type not in DOCUMENT_TYPES:
        raise NotSupported(
            f"{field.attname} is stored as JSON text, which DynamoDB cannot look into. To filter by a path, make it a "
            f"MapAttribute. Otherwise {FILTER_IN_PYTHON}."
        )
    return Subject(field, tuple(steps), sized)


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
            f"{field.attname}__{first} is not supported: {field.attname} is a list, whose places are numbers from 0 "
            f"up: {field.attname}__0=..."
        )
    for step in rest:
        keyed: list[tuple[str | int, ...]] = [(*path, step) for path in paths]
        counted = [(*path, int(step)) for path in paths] if POSITION.fullmatch(step) else []
        paths = [*counted, *keyed]
        if len(paths) > MAX_PLACES:
            raise NotSupported(
                f"{field.attname}__{'__'.join(subject.steps)} can mean more than {MAX_PLACES} places, since each "
                f"number is a key of a map or a position of a list. {sentence(FILTER_IN_PYTHON)}."
            )
    return paths


def column(model: type[DynamoModel], side: Col) -> DynamoField:
    """The field that is compared; another model's is refused."""
    field: Any = side.target
    if isinstance(field, DynamoField) and is_own(model, side):
        return field
    refused = f"{model._meta.label} cannot be filtered by {field.model._meta.label}.{field.name}"
    edges = paths.over_edges(model, field)
    if edges is not None:
        raise NotSupported(f"{refused}: {edges}.")
    back = paths.reference_between(field.model, model)
    if back is not None and paths.reference_between(model, field.model) is None:
        raise NotSupported(f"{refused}: {paths.of_those_that_refer(back, field.name)}.")
    raise NotSupported(f"{refused}: {paths.of_those_referred_to(model, field)}.")


def is_own(model: type[DynamoModel], side: Col) -> bool:
    """Whether a column is the model's own, and not one that a reference leads to, of the same model perhaps."""
    meta: Any = model._meta.concrete_model._meta  # type: ignore[union-attr]  # not None once a model is made
    field: Any = side.target
    return field.model._meta.concrete_model._meta is meta and side.alias in (meta.db_table, None)


def _computed(model: type[DynamoModel], side: object) -> NotSupported:
    """The error for a condition on what would have to be computed from the stored value."""
    if isinstance(side, Exists) and (reference := paths.excluded(model, side.query)) is not None:
        label = model._meta.label
        return NotSupported(f"{label} cannot be filtered by what refers to it: {paths.without(reference)}.")
    source = getattr(side, "lhs", None)
    if not isinstance(side, Transform) or not isinstance(source, Col):
        return NotSupported(
            f"{_called(side)} in a condition is not supported: DynamoDB compares stored attributes and does not "
            f"compute. Keep the computed value in a separate attribute, or {FILTER_IN_PYTHON}."
        )
    name, part = source.target.name, side.lookup_name
    return NotSupported(
        f"{name}__{part} is not supported: DynamoDB compares stored attributes and does not compute. Keep the {part} "
        f"in a separate attribute, or {FILTER_IN_PYTHON}."
    )


def _called(expression: object) -> str:
    return "F()" if isinstance(expression, Col | CombinedExpression) else type(expression).__name__


def direct_value(node: Any) -> Any:
    """What a lookup compares with; a queryset or an expression is refused."""
    return plain_value(node.rhs)


def plain_value(value: Any) -> Any:
    """One of the values that a lookup compares with, as ``direct_value`` has it."""
    if isinstance(value, Value):
        return value.value
    if isinstance(value, Expression) or hasattr(value, "resolve_expression"):
        if hasattr(value, "model"):
            raise NotSupported(
                "A queryset is not supported as the value of this lookup. Use __in, or read the value first: "
                "queryset.first()."
            )
        raise NotSupported(
            f"{_called(value)} in this condition is not supported: DynamoDB compares two attributes as they are "
            f"stored and computes nothing. Keep the computed value in a separate attribute, or {FILTER_IN_PYTHON}."
        )
    return value


def value_of(node: object, subject: Subject, operator: str) -> object:
    """What a lookup compares with, in the form that its operator takes."""
    value, field = direct_value(node), subject.field
    if operator in _VALUES:
        return _VALUES[operator](subject, value)
    if subject.steps or subject.sized or isinstance(field, IdentityField):
        return value
    return field.get_prep_value(value) if field.attribute.rounds else field.attribute.prepare(value)


def null_test(name: str, value: object) -> bool:
    """What ``isnull`` compares with, which Django takes as ``True`` or ``False`` only."""
    if not isinstance(value, bool):
        raise InvalidValue(f"{name}__isnull takes True or False, not a {type(value).__name__}.")
    return value


def two_bounds(name: str, value: Any) -> tuple[object, object]:
    """The bounds of a range."""
    bounds = tuple(value)
    if len(bounds) != 2 or None in bounds:
        raise InvalidValue(f"{name}__range takes two bounds, the lower one first, not {shown(bounds)}.")
    return bounds


def _bounds(subject: Subject, value: object) -> tuple[object, ...]:
    bounds = two_bounds(subject.name, value)
    if subject.steps or subject.sized:
        return bounds
    return tuple(subject.field.get_prep_value(bound) for bound in bounds)


def _contained(subject: Subject, value: object) -> object:
    """What a set or a list contains is one member, not a whole set."""
    is_plural = isinstance(value, list | set | tuple | dict)
    if not subject.steps and subject.field.attribute.attr_type in {"SS", "NS", "BS", "L"} and is_plural:
        given = MASK if subject.field.attribute.is_secret() else shown(value)
        raise InvalidValue(f"{subject.field.attname}__contains takes one member, not {given}.")
    return value


def members(name: str, value: Any) -> tuple[object, ...]:
    """The values of an ``in`` without ``None``, which nothing equals; raises ``NotSupported`` for too many.

    Each is a key of its own, or a partition: without a bound one statement would send any number of requests.
    """
    found = tuple(member for member in value if member is not None)
    if len(found) > MAX_MEMBERS:
        raise NotSupported(
            f"{name}__in has {len(found)} values, and one query takes {MAX_MEMBERS}. Ask for them in turns: "
            f"for start in range(0, len(values), {MAX_MEMBERS}): "
            f"queryset.filter({name}__in=values[start : start + {MAX_MEMBERS}]). If prefetch_related() reads them, use "
            "iterator(chunk_size=...) or a slice."
        )
    return found


def _key(subject: Subject, key: object) -> object:
    return checked_text(key, path=f"a key of {subject.field.attname}") if isinstance(key, str) else key


#: How the value of a lookup is read that is not the attribute's own value.
_VALUES: dict[str, Callable[[Subject, Any], Any]] = {
    "isnull": lambda subject, value: null_test(subject.name, value),
    "has_key": lambda subject, value: _key(subject, str(value)),
    "has_keys": lambda subject, value: tuple(_key(subject, key) for key in value),
    "has_any_keys": lambda subject, value: tuple(_key(subject, key) for key in value),
    "attribute_type": lambda subject, value: value,
    "in": lambda subject, value: members("pk" if isinstance(subject.field, IdentityField) else subject.name, value),
    "range": _bounds,
    "contains": _contained,
}
