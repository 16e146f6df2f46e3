"""The writes that a ``transactions.atomic()`` block has collected and not sent: values, and the block they belong to.

A block belongs to a context (a thread, or an asynchronous task and the threads that it awaits). Reads ask here whether
they concern something pending. This module sends nothing and must not know models.
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
from dynamo_single.table import masking, names
from dynamo_single.table.request import MAX_ITEM_SIZE, MAX_TRANSACTION_SIZE, NewItem

#: Gives the error for the action that failed, from the item that DynamoDB found in its place.
Explain = Callable[[Action, Item | None], Exception]


class Entry(Struct, frozen=True, eq=False):
    """One object's write: its actions, every item that they change, and how to take it back from the object.

    ``make_name`` gives what messages call the object. ``written_items`` are the items as they are and as they will be,
    of which one may be ``measured_item`` already: the item and its bytes. It is not to be sent after ``send_before``,
    by ``time.monotonic()``.
    """

    make_name: Callable[[], str]
    actions: tuple[Action, ...]
    written_items: tuple[Item, ...]
    explain: Explain
    undo: Callable[[], None]
    measured_item: tuple[Item, int] | None = None
    send_before: float | None = None

    @property
    def name(self) -> str:
        """What messages call the object."""
        return self.make_name()

    @property
    def size(self) -> int:
        """The bytes that count for a transaction: those of the largest item, as it is or as it will be."""
        sizes = {id(action.item): action.size for action in self.actions if isinstance(action, Put)}
        if self.measured_item is not None:
            sizes[id(self.measured_item[0])] = self.measured_item[1]
        return max((sizes.get(id(item)) or item_size(item) for item in self.written_items), default=0)

    def is_of(self, key: ItemKey) -> bool:
        """Whether an item is the object's own, and not one that is written along with it."""
        return bool(self.written_items) and key_of(self.written_items[-1]) == key


class Block(Struct, eq=False):
    """What one ``atomic()`` block has collected."""

    token: str | None = None
    alias: str | None = None
    entries: list[Entry] = field(default_factory=list)
    #: What is to be done once the block is sent.
    callbacks: list[Callable[[], Coroutine[Any, Any, None]]] = field(default_factory=list)
    #: How many items it may write; ``None`` for what is sent in several transactions.
    limit: int | None = None
    #: By model, the binding that its first write was composed with.
    bindings: dict[Any, Any] = field(default_factory=dict)
    #: Nothing joins it any more. Who began within it may still be running: a task that nobody has awaited.
    ended: bool = False
    #: The actions of the first ``_counted`` entries, each item once.
    _actions: dict[ItemKey, tuple[Action, Entry]] = field(default_factory=dict)
    _counted: int = 0
    #: How large the items are that the first ``_measured`` entries write.
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
                    f"the item {masking.key_text(alias, key)}, which a transaction can do once. Make all "
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
        """Refuse what comes too late to be a part of the block."""
        if self.ended:
            raise NotSupported(
                f"{what}: the atomic() block that this task was begun in has ended, and nothing can join it any more. "
                "Await the task within the block, or begin it outside."
            )

    def actions(self) -> list[tuple[Action, Entry]]:
        """Everything to send, each item once, and whose it is."""
        return list(self._collected().values())

    @property
    def size(self) -> int:
        """The bytes of all entries."""
        self._size += sum(entry.size for entry in self.entries[self._measured :])
        self._measured = len(self.entries)
        return self._size

    @property
    def is_too_large(self) -> bool:
        """Whether a transaction does not take as many bytes; as few entries as always fit are not measured."""
        return len(self.entries) * MAX_ITEM_SIZE > MAX_TRANSACTION_SIZE and self.size > MAX_TRANSACTION_SIZE

    def _collected(self) -> dict[ItemKey, tuple[Action, Entry]]:
        """The actions by key; only entries that came since the last time are looked at."""
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
        """Whether more than a counter of an item is changed."""
        return any(_changes(action, key) for entry in self.entries for action in entry.actions)

    def item_after(self, key: ItemKey) -> Item | None:
        """An item that the block writes, as it will be; ``None`` if it will not be there."""
        for entry in reversed(self.entries):
            for action in entry.actions:
                if _changes(action, key):
                    found = [item for item in entry.written_items if key_of(item) == key]
                    return None if isinstance(action, Delete) or not found else found[-1]
        return None

    def discard(self, count: int = 0) -> None:
        """Forget the writes after the first ``count``, and let their objects forget them too."""
        for entry in reversed(self.entries[count:]):
            entry.undo()
        del self.entries[count:]
        self._actions, self._counted, self._size, self._measured = {}, 0, 0, 0
        if not self.entries:
            self.alias = None
            self.bindings.clear()

    def drop_callbacks(self, count: int = 0) -> None:
        """Forget the callbacks after the first ``count``: what they waited for is not written.

        One that Django keeps as well has a ``drop()``, by which Django forgets it.
        """
        for callback in self.callbacks[count:]:
            getattr(callback, "drop", bool)()
        del self.callbacks[count:]


def _explaining(action: Action, entry: Entry, later: Action, later_entry: Entry) -> Entry:
    """Return which of two entries on an item says what is wrong with it.

    It is the one that writes more than a counter; of a claim it is the one that takes it.
    """
    is_lesser = _is_addition(later) or (isinstance(later, Delete) and isinstance(action, Put))
    return entry if is_lesser else later_entry


def combine_actions(actions: Iterable[Action]) -> list[Action]:
    """Actions with those on one item made one, where that can be."""
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
    """The first two actions that would take one claim, if there are two: only one object can have it."""
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
    """One action that holds to a check, too; a new item could not meet one on what is stored."""
    if isinstance(one, Check):
        one, other = other, one
    if isinstance(one, Put) or not isinstance(other, Check):
        return None
    return one if one == other else replace(one, condition=_both(one.condition, other.condition))


def _is_claim(action: Put) -> bool:
    return action.item.get(names.ITEM_TYPE) == {"S": names.CLAIM_ITEM_TYPE}


def _passed_on(one: Action, other: Action) -> Action | None:
    """One action for a claim that one object releases and another one takes, in any order: it is one moment."""
    released, taken = (one, other) if isinstance(one, Delete) else (other, one)
    if not isinstance(released, Delete) or not isinstance(taken, Put) or not _is_claim(taken):
        return None
    return Put(taken.item, Or((taken.condition, released.condition)))


def merge(one: Action, other: Action) -> Action | None:
    """The one action that does both, or ``None`` if there is none.

    There is one where either only adds to numbers or checks, and for a claim that passes from one object to another.
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
        # A parent that goes with its children; one that came would be left behind.
        return one if all(value.get("N", "").startswith("-") for value in other.add.values()) else None
    if isinstance(one, Put):
        item = dict(one.item)
        for name, value in other.add.items():
            item[name] = _sum(item.get(name, {"N": "0"}), value)
        return Put(item, one.condition)
    return _with_addition(one, other) if isinstance(one, Update) else None


def _with_addition(one: Update, other: Update) -> Update | None:
    # A number is removed with the last of what it counts, so that nothing is left to subtract from.
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
    """Two conditions; of many children's on one parent it stays one."""
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


#: The block of this context, if there is one.
current: Callable[[], Block | None] = _block.get
enter, leave = _block.set, _block.reset


@contextmanager
def outside_block() -> Iterator[None]:
    """What is written within is sent at once, and nothing takes it back: for what is no part of anybody's block."""
    token = _block.set(None)
    try:
        yield
    finally:
        _block.reset(token)


def check_keys(alias: str, keys: Iterable[ItemKey]) -> None:
    """Refuse to read an item that is pending: the table does not have it yet as the block means it."""
    block = _block.get()
    if block is None or block.ended or block.alias != alias:
        return
    for key in keys:
        writers = [entry for entry in block.entries if any(_writes(action, key) for action in entry.actions)]
        if writers:
            # Whose own item it is, before one that counts in it.
            raise _refusal(next((entry for entry in writers if entry.is_of(key)), writers[0]), key)


def pending_put(alias: str, keys: Sequence[ItemKey]) -> NewItem | None:
    """The one item of some keys that the block of this context puts whole, as it will be: nobody has to read it."""
    block = _block.get()
    if block is None or block.ended or block.alias != alias or len(keys) != 1:
        return None
    found = (action.item for action, _ in block.actions() if isinstance(action, Put) and action.key == keys[0])
    item = next(found, None)
    return None if item is None else {name: dict(value) for name, value in item.items()}


def _writes(action: Action, key: ItemKey) -> bool:
    return action.key == key and not isinstance(action, Check)


def check_plan(alias: str, plan: Plan) -> None:
    """Refuse a plan of which the requests would read what is pending, as it was before or as it will be."""
    block = _block.get()
    if block is None or block.ended or block.alias != alias or not block.entries:
        return
    if plan.kind == "scan":
        raise _refusal(block.entries[0])
    check_keys(alias, plan.keys)
    for part in plan.parts:
        check_plan(alias, part)
    index = plan.index
    partition, sort = names.PARTITION_KEY, names.SORT_KEY
    if index is not None:
        partition, sort = names.index_partition(index), names.index_sort(index)
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
    along = "" if key is None or entry.is_of(key) else f", and with it the item {masking.key_text(None, key)}"
    return PendingWrite(
        f"{entry.name} is written in this atomic() block{along}, and not sent before its end: a read would give what "
        "was before. Read first and write then, or read after the block."
    )
