"""The writes that a ``transactions.atomic()`` block has collected: actions of one transaction, merged by item.

A block belongs to a context: a thread, or an asynchronous task and the threads that it awaits. Reads check here whether
they include a pending item. This module does not send requests, and does not depend on models.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from contextvars import ContextVar
from decimal import Decimal
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from dynamo_single.exceptions import NotSupported, PendingWrite
from dynamo_single.orm.conditions.terms import Condition, Or, join
from dynamo_single.orm.plan.plan import KeyCondition, Plan
from dynamo_single.orm.requests.actions import Action, Check, Delete, Item, ItemKey, Put, Update, key_of
from dynamo_single.orm.requests.updates import add
from dynamo_single.orm.schema.keys.values import item_size, number_to_text
from dynamo_single.table import names
from dynamo_single.table.lease import Lease
from dynamo_single.table.request import MAX_ITEM_SIZE, MAX_TRANSACTION_SIZE, NewItem
from dynamo_single.table.shown_keys import key_text

#: Returns the error for a refused action; ``None`` if DynamoDB returned no item.
Explain = Callable[[Action, Item | None], Exception]


class Entry(Struct, frozen=True, eq=False):
    """One object's write in a block.

    - ``make_name`` returns the name of the object in messages.
    - ``written_items`` contains the items before and after the write, the object's own last.
    - ``undo`` restores the object's state before the write.
    - ``measured_item`` is one of the items with its size in bytes, if that is known.
    """

    make_name: Callable[[], str]
    actions: tuple[Action, ...]
    written_items: tuple[Item, ...]
    explain: Explain
    undo: Callable[[], None]
    measured_item: tuple[Item, int] | None = None

    @property
    def name(self) -> str:
        """The name of the object in messages."""
        return self.make_name()

    @property
    def size(self) -> int:
        """The size of the largest item before or after the write, in bytes: the limit of a transaction counts it."""
        sizes = {id(action.item): action.size for action in self.actions if isinstance(action, Put)}
        if self.measured_item is not None:
            sizes[id(self.measured_item[0])] = self.measured_item[1]
        return max((sizes.get(id(item)) or item_size(item) for item in self.written_items), default=0)

    def is_of(self, key: ItemKey) -> bool:
        """Return whether a key belongs to the object's own item."""
        return bool(self.written_items) and key_of(self.written_items[-1]) == key


class Block(Struct, eq=False):
    """The collected writes and callbacks of one ``atomic()`` block, or of several objects that are sent together."""

    token: str | None = None
    alias: str | None = None
    entries: list[Entry] = field(default_factory=list)
    #: The callbacks to run after the block is sent.
    callbacks: list[Callable[[], Coroutine[Any, Any, None]]] = field(default_factory=list)
    #: The maximum number of items; ``None`` if several transactions send them.
    limit: int | None = None
    #: By model, the binding that its first write was composed with.
    bindings: dict[Any, Any] = field(default_factory=dict)
    #: The lease to send it under, if it has no bindings of its own.
    lease: Lease | None = None
    #: Whether the block has ended, and rejects further writes: a task that began in it may still run.
    ended: bool = False
    #: The actions of the first ``_counted`` entries, each item once.
    _actions: dict[ItemKey, tuple[Action, Entry]] = field(default_factory=dict)
    _counted: int = 0
    #: The size of the first ``_measured`` entries, in bytes.
    _size: int = 0
    _measured: int = 0

    def add(self, alias: str, entry: Entry) -> None:
        """Collect a write.

        Raises ``NotSupported`` for a write of another table, of an item that another entry writes, and of more items
        than the ``limit``. Nothing was added then.
        """
        if self.ended:
            self.check_open(f"{entry.name} cannot be written")
        if self.alias is not None and self.alias != alias:
            raise NotSupported(
                f"{entry.name} is in the table {alias!r}, and this block has written to {self.alias!r}: one "
                "transaction has one table here. Use a block for each."
            )
        collected = self._collected()
        if len(entry.actions) == 1 and entry.actions[0].key not in collected:
            added = {entry.actions[0].key: (entry.actions[0], entry)}
        else:
            added = self._merged(alias, entry, collected)
        if self.limit is not None and len(collected) + len(added) > self.limit:
            self._check_room(added.keys() - collected.keys(), entry.name)
        collected.update(added)
        self.alias = alias
        self.entries.append(entry)
        self._counted += 1

    def _merged(
        self, alias: str, entry: Entry, collected: Mapping[ItemKey, tuple[Action, Entry]]
    ) -> dict[ItemKey, tuple[Action, Entry]]:
        """Return the actions of an entry, merged with those on the same items, and the entries that explain them."""
        found = dict[ItemKey, tuple[Action, Entry]]()
        for action in entry.actions:
            # An object can be written with others, of which two come to one value.
            key = action.key
            other, earlier = found.get(key) or collected.get(key) or (None, None)
            if other is None or earlier is None:
                found[key] = action, entry
                continue
            both = merge(other, action)
            if both is None:
                claims = disputed_claims((other, action))
                if claims is not None:
                    # The first one has it, once both are written.
                    raise entry.explain(action, dict(claims[0].item))
                raise NotSupported(
                    f"{entry.name} cannot be written in this block: {earlier.name} is written in it, and both change "
                    f"the item {key_text(alias, key)}, which a transaction can do once. Make all "
                    "changes of an object before its one save()."
                )
            found[key] = both, _explaining(other, earlier, action, entry)
        return found

    def check_room(self, keys: Set[ItemKey], name: str) -> None:
        """Raise ``NotSupported`` if the block cannot write these items too; ``name`` is the object that needs them."""
        if self.limit is not None:
            self._check_room(keys - self._collected().keys(), name)

    def _check_room(self, more: Collection[ItemKey], name: str) -> None:
        number = len(self._collected()) + len(more)
        if self.limit is not None and number > self.limit:
            raise NotSupported(
                f"Cannot write {name} in this atomic() block: it would have at least {number} actions, and a "
                f"transaction takes {self.limit}; unique values, counters and children count too. Nothing was written. "
                "Write it outside of the block, or fewer objects in one block."
            )

    def check_open(self, what: str) -> None:
        """Raise ``NotSupported`` if the block has ended."""
        if self.ended:
            raise NotSupported(
                f"{what}: the atomic() block that this task was begun in has ended, so that no write can join it. "
                "Await the task within the block, or begin it outside."
            )

    def actions(self) -> list[tuple[Action, Entry]]:
        """Return all actions, each item once, with the entries that explain their refusals."""
        return list(self._collected().values())

    @property
    def size(self) -> int:
        """The size of all entries, in bytes."""
        self._size += sum(entry.size for entry in self.entries[self._measured :])
        self._measured = len(self.entries)
        return self._size

    @property
    def is_too_large(self) -> bool:
        """Whether the items exceed the size of a transaction; a number of entries that always fits is not measured."""
        return len(self.entries) * MAX_ITEM_SIZE > MAX_TRANSACTION_SIZE and self.size > MAX_TRANSACTION_SIZE

    def _collected(self) -> dict[ItemKey, tuple[Action, Entry]]:
        """Return the actions by key; it only adds the entries since the last call."""
        found = self._actions
        for entry in self.entries[self._counted :] if self._counted < len(self.entries) else ():
            for action in entry.actions:
                earlier = found.get(action.key)
                both = None if earlier is None else merge(earlier[0], action)
                if earlier is None or both is None:
                    found[action.key] = action, entry
                else:
                    found[action.key] = both, _explaining(*earlier, action, entry)
        self._counted = len(self.entries)
        return found

    def writes_to(self, key: ItemKey) -> bool:
        """Return whether the block changes an item other than by additions to its numbers."""
        return any(_changes(action, key) for entry in self.entries for action in entry.actions)

    def item_after(self, key: ItemKey) -> Item | None:
        """Return an item after the block's writes; ``None`` if the block deletes it or does not write it."""
        for entry in reversed(self.entries):
            for action in entry.actions:
                if _changes(action, key):
                    found = [item for item in entry.written_items if key_of(item) == key]
                    return None if isinstance(action, Delete) or not found else found[-1]
        return None

    def discard(self, count: int = 0) -> None:
        """Drop the entries after the first ``count``, and restore their objects."""
        for entry in reversed(self.entries[count:]):
            entry.undo()
        del self.entries[count:]
        self._actions, self._counted, self._size, self._measured = {}, 0, 0, 0
        if not self.entries:
            self.alias = None
            self.bindings.clear()

    def drop_callbacks(self, count: int = 0) -> None:
        """Drop the callbacks after the first ``count``, since the writes before them were dropped.

        A callback that Django stores too has a method ``drop()``, which removes it there.
        """
        for callback in self.callbacks[count:]:
            getattr(callback, "drop", bool)()
        del self.callbacks[count:]


def _explaining(action: Action, entry: Entry, later: Action, later_entry: Entry) -> Entry:
    """Return which of two entries on the same item explains its refusal.

    It is the entry that changes more than a counter; for a claim, the entry that takes it.
    """
    is_lesser = _is_addition(later) or (isinstance(later, Delete) and isinstance(action, Put))
    return entry if is_lesser else later_entry


def combine_actions(actions: Iterable[Action]) -> list[Action]:
    """Return actions, those on the same item merged if possible."""
    found: list[Action] = []
    places: dict[ItemKey, int] = {}
    for action in actions:
        place = places.get(action.key)
        both = None if place is None else merge(found[place], action)
        if place is None or both is None:
            places[action.key] = len(found)
            found.append(action)
        else:
            found[place] = both
    return found


def disputed_claims(actions: Iterable[Action]) -> tuple[Put, Put] | None:
    """Return the first two actions that would take the same claim, which only one object can have."""
    taken: dict[ItemKey, Put] = {}
    for action in actions:
        if isinstance(action, Put) and _is_claim(action):
            if action.key in taken:
                return taken[action.key], action
            taken[action.key] = action
    return None


def _changes(action: Action, key: ItemKey) -> bool:
    return action.key == key and not isinstance(action, Check) and not _is_addition(action)


def _with_check(one: Action, other: Action) -> Action | None:
    """Return an action that includes a check; ``None`` for a new item, which cannot meet a check of a stored one."""
    if isinstance(one, Check):
        one, other = other, one
    if isinstance(one, Put) or not isinstance(other, Check):
        return None
    return one if one == other else replace(one, condition=_both(one.condition, other.condition))


def _is_claim(action: Put) -> bool:
    return action.item.get(names.ITEM_TYPE) == {"S": names.CLAIM_ITEM_TYPE}


def _passed_on(one: Action, other: Action) -> Action | None:
    """Return the action for a claim that one object releases and another takes, in any order."""
    released, taken = (one, other) if isinstance(one, Delete) else (other, one)
    if not isinstance(released, Delete) or not isinstance(taken, Put) or not _is_claim(taken):
        return None
    return Put(taken.item, Or((taken.condition, released.condition)))


def merge(one: Action, other: Action) -> Action | None:
    """Return an action that does what two actions on the same item do; ``None`` if there is none.

    There is one if either only adds to numbers or checks, and for a claim that passes from one object to another.
    """
    if isinstance(one, Check) or isinstance(other, Check):
        return _with_check(one, other)
    passed_on = _passed_on(one, other)
    if passed_on is not None:
        return passed_on
    if _is_addition(one) and not _is_addition(other):
        one, other = other, one
    if not isinstance(other, Update) or not _is_addition(other):
        return None
    if isinstance(one, Delete):
        # The parent is deleted with its children; a child that is added would remain.
        return one if all(value.get("N", "").startswith("-") for value in other.add.values()) else None
    if isinstance(one, Put):
        item = dict(one.item)
        for name, value in other.add.items():
            item[name] = _sum(item.get(name, {"N": "0"}), value)
        return Put(item, one.condition)
    return _with_addition(one, other) if isinstance(one, Update) else None


def _with_addition(one: Update, other: Update) -> Update | None:
    # A number that is removed with the last counted object cannot be subtracted from.
    gone = {name for name in one.remove if other.add.get(name, {}).get("N", "").startswith("-")}
    more = {name: value for name, value in other.add.items() if name not in gone}
    if {*one.set, *one.remove, *_changed(one)} & more.keys():
        return None
    added = dict(one.add)
    for name, value in more.items():
        added[name] = _sum(added.get(name, {"N": "0"}), value)
    removed = tuple(dict.fromkeys((*one.remove, *other.remove)))
    return replace(one, remove=removed, add=added, condition=_both(one.condition, other.condition))


def _both(one: Condition, other: Condition) -> Condition:
    """Return both conditions; equal ones, such as those of many children on a parent, stay one condition."""
    return one if one == other else join((one, other))


def _is_addition(action: Action) -> bool:
    if not isinstance(action, Update) or not action.add:
        return False
    return not (action.set or {*action.remove} - {names.COUNTING} or action.discard or action.changes)


def _changed(action: Update) -> set[str]:
    return {change.place.name for change in action.changes}


def _sum(one: Mapping[str, str], other: Mapping[str, str]) -> dict[str, str]:
    return {"N": number_to_text(add(Decimal(one["N"]), Decimal(other["N"])))}


_block: ContextVar[Block | None] = ContextVar("block", default=None)


#: Returns the block of this context, or ``None``.
current: Callable[[], Block | None] = _block.get
enter, leave = _block.set, _block.reset


@contextmanager
def outside_block() -> Iterator[None]:
    """Send the writes of a ``with`` immediately: they do not join the surrounding block."""
    token = _block.set(None)
    try:
        yield
    finally:
        _block.reset(token)


def check_keys(alias: str, keys: Iterable[ItemKey]) -> None:
    """Raise ``PendingWrite`` for an item that the block writes: the table still has its former state."""
    block = _block.get()
    if block is None or block.ended or block.alias != alias:
        return
    for key in keys:
        writers = [entry for entry in block.entries if any(_writes(action, key) for action in entry.actions)]
        if writers:
            # The object of the item is named rather than an object that is counted in it.
            raise _refusal(next((entry for entry in writers if entry.is_of(key)), writers[0]), key)


def pending_put(alias: str, keys: Sequence[ItemKey]) -> NewItem | None:
    """Return the item of a single key if the block puts it whole: it need not be read."""
    block = _block.get()
    if block is None or block.ended or block.alias != alias or len(keys) != 1:
        return None
    found = (action.item for action, _ in block.actions() if isinstance(action, Put) and action.key == keys[0])
    item = next(found, None)
    return None if item is None else {name: dict(value) for name, value in item.items()}


def _writes(action: Action, key: ItemKey) -> bool:
    return action.key == key and not isinstance(action, Check)


def check_plan(alias: str, plan: Plan) -> None:
    """Raise ``PendingWrite`` for a plan whose requests would return an item that the block writes."""
    block = _block.get()
    if block is None or block.ended or block.alias != alias or not block.entries:
        return
    if plan.kind == "scan":
        raise _refusal(block.entries[0])
    check_keys(alias, plan.keys)
    for part in plan.parts:
        check_plan(alias, part)
    index = plan.index
    partition, sort = names.key_names(index)
    for entry in block.entries:
        keys = (action.key for action in entry.actions if not isinstance(action, Check))
        found = next((key for key in keys if index is None and _reads(plan.conditions, *key)), None)
        if found is not None:
            raise _refusal(entry, found)
        for item in entry.written_items:
            if partition in item and _reads(plan.conditions, item[partition]["S"], item[sort]["S"]):
                raise _refusal(entry)


def _reads(conditions: Sequence[KeyCondition], partition: str, sort: str) -> bool:
    return any(each.partition == partition and each.includes(sort) for each in conditions)


def _refusal(entry: Entry, key: ItemKey | None = None) -> PendingWrite:
    along = "" if key is None or entry.is_of(key) else f", and with it the item {key_text(None, key)}"
    return PendingWrite(
        f"{entry.name} is written in this atomic() block{along}, but the write is sent only at its end, so a "
        "read would return the previous state. Read before you write, or read after the block."
    )
