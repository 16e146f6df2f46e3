"""Objects that are read by their primary keys, in the order of the keys.

Those of a BatchGetItem are made of whole answers where that is possible. Otherwise they are made item by item, which
decides, and raises at the item that is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing
from typing import Any

from dynamo_single.orm.conditions.lowering import lower
from dynamo_single.orm.conditions.terms import EVERYTHING
from dynamo_single.orm.items import decode
from dynamo_single.orm.plan.plan import Plan
from dynamo_single.orm.reading import execute, single
from dynamo_single.orm.requests.actions import ItemKey, key_of
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.table.answers import TypedAnswer, untyped
from dynamo_single.table.flow import Pages
from dynamo_single.table.table import Table


async def objects(model: type[DynamoModel], table: Table, plan: Plan) -> list[tuple[ItemKey, object]]:
    """The objects that a plan of whole primary keys finds, with their keys."""
    if plan.kind == "get":
        found = await single.by_key(table, plan)
        return [(key_of(item), decode.instance(model, item)) for item in found]
    return [(key, made(model, each)) async for page in pages(model, table, plan) for key, each in page]


async def pages(
    model: type[DynamoModel], table: Table, plan: Plan, *, stop: int | None = None
) -> Pages[tuple[ItemKey, object]]:
    """What a plan of several primary keys finds, up to ``stop`` or more: keys, and objects or what ``made()`` takes."""
    reader = None
    # What a filter leaves out is seen by the items.
    if lower(plan.filter, plan.layout) == EVERYTHING:
        reader = decode.page_reader(model, plan.projection, keyed=True)
    if reader is None:
        async with aclosing(execute.pages(table, plan, stop=stop)) as items:
            async for page in items:
                yield [(key_of(item), item) for item in page]
        return
    made_by = reader

    def found_in(answer: dict[str, object]) -> Mapping[ItemKey, object]:
        if isinstance(answer, TypedAnswer):
            found = decode.made_at_once(model, made_by, answer.typed.get(table.name, ()))
            if found is not None:
                return dict(found)
        items = single.as_read(plan, untyped(answer)["Responses"].get(table.name, ()))
        return {key_of(item): item for item in items}

    async with aclosing(single.found_by_key(table, plan, made_by.form, found_in, stop=stop)) as answers:
        async for batch in answers:
            yield batch


def made(model: type[DynamoModel], found: object) -> Any:
    """An object; of an item it is made now, or an error."""
    return decode.instance(model, found) if isinstance(found, dict) else found
