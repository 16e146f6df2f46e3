"""One of Django's lookups as a comparison of ours.

Django resolves names, lookups and values; this module reads what it made of one lookup. It knows Django's lookup
classes and must not know keys, plans or requests.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db.models import Model, Transform, lookups
from django.db.models.expressions import Col, ColPairs, CombinedExpression, Expression
from django.db.models.fields import json, related_lookups
from django.db.models.fields.tuple_lookups import TupleIn

from dynamo_single.attributes import JSONAttribute
from dynamo_single.exceptions import InvalidValue, NotSupported
from dynamo_single.fields import DynamoField, IdentityField
from dynamo_single.folding import folded
from dynamo_single.lookups import AttributeType, Canonical, Size
from dynamo_single.query import IDENTITY, And, Compare, Condition, Nothing, Or

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
    "iendswith": "keep the folded text reversed in an attribute of its own and use startswith on that",
    "endswith": "keep the text reversed in an attribute of its own and use startswith on that",
    "regex": "filter in Python",
    "iregex": "filter in Python",
    "contained_by": "filter in Python, or ask for the values one by one",
    "search": "keep the words in a UnicodeSetAttribute and use contains on that",
    "trigram_similar": "filter in Python",
    "trigram_word_similar": "filter in Python",
}
DOCUMENT_TYPES = {"M", "L"}
SIZED_TYPES = {"S", "B", "M", "L", "SS", "NS", "BS"}
SIZE_COMPARISONS = ("exact", "in", "lt", "lte", "gt", "gte", "range")
#: What compares with values that may be finer than the stored ones.
ROUNDED = {"exact", "in", "lt", "lte", "gt", "gte", "range"}
POSITION = re.compile("[0-9]+")


@dataclass(frozen=True, slots=True)
class Subject:
    """What is compared: an attribute, a place in it, or the size of one of these."""

    field: Any
    steps: tuple[str, ...] = ()
    sized: bool = False

    @property
    def name(self) -> str:
        """As ``filter()`` takes it."""
        return "__".join((self.field.attname, *self.steps, *(("size",) if self.sized else ())))


def read_lookup(model: type[Model], node: Any) -> Condition:
    """The condition of one lookup; raises ``NotSupported`` by name for what DynamoDB cannot answer exactly."""
    if isinstance(node, TupleIn) and isinstance(node.lhs, ColPairs) and len(node.lhs.targets) == 1:
        # How Django's prefetch of a foreign key asks for the objects that are referred to.
        field: Any = node.lhs.targets[0]
        return whole(field, "in", tuple(field.get_prep_value(member) for (member,) in node.rhs))
    if getattr(node, "lookup_name", None) in FOLDED:
        return _folded(model, node)
    operator = operator_of(node)
    subject = _subject(model, node)
    value = _right_side(node, subject, operator)
    _check(subject, operator)
    if not subject.steps:
        return _place(subject, operator, value, ()) if subject.sized else whole(subject.field, operator, value)
    places = tuple(_place(subject, operator, value, path) for path in _paths(subject))
    if len(places) == 1:
        return places[0]
    return And(places) if operator == "isnull" and value else Or(places)


def whole(field: Any, operator: str, value: Any) -> Condition:
    """A comparison of a whole attribute."""
    if isinstance(field, IdentityField):
        return _identity(field, operator, value)
    if operator == "exact" and value is None:
        operator, value = "isnull", True
    if operator == "isnull" and field.primary_key:
        return Nothing() if value else And()
    if field.attribute.rounds and operator in ROUNDED:
        return _rounded(field, operator, value)
    return _place(Subject(field), operator, value, ())


def _rounded(field: Any, operator: str, value: Any) -> Condition:
    """A comparison with what may lie between two values that can be stored, put in terms of the lower one."""
    if operator == "range":
        low, high = (_rounded(field, bound, each) for bound, each in zip(("gte", "lte"), value, strict=True))
        if low == Compare(field.attname, "gte", value[0]) and high == Compare(field.attname, "lte", value[1]):
            return Compare(field.attname, "range", value)
        return And((low, high))
    floor = field.attribute.floor
    if operator == "in":
        return Compare(field.attname, "in", tuple(each for each in value if floor(each) == each))
    if floor(value) == value:
        return Compare(field.attname, operator, value)
    if operator == "exact":
        return Nothing()
    return Compare(field.attname, {"lt": "lte", "gte": "gt"}.get(operator, operator), floor(value))


def _place(subject: Subject, operator: str, value: Any, path: tuple[str | int, ...]) -> Condition:
    """A comparison of what lies at one place."""
    name = subject.field.attname
    if subject.sized:
        return _sized(name, operator, value, path)
    if operator == "has_keys":
        keys = tuple(Compare(name, "has_key", key, path) for key in value)
        return And(keys) if keys else Compare(name, "isnull", False, path)
    if operator == "has_any_keys":
        return Or(tuple(Compare(name, "has_key", key, path) for key in value))
    return Compare(name, operator, value, path)


def _sized(name: str, operator: str, value: Any, path: tuple[str | int, ...]) -> Condition:
    if operator == "in":
        return Or(tuple(Compare(name, "size_exact", size, path) for size in value))
    if operator == "range":
        bounds = zip(("size_gte", "size_lte"), value, strict=True)
        return And(tuple(Compare(name, bound, size, path) for bound, size in bounds))
    return Compare(name, f"size_{operator}", value, path)


def _check(subject: Subject, operator: str) -> None:
    """Refuse what has no meaning for an attribute of this type."""
    field, name = subject.field, subject.field.attname
    attribute = getattr(field, "attribute", None)
    if attribute is None:
        return
    if subject.sized and operator not in SIZE_COMPARISONS:
        raise NotSupported(
            f"{subject.name}__{operator} is not supported: a size is compared by {', '.join(SIZE_COMPARISONS)}."
        )
    if subject.steps:
        return
    if isinstance(attribute, JSONAttribute) and (subject.sized or operator not in JSON_COMPARISONS):
        raise NotSupported(
            f"{subject.name}__{operator} is not supported: {name} is stored as JSON text, which can only be "
            f"compared as a whole, by {', '.join(JSON_COMPARISONS)}. Make it a MapAttribute to look inside."
        )
    if subject.sized and (attribute.attr_type not in SIZED_TYPES or attribute.key_kind not in (None, "text")):
        raise NotSupported(
            f"{subject.name} is not supported: {name} is a {type(attribute).__name__}. Texts, binary, sets, lists and "
            "maps have a size."
        )
    if operator in KEY_LOOKUPS.values() and attribute.attr_type != "M":
        raise NotSupported(
            f"{name}__{operator} is not supported: only a map has keys. Ask a list for a member by contains, or "
            f"for a position: {name}__0=..."
        )


JSON_COMPARISONS = ("exact", "in", "isnull", "attribute_type")


def _paths(subject: Subject) -> list[tuple[str | int, ...]]:
    """The places that the steps of a lookup can mean: ``7`` is a key of a map and a position of a list."""
    field = subject.field
    first, *rest = subject.steps
    if field.attribute.attr_type == "M":
        paths: list[tuple[str | int, ...]] = [(first,)]
    elif POSITION.fullmatch(first):
        paths = [(int(first),)]
    else:
        raise NotSupported(
            f"{field.attname}__{first} is not supported: {field.attname} is a list, whose places are numbers from 0 up."
        )
    for step in rest:
        keyed: list[tuple[str | int, ...]] = [(*path, step) for path in paths]
        counted = [(*path, int(step)) for path in paths] if POSITION.fullmatch(step) else []
        paths = [*counted, *keyed]
    return paths


def operator_of(node: Any) -> str:
    """The operator of ours that a lookup is; raises ``NotSupported`` by name for any other."""
    name = getattr(node, "lookup_name", None)
    if isinstance(node, json.HasKeyLookup) and type(node) in KEY_LOOKUPS:
        return KEY_LOOKUPS[type(node)]
    for kind in type(node).__mro__:
        if kind in OPERATORS and name == kind.lookup_name:
            return OPERATORS[kind]
    if name in ADVICE:
        raise NotSupported(f"The lookup {name!r} has no exact answer in DynamoDB: {ADVICE[name]}.")
    if isinstance(node, related_lookups.RelatedLookupMixin) or name is None:
        raise NotSupported(f"A condition of the kind {type(node).__name__} cannot be answered by DynamoDB.")
    known = sorted({*OPERATORS.values(), *KEY_LOOKUPS.values(), *FOLDED})
    raise NotSupported(f"The lookup {name!r} is not supported. There are {', '.join(known)}.")


def _folded(model: type[Model], node: Any) -> Condition:
    """A comparison without case, by a folded copy or by the canonical form of a key."""
    subject, lookup = _subject(model, node), node.lookup_name
    field = subject.field
    value = direct_value(node)
    if isinstance(field, IdentityField):
        return _identity(field, lookup, value)
    if subject.steps or subject.sized:
        raise NotSupported(
            f"{subject.name}__{lookup} is not supported: DynamoDB compares bytes. Keep the text in an attribute of its "
            "own, with a CanonicalAttribute beside it."
        )
    return folded(field, lookup, FOLDED[lookup], value)


def _subject(model: type[Model], node: Any) -> Subject:
    steps: list[str] = []
    side = node.lhs
    sized = isinstance(side, Size)
    if sized:
        side = side.lhs
    while isinstance(side, json.KeyTransform | Size):
        # Behind "size" there are further steps, so it is no size but a key of that name.
        steps.insert(0, side.key_name if isinstance(side, json.KeyTransform) else "size")
        side = side.lhs
    if not isinstance(side, Col):
        raise _computed(side)
    field = column(model, side)
    if steps and field.attribute.attr_type not in DOCUMENT_TYPES:
        raise NotSupported(
            f"{field.attname} is stored as JSON text, which DynamoDB cannot look into: make it a MapAttribute to "
            "filter by a path."
        )
    return Subject(field, tuple(steps), sized)


def column(model: type[Model], side: Col) -> Any:
    """The field that is compared; another model's is refused."""
    field: Any = side.target
    if not isinstance(field, DynamoField) or field.model._meta.concrete_model is not model._meta.concrete_model:
        raise NotSupported(
            f"{model._meta.label} cannot be filtered by {field.model._meta.label}.{field.name}: DynamoDB has no joins. "
            f"Get the {field.model._meta.verbose_name} first and filter by it, or copy {field.name} to "
            f"{model._meta.object_name}."
        )
    return field


def _computed(side: Any) -> NotSupported:
    """The error for a condition on what would have to be computed from the stored value."""
    source = getattr(side, "lhs", None)
    if not isinstance(side, Transform) or not isinstance(source, Col):
        return NotSupported(
            f"{_called(side)} in a condition is not supported: DynamoDB compares stored attributes, it does not "
            "compute. Keep the computed value in an attribute of its own."
        )
    name, part = source.target.name, side.lookup_name
    return NotSupported(
        f"{name}__{part} is not supported: DynamoDB compares stored attributes, it does not compute. Instead keep the "
        f"{part} in an attribute of its own."
    )


def _called(expression: Any) -> str:
    return "F()" if isinstance(expression, Col | CombinedExpression) else type(expression).__name__


def direct_value(node: Any) -> Any:
    """What a lookup compares with; a queryset or an expression is refused."""
    value = node.rhs
    if isinstance(value, Expression) or hasattr(value, "resolve_expression"):
        if hasattr(value, "model"):
            raise NotSupported("A queryset inside a condition is not supported: make a list of it first.")
        raise NotSupported(
            f"{_called(value)} in a condition is not supported: DynamoDB compares with values only. Filter in Python."
        )
    return value


def _right_side(node: Any, subject: Subject, operator: str) -> Any:
    value, field = direct_value(node), subject.field
    if operator in _VALUES:
        return _VALUES[operator](subject, value)
    if subject.steps or subject.sized or isinstance(field, IdentityField) or field.attribute.rounds:
        return value
    return field.attribute.prepare(value)


def two_bounds(name: str, value: Any) -> tuple[Any, Any]:
    """The bounds of a range."""
    bounds = tuple(value)
    if len(bounds) != 2 or None in bounds:
        raise InvalidValue(f"{name}__range takes two bounds, the lower one first, not {bounds!r}.")
    return bounds


def _bounds(subject: Subject, value: Any) -> Any:
    bounds = two_bounds(subject.name, value)
    if subject.steps or subject.sized:
        return bounds
    return tuple(subject.field.get_prep_value(bound) for bound in bounds)


def _contained(subject: Subject, value: Any) -> Any:
    """What a set or a list contains is one member, not a whole set."""
    is_plural = isinstance(value, list | set | tuple | dict)
    if not subject.steps and subject.field.attribute.attr_type in {"SS", "NS", "BS", "L"} and is_plural:
        raise InvalidValue(f"{subject.field.attname}__contains takes one member, not {value!r}.")
    return value


def _keys(subject: Subject, value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        raise InvalidValue(f"{subject.name} is asked for a list of keys, not for {value!r}.")
    return tuple(map(str, value))


#: How the value of a lookup is read that is not the attribute's own value.
_VALUES: dict[str, Callable[[Subject, Any], Any]] = {
    "isnull": lambda subject, value: bool(value),
    "has_key": lambda subject, value: str(value),
    "has_keys": _keys,
    "has_any_keys": _keys,
    "attribute_type": lambda subject, value: value,
    "in": lambda subject, value: tuple(member for member in value if member is not None),
    "range": _bounds,
    "contains": _contained,
}


def _identity(field: IdentityField, operator: str, value: Any) -> Condition:
    """Conditions on ``pk`` become conditions on the values that it is made of."""
    if operator == "exact" and value is not None:
        return _identity_values(field, value)
    if operator == "in":
        return Compare(IDENTITY, "in", tuple(filter(None, (_split(field, member) for member in value))))
    if operator == "isnull":
        return Nothing() if value else And()
    raise NotSupported(
        f"pk__{operator} is not supported on {field.model._meta.label}, whose pk is made of "
        f"{', '.join(field.names)}: use conditions on those."
    )


def _identity_values(field: IdentityField, value: str) -> Condition:
    parts = _split(field, value)
    return Nothing() if parts is None else And(tuple(Compare(name, "exact", part) for name, part in parts.items()))


def _split(field: IdentityField, value: str) -> dict[str, Any] | None:
    try:
        return field.split(value)
    except InvalidValue:
        return None  # no object has such a pk, as with any other value that is nobody's
