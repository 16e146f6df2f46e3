"""Delete the objects of a model whose deletion has no effects: 25 keys in one BatchWriteItem, without conditions.

It does not return how many there were: an object that another process has deleted is not an error.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from typing import Any

from django.db.models.signals import post_delete, pre_delete
from msgspec.structs import replace

from dynamo_single.orm.effects.all_effects import effects_of
from dynamo_single.orm.effects.base import NO_CONDITIONS
from dynamo_single.orm.effects.compose import taken
from dynamo_single.orm.items.async_safety import is_heard
from dynamo_single.orm.requests.actions import Delete, key_of
from dynamo_single.orm.requests.compiler import compile_action, item_key
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.references import cascading_children
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.orm.write import delete, on_delete
from dynamo_single.orm.write.batch_transactions import BulkWrite, Outcome
from dynamo_single.table import batches, names
from dynamo_single.table.request import MAX_BATCH_WRITES
from dynamo_single.table.table import get_table


def has_plain_deletion(model: type[DynamoModel]) -> bool:
    """Return whether the deletion of a model's object is one DeleteItem, without receivers of signals."""
    if registry.has_soft_delete(model) or effects_of(model) or on_delete.has_references(model):
        return False
    return not (is_heard(model, pre_delete, post_delete) or cascading_children(model))


async def delete_each(model: type[DynamoModel], pages: AsyncGenerator[Iterable[Any], None]) -> None:
    """Delete the objects of some pages while it reads further pages, with up to eight requests in parallel.

    A unit of one object sends a DeleteItem. Raises ``BulkError``, which names the deleted objects, or a single error.
    """
    # The lease prevents deletions by former keys if a migration has changed the keys of objects.
    table, lease = get_table(model._options.alias), (await taken(model)).lease

    async def work(unit: Sequence[Any]) -> list[Outcome]:
        keys = [item_key(key_of(obj._stored)) for obj in unit]
        counts = {model._meta.label: 1}
        if names.MOVED_FROM in unit[0]._stored:
            await delete.delete(unit[0], NO_CONDITIONS, None)
        elif len(unit) == 1:
            await table.ask_patiently(replace(compile_action(Delete(key_of(unit[0]._stored))), lease=lease))
        else:
            writes = [{"DeleteRequest": {"Key": key}} for key in keys]
            rest = await batches.write_batch(table, writes, patient=True, lease=lease)
            left = [] if rest is None else [each["DeleteRequest"]["Key"] for each in rest.writes]
            return [
                Outcome(obj.pk, {}, rest.error) if rest is not None and key in left else Outcome(obj.pk, counts)
                for obj, key in zip(unit, keys, strict=True)
            ]
        return [Outcome(obj.pk, counts) for obj in unit]

    job = BulkWrite("delete", model, None)
    async with aclosing(_units(pages)) as units:
        await job.run(units, work, lambda unit: [obj.pk for obj in unit])


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
