"""Insert many new items by INSERT statements, 25 a request, each refused by itself if its item exists.

It serves models whose creation is one conditional write: without effects such as claims, copies and counters, and
without expiry, since a put may overwrite an expired item and an INSERT may not. ``insert()`` leaves to its caller what
to do with an item that exists, or has to be written by itself: to ``bulk_create()``, or to ``load()`` of fixtures here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from django.db.models.signals import post_save, pre_save
from msgspec import Struct

from dynamo_single.exceptions import BeginAgain, DynamoSingleError, StaleObject
from dynamo_single.orm.effects.all_effects import effects_of
from dynamo_single.orm.effects.compose import NewObject, taken
from dynamo_single.orm.effects.counters import own_counters
from dynamo_single.orm.effects.derived import Version
from dynamo_single.orm.items import decode
from dynamo_single.orm.items.encode import check_trash_key, is_same_item
from dynamo_single.orm.items.writer import item_writer
from dynamo_single.orm.requests import atomic_block
from dynamo_single.orm.requests.actions import Item, ItemKey, key_of
from dynamo_single.orm.requests.atomic_block import Block
from dynamo_single.orm.requests.compiler import compile_batches
from dynamo_single.orm.rollout import knowledge
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.bindings import ModelBinding, binding_of, fact
from dynamo_single.orm.schema.keys.values import item_size
from dynamo_single.orm.schema.types import DynamoModel, are_plain
from dynamo_single.orm.write.create import new_object, replace
from dynamo_single.orm.write.direct import direct_writes, plain_object
from dynamo_single.orm.write.save import SaveOptions, save
from dynamo_single.table import batches, names
from dynamo_single.table.batches import EXISTS, get_batch, insert_batch
from dynamo_single.table.request import MAX_ITEM_SIZE, MAX_STATEMENTS, MAX_TRANSACTION_SIZE, Statement
from dynamo_single.table.table import Table, get_table

T = TypeVar("T")


@fact
def is_inserted(binding: ModelBinding) -> bool:
    """Return whether INSERT statements can create the objects of a model."""
    return binding.layout.expires is None and all(isinstance(each, Version) for each in effects_of(binding))


#: The bindings of an operation, taken once for each class.
KnownBindings = dict[type[DynamoModel], ModelBinding]


async def object_of(known: KnownBindings, obj: DynamoModel, pending: Block | None, *, raw: bool = False) -> NewObject:
    """Return an object to create with its item, by the binding of its class."""
    model = type(obj)
    binding = known.get(model)
    if binding is None:
        binding = known[model] = await taken(model, pending)
    direct = None if pending is not None else direct_writes(binding)
    made = None if direct is None else plain_object(direct, obj, raw=raw)
    return made or await new_object(obj, pending, raw=raw)


def in_batches(objects: Sequence[T], sizes: Sequence[int], most: int = MAX_STATEMENTS) -> Iterator[Sequence[T]]:
    """Yield as many objects as one request inserts: at most 25 or ``most``, and 4 MB unless it is only one.

    DynamoDB documents no size for a batch of statements; 4 MB is what it accepts in a transaction.
    """
    start = size = 0
    for number, each in enumerate(sizes):
        is_full = number - start >= min(most, MAX_STATEMENTS) or size + each > MAX_TRANSACTION_SIZE
        if number > start and is_full:
            yield objects[start:number]
            start, size = number, 0
        size += each
    if start < len(objects):
        yield objects[start:]


def size_of(new: NewObject) -> int:
    """Return the size of an item in bytes."""
    return new.size or item_size(new.item)


class Inserted(Struct, frozen=True):
    """The result of inserting one item.

    - ``is_written``: the item is stored, by this call.
    - ``found`` is the stored item with the same key, empty if it was not read.
    - ``error`` is the error of an item that was given up.

    Without any of them, the caller has to write the item separately. If ``is_doubtful``, it may be stored already.
    """

    is_written: bool = False
    found: Item | None = None
    error: DynamoSingleError | None = None
    is_doubtful: bool = False

    @property
    def is_settled(self) -> bool:
        """Whether the outcome is known without a request."""
        return self.is_written or self.found is not None or (self.error is not None and not self.is_doubtful)


_WRITTEN = Inserted(is_written=True)
_EXISTS = Inserted(found={})
_LEFT = Inserted()


async def insert(table: Table, new: Sequence[NewObject], *, reads: bool = True) -> list[Inserted]:
    """Insert items with different keys by one BatchExecuteStatement; send throttled ones again.

    One BatchGetItem reads existing items; without ``reads`` only if an earlier attempt may have inserted them, which
    the comparison with the stored item decides. It does not send a request if a migration has started or ended since
    the items were built.
    """
    results = [_LEFT] * len(new)
    if not all(binding.is_current for binding in {each.binding for each in new}):
        return results
    statements = {n: found for n, each in enumerate(new) if (found := _statement(table, each)) is not None}
    told = await insert_batch(table, [*statements.values()], lease=new[0].binding.lease) if statements else []
    exist = {}
    for n, each in zip(statements, told, strict=True):
        if each.code == EXISTS:
            exist[n] = each.is_doubtful
        elif isinstance(each.error, BeginAgain) and not each.is_doubtful:
            knowledge.stale()  # compose it again
        elif each.code or each.error is not None:
            results[n] = Inserted(error=each.error, is_doubtful=each.is_doubtful)
        else:
            results[n] = _WRITTEN
    wanted = {n: new[n] for n, is_doubtful in exist.items() if reads or is_doubtful}
    results_of_wanted = await _compared(table, wanted, exist)
    for n in exist:
        results[n] = results_of_wanted.get(n, _EXISTS)
    return results


async def _compared(table: Table, new: Mapping[int, NewObject], doubtful: Mapping[int, bool]) -> dict[int, Inserted]:
    """Read the existing items, and return by number whether each equals the item to insert."""
    stored: dict[ItemKey, Item] = {}
    try:
        for request in compile_batches([key_of(each.item) for each in new.values()], table.name):
            stored |= {key_of(item): item for item in await get_batch(table, request)}
    except DynamoSingleError as error:
        return dict.fromkeys(new, Inserted(error=error))
    results = {}
    for n, each in new.items():
        found = stored.get(key_of(each.item))
        is_own = doubtful[n] and found is not None and is_same_item(each.item, found, each.binding.model)
        results[n] = _WRITTEN if is_own else Inserted(found=found, is_doubtful=doubtful[n])
    return results


def _statement(table: Table, new: NewObject) -> Statement | None:
    """Return the statement of an item; ``None`` if the item has to be written by itself, or raises its error there."""
    if size_of(new) > MAX_ITEM_SIZE:
        return None
    writer, item = item_writer(new.binding), new.item
    try:
        length = len(item[names.PARTITION_KEY]["S"]) + len(item[names.SORT_KEY]["S"])
        if writer is None or length > writer.longest:
            check_trash_key(new.binding.model, new.values)
        return table.insert_statement(item)
    except DynamoSingleError:
        return None


# The objects of a fixture: each replaces a stored object, as ``create.replace()`` does.


def is_loaded_together(model: type[DynamoModel]) -> bool:
    """Return whether objects of a fixture can wait, so that one request writes several.

    They cannot if writes depend on each other, if a project's own code runs for each object, if objects are found by
    natural keys while the fixture is read, or in an ``atomic()`` block.
    """
    binding = binding_of(model)
    depends = own_counters(binding) or registry.copied_of(model) or not is_inserted(binding)
    listens = pre_save.has_listeners(model) or post_save.has_listeners(model)
    natural = hasattr(model, "natural_key") or hasattr(model._default_manager, "get_by_natural_key")
    is_own = not are_plain(model, ("_save_table", "save_base"))
    return not (depends or listens or natural or is_own) and atomic_block.current() is None


class NotLoaded(Exception):
    """The failure to write an object: its position and, as the cause, the error. The objects before it are in the
    table.
    """

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position


async def load(objects: Sequence[DynamoModel]) -> None:
    """Write up to 25 objects of one table: one BatchExecuteStatement, and the requests of existing objects.

    Existing objects take a BatchGetItem together, and an UpdateItem each if they differ. Raises ``NotLoaded`` for the
    first object that cannot be written. Objects after it may be in the table.
    """
    new: list[NewObject] = []
    known = KnownBindings()
    for position, obj in enumerate(objects):
        try:
            new.append(await object_of(known, obj, None, raw=True))
        except Exception as error:
            await _write(new)
            raise NotLoaded(position) from error
    await _write(new)


async def _write(new: Sequence[NewObject]) -> None:
    if not new:
        return
    inserted = await _inserted(get_table(new[0].obj._options.alias), new)
    for position, (each, result) in enumerate(zip(new, inserted, strict=True)):
        try:
            await _settle(each, result)
        except Exception as error:
            raise NotLoaded(position) from error


async def _inserted(table: Table, new: Sequence[NewObject]) -> list[Inserted]:
    """Insert items in as many requests as their sizes need; write items with the same key separately, in order."""
    is_single = len(new) == 1 or len({key_of(each.item) for each in new}) < len(new)
    if is_single or not batches.can_insert(table):
        return [Inserted()] * len(new)
    return [result for some in in_batches(new, [size_of(each) for each in new]) for result in await insert(table, some)]


async def _settle(new: NewObject, result: Inserted) -> None:
    """Write an object that was not inserted: change the stored object, or write it separately."""
    obj = new.obj
    if result.is_written:
        decode.set_stored(obj, new.item, new.values)
    elif result.error is not None and not result.is_doubtful:
        raise result.error
    elif result.found:
        obj._stored = dict(result.found)
        try:
            await save(obj, SaveOptions(raw=True), None)
        except StaleObject:
            # Another process has changed or deleted it since.
            obj._stored = None
            await replace(obj, None)
    else:
        await replace(obj, None)
    obj._state.adding = False
