"""Write the objects of a fixture 25 in a request; each replaces a stored object, as ``create.replace()`` does."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models.signals import post_save, pre_save

from dynamo_single.exceptions import StaleObject
from dynamo_single.orm.effects.counters import own_counters
from dynamo_single.orm.items import decode
from dynamo_single.orm.requests import atomic_block
from dynamo_single.orm.requests.actions import key_of
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.bindings import binding_of
from dynamo_single.orm.schema.types import DynamoModel, are_plain
from dynamo_single.orm.write import bulk_insert
from dynamo_single.orm.write.bulk_insert import Inserted
from dynamo_single.orm.write.create import NewItem, replace
from dynamo_single.orm.write.save import SaveOptions, save
from dynamo_single.table import batches
from dynamo_single.table.table import Table, get_table


def is_loaded_together(model: type[DynamoModel]) -> bool:
    """Return whether objects of a fixture can wait for others and be written with them.

    They cannot if writes depend on each other, if a project's own code runs for each object, if objects are found by
    natural keys while the fixture is read, or in an ``atomic()`` block.
    """
    binding = binding_of(model)
    depends = own_counters(binding) or registry.copied_of(model) or not bulk_insert.is_inserted(binding)
    listens = pre_save.has_listeners(model) or post_save.has_listeners(model)
    natural = hasattr(model, "natural_key") or hasattr(model._default_manager, "get_by_natural_key")
    is_own = not are_plain(model, ("_save_table", "save_base"))
    return not (depends or listens or natural or is_own) and atomic_block.current() is None


class NotLoaded(Exception):
    """An object could not be written: its position and, as the cause, the error. Those before it are written."""

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position


async def load(objects: Sequence[DynamoModel]) -> None:
    """Write up to 25 objects of one table: one BatchExecuteStatement, and what existing objects need.

    Existing objects take a BatchGetItem together, and an UpdateItem each if they differ. Raises ``NotLoaded`` for the
    first object that cannot be written. Objects after it may be written.
    """
    new: list[NewItem] = []
    known = bulk_insert.KnownBindings()
    for position, obj in enumerate(objects):
        try:
            new.append(await bulk_insert.item_of(known, obj, None, raw=True))
        except Exception as error:
            await _write(objects[:position], new)
            raise NotLoaded(position) from error
    await _write(objects, new)


async def _write(objects: Sequence[DynamoModel], new: Sequence[NewItem]) -> None:
    if not objects:
        return
    table = get_table(objects[0]._options.alias)
    inserted = await _inserted(table, new)
    for position, (obj, made, result) in enumerate(zip(objects, new, inserted, strict=True)):
        try:
            await _settle(obj, made, result)
        except Exception as error:
            raise NotLoaded(position) from error


async def _inserted(table: Table, new: Sequence[NewItem]) -> list[Inserted]:
    """Insert items in as many requests as their sizes need; items with one key are written by themselves, in order."""
    is_single = len(new) == 1 or len({key_of(each.item) for each in new}) < len(new)
    if is_single or not batches.can_insert(table):
        return [Inserted()] * len(new)
    return [
        result
        for some in bulk_insert.in_batches(new, [bulk_insert.size_of(each) for each in new])
        for result in await bulk_insert.insert(table, some)
    ]


async def _settle(obj: DynamoModel, made: NewItem, result: Inserted) -> None:
    """Write an object that was not inserted: change the stored object, or write it by itself."""
    if result.is_written:
        decode.set_stored(obj, made.item, made.values)
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
