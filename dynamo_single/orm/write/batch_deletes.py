"""Delete the objects of a model whose deletion has no effects: 25 keys in one BatchWriteItem, without conditions.

It does not return how many there were: an object that another process has deleted is not an error.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from operator import attrgetter
from typing import Any

from django.db.models.signals import post_delete, pre_delete

from dynamo_single.orm.effects.all_effects import effects_of
from dynamo_single.orm.effects.base import NO_CONDITIONS
from dynamo_single.orm.effects.compose import taken
from dynamo_single.orm.items.async_safety import is_heard
from dynamo_single.orm.requests.actions import key_of
from dynamo_single.orm.requests.atomic_block import Block
from dynamo_single.orm.requests.compiler import item_key
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.references import cascading_children
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.orm.write import delete, on_delete
from dynamo_single.orm.write.batch_transactions import BulkWrite, ObjectWriter, Outcome, write_batch
from dynamo_single.table import names
from dynamo_single.table.request import MAX_BATCH_WRITES


def has_plain_deletion(model: type[DynamoModel]) -> bool:
    """Return whether the deletion of a model's object is one DeleteItem, without receivers of signals."""
    if registry.has_soft_delete(model) or effects_of(model) or on_delete.has_references(model):
        return False
    return not (is_heard(model, pre_delete, post_delete) or cascading_children(model))


async def delete_each(model: type[DynamoModel], pages: AsyncGenerator[Iterable[Any], None]) -> None:
    """Delete the objects of some pages while it reads further pages, with up to eight requests in parallel.

    A unit of one object sends a DeleteItem, or the requests of a moved object. Raises ``BulkError``, which names the
    deleted objects, or a single error.
    """
    # The lease prevents deletions by former keys if a migration has changed the keys of objects.
    lease, alone = (await taken(model)).lease, ObjectWriter(_delete, attrgetter("pk"))

    async def work(unit: Sequence[Any]) -> list[Outcome]:
        if len(unit) == 1:
            return [await alone.write_alone(unit[0])]
        writes = [{"DeleteRequest": {"Key": item_key(key_of(obj._stored))}} for obj in unit]
        return await write_batch(model, unit, writes, lease, alone)

    job = BulkWrite("delete", model, None)
    async with aclosing(_units(pages)) as units:
        await job.run(units, work, lambda unit: [obj.pk for obj in unit])


async def _delete(obj: DynamoModel, block: Block | None) -> dict[str, int]:
    _, counts = await delete.delete(obj, NO_CONDITIONS, block)
    return counts


async def _units(pages: AsyncGenerator[Iterable[Any], None]) -> AsyncGenerator[list[Any], None]:
    """Yield the objects of each request; a moved object, which others may refer to, gets its own."""
    unit: list[Any] = []
    async with aclosing(pages):
        async for page in pages:
            for obj in page:
                if names.MOVED_FROM in obj._stored:
                    yield [obj]
                    continue
                unit.append(obj)
                if len(unit) == MAX_BATCH_WRITES:
                    yield unit
                    unit = []
    if unit:
        yield unit
