"""Check the values of each write against the model's ``CheckConstraint``s.

A computed value, such as ``F("qty") - 1``, of an attribute that a constraint names depends on the stored item. The
write is conditional on that item, as for every attribute that an effect watches. As in SQL, a comparison with a missing
value is unknown, and an unknown constraint is met.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db.models import CheckConstraint
from msgspec import Struct

from dynamo_single.exceptions import CheckViolation, ConfigurationError, DynamoSingleError
from dynamo_single.orm.conditions.matching import matches
from dynamo_single.orm.conditions.terms import And, Condition, Not, Or, Stored, StoredPair, names_in
from dynamo_single.orm.effects.base import Effect, SideWrites, Transition
from dynamo_single.orm.requests.actions import Item
from dynamo_single.orm.schema.bindings import ModelBinding, fact
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.orm.where.declared_conditions import read_declared


class Rule(Struct, frozen=True, eq=False):
    """One constraint, with its condition in stored names."""

    constraint: CheckConstraint
    condition: Condition

    def is_met_by(self, item: Item) -> bool:
        """Return whether the condition of an item is true or unknown."""
        return _holds(self.condition, item) is not False


@fact
def rules_of(binding: ModelBinding) -> tuple[Rule, ...]:
    """Return the constraints of a model; raise ``ConfigurationError`` if the app cannot evaluate a constraint."""
    return tuple(_rules(binding))


def _rules(binding: ModelBinding) -> Iterator[Rule]:
    meta: Any = binding.model._meta
    for each in meta.constraints:
        if isinstance(each, CheckConstraint):
            condition: Any = getattr(each, "condition", None)
            try:
                yield Rule(each, read_declared(binding.model, condition, binding.layout))
            except (DynamoSingleError, TypeError) as error:
                raise ConfigurationError(f"{meta.label}.Meta.constraints: {each.name!r}: {error}") from error


def _holds(condition: Condition, item: Item) -> bool | None:
    if isinstance(condition, Not):
        found = _holds(condition.child, item)
        return None if found is None else not found
    if isinstance(condition, And | Or):
        every = [_holds(child, item) for child in condition.children]
        decisive = isinstance(condition, Or)
        return decisive if decisive in every else None if None in every else not decisive
    if isinstance(condition, StoredPair):
        names: tuple[str, ...] = (condition.name, condition.other)
    elif isinstance(condition, Stored) and condition.operator not in ("exists", "missing"):
        names = (condition.name,)
    else:
        names = ()
    return None if any(item.get(name, {"NULL": True}) == {"NULL": True} for name in names) else matches(condition, item)


class CheckConstraints(Effect):
    """Refuses a write of an object that would violate a constraint."""

    def __init__(self, model: type[DynamoModel], rules: tuple[Rule, ...]) -> None:
        self.model = model
        self.rules = tuple((rule, frozenset(names_in(rule.condition))) for rule in rules)
        self.watches = frozenset().union(*(named for _, named in self.rules))

    def concerns(self, transition: Transition) -> bool:
        """Return whether the write creates the object, or changes an attribute of a constraint."""
        return transition.before is None or bool(self.watches & transition.written_names)

    async def side_writes(self, transition: Transition) -> SideWrites | None:
        """Raise ``CheckViolation``; otherwise require that the other attributes of the constraints are unchanged."""
        if transition.after is None:
            return None
        as_read: frozenset[str] = frozenset()
        for rule, named in self.rules:
            if transition.before is not None and not named & transition.written_names:
                continue
            if not rule.is_met_by(transition.after):
                name = rule.constraint.name
                raise CheckViolation(
                    f"{transition.subject.name} would violate the constraint {name!r} of "
                    f"{self.model._meta.label}. Nothing was written. Set values that meet the constraint.",
                    name=name,
                )
            as_read |= named
        return SideWrites(as_read=as_read if transition.before is not None else frozenset())
