"""Lowering conditions to an item's own names and values, as DynamoDB compares them.

This module must not know keys, plans or requests.
"""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Iterable
from decimal import Decimal
from functools import lru_cache

from dynamo_single.exceptions import InvalidValue, NotSupported, UnknownField
from dynamo_single.orm.conditions.terms import (
    IDENTITY,
    TEXT_OPERATORS,
    And,
    Compare,
    ComparePair,
    Condition,
    Not,
    Nothing,
    Or,
    Stored,
    StoredPair,
    names_in,
    simplify,
    with_leaves,
    with_names,
)
from dynamo_single.orm.conditions.wording import (
    FILTER_IN_PYTHON,
    Plain,
    condition_of,
    condition_text,
    hides,
    plain_condition,
)
from dynamo_single.orm.schema.keys.codecs import canonical
from dynamo_single.orm.schema.keys.values import text_to_number, to_attribute_value
from dynamo_single.orm.schema.layout import AttributeInfo, IndexCondition, ModelLayout
from dynamo_single.table.request import AttributeValue, StoredValue

NULL: AttributeValue = {"NULL": True}


#: A condition of a write has no such alternative.
_IN_A_QUERYSET = f"For a queryset, {FILTER_IN_PYTHON}."
_ORDERINGS = {"lt": "<", "lte": "<=", "gt": ">", "gte": ">="}


_SIZES = {f"size_{name}": f"size{sign}" for name, sign in {"exact": "=", **_ORDERINGS}.items()}


#: The types that DynamoDB puts in order.
ORDERED_TYPES = frozenset(("S", "N", "B"))


_SET_MEMBERS = {"SS": "S", "NS": "N", "BS": "B"}


def lower(condition: Condition, layout: ModelLayout | None) -> Condition:
    """Convert a condition to the item's own names and values; raise ``NotSupported`` for unsupported comparisons."""
    if isinstance(condition, Compare):
        if layout is None:
            raise UnknownField(f"{condition.attribute}: without a layout only stored names can be compared.")
        return _lower_compare(condition, layout)
    if isinstance(condition, ComparePair):
        if layout is None:
            raise UnknownField(f"{condition.attribute}: without a layout only stored names can be compared.")
        return _lower_pair(condition, layout)
    if isinstance(condition, And):
        return And(tuple([lower(child, layout) for child in condition.children]))
    if isinstance(condition, Or):
        return Or(tuple([lower(child, layout) for child in condition.children]))
    if isinstance(condition, Not):
        return Not(lower(condition.child, layout))
    return condition


def missing_condition(name: str) -> Condition:
    """Return the condition that an item has no value of an attribute; ``NULL`` counts as none."""
    return Or((Stored(name, "missing"), Stored(name, "=", (NULL,))))


def check(condition: Condition, layout: ModelLayout) -> None:
    """Raise what ``lower()`` would for a name or a value that is wrong, for less: a list of identities is left out.

    Theirs are looked at when keys are made of them.
    """
    if isinstance(condition, And | Or):
        for child in condition.children:
            check(child, layout)
    elif isinstance(condition, Not):
        check(condition.child, layout)
    elif not (isinstance(condition, Compare) and condition.attribute == IDENTITY and condition.operator == "in"):
        lower(condition, layout)


def order_value(attribute_value: StoredValue) -> tuple[str, object]:
    """Return DynamoDB's sort value of a string, number or binary value; values of two types are not comparable."""
    ((kind, value),) = attribute_value.items()
    if kind == "N":
        return kind, Decimal(value)
    return kind, value.encode() if kind == "S" else bytes(value)


def _lower_pair(pair: ComparePair, layout: ModelLayout) -> Condition:
    one, other = layout.attributes[pair.attribute].stored, layout.attributes[pair.other].stored
    sign = "=" if pair.operator == "exact" else _ORDERINGS[pair.operator]
    stored = StoredPair(one, sign, other, pair.path, pair.other_path)
    if sign != "=" or pair.path or pair.other_path:
        return stored
    # To DynamoDB one NULL equals another.
    return And((Stored(one, "exists"), Not(Stored(one, "=", (NULL,))), stored))


def _lower_compare(compare: Compare, layout: ModelLayout) -> Condition:
    if compare.attribute == IDENTITY:
        return _lower_identity(compare, layout)
    if compare.path and any(isinstance(step, int) and step < 0 for step in compare.path):
        raise NotSupported(
            f"{condition_text(compare, layout)}: DynamoDB counts list elements from the front only, from 0 up."
        )
    info = layout.attributes.get(compare.attribute)
    if info is None:
        known = ", ".join(sorted(layout.attributes))
        raise UnknownField(f"{layout.label} has no attribute {compare.attribute!r}; it has {known}.")
    if compare.operator == "isnull" and compare.path:
        # As in Django: JSON's null is a value, and a key that holds it is there.
        return Stored(info.stored, "missing" if compare.value else "exists", (), compare.path)
    if compare.operator == "isnull":
        return missing_condition(info.stored) if compare.value else Not(missing_condition(info.stored))
    if compare.operator == "has_key":
        return Stored(info.stored, "exists", (), (*compare.path, compare.value))
    lowering = _LOWERINGS.get(compare.operator)
    if lowering is None:
        raise NotSupported(
            f"{layout.label}: DynamoDB cannot evaluate {condition_text(compare, layout)}. It supports exact, "
            f"in, {', '.join(_ORDERINGS)}, range, startswith, contains, isnull, has_key, attribute_type and "
            "size comparisons."
        )
    return lowering(compare, info)


def _lower_identity(compare: Compare, layout: ModelLayout) -> Condition:
    if compare.operator != "in":
        raise NotSupported(f"{layout.label}: an identity can be compared with 'in' only, not {compare.operator!r}.")
    alternatives = (
        And(tuple(Compare(name, "exact", value) for name, value in identity.items())) for identity in compare.value
    )
    return lower(simplify(Or(tuple(alternatives))), layout)


def _lower_exact(compare: Compare, info: AttributeInfo) -> Condition:
    return Stored(info.stored, "=", (operand(compare, info, compare.value),), compare.path)


def _lower_in(compare: Compare, info: AttributeInfo) -> Condition:
    given = [operand(compare, info, value) for value in compare.value]
    operands = {repr(each): each for each in given}  # a list of thousands must not be compared with itself
    return Stored(info.stored, "in", tuple(operands.values()), compare.path) if operands else Nothing()


def _lower_ordering(compare: Compare, info: AttributeInfo) -> Condition:
    bound = _ordered_operand(compare, info, compare.value)
    return Stored(info.stored, _ORDERINGS[compare.operator], (bound,), compare.path)


def _lower_range(compare: Compare, info: AttributeInfo) -> Condition:
    low, high = (_ordered_operand(compare, info, value) for value in compare.value)
    if low.keys() != high.keys():
        raise InvalidValue(f"{condition_text(compare, info)}: the two bounds are of different types.")
    # DynamoDB rejects a BETWEEN with reversed bounds.
    if order_value(low) > order_value(high):
        return Nothing()
    return Stored(info.stored, "between", (low, high), compare.path)


def _lower_startswith(compare: Compare, info: AttributeInfo) -> Condition:
    if not isinstance(compare.value, str | bytes) or (not compare.path and info.type not in ("S", "B")):
        raise NotSupported(
            f"{condition_text(compare, info)}: only text and binary can start with something; "
            f"{info.name} is {info.type}. "
            f"{_IN_A_QUERYSET}"
        )
    return Stored(info.stored, "begins_with", (_in_document(compare, info, compare.value),), compare.path)


def _lower_contains(compare: Compare, info: AttributeInfo) -> Condition:
    part = _in_document(compare, info, compare.value)
    (kind,) = part
    member = _SET_MEMBERS.get(info.type, info.type)
    if not compare.path and info.type != "L" and member != kind:
        raise NotSupported(
            f"{condition_text(compare, info)}: {info.name} is stored as {info.type}, which cannot contain a value of "
            f"{kind}. "
            f"{_IN_A_QUERYSET}"
        )
    if not compare.path and info.type in ("N", "M", "BOOL", "NULL"):
        raise NotSupported(
            f"{condition_text(compare, info)}: {info.name} is stored as {info.type}; text, sets and lists can contain. "
            f"{_IN_A_QUERYSET}"
        )
    return Stored(info.stored, "contains", (part,), compare.path)


def _lower_size(compare: Compare, info: AttributeInfo) -> Condition:
    if not compare.path and info.type in ("N", "BOOL"):
        raise NotSupported(f"{condition_text(compare, info)}: {info.name} is stored as {info.type}, which has no size.")
    size = _in_document(compare, info, compare.value)
    return Stored(info.stored, _SIZES[compare.operator], (size,), compare.path)


def _lower_canonical(compare: Compare, info: AttributeInfo) -> Condition:
    return Stored(info.stored, "canonical", ({"S": canonical(compare.value)},), compare.path)


def _lower_text(compare: Compare, info: AttributeInfo) -> Condition:
    return Stored(info.stored, compare.operator, ({"S": compare.value},), compare.path)


def _lower_type(compare: Compare, info: AttributeInfo) -> Condition:
    return Stored(info.stored, "type", ({"S": compare.value},), compare.path)


_LOWERINGS = {
    "exact": _lower_exact,
    "in": _lower_in,
    "range": _lower_range,
    "startswith": _lower_startswith,
    "contains": _lower_contains,
    "canonical": _lower_canonical,
    **dict.fromkeys(TEXT_OPERATORS, _lower_text),
    "attribute_type": _lower_type,
    **dict.fromkeys(_ORDERINGS, _lower_ordering),
    **dict.fromkeys(_SIZES, _lower_size),
}


def operand(compare: Compare, info: AttributeInfo, value: object) -> AttributeValue:
    """Give one of a comparison's values as it is stored; ``None`` is refused, for nothing equals it."""
    if value is None and not compare.path:
        raise InvalidValue(
            f"{condition_text(compare, info)}: no value equals None. Use {compare.attribute}__isnull=True instead."
        )
    return _in_document(compare, info, value) if compare.path else info.serialize(value)


def _in_document(compare: Compare, info: AttributeInfo, value: object) -> AttributeValue:
    try:
        return to_attribute_value(value, path=info.name)
    except InvalidValue:
        if not hides(info, compare.attribute, compare.path):
            raise
        raise InvalidValue(
            f"{condition_text(compare, info)}: {type(value).__name__} cannot be stored in a document."
        ) from None


def _ordered_operand(compare: Compare, info: AttributeInfo, value: object) -> AttributeValue:
    given = operand(compare, info, value)
    (kind,) = given
    if kind not in ORDERED_TYPES:
        raise NotSupported(
            f"{condition_text(compare, info)}: DynamoDB orders text, numbers and binary, not values stored as {kind}. "
            f"{_IN_A_QUERYSET}"
        )
    return given


# The conditions of indexes: as tuples, as strings without names, and in the stored names of a model.


def index_condition(condition: Condition) -> IndexCondition:
    """The condition of an index of one whose comparisons have attributes' names, and stored values."""
    attributes = tuple(dict.fromkeys(names_in(condition)))
    numbers = {name: str(number) for number, name in enumerate(attributes)}
    return IndexCondition(repr(plain_condition(with_leaves(with_names(condition, numbers), _sorted))), attributes)


def index_condition_of_plain(given: Plain) -> IndexCondition:
    """Convert the condition of a migration file the same way; raise ``ConfigurationError`` for an invalid one."""
    return index_condition(condition_of(given))


def as_plain(given: IndexCondition) -> Plain:
    """The condition as a migration file has it, by the attributes' names."""
    return plain_condition(with_attribute_names(given, given.attributes))


def with_attribute_names(given: IndexCondition, names: Iterable[str]) -> Condition:
    """The condition with these names in the places of its attributes', in their order."""
    return with_names(_read(given.text), {str(number): name for number, name in enumerate(names)})


def with_stored_names(given: IndexCondition, layout: ModelLayout) -> Condition:
    """The condition in a model's stored names, as they are now."""
    return with_attribute_names(given, (layout.attributes[name].stored for name in given.attributes))


def filter_text(given: IndexCondition) -> str:
    """The condition as a filter has it, of stored values: ``status='open', due__isnull=False``."""
    return condition_text(_asked(with_attribute_names(given, given.attributes)))


#: The lookups of the operators in filters.
_LOOKUPS = {
    "=": "exact",
    "<": "lt",
    "<=": "lte",
    ">": "gt",
    ">=": "gte",
    "between": "range",
    "begins_with": "startswith",
    "type": "attribute_type",
}


def _asked(condition: Condition) -> Condition:
    """A condition as a filter has it, by the names that it has."""
    for is_null, found in ((False, condition.child if isinstance(condition, Not) else None), (True, condition)):
        if isinstance(found, Or) and isinstance(found.children[0], Stored):
            name = found.children[0].name
            if found == missing_condition(name):
                return Compare(name, "isnull", is_null)
    if isinstance(condition, And | Or):
        return type(condition)(tuple(map(_asked, condition.children)))
    if isinstance(condition, Not):
        return Not(_asked(condition.child))
    if isinstance(condition, StoredPair):
        operator = _LOOKUPS[condition.operator]
        return ComparePair(condition.name, operator, condition.other, condition.path, condition.other_path)
    if not isinstance(condition, Stored):
        return condition
    if condition.operator in ("exists", "missing"):
        return Compare(condition.name, "isnull", condition.operator == "missing", condition.path)
    values = tuple(map(_shown, condition.operands))
    operator = _LOOKUPS.get(condition.operator, condition.operator)
    if operator.startswith("size"):
        operator = f"size_{_LOOKUPS[operator[4:]]}"
    return Compare(condition.name, operator, values if operator in ("in", "range") else values[0], condition.path)


def _shown(operand: StoredValue) -> object:
    ((kind, value),) = operand.items()
    return text_to_number(value) if kind == "N" else value


@lru_cache(maxsize=1024)
def _read(text: str) -> Condition:
    return condition_of(literal_eval(text))


def _sorted(leaf: Condition) -> Condition:
    """Return the members of an ``in`` in a fixed order, because a Python set's order differs between processes."""
    if isinstance(leaf, Stored) and leaf.operator == "in":
        return Stored(leaf.name, "in", tuple(sorted(leaf.operands, key=repr)), leaf.path)
    return leaf
