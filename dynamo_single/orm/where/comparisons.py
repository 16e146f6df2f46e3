"""Convert one Django lookup to our comparisons.

This module must not know keys, plans or requests.
"""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

from django.db.models.expressions import Col, ColPairs, ExpressionList, Value
from django.db.models.fields.json import KeyTransform
from django.db.models.fields.tuple_lookups import TupleIn
from msgspec import Struct

from dynamo_single.exceptions import InvalidValue, NotSupported
from dynamo_single.orm.conditions.lowering import ORDERED_TYPES
from dynamo_single.orm.conditions.terms import (
    IDENTITY,
    TEXT_OPERATORS,
    And,
    Compare,
    ComparePair,
    Condition,
    Nothing,
    Or,
)
from dynamo_single.orm.conditions.wording import FILTER_IN_MEMORY
from dynamo_single.orm.schema.attributes import Attribute, IntegerAttribute, JSONAttribute
from dynamo_single.orm.schema.attributes.references import DelegatingAttribute
from dynamo_single.orm.schema.fields.base import IdentityField
from dynamo_single.orm.schema.keys.values import shown
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.orm.where.lookups import (
    FOLDED,
    KEY_LOOKUPS,
    Subject,
    direct_value,
    folded_condition,
    membership_values,
    operator_of,
    paths_of,
    plain_value,
    python_condition,
    range_bounds,
    subject_of,
    value_of,
)

if TYPE_CHECKING:
    from dynamo_single.orm.schema.fields.base import DynamoField


# ``F()`` in a condition: two attributes of one item compared with each other.
#
# DynamoDB compares what is stored, so both have to be stored in the same way.

COMPARED = ("exact", "lt", "lte", "gt", "gte")
#: Nested values are compared with attributes of the same stored type.
_AS_IN_DOCUMENTS = ("text", "number")


def is_attribute(value: object) -> bool:
    """Return whether a lookup's value is another attribute, or a path in one."""
    return isinstance(value, Col | KeyTransform)


def members_with_attributes(values: object) -> tuple[object, ...] | None:
    """The members of a list, or the bounds of a range, if there are attributes among them; else ``None``."""
    if isinstance(values, ExpressionList):
        # Django wraps a member that is not an expression in one.
        members = values.get_source_expressions()
        return tuple(each.value if isinstance(each, Value) else each for each in members)
    return tuple(values) if isinstance(values, list | tuple) and any(map(is_attribute, values)) else None


def read_pair(model: type[DynamoModel], subject: Subject, operator: str, value: object) -> Condition:
    """The comparison of a subject with another attribute; raises ``NotSupported`` if they are stored otherwise."""
    other = subject_of(model, value)
    _check_pair(model, subject, operator, other)
    places = [(one, two) for one in paths_of(subject) for two in paths_of(other)]
    conditions = [_pair(subject.field.attname, operator, other.field.attname, one, two) for one, two in places]
    return conditions[0] if len(conditions) == 1 else Or(tuple(conditions))


def _pair(name: str, operator: str, other: str, path: Any, other_path: Any) -> Condition:
    if (name, path) != (other, other_path):
        return ComparePair(name, operator, other, path, other_path)
    # DynamoDB refuses to compare a place with itself.
    return Compare(name, "isnull", False, path) if operator in ("exact", "lte", "gte") else Nothing()


def _check_pair(model: type[DynamoModel], subject: Subject, operator: str, other: Subject) -> None:
    lookup = "" if operator == "exact" else f"__{operator}"
    asked = f"{model._meta.label}: {_called(subject)}{lookup}=F({_called(other)!r}) is not supported"
    otherwise = f"Otherwise {FILTER_IN_MEMORY}."
    if operator not in COMPARED:
        raise NotSupported(f"{asked}: compare two attributes by {', '.join(COMPARED)}. {otherwise}")
    of_several = any(isinstance(each.field, IdentityField) for each in (subject, other))
    if subject.sized or other.sized or of_several:
        raise NotSupported(f"{asked}: compare a size, or a pk of several values, with values only. {otherwise}")
    forms = [_form_of(each.field.attribute) for each in (subject, other) if not each.steps]
    in_document = len(forms) < 2
    if len(set(forms)) > 1 or (in_document and any(form.kind not in _AS_IN_DOCUMENTS for form in forms)):
        raise NotSupported(
            f"{asked}: {_called(subject)} is {_said(subject)} and {_called(other)} is {_said(other)}. Their "
            f"stored types differ, and DynamoDB compares stored values. {otherwise}"
        )
    if operator != "exact" and not all(form.is_ordered for form in forms):
        raise NotSupported(f"{asked}: DynamoDB orders text, numbers and binary only. {otherwise}")


class _Form(Struct, frozen=True):
    """DynamoDB's type of an attribute's values, and how they are written in it; datetimes have a ``unit``."""

    type: str
    kind: Any
    unit: datetime.timedelta | None = None
    is_comparable: bool = True

    @property
    def is_ordered(self) -> bool:
        return self.type in ORDERED_TYPES and self.is_comparable


def _form_of(attribute: Attribute) -> _Form:
    while isinstance(attribute, DelegatingAttribute):
        attribute = attribute.target
    if isinstance(attribute, IntegerAttribute):
        return _Form(attribute.attr_type, "number")  # versions and counters too, which have no form in a key
    unit = getattr(attribute, "unit", None)
    return _Form(attribute.attr_type, attribute.key_kind or type(attribute), unit, not attribute.only_equal)


def _said(subject: Subject) -> str:
    return "in a document" if subject.steps else f"a {type(subject.field.attribute).__name__}"


def _called(subject: Subject) -> str:
    return "pk" if isinstance(subject.field, IdentityField) else subject.name


SIZED_TYPES = {"S", "B", "M", "L", "SS", "NS", "BS"}
SIZE_COMPARISONS = ("exact", "in", "lt", "lte", "gt", "gte", "range")
JSON_COMPARISONS = ("exact", "in", "isnull", "attribute_type")
#: Comparisons with values that may be finer than the stored ones.
ROUNDED = {"exact", "in", "lt", "lte", "gt", "gte", "range"}


def read_lookup(model: type[DynamoModel], node: Any, *, in_python: bool = False) -> Condition:
    """Return the condition of one lookup; raise ``NotSupported`` by name if DynamoDB has no exact equivalent.

    With ``in_python``, strings may be compared in ways that only Python supports.
    """
    if isinstance(node, TupleIn) and isinstance(node.lhs, ColPairs) and len(node.lhs.targets) == 1:
        # The form in which Django's prefetch of a foreign key queries the referenced objects.
        field: Any = node.lhs.targets[0]
        # For objects without a reference it contains None.
        return attribute_comparison(
            field, "in", membership_values(field.name, (field.get_prep_value(member) for (member,) in node.rhs))
        )
    name = getattr(node, "lookup_name", None)
    if name in FOLDED or (in_python and name in TEXT_OPERATORS):
        return _folded(model, node, in_python=in_python)
    operator = operator_of(node)
    subject = subject_of(model, node.lhs)
    if is_attribute(node.rhs):
        return read_pair(model, subject, operator, node.rhs)
    several = members_with_attributes(node.rhs) if operator in ("in", "range") else None
    if several is not None:
        return _several(model, subject, operator, several)
    value = value_of(node, subject, operator)
    _check(subject, operator)
    if not subject.steps:
        return (
            _place(subject, operator, value, ())
            if subject.sized
            else attribute_comparison(subject.field, operator, value)
        )
    places = tuple(_place(subject, operator, value, path) for path in paths_of(subject))
    if len(places) == 1:
        return places[0]
    return And(places) if operator == "isnull" and value else Or(places)


def _several(model: type[DynamoModel], subject: Subject, operator: str, given: tuple[object, ...]) -> Condition:
    """A range or a list with attributes among its values, as one comparison of each."""
    operators = ("gte", "lte") if operator == "range" else ("exact",) * len(given)
    values = range_bounds(subject.name, given) if operator == "range" else given
    found: list[Condition] = []
    for each, value in zip(operators, values, strict=True):
        if is_attribute(value):
            found.append(read_pair(model, subject, each, value))
        elif subject.steps or subject.sized or value is None:
            raise NotSupported(
                f"{subject.name}__{operator} is not supported with F() and {shown(value)} together. Use two "
                f"conditions: {_apart(subject.name, operator)}."
            )
        else:
            found.append(attribute_comparison(subject.field, each, plain_value(value)))
    return And(tuple(found)) if operator == "range" else Or(tuple(found))


def _apart(name: str, operator: str) -> str:
    return f"Q({name}__gte=...) & Q({name}__lte=...)" if operator == "range" else f"Q({name}=...) | Q({name}=...)"


def attribute_comparison(field: Any, operator: str, value: object) -> Condition:
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


def _rounded(field: DynamoField, operator: str, value: Any) -> Condition:
    """Convert a comparison with a value between two storable values to the lower one."""
    if operator == "range":
        low, high = (_rounded(field, bound, each) for bound, each in zip(("gte", "lte"), value, strict=True))
        if low == Compare(field.attname, "gte", value[0]) and high == Compare(field.attname, "lte", value[1]):
            return Compare(field.attname, "range", value)
        return And((low, high))
    attribute: Any = field.attribute  # an attribute that rounds has a floor
    floor = attribute.floor
    if operator == "in":
        return Compare(field.attname, "in", tuple(each for each in value if floor(each) == each))
    if floor(value) == value:
        return Compare(field.attname, operator, value)
    if operator == "exact":
        return Nothing()
    return Compare(field.attname, {"lt": "lte", "gte": "gt"}.get(operator, operator), floor(value))


def _place(subject: Subject, operator: str, value: Any, path: tuple[str | int, ...]) -> Condition:
    """Compare a nested value."""
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
        if subject.sized:
            raise _of_identity(field, "size")
        return
    if subject.sized and operator not in SIZE_COMPARISONS:
        raise NotSupported(
            f"{subject.name}__{operator} is not supported: compare a size by {', '.join(SIZE_COMPARISONS)}."
        )
    if subject.steps:
        return
    if attribute.only_equal and (subject.sized or operator not in JSON_COMPARISONS):
        if not isinstance(attribute, JSONAttribute):
            raise NotSupported(
                f"Cannot filter by {subject.name}__{operator}: {attribute.stored_as} does not sort as the values "
                f"of {name} do. Compare it by {', '.join(JSON_COMPARISONS)}, or {FILTER_IN_MEMORY}."
            )
        raise NotSupported(
            f"{subject.name}__{operator} is not supported: DynamoDB can compare the JSON string of {name} only "
            f"as a whole, by {', '.join(JSON_COMPARISONS)}. To look inside, make it a MapAttribute. Otherwise "
            f"{FILTER_IN_MEMORY}."
        )
    if subject.sized and (attribute.attr_type not in SIZED_TYPES or attribute.key_kind not in (None, "text")):
        raise NotSupported(
            f"{subject.name} is not supported: {name} is a {type(attribute).__name__}. Strings, binary "
            "values, sets, lists and maps have a size."
        )
    if operator in KEY_LOOKUPS.values() and attribute.attr_type != "M":
        raise NotSupported(
            f"{name}__{operator} is not supported: only a map has keys. Filter a list by a member, "
            f"{name}__contains=..., or by a position: {name}__0=..."
        )


def _folded(model: type[DynamoModel], node: Any, *, in_python: bool) -> Condition:
    """A comparison without case, by a folded copy or by the canonical form of a key."""
    subject, lookup = subject_of(model, node.lhs), node.lookup_name
    field = subject.field
    value = direct_value(node)
    if isinstance(field, IdentityField):
        raise _of_identity(field, lookup)
    if subject.steps or subject.sized:
        raise NotSupported(
            f"{subject.name}__{lookup} is not supported: DynamoDB compares bytes. Keep the text in a separate "
            f"attribute with a CanonicalAttribute, or {FILTER_IN_MEMORY}."
        )
    if in_python:
        return python_condition(field, lookup, value)
    return folded_condition(field, lookup, FOLDED[lookup], value)


def _identity(field: IdentityField, operator: str, value: Any) -> Condition:
    """Conditions on ``pk`` become conditions on the values that it is made of."""
    if operator == "exact" and value is not None:
        return _identity_values(field, value)
    if operator == "in":
        return Compare(IDENTITY, "in", tuple(filter(None, (_split(field, member) for member in value))))
    if operator == "isnull":
        return Nothing() if value else And()
    raise _of_identity(field, operator)


def _of_identity(field: IdentityField, operator: str) -> NotSupported:
    return NotSupported(
        f"pk__{operator} is not supported on {field.model._meta.label}, whose pk consists of "
        f"{', '.join(field.names)}. Filter by these attributes, or {FILTER_IN_MEMORY}."
    )


def _identity_values(field: IdentityField, value: str) -> Condition:
    parts = _split(field, value)
    return Nothing() if parts is None else And(tuple(Compare(name, "exact", part) for name, part in parts.items()))


def _split(field: IdentityField, value: str) -> dict[str, object] | None:
    try:
        return field.split(value)
    except InvalidValue:
        return None  # no object has such a pk, as with any other value that is nobody's
