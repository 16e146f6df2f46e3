"""The base of all effects, and the conditions of a write.

An effect compares an item before and after a write, and adds the writes of other items that depend on it, such as
claims or counters. This module does not depend on any single effect, on the computation of an item, or on its request.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextvars import ContextVar
from functools import partial
from typing import Any, Literal

from msgspec import Struct

from dynamo_single.orm.conditions.matching import matches
from dynamo_single.orm.conditions.terms import EVERYTHING, Condition, Stored, join, with_names
from dynamo_single.orm.items.encode import Values
from dynamo_single.orm.reading.single import has_expired
from dynamo_single.orm.requests.actions import ITEM_EXISTS, Action, Item, ItemKey, Update
from dynamo_single.orm.requests.atomic_block import Block
from dynamo_single.orm.schema import registry, secrecy
from dynamo_single.orm.schema.fields.base import IdentityField
from dynamo_single.orm.schema.layout import ModelLayout, Twin
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.table import names

#: Returns the error for a refused action; ``None`` if the action belongs to another effect.
Explain = Callable[[Action, Item | None], Exception | None]
#: Whether this is a retry after a change of a dependent item: an index may have returned its earlier state.
is_repeated: ContextVar[bool] = ContextVar("is_repeated", default=False)


class Subject(Struct, frozen=True, eq=False):
    """The object of the written item, for messages and for effects that need its ``pk``."""

    _obj: Any

    @property
    def model(self) -> Any:
        """Its model."""
        return type(self._obj)

    @property
    def pk(self) -> Any:
        """Its identity."""
        return self._obj.pk

    @property
    def name(self) -> str:
        """The name of the object in messages."""
        return secrecy.named(self.model, self.pk)

    @property
    def shown_pk(self) -> str:
        """Its identity in messages, masked if a part of it is a secret."""
        return secrecy.shown(self.model, self.pk)

    def naming(self) -> Callable[[], str]:
        """Return a function that gives the object's current name later: most names never appear in a message."""
        model, field = self.model, self.model._meta.pk
        names = field.names if isinstance(field, IdentityField) else (field.attname,)
        values = self._obj.__dict__
        if not all(name in values for name in names):
            return partial(secrecy.named, model, self.pk)
        held = [values[name] for name in names]
        return lambda: secrecy.named(model, field.joined(held) if isinstance(field, IdentityField) else held[0])


class Transition(Struct, frozen=True, eq=False):
    """An item before and after a write; ``None`` is an item that does not exist.

    ``written_names`` contains the physical names that the write sets or removes, ``missing_parents`` the keys of
    parents that the app knows to be gone. ``pending`` is the ``atomic()`` block that the write joins. A ``lenient``
    write (fixtures) does not require its parents.
    """

    subject: Subject
    before: Item | None
    after: Item | None
    written_names: frozenset[str]
    pending: Block | None = None
    missing_parents: frozenset[ItemKey] = frozenset()
    lenient: bool = False


def _no_error(action: Action, found: Item | None) -> Exception | None:
    return None


class SideWrites(Struct, frozen=True, eq=False):
    """The writes that one effect adds to the write of an object.

    - ``actions`` write other items; ``written_items`` contains these items, before and after.
    - ``as_read`` contains the physical names of the object's item that must be unchanged since the read.
    - ``amend`` changes the object's own update, and ``mark`` contains the attributes that it adds to the item.
    - ``afterwards`` runs after all writes.
    - ``exclusive``: an equal item of another process does not count as this write.
    """

    actions: tuple[Action, ...] = ()
    as_read: frozenset[str] = frozenset()
    written_items: tuple[Item, ...] = ()
    explain: Explain = _no_error
    amend: Callable[[Update], Update] | None = None
    mark: Item | None = None
    exclusive: bool = False
    afterwards: Callable[[Any], Awaitable[None]] | None = None


class Filling(Struct, frozen=True, eq=False):
    """What an object's values from other items depend on.

    ``values`` are the object's own, and ``before`` is its stored item; ``None`` for a new object. ``only`` names the
    attributes to write; ``None`` means all. A ``lenient`` write (fixtures) does not require the other objects.
    """

    subject: Subject
    values: Values
    before: Item | None = None
    only: frozenset[str] | None = None
    pending: Block | None = None
    lenient: bool = False


class Effect:
    """An effect of one model. It is created once a model, stores no object, and sends reads only."""

    #: The physical names that it depends on: an update without them skips the effect.
    watches: frozenset[str] = frozenset()
    #: Whether it takes part in every write.
    always: bool = False
    #: Whether it writes the objects that copy from this one, which have separate effects.
    updates_copies: bool = False

    def concerns(self, transition: Transition) -> bool:
        """Return whether the effect takes part in a write."""
        return self.always or bool(self.watches & transition.written_names)

    async def values_from_others(self, filling: Filling) -> Values:
        """Return values of the object that come from other items, if its values require other ones than ``before``."""
        return {}

    def values_of_each_write(self, before: Item | None) -> Values:
        """Return values to set in every write that changes something."""
        return {}

    async def side_writes(self, transition: Transition) -> SideWrites | None:
        """Return the additional writes of a write; ``None`` if there are none."""
        return None

    async def finish_earlier_write(self, obj: DynamoModel, pending: Block | None) -> None:
        """Complete an earlier write, if the current one has no changes."""

    async def complete(self, obj: DynamoModel) -> None:
        """Finish what earlier writes left undone, without a limit (``dynamo_rebuild``)."""

    async def update_dependents(self, obj: DynamoModel, pending: Block | None) -> None:
        """Update the objects that depend on this object and exist before it (fixtures)."""

    def can_omit(self, transition: Transition, key: ItemKey) -> bool:
        """Return whether the write can omit an item that turned out to be missing."""
        return False


def liveness_names(model: type[DynamoModel], before: Item) -> set[str]:
    """Return the physical names that decide whether an item is live: the effects of a deletion depend on them."""
    found = {names.DELETED_AT} if registry.layout_of(model).soft_delete else set()
    # If another process has extended an expired item, the write has to release its claims.
    return found | ({names.EXPIRES_AT} if has_expired(before) else set())


#: Effects in the order of their actions.
Effects = tuple[Effect, ...]


def values_of_each_write(effects: Effects, before: Item | None) -> Values:
    """Return the values that effects set in every write that changes something."""
    return {name: value for effect in effects for name, value in effect.values_of_each_write(before).items()}


async def filled_values(effects: Effects, filling: Filling) -> Values:
    """Return the values of an object that come from other items, by all of its effects."""
    found: Values = {}
    for effect in effects:
        found |= await effect.values_from_others(filling)
    return found


# The conditions of a write: the caller's, and the write's own dependencies. The first condition that the stored item
# does not meet determines the error.

#: The condition that a stored item does not meet.
BrokenCondition = Literal["gone", "queried", "computed", "demanded", "needed", "as_read"]


class CallerConditions(Struct, frozen=True):
    """The conditions on the stored item that come from the caller.

    If the item does not meet ``queried``, the object is skipped and not counted. If it does not meet ``demanded``, the
    write raises ``ConditionNotMet``.
    """

    queried: Condition = EVERYTHING
    demanded: Condition = EVERYTHING

    def __bool__(self) -> bool:
        return self is not NO_CONDITIONS and (self.queried != EVERYTHING or self.demanded != EVERYTHING)

    def with_twin_names(self, twins: Sequence[Twin]) -> CallerConditions:
        """Return the conditions with the names now in use: they may be older than a rename."""
        if not twins or not self:
            return self
        names = {twin.other: twin.used for twin in twins}
        return CallerConditions(with_names(self.queried, names), with_names(self.demanded, names))


NO_CONDITIONS = CallerConditions()


class WriteConditions(Struct, frozen=True):
    """All conditions of a write of a stored item.

    - ``computed``: the operands of a computed value are unchanged since the read.
    - ``needed``: the item has what DynamoDB needs to make a change.
    - ``as_read``: the attributes that keys and effects depend on are unchanged since the read.
    """

    terms: CallerConditions = NO_CONDITIONS
    computed: Condition = EVERYTHING
    needed: Condition = EVERYTHING
    as_read: tuple[Stored, ...] = ()

    def request_condition(self) -> Condition:
        """Return the condition to send."""
        return join((ITEM_EXISTS, *self.as_read, *self._others()))

    def _others(self) -> Iterator[Condition]:
        for each in (self.needed, self.terms.queried, self.computed, self.terms.demanded):
            if each is not EVERYTHING:
                yield each

    def broken_by(self, found: Item | None, layout: ModelLayout) -> BrokenCondition:
        """Return the first condition that the stored item does not meet; ``as_read`` if it meets all others."""
        if not found:
            return "gone"
        if not matches(self.terms.queried, found, layout):
            return "queried"
        if not matches(self.computed, found, layout):
            return "computed"
        if not matches(self.terms.demanded, found, layout):
            return "demanded"
        return "needed" if not matches(self.needed, found, layout) else "as_read"
