"""Under which conditions an object is written: those that callers ask for, and those that the write itself depends on.

Which of them a stored item breaks decides what the caller is told. This module makes no errors and sends nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from msgspec import Struct

from dynamo_single.orm.conditions.algebra import join, with_names
from dynamo_single.orm.conditions.matching import matches
from dynamo_single.orm.conditions.terms import EVERYTHING, Condition, Stored
from dynamo_single.orm.requests.actions import ITEM_EXISTS, Item
from dynamo_single.orm.schema.layout import ModelLayout, Twin

#: The name of a condition that a stored item does not meet.
Broken = Literal["gone", "queried", "computed", "demanded", "needed", "as_read"]


class Terms(Struct, frozen=True):
    """What has to hold of the stored item because somebody asks for it.

    ``queried``: else the object is left alone and not counted. ``demanded``: else ``ConditionNotMet``.
    """

    queried: Condition = EVERYTHING
    demanded: Condition = EVERYTHING

    def __bool__(self) -> bool:
        return self is not NO_TERMS and (self.queried != EVERYTHING or self.demanded != EVERYTHING)

    def by(self, twins: Sequence[Twin]) -> Terms:
        """The same of what is being renamed: a condition may be older than what is known of the names in use."""
        if not twins or not self:
            return self
        names = {twin.other: twin.used for twin in twins}
        return Terms(with_names(self.queried, names), with_names(self.demanded, names))


NO_TERMS = Terms()


class Conditions(Struct, frozen=True):
    """All that a write of a stored item is held to.

    ``computed``: what a change was computed of is as it was read. ``needed``: what DynamoDB needs to make a change.
    ``as_read``: what keys and effects depend on is as it was read.
    """

    terms: Terms = NO_TERMS
    computed: Condition = EVERYTHING
    needed: Condition = EVERYTHING
    as_read: tuple[Stored, ...] = ()

    def whole(self) -> Condition:
        """What is sent."""
        return join((ITEM_EXISTS, *self.as_read, *self._others()))

    def _others(self) -> Iterator[Condition]:
        for each in (self.needed, self.terms.queried, self.computed, self.terms.demanded):
            if each is not EVERYTHING:
                yield each

    def broken_by(self, found: Item | None, layout: ModelLayout) -> Broken:
        """The first condition that the item which was found does not meet; ``as_read`` if it meets all others."""
        if not found:
            return "gone"
        if not matches(self.terms.queried, found, layout):
            return "queried"
        if not matches(self.computed, found, layout):
            return "computed"
        if not matches(self.terms.demanded, found, layout):
            return "demanded"
        return "needed" if not matches(self.needed, found, layout) else "as_read"
