"""Read objects by their primary keys, in the order of the keys.

The app creates the objects of a BatchGetItem from whole responses if possible. Otherwise it creates them item by item,
so that the invalid item raises the error.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any

from dynamo_single.lazy_modules import LazyModule
from dynamo_single.orm.conditions.lowering import lower
from dynamo_single.orm.conditions.terms import EVERYTHING
from dynamo_single.orm.items import decode
from dynamo_single.orm.items.page_readers import PageReader
from dynamo_single.orm.plan.plan import Plan
from dynamo_single.orm.reading import single
from dynamo_single.orm.requests.actions import ItemKey, key_of
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.table.answers import TypedResponse, plain_response
from dynamo_single.table.flow import Pages
from dynamo_single.table.request import Response
from dynamo_single.table.table import Table

if TYPE_CHECKING:
    from dynamo_single.orm.reading import execute
else:
    execute = LazyModule("dynamo_single.orm.reading.execute")


async def objects(model: type[DynamoModel], table: Table, plan: Plan) -> list[tuple[ItemKey, object]]:
    """The objects that a plan of whole primary keys finds, with their keys."""
    if plan.kind == "get":
        found = await single.items_by_primary_key(table, plan)
        return [(key_of(item), decode.instance(model, item)) for item in found]
    return [(key, object_of(model, each)) async for page in pages(model, table, plan) for key, each in page]


async def pages(
    model: type[DynamoModel], table: Table, plan: Plan, *, skip: int = 0, stop: int | None = None
) -> Pages[tuple[ItemKey, object]]:
    """Yield what a plan of several primary keys finds: keys, and objects or what ``object_of()`` takes."""
    reader = None
    # The app compares a filter with the items.
    if lower(plan.filter, plan.layout) == EVERYTHING:
        reader = decode.page_reader(model, plan.projection, keyed=True)
    decoder = (
        None if reader is None else execute.PageDecoder(reader.form, partial(_results, model, table, plan, reader))
    )
    async with aclosing(execute.pages(table, plan, skip=skip, stop=stop, decoder=decoder)) as found:
        async for page in found:
            yield page if decoder else [(key_of(item), item) for item in page]


def _results(
    model: type[DynamoModel], table: Table, plan: Plan, reader: PageReader, response: Response, _wanted: slice
) -> Mapping[ItemKey, tuple[ItemKey, object]]:
    """Return the objects of a response by their keys, or their items if the app cannot create them together."""
    if isinstance(response, TypedResponse):
        found = decode.page_objects(reader, response.typed.get(table.name, ()))
        if found is not None:
            return {pair[0]: pair for pair in found}
    items = single.projected_items(plan, plain_response(response)["Responses"].get(table.name, ()))
    return {key_of(item): (key_of(item), item) for item in items}


def object_of(model: type[DynamoModel], found: object) -> Any:
    """Return an object, created from an item if necessary; raise an error instead of returning it."""
    return decode.instance(model, found) if isinstance(found, dict) else found
