"""What a queryset's ``update()`` is given, checked before anything is sent, and the update that needs no reading.

One object whose whole primary key is given is updated by one request, under the queryset's conditions, where nothing
else depends on the values. This module must not know how objects are written that were read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Model

from dynamo_single.exceptions import ConditionFailed, InvalidValue, NotSupported, UnknownField
from dynamo_single.orm.conditions.algebra import join, lower, simplify
from dynamo_single.orm.conditions.matching import is_comparable, matches
from dynamo_single.orm.conditions.terms import Condition, Stored
from dynamo_single.orm.effects.write_errors import unmet_error
from dynamo_single.orm.items import hydration, versions
from dynamo_single.orm.items.serialization import automatic_values, stored_name
from dynamo_single.orm.plan.plan import Plan
from dynamo_single.orm.requests import block
from dynamo_single.orm.requests.actions import ITEM_EXISTS, Update
from dynamo_single.orm.requests.changes import Change, Place, clashing, needs, unmet
from dynamo_single.orm.requests.compiler import compile_action
from dynamo_single.orm.schema import registry
from dynamo_single.orm.write import computed_changes
from dynamo_single.orm.write.assignments import Target, is_asked, settled, target_of
from dynamo_single.table.names import ITEM_TYPE
from dynamo_single.table.table import get_table


@dataclass(frozen=True, slots=True)
class Assigned:
    """Values to set, by attribute, and changes that DynamoDB makes of what is stored."""

    values: Mapping[str, Any]
    changes: tuple[Change, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.values or self.changes)


def read(model: Any, given: Mapping[str, Any]) -> Assigned:
    """Check names and values, and that no two of them are about one place."""
    values: dict[str, Any] = {}
    changes: list[Change] = []
    places: list[Place] = []
    for name, value in given.items():
        target = _target(model, name)
        result = settled(target, value) if target.place.path or is_asked(value) else value
        places.append(target.place)
        if isinstance(result, Change):
            changes.append(result)
        else:
            values[target.attribute.name] = _checked_value(target.attribute.field, result)
    clash = clashing(places)
    if clash is not None:
        raise InvalidValue(
            f"{model._meta.label}: update() cannot set {clash[0]} and {clash[1]} at once, as one is (in) the other."
        )
    return Assigned(values, tuple(changes))


def _target(model: Any, name: str) -> Target:
    """The place that a name means, if it can change."""
    label = model._meta.label
    fields = {key: field for field in model._meta.concrete_fields for key in (field.name, field.attname)}
    field = model._meta.pk if name == "pk" else fields.get(name, fields.get(name.partition("__")[0]))
    if field is None:
        known = ", ".join(each.name for each in model._meta.concrete_fields if not _is_of_key(each))
        raise UnknownField(f"{label} has no attribute {name!r} to update. It has {known}.")
    if _is_of_key(field):
        raise NotSupported(
            f"{label}.{name} is part of the primary key and cannot change here: each object's move() changes it."
        )
    if field.attribute.computed:
        raise NotSupported(f"{label}.{name} is computed from {field.attribute.origin}: update that.")
    if field.attribute.settled:
        raise NotSupported(f"{label}.{name} is set when an object is made, and never changes.")
    return target_of(model, name)


def _is_of_key(field: Any) -> bool:
    return bool(field.primary_key or field.attname in field.model._identity)


def _checked_value(field: Any, value: Any) -> Any:
    attribute = field.attribute
    if isinstance(value, Model):
        if not field.is_relation or not isinstance(value, field.remote_field.model):
            raise InvalidValue(f"{field.model._meta.label}.{field.name} cannot be set to {value!r}.")
        value = value.pk
    try:
        prepared = attribute.prepare(value)
    except InvalidValue as error:
        raise InvalidValue(f"{field.model._meta.label}: {error}") from error
    if prepared is None and not attribute.null:
        raise InvalidValue(
            f"{field.model._meta.label}: {field.name} is missing: it takes {attribute.expects}, or null=True."
        )
    return prepared


def at_once(queryset: Any, assigned: Assigned) -> int | None:
    """Update the one object that is asked for by one request; ``None`` where objects have to be read first."""
    model = queryset.model
    if block.current() is not None or queryset.query.is_empty():
        return None
    if not computed_changes.is_left_to_dynamodb(model, assigned.changes, assigned.values, alone=True):
        return None
    plan: Plan = queryset._plan(ordered=False)
    condition = simplify(lower(plan.filter, plan.layout))
    if plan.kind != "get" or not is_comparable(condition):
        return None
    of_type = Stored(ITEM_TYPE, "=", ({"S": plan.layout.item_type},))
    action = _action(model, plan, assigned, join((ITEM_EXISTS, of_type, condition, needs(assigned.changes))))
    try:
        get_table(plan.layout.alias).send_patiently(compile_action(action))
    except ConditionFailed as error:
        _explain(model, error, condition, assigned)
        return 0
    return 1


def _action(model: Any, plan: Plan, assigned: Assigned, condition: Condition) -> Update:
    blank = model.__new__(model)
    blank._stored, blank.attribute_values = None, {}
    values = {**automatic_values(blank, add=False), **assigned.values}
    attributes = registry.attributes_of(model)
    version = versions.attribute_of(model)
    return Update(
        plan.keys[0],
        set={stored_name(model, n): attributes[n].to_attribute_value(v) for n, v in values.items() if v is not None},
        remove=tuple(stored_name(model, name) for name, value in values.items() if value is None),
        add={} if version is None else {version.attr_name: {"N": "1"}},
        changes=assigned.changes,
        condition=condition,
    )


def _explain(model: Any, error: ConditionFailed, condition: Condition, assigned: Assigned) -> None:
    """Raise for an item that the queryset gives, and that is not what the changes need."""
    if not error.item:
        return
    hydration.check_type(model, error.item)
    missing = unmet(assigned.changes, error.item)
    if missing is not None and matches(condition, error.item):
        raise unmet_error(hydration.instance(model, error.item), missing, error.item) from error
