"""From Django's description of a query to ours.

Django resolves names, lookups and values into a where-tree (it is never compiled to SQL); this module reads that tree.
It knows Django's lookup classes and must not know keys, plans or requests.
"""

from __future__ import annotations

from typing import Any

from django.db.models import Model, lookups
from django.db.models.expressions import Col, ColPairs, Expression, OrderBy
from django.db.models.fields import json, related_lookups
from django.db.models.fields.tuple_lookups import TupleIn
from django.db.models.sql.where import AND, OR, NothingNode, WhereNode

from dynamo_single import registry
from dynamo_single.exceptions import InvalidValue, NotSupported, UnknownField
from dynamo_single.fields import Canonical, DynamoField, IdentityField
from dynamo_single.query import IDENTITY, And, Compare, Condition, Not, Nothing, Or, Order

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
}
#: Lookups that DynamoDB has no exact answer for, and what to do instead.
ADVICE = {
    "iexact": "keep a folded copy ({email:canonical} in a key, or an attribute of its own) and look that up",
    "icontains": "keep a folded copy of the text in an attribute of its own and filter by contains on that",
    "istartswith": "keep a folded copy of the text in an attribute of its own and use startswith on that",
    "iendswith": "keep the folded text reversed in an attribute of its own and use startswith on that",
    "endswith": "keep the text reversed in an attribute of its own and use startswith on that",
    "regex": "filter in Python",
    "iregex": "filter in Python",
}
DOCUMENT_TYPES = {"M", "L"}


def read_where(model: type[Model], node: Any) -> Condition:
    """The condition of a where-tree; raises ``NotSupported`` by name for what DynamoDB cannot answer exactly."""
    if isinstance(node, NothingNode):
        return Nothing()
    if isinstance(node, WhereNode):
        return _read_node(model, node)
    return _read_lookup(model, node)


def _read_node(model: type[Model], node: WhereNode) -> Condition:
    children = tuple(read_where(model, child) for child in node.children)
    condition: Condition
    if len(children) == 1:
        condition = children[0]
    elif node.connector == AND:
        condition = And(children)
    elif node.connector == OR:
        condition = Or(children) if children else And()
    else:
        raise NotSupported("XOR between conditions is not supported: write it with & and |.")
    return Not(condition) if node.negated else condition


def _read_lookup(model: type[Model], node: Any) -> Condition:
    if isinstance(node, TupleIn) and isinstance(node.lhs, ColPairs) and len(node.lhs.targets) == 1:
        # How Django's prefetch of a foreign key asks for the objects that are referred to.
        path: tuple[str | int, ...] = ()
        operator, field = "in", node.lhs.targets[0]
        value: Any = tuple(field.get_prep_value(member) for (member,) in node.rhs)
    else:
        operator = _operator(node)
        field, path = _left_side(model, node)
        value = _right_side(model, node, field, operator, path)
    if operator == "isnull" and isinstance(node, json.KeyTransformIsNull):
        return Compare(field.attname, "isnull", value, path)
    if isinstance(field, IdentityField):
        return _identity(field, operator, value)
    if operator == "exact" and value is None:
        return Compare(field.attname, "isnull", True, path)
    return Compare(field.attname, operator, value, path)


def _operator(node: Any) -> str:
    name = getattr(node, "lookup_name", None)
    if isinstance(node, json.HasKeyLookup) and not isinstance(node, json.KeyTransformIsNull):
        if type(node) is json.HasKey:
            return "has_key"
        raise NotSupported(f"The lookup {name!r} is not supported: combine has_key with & or |.")
    for kind in type(node).__mro__:
        if kind in OPERATORS and name == kind.lookup_name:
            return OPERATORS[kind]
    if name in ADVICE:
        raise NotSupported(f"The lookup {name!r} has no exact answer in DynamoDB: {ADVICE[name]}.")
    if isinstance(node, related_lookups.RelatedLookupMixin) or name is None:
        raise NotSupported(f"A condition of the kind {type(node).__name__} cannot be answered by DynamoDB.")
    raise NotSupported(
        f"The lookup {name!r} is not supported. There are {', '.join(sorted({*OPERATORS.values(), 'has_key'}))}."
    )


def _left_side(model: type[Model], node: Any) -> tuple[Any, tuple[str | int, ...]]:
    path: list[str | int] = []
    side = node.lhs
    while isinstance(side, json.KeyTransform):
        key = side.key_name
        path.insert(0, int(key) if key.lstrip("-").isdigit() else key)
        side = side.lhs
    if not isinstance(side, Col):
        raise NotSupported(
            f"{type(side).__name__} in a condition is not supported: DynamoDB compares stored attributes, it does not "
            "compute. Keep the computed value in an attribute of its own."
        )
    field: Any = side.target
    if not isinstance(field, DynamoField) or field.model._meta.concrete_model is not model._meta.concrete_model:
        raise NotSupported(
            f"{model._meta.label} cannot be filtered by {field.model._meta.label}.{field.name}: DynamoDB has no joins. "
            f"Get the {field.model._meta.verbose_name} first and filter by it, or copy {field.name} to "
            f"{model._meta.object_name}."
        )
    if path and field.attribute.attr_type not in DOCUMENT_TYPES:
        raise NotSupported(
            f"{field.attname} is stored as JSON text, which DynamoDB cannot look into: make it a MapAttribute to "
            "filter by a path."
        )
    return field, tuple(path)


def _right_side(model: type[Model], node: Any, field: Any, operator: str, path: tuple[Any, ...]) -> Any:
    value = node.rhs
    if isinstance(value, Expression) or hasattr(value, "resolve_expression"):
        if hasattr(value, "model"):
            raise NotSupported("A queryset inside a condition is not supported: make a list of it first.")
        raise NotSupported(
            f"{type(value).__name__} in a condition is not supported: DynamoDB compares with values only."
        )
    if operator == "isnull":
        return bool(value)
    if operator == "has_key":
        return str(value)
    if operator == "in":
        return tuple(member for member in value if member is not None)
    if path:
        return value
    if operator == "range":
        return tuple(field.get_prep_value(bound) for bound in value)
    if operator == "contains":
        return _contained(field, value)
    if isinstance(field, IdentityField):
        return value
    return field.attribute.prepare(value)


def _contained(field: Any, value: Any) -> Any:
    """What a set or a list contains is one member, not a whole set."""
    if field.attribute.attr_type in {"SS", "NS", "BS", "L"} and isinstance(value, list | set | tuple | dict):
        raise InvalidValue(f"{field.attname}__contains takes one member, not {value!r}.")
    return value


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


def read_ordering(model: type[Model], names: Any) -> tuple[Order, ...]:
    """The order of ``order_by()`` or ``Meta.ordering``, with ``pk`` as the key's own attributes."""
    orders: list[Order] = []
    for name in names:
        if isinstance(name, OrderBy) and hasattr(name.expression, "name") and not (name.nulls_first or name.nulls_last):
            text, descending = name.expression.name, name.descending
        elif isinstance(name, str) and name != "?":
            text, descending = name.lstrip("-+"), name.startswith("-")
        else:
            raise NotSupported(f"Ordering by {name!r} is not supported: DynamoDB orders by the sort key only.")
        orders.extend(Order(attribute, descending) for attribute in _ordered_attributes(model, text))
    return tuple(dict.fromkeys(orders))


def _ordered_attributes(model: type[Model], name: str) -> tuple[str, ...]:
    layout = registry.layout_of(model)
    if name in ("pk", "identity"):
        return layout.identity
    by_name = {field.name: field.attname for field in model._meta.concrete_fields}
    attribute = by_name.get(name, name)
    if attribute not in layout.attributes:
        raise UnknownField(f"Cannot order {model._meta.label} by {name!r}. It has {', '.join(sorted(by_name))}.")
    return (attribute,)
