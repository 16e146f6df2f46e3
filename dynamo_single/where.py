"""From Django's description of a query to ours.

Django resolves names, lookups and values into a where-tree (it is never compiled to SQL); this module reads that tree.
It knows Django's lookup classes and must not know keys, plans or requests.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from django.db.models import Model, Transform, lookups
from django.db.models.expressions import Col, ColPairs, CombinedExpression, Expression, OrderBy
from django.db.models.fields import json, related_lookups
from django.db.models.fields.tuple_lookups import TupleIn
from django.db.models.sql.where import AND, OR, NothingNode, WhereNode

from dynamo_single import registry
from dynamo_single.attributes import JSONAttribute
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
#: What compares with values that may be finer than the stored ones.
ROUNDED = {"exact", "in", "lt", "lte", "gt", "gte", "range"}
POSITION = re.compile("[0-9]+")


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
        field: Any = node.lhs.targets[0]
        return _whole(field, "in", tuple(field.get_prep_value(member) for (member,) in node.rhs))
    operator = _operator(node)
    field, steps = _left_side(model, node)
    value = _right_side(node, field, operator, steps)
    if not steps:
        _check_whole(field, operator)
        return _whole(field, operator, value)
    places = tuple(Compare(field.attname, operator, value, path) for path in _paths(field, steps))
    if len(places) == 1:
        return places[0]
    return And(places) if operator == "isnull" and value else Or(places)


def _whole(field: Any, operator: str, value: Any) -> Condition:
    """A comparison of a whole attribute."""
    if isinstance(field, IdentityField):
        return _identity(field, operator, value)
    if operator == "exact" and value is None:
        operator, value = "isnull", True
    if operator == "isnull" and field.primary_key:
        return Nothing() if value else And()
    if field.attribute.rounds and operator in ROUNDED:
        return _rounded(field, operator, value)
    return Compare(field.attname, operator, value)


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


def _check_whole(field: Any, operator: str) -> None:
    attribute = getattr(field, "attribute", None)
    if isinstance(attribute, JSONAttribute) and operator not in ("exact", "in", "isnull"):
        raise NotSupported(
            f"{field.attname}__{operator} is not supported: {field.attname} is stored as JSON text, which can only be "
            "compared as a whole, by exact, in and isnull. Make it a MapAttribute to look inside."
        )
    if operator == "has_key" and attribute is not None and attribute.attr_type != "M":
        raise NotSupported(
            f"{field.attname}__has_key is not supported: only a map has keys. Ask a list for a member by contains, or "
            f"for a position: {field.attname}__0=..."
        )


def _paths(field: Any, steps: tuple[str, ...]) -> list[tuple[str | int, ...]]:
    """The places that the steps of a lookup can mean: ``7`` is a key of a map and a position of a list."""
    first, *rest = steps
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


def _left_side(model: type[Model], node: Any) -> tuple[Any, tuple[str, ...]]:
    steps: list[str] = []
    side = node.lhs
    while isinstance(side, json.KeyTransform):
        steps.insert(0, side.key_name)
        side = side.lhs
    if not isinstance(side, Col):
        raise _computed(side)
    field: Any = side.target
    if not isinstance(field, DynamoField) or field.model._meta.concrete_model is not model._meta.concrete_model:
        raise NotSupported(
            f"{model._meta.label} cannot be filtered by {field.model._meta.label}.{field.name}: DynamoDB has no joins. "
            f"Get the {field.model._meta.verbose_name} first and filter by it, or copy {field.name} to "
            f"{model._meta.object_name}."
        )
    if steps and field.attribute.attr_type not in DOCUMENT_TYPES:
        raise NotSupported(
            f"{field.attname} is stored as JSON text, which DynamoDB cannot look into: make it a MapAttribute to "
            "filter by a path."
        )
    return field, tuple(steps)


def _computed(side: Any) -> NotSupported:
    """The error for a condition on what would have to be computed from the stored value."""
    source = getattr(side, "lhs", None)
    if not isinstance(side, Transform) or not isinstance(source, Col):
        return NotSupported(
            f"{_called(side)} in a condition is not supported: DynamoDB compares stored attributes, it does not "
            "compute. Keep the computed value in an attribute of its own."
        )
    name, part = source.target.name, side.lookup_name
    way_out = f"keep the {part} in an attribute of its own"
    if part in ("year", "date"):
        way_out = f"ask for all of it with {name}__range=(first, last)"
    return NotSupported(
        f"{name}__{part} is not supported: DynamoDB compares stored attributes, it does not compute. Instead {way_out}."
    )


def _called(expression: Any) -> str:
    return "F()" if isinstance(expression, Col | CombinedExpression) else type(expression).__name__


def _right_side(node: Any, field: Any, operator: str, steps: tuple[str, ...]) -> Any:
    value = node.rhs
    if isinstance(value, Expression) or hasattr(value, "resolve_expression"):
        if hasattr(value, "model"):
            raise NotSupported("A queryset inside a condition is not supported: make a list of it first.")
        raise NotSupported(
            f"{_called(value)} in a condition is not supported: DynamoDB compares with values only. Filter in Python."
        )
    if operator in _VALUES:
        return _VALUES[operator](field, value, steps)
    if steps or isinstance(field, IdentityField) or field.attribute.rounds:
        return value
    return field.attribute.prepare(value)


def _bounds(field: Any, value: Any, steps: tuple[str, ...]) -> Any:
    bounds = tuple(value)
    if len(bounds) != 2 or None in bounds:
        raise InvalidValue(f"{field.attname}__range takes two bounds, the lower one first, not {bounds!r}.")
    return bounds if steps else tuple(field.get_prep_value(bound) for bound in bounds)


def _contained(field: Any, value: Any, steps: tuple[str, ...]) -> Any:
    """What a set or a list contains is one member, not a whole set."""
    if (
        not steps
        and field.attribute.attr_type in {"SS", "NS", "BS", "L"}
        and isinstance(value, list | set | tuple | dict)
    ):
        raise InvalidValue(f"{field.attname}__contains takes one member, not {value!r}.")
    return value


#: How the value of a lookup is read that is not the attribute's own value.
_VALUES: dict[str, Callable[[Any, Any, tuple[str, ...]], Any]] = {
    "isnull": lambda field, value, steps: bool(value),
    "has_key": lambda field, value, steps: str(value),
    "in": lambda field, value, steps: tuple(member for member in value if member is not None),
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
