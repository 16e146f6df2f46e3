"""Conditions that a caller gives along with a write: Django's ``Q``, or a condition of PynamoDB, as a value of ours.

Both are checked like a filter, so that a wrong name or value is reported before any request. This module does not send
requests.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, partial
from typing import Any

from django.core.exceptions import FieldError
from django.db.models import Q
from django.utils import timezone
from pynamodb.expressions import condition as pynamodb
from pynamodb.expressions.operand import Path, Value, _Size

from dynamo_single.exceptions import ConfigurationError, DynamoSingleError, InvalidValue, NotSupported
from dynamo_single.orm.conditions import lowering
from dynamo_single.orm.conditions.lowering import lower
from dynamo_single.orm.conditions.terms import (
    EVERYTHING,
    And,
    Condition,
    Not,
    Nothing,
    Or,
    Stored,
    StoredPair,
    join,
    names_in,
    simplify,
    with_names,
)
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.attributes import CounterAttribute, VersionAttribute
from dynamo_single.orm.schema.keys.values import shown
from dynamo_single.orm.schema.layout import IndexCondition, ModelLayout
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.orm.where.tree import read_where

#: PynamoDB's comparisons; ``<>`` is the negation of ``=``, which DynamoDB treats alike except for a missing attribute.
_COMPARISONS = {"=", "<", "<=", ">", ">="}
_TURNED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_STEP = re.compile(r"\[([0-9]+)\]")


def read_precondition(model: Any, condition: object, layout: ModelLayout | None = None) -> Condition:
    """The condition in the stored names of a layout, the model's present one by default, and in stored values; ``None``
    is none at all.
    """
    layout = layout or registry.layout_of(model)
    if condition is None:
        return EVERYTHING
    if isinstance(condition, Q):
        queryset = model._base_manager.filter(condition)
        if queryset._asked.inside:
            raise NotSupported("A queryset inside the condition of a write is not supported: make a list of it first.")
        found = read_where(model, queryset.query.where)
    elif isinstance(condition, pynamodb.Condition):
        # PynamoDB's attributes have their declared names.
        found = with_names(_of_pynamodb(condition), {twin.other: twin.used for twin in layout.twins})
    else:
        raise InvalidValue(
            f"A condition on writing {model._meta.label} is a Q, as in Q(qty__gte=1), or one of PynamoDB, as in "
            f"{model._meta.object_name}.qty > 0, not {shown(condition)}."
        )
    return simplify(lower(found, layout))


def read_declared(model: type[DynamoModel], condition: object, layout: ModelLayout | None = None) -> Condition:
    """The condition of a declaration, which is read once: a day in it is one of the settings' time zone.

    ``NotSupported`` for a condition on a counter or a version, which change without a read of the object.
    """
    try:
        with timezone.override(None):
            found = read_precondition(model, condition, layout)
    except DynamoSingleError:
        raise
    except (FieldError, TypeError, ValueError) as error:  # Django's own of names and lookups
        raise InvalidValue(str(error)) from error
    for attribute in registry.attributes_of(model).values():
        if isinstance(attribute, CounterAttribute | VersionAttribute) and attribute.attr_name in names_in(found):
            raise NotSupported(
                f"It compares {attribute.name!r}, which changes without a read or write of the object. The app "
                "could not update values that depend on the condition."
            )
    return found


def _of_pynamodb(condition: pynamodb.Condition) -> Condition:
    if isinstance(condition, pynamodb.And):
        return join(map(_of_pynamodb, condition.values))
    if isinstance(condition, pynamodb.Or):
        return Or(tuple(map(_of_pynamodb, condition.values)))
    if isinstance(condition, pynamodb.Not):
        return Not(_of_pynamodb(condition.values[0]))
    return _comparison(condition)


def _comparison(condition: pynamodb.Condition) -> Condition:
    left, *operands = condition.values
    if isinstance(left, Value) and len(operands) == 1 and condition.operator in _TURNED:
        left, operands, operator = operands[0], [left], _TURNED[condition.operator]
    else:
        operator = condition.operator
    size = isinstance(left, _Size)
    path = left.values[0] if size else left
    if isinstance(path, Path) and not size and len(operands) == 1 and isinstance(operands[0], Path):
        return _of_two(condition, path, operands[0])
    if not isinstance(path, Path) or not all(isinstance(each, Value) for each in operands):
        raise NotSupported(
            f"Cannot use the condition {condition!r} here: compare two attributes by =, <>, <, <=, > or >=, and "
            "a size with a value."
        )
    name, steps = _place(path)
    values = tuple(each.value for each in operands)
    if operator == "<>":
        equal = Stored(name, "size=" if size else "=", values, steps)
        return And((Stored(name, "exists", (), steps), Not(equal))) if size else Not(equal)
    if operator in _COMPARISONS:
        return Stored(name, f"size{operator}" if size else operator, values, steps)
    operators = {
        "BETWEEN": "between",
        "IN": "in",
        "attribute_exists": "exists",
        "attribute_not_exists": "missing",
        "attribute_type": "type",
        "begins_with": "begins_with",
        "contains": "contains",
    }
    if size or operator not in operators:
        raise NotSupported(f"Cannot use the condition {condition!r} here: compare the size by =, <, <=, > or >=.")
    return Stored(name, operators[operator], values, steps)


def _of_two(condition: pynamodb.Condition, one: Path, other: Path) -> Condition:
    (name, steps), (other_name, other_steps) = _place(one), _place(other)
    if condition.operator not in _TURNED or (name, steps) == (other_name, other_steps):
        raise NotSupported(
            f"Cannot use the condition {condition!r} here: compare two different attributes by =, <>, <, <=, > or >=."
        )
    operator = "=" if condition.operator == "<>" else condition.operator
    pair = StoredPair(name, operator, other_name, steps, other_steps)
    return Not(pair) if condition.operator == "<>" else pair


def _place(path: Path) -> tuple[str, tuple[str | int, ...]]:
    """The attribute's stored name, and the steps into it."""
    steps: list[str | int] = []
    for segment in path.path:
        steps.append(segment.partition("[")[0])
        steps.extend(int(number) for number in _STEP.findall(segment))
    return str(steps[0]), tuple(steps[1:])


# The condition that a model declares for a key on an index, read once: ``Q`` becomes a value without a model.


def condition_reader(model: type[DynamoModel], name: str, given: object) -> Callable[[], IndexCondition] | None:
    """Return a function that reads a key's ``condition=`` once: lookups need a complete model."""
    return None if given is None else cache(partial(read_index_condition, model, name, given))


def read_index_condition(model: type[DynamoModel], name: str, given: object) -> IndexCondition:
    """Read a key's ``condition=``; raise ``ConfigurationError`` for a condition that items cannot meet."""
    where = f"{model._meta.label}: the condition of the key {name}"
    if not isinstance(given, Q):
        raise ConfigurationError(f"{where} is {given!r}, the form of a migration. Declare a Q, as in Q(status='open').")
    layout = registry.declared_layout(model)  # it is read while a binding is made
    try:
        condition = read_declared(model, given, layout)
    except DynamoSingleError as error:
        raise ConfigurationError(f"{where}: {error}") from error
    if condition == EVERYTHING or isinstance(condition, Nothing):
        which = "every object meets it" if condition == EVERYTHING else "no object can meet it"
        raise ConfigurationError(f"{where}: {which}. Remove it, or compare an attribute.")
    attributes = registry.attributes_of(model)
    python = {layout.attributes[each].stored: each for each in attributes}
    for stored in names_in(condition):
        attribute = attributes.get(python.get(stored, ""))
        if attribute is None or python[stored] in (registry.DELETED_AT, registry.DELETED_WITH):
            raise ConfigurationError(
                f"{where} compares {python.get(stored, stored)!r}. A condition can compare the model's own "
                "attributes; objects in the trash have a separate key."
            )
    return lowering.index_condition(with_names(condition, python))
