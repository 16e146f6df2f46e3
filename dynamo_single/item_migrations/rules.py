"""A unique rule as a migration knows it, without the model.

This module must not know operations, or the table.
"""

from __future__ import annotations

from dataclasses import dataclass

from dynamo_single.item_migrations.stored import Written
from dynamo_single.orm.conditions.plain import Plain, plain
from dynamo_single.orm.conditions.terms import EVERYTHING
from dynamo_single.orm.items.unique_rules import Rule


@dataclass(frozen=True)
class UniqueRule(Written):
    """Some attributes, by Python name, whose values taken together only one live object has.

    ``canonical`` are those whose texts are compared without regard to case. ``condition`` is in physical names, and
    ``name`` the constraint's, if it has a condition. ``members`` is a set whose members are unique as the attribute's
    values are.
    """

    attributes: tuple[str, ...]
    canonical: tuple[str, ...] = ()
    name: str = ""
    condition: Plain | None = None
    members: str = ""

    def __hash__(self) -> int:
        return hash((self.attributes, self.name))  # a condition holds dicts

    @classmethod
    def of(cls, rule: Rule) -> UniqueRule:
        """What is stored of a declared rule."""
        return cls(
            rule.fields,
            canonical=tuple(each.name for each in rule.attributes if each.canonical),
            name=rule.name,
            condition=None if rule.condition == EVERYTHING else plain(rule.condition),
            members="" if rule.members is None else rule.members.name,
        )

    @property
    def names(self) -> tuple[str, ...]:
        """All that is claimed, by Python name."""
        return (*self.attributes, self.members) if self.members else self.attributes
