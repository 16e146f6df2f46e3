"""What an effect is: something else that is written with the items of a model, such as claims or counters.

It compares an item before and after a write. This module knows no effect, and must not know how an object's own item
is computed or how anything is sent.
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

#: Tells what a refused action means; ``None`` if it is another's.
Explain = Callable[[Action, Item | None], Exception | None]
#: Whether a write is repeated since something that goes along had changed: an index may have shown it as it was.
is_repeated: ContextVar[bool] = ContextVar("is_repeated", default=False)


class Subject(Struct, frozen=True, eq=False):
    """Whose item is written, for messages and for what goes by the object's ``pk``."""

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
        """What messages call it."""
        return secrecy.named(self.model, self.pk)

    @property
    def shown_pk(self) -> str:
        """Its identity in messages, masked if a part of it is a secret."""
        return secrecy.shown(self.model, self.pk)

    def naming(self) -> Callable[[], str]:
        """What gives the name that it has now, whatever becomes of the object: most names are never told."""
        model, field = self.model, self.model._meta.pk
        names = field.names if isinstance(field, IdentityField) else (field.attname,)
        values = self._obj.__dict__
        if not all(name in values for name in names):
            return partial(secrecy.named, model, self.pk)
        held = [values[name] for name in names]
        return lambda: secrecy.named(model, field.joined(held) if isinstance(field, IdentityField) else held[0])


class Transition(Struct, frozen=True, eq=False):
    """One item's way from what is stored to what will be; ``None`` is an item that is not there.

    ``written`` are the physical names that the write sets or removes. ``pending`` is the ``atomic()`` block that the
    write joins, ``absent`` are parents that are known to be gone; ``lenient`` (fixtures) does without any.
    """

    subject: Subject
    before: Item | None
    after: Item | None
    written: frozenset[str]
    pending: Block | None = None
    absent: frozenset[ItemKey] = frozenset()
    lenient: bool = False


def _silent(action: Action, found: Item | None) -> Exception | None:
    return None


class Along(Struct, frozen=True, eq=False):
    """What one effect adds to one write.

    ``actions`` are on other items than the object's own; ``touched`` are the items that they change, as they are and as
    they will be. ``as_read`` has to be as it was read for them to be right. ``amend`` changes the object's own update,
    and ``mark`` gives what of it the object's item has then. ``afterwards`` is done once all is written. An
    ``exclusive`` write must not be taken for another's that did the same. It is not to be sent after ``until``, by
    ``time.monotonic()``.
    """

    actions: tuple[Action, ...] = ()
    as_read: frozenset[str] = frozenset()
    touched: tuple[Item, ...] = ()
    explain: Explain = _silent
    amend: Callable[[Update], Update] | None = None
    mark: Item | None = None
    exclusive: bool = False
    until: float | None = None
    afterwards: Callable[[Any], Awaitable[None]] | None = None


class Effect:
    """One effect of one model: made once a model, it holds no object and sends nothing but what it has to read."""

    #: The physical names that it follows from: an update that writes none of them passes it by.
    watches: frozenset[str] = frozenset()
    #: Whether every write concerns it.
    always: bool = False
    #: Whether it writes the objects that copy from this one, which have effects of their own.
    spreads: bool = False

    def concerns(self, transition: Transition) -> bool:
        """Whether a write has anything to do with it."""
        return self.always or bool(self.watches & transition.written)

    async def fill(
        self,
        subject: Subject,
        values: Values,
        before: Item | None,
        only: frozenset[str] | None,
        pending: Block | None,
        *,
        lenient: bool,
    ) -> Values:
        """Values of the object's own that come from elsewhere, where ``values`` ask for other ones than ``before``."""
        return {}

    def stamp(self, before: Item | None) -> Values:
        """Values that go with every write that has a difference."""
        return {}

    async def follow(self, transition: Transition) -> Along | None:
        """What goes along with a write; ``None`` for nothing."""
        return None

    async def idle(self, obj: DynamoModel, pending: Block | None) -> None:
        """What an earlier write left undone, where there is nothing to write."""

    async def complete(self, obj: DynamoModel) -> None:
        """What earlier writes left undone, however much it is (``dynamo_rebuild``)."""

    async def catch_up(self, obj: DynamoModel, pending: Block | None) -> None:
        """What other objects have to follow, that were stored before this one (fixtures)."""

    def can_lack(self, transition: Transition, key: ItemKey) -> bool:
        """Whether the write can do without an item that turned out to be missing."""
        return False


def standing(model: type[DynamoModel], before: Item) -> set[str]:
    """The physical names that say whether an item is live: what a deletion's effects depend on."""
    found = {names.DELETED_AT} if registry.layout_of(model).soft_delete else set()
    # If another writer has prolonged an expired item, its claims are to be released.
    return found | ({names.EXPIRES_AT} if has_expired(before) else set())


#: Effects in the order of their actions.
Effects = tuple[Effect, ...]


# Under which conditions an object is written: those that callers ask for, and those that the write itself depends on.
#
# Which of them a stored item breaks decides what the caller is told. This module makes no errors and sends nothing.

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
