"""Conditions on other models as conditions on keys: each step is a queryset, whose keys the next one is filtered by.

One related object must meet all conditions of one ``filter()``. Different objects may meet the conditions of one
``exclude()``, as Django documents. An object comes once, however many objects of the relation match.

Missing objects follow Django as well: ``filter(customer__note=None)`` includes the objects without a customer, and
``exclude(customer__city="Rome")`` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from django.db.models import Model, Q, QuerySet

from dynamo_single.exceptions import NotSupported
from dynamo_single.orm.conditions.wording import FILTER_IN_PYTHON
from dynamo_single.orm.relations.paths import Step, step_of
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.orm.where.arguments import leaves_of

#: Gives the queryset of a step's model, without conditions.
Source = Callable[[Any], Any]


def leads_on(model: type[DynamoModel], conditions: Iterable[Any]) -> bool:
    """Return whether a condition names an attribute of another model."""
    return any(
        isinstance(each, tuple) and len(each) == 2 and step_of(model, str(each[0])) is not None
        for each in leaves_of(conditions)
    )


def leads_to_several(model: type[DynamoModel], condition: Any) -> bool:
    """Return whether a step of a part of a condition is one to several objects, negated or not."""
    if isinstance(condition, Q):
        return any(leads_to_several(model, each) for each in condition.children)
    found = step_of(model, str(condition[0])) if isinstance(condition, tuple) else None
    if found is None:
        return False
    step, rest = found
    return step.is_plural or leads_to_several(step.model, (step.name(rest), None))


def check_rows(model: type[DynamoModel], condition: Q) -> None:
    """Raise ``NotSupported`` for conditions of one ``filter()`` that only rows of a join can meet together.

    Related objects are found by one condition at a time, except those that ``in_steps()`` joins.
    """
    if _needs_rows(model, condition, set()):
        raise NotSupported(
            f"{model._meta.label}: one filter() with ^, or with a condition and a negated one inside | or &, about a "
            "relation to several objects is not supported, because the app reads related objects without their rows of "
            "a join. Negate in a separate call: .filter(one | other).exclude(one & other)."
        )


def _needs_rows(model: type[DynamoModel], condition: Q, used: set[Sequence[Step]]) -> bool:
    """Return whether a part is about the same related object as a part before it, whose steps are in ``used``."""
    if condition.connector == Q.XOR and leads_to_several(model, condition):
        return True
    joined: set[Step | None] = set()
    for child in condition.children:
        if not isinstance(child, Q):
            used |= _steps_to_several(model, child)
        elif child.negated:
            is_joined = condition.connector == Q.AND and _reused(model, child) in joined
            if not is_joined and used & _steps_to_several(model, child):
                return True
        elif _needs_rows(model, child, used):
            return True
        joined |= {_step_of_all(model, child)} - {None}
    return False


def _steps_to_several(model: type[DynamoModel], condition: Any) -> set[Sequence[Step]]:
    """Return the steps of each part of a condition up to the first relation to several objects."""
    if isinstance(condition, Q):
        return {path for child in condition.children for path in _steps_to_several(model, child)}
    path: list[Step] = []
    name, current = condition[0] if isinstance(condition, tuple) else "", model
    while (found := step_of(current, str(name))) is not None:
        step, name = found
        path.append(step)
        if step.is_plural:
            return {tuple(path)}
        current = step.model
    return set()


def in_steps(model: type[DynamoModel], condition: Q, source: Source, *, is_negated: bool = False) -> Q:
    """Return a condition on the model's own attributes, with a queryset of keys for each relation.

    ``is_negated`` is true for the conditions of ``exclude()``. Sends no requests.
    """
    is_negated = is_negated or condition.negated
    children: list[Any]
    if is_negated or condition.connector == Q.XOR:
        children = [_alone(model, child, source, is_negated=is_negated) for child in condition.children]
    else:
        condition = _distributed(model, condition)
        children = _together(model, condition, source)
    return Q.create(children, condition.connector, condition.negated)


class _ReadsOthers(Exception):
    """The condition is about objects that must be read."""


def _no_source(model: Any) -> Any:
    raise _ReadsOthers


def of_kept_keys(model: type[DynamoModel], condition: Q, *, is_negated: bool) -> Q | None:
    """Return a condition on the model's own attributes, if these contain the keys that its relations name.

    Returns ``None`` if other objects must be read first. Raises ``NotSupported`` for conditions that ``check_rows()``
    refuses. Sends no requests.
    """
    if not is_negated:
        check_rows(model, condition)
    try:
        return in_steps(model, condition, _no_source, is_negated=is_negated)
    except _ReadsOthers:
        return None


def _alone(model: type[DynamoModel], child: Any, source: Source, *, is_negated: bool) -> Any:
    if isinstance(child, Q):
        return in_steps(model, child, source, is_negated=is_negated)
    step = _step_of_all(model, child)
    return child if step is None else _exists(model, step, child, source, is_exact=True)


def _together(model: type[DynamoModel], condition: Q, source: Source) -> list[Any]:
    """Return the children of a condition, with one queryset for all that are about the same relation."""
    groups: dict[Step, list[Any]] = {}
    children: list[Any] = []
    for child in condition.children:
        step = _step_of_all(model, child)
        # Django applies a negation to the object that the conditions before it are about.
        reused = _reused(model, child) if condition.connector == Q.AND else None
        if step is not None:
            groups.setdefault(step, []).append(child)
        elif reused in groups:
            groups[reused].append(child)
        else:
            children.append(in_steps(model, child, source) if isinstance(child, Q) else child)
    for step, own in groups.items():
        group = own[0] if len(own) == 1 else Q.create(own, condition.connector)
        children.append(_exists(model, step, group, source, is_exact=condition.connector != Q.AND))
    return children


def _step_of_all(model: type[DynamoModel], child: Any) -> Step | None:
    """Return the step that every part of a condition takes; ``None`` if they differ or a part is negated."""
    if not isinstance(child, Q):
        is_pair = isinstance(child, tuple) and len(child) == 2
        found = step_of(model, str(child[0])) if is_pair else None
        return None if found is None else found[0]
    if child.negated or child.connector == Q.XOR:
        return None
    steps = {_step_of_all(model, each) for each in child.children}
    return steps.pop() if len(steps) == 1 else None


def _reused(model: type[DynamoModel], child: Any) -> Step | None:
    """Return the step that every part of a negation takes."""
    if not isinstance(child, Q) or not child.negated or child.connector == Q.XOR:
        return None
    return _step_of_all(model, Q.create(child.children, child.connector))


def _steps(model: type[DynamoModel], child: Any) -> set[Step]:
    """Return the steps to several objects that the parts of a condition take, without negations."""
    if isinstance(child, Q):
        return set() if child.negated else {step for each in child.children for step in _steps(model, each)}
    step = _step_of_all(model, child)
    return {step} if step is not None and step.is_plural else set()


def _distributed(model: type[DynamoModel], condition: Q) -> Q:
    """Return the condition with ``A & (B | C)`` as ``(A & B) | (A & C)`` if A and B are about one related object."""
    if condition.connector != Q.AND:
        return condition
    for number, child in enumerate(condition.children):
        is_mixed = isinstance(child, Q) and child.connector == Q.OR and not child.negated
        if not is_mixed or _step_of_all(model, child) is not None:
            continue
        others = [each for place, each in enumerate(condition.children) if place != number]
        if _steps(model, child) & {step for each in others for step in _steps(model, each)}:
            parts: Sequence[Any] = child.children  # type: ignore[union-attr]  # a Q, as is_mixed says
            return Q(Q.create([Q.create([*others, part]) for part in parts], Q.OR))
    return condition


def _exists(model: type[DynamoModel], step: Step, group: Any, source: Source, *, is_exact: bool) -> Any:
    """Return the condition that a relation leads to an object that meets the conditions of a group.

    ``is_exact`` is true if the condition may not be narrowed by an index, which may lag.
    """
    if step.kept is not None:
        kept = _kept(model, step, group, is_exact=is_exact)
        if kept is not None:
            return kept
    found = f"{step.near}__in", _keys(step, source, _within(model, step, group))
    if not _takes_missing(group):
        return found
    missing = Q((f"{step.near}__isnull", True)) if step.forward else ~Q((f"{step.near}__in", _keys(step, source, None)))
    return Q(missing | Q(found)) if _has_rest(model, group) else missing


def _kept(model: type[DynamoModel], step: Step, group: Any, *, is_exact: bool) -> Any:
    """Return the condition on the set that contains the keys; ``None`` if the other objects must be read."""
    relation = step.kept
    step = Step(getattr(relation, "field", relation), True, kept=relation)
    is_empty = Q((f"{relation.kept_in}__isnull", True))
    if not isinstance(group, Q) and group[0].endswith("__isnull"):
        return is_empty if group[1] else ~is_empty
    if _takes_missing(group):
        return is_empty if not isinstance(group, Q) else None
    keys = relation.keys_by(_within(model, step, group))
    if keys is None:
        return None
    found = relation.held(keys)
    holders = None if is_exact or not keys else relation.holders(keys)
    return found if holders is None else Q(("pk__in", holders), found)


def _keys(step: Step, source: Source, condition: Q | None) -> Any:
    """Return the queryset of the keys in a step's other model."""
    queryset = source(step.model).filter(**dict(step.conditions))
    if condition is not None:
        queryset = queryset.filter(condition)
    elif not step.forward and step.field.null:
        queryset = queryset.filter(**{f"{step.field.attname}__isnull": False})
    return queryset.values_list(step.far, flat=True)


def _within(model: type[DynamoModel], step: Step, child: Any) -> Q:
    """Return a condition as one of the step's other model."""
    if isinstance(child, Q):
        return Q.create([_within(model, step, each) for each in child.children], child.connector, child.negated)
    name, value = child
    found = step_of(model, name)
    rest = "" if found is None else found[1]
    return Q((step.name(rest), _value(model, step, name, value, is_key=not rest or step.is_lookup(rest))))


def _value(model: type[DynamoModel], step: Step, name: str, value: Any, *, is_key: bool) -> Any:
    """Return the value of a condition in the other model; objects are replaced by their keys."""
    members = value if isinstance(value, list | tuple | set | frozenset) else (value,)
    # Rows of SQL and computed objects are compared by Django's own query.
    is_read = hasattr(value, "_asked") or (step.kept is not None and isinstance(value, QuerySet))
    if not is_read and any(hasattr(each, "resolve_expression") for each in members):
        raise NotSupported(
            f"{model._meta.label}: {name} compares attributes of two objects, and each is read "
            f"by itself. Compare with a value, or {FILTER_IN_PYTHON}."
        )
    if not is_key or step.inner or not any(isinstance(each, Model) for each in members):
        return value
    return _key_of(step, value) if members == (value,) else [_key_of(step, each) for each in members]


def _key_of(step: Step, value: Any) -> Any:
    if isinstance(value, Model) and not isinstance(value, step.model._meta.concrete_model):
        # Django's message.
        raise ValueError(f'Cannot query "{value}": Must be "{step.model._meta.object_name}" instance.')
    return value.pk if isinstance(value, Model) else value


def _takes_missing(child: Any) -> bool:
    """Return whether a condition is met if the relation leads to no object: by ``isnull=True`` or ``None``."""
    if isinstance(child, Q):
        if child.negated:
            return False
        found = [_takes_missing(each) for each in child.children]
        return any(found) if child.connector == Q.OR else all(found)
    name, value = child
    return (name.endswith("__isnull") and value is True) or (value is None and not name.endswith("__isnull"))


def _has_rest(model: type[DynamoModel], child: Any) -> bool:
    """Return whether a condition is about more than whether the relation leads to an object."""
    if isinstance(child, Q):
        return any(_has_rest(model, each) for each in child.children)
    found = step_of(model, child[0])
    return found is not None and found[1] not in ("", "isnull", "exact", "pk", "pk__isnull")
