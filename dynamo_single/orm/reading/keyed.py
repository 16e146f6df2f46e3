"""What BatchGetItems give under the keys of a plan, where a form decodes their items.

It must not know what the items are decoded into.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import aclosing
from typing import TypeVar

from dynamo_single.orm.filled import knowledge
from dynamo_single.orm.plan.plan import Plan
from dynamo_single.orm.requests import block
from dynamo_single.orm.requests.actions import ItemKey, key_of
from dynamo_single.orm.requests.compiler import compile_plan
from dynamo_single.table.batches import Wanted, get_answers
from dynamo_single.table.flow import Pages
from dynamo_single.table.pages import PageForm
from dynamo_single.table.table import Table

T = TypeVar("T")


async def found_by_key(
    table: Table,
    plan: Plan,
    form: PageForm,
    found_in: Callable[[dict[str, object]], Mapping[ItemKey, T]],
    *,
    stop: int | None,
) -> Pages[tuple[ItemKey, T]]:
    """What answers hold under the keys of a batch_get without a filter, in the order of the keys.

    ``found_in`` gives it of one answer, of which the items are decoded by ``form``, or are dicts.
    """
    block.check_plan(table.settings.alias, plan)
    await knowledge.undivided(table, plan.layout)
    requests, wanted = compile_plan(plan, table_name=table.name), Wanted(stop)
    left = iter(requests)
    async with aclosing(get_answers(table, requests, wanted, form)) as batches:
        async for batch in batches:
            found: dict[ItemKey, T] = {}
            for answer in batch:
                found |= found_in(answer)
            keys = map(key_of, next(left).params["RequestItems"][table.name]["Keys"])
            page = [(key, found[key]) for key in keys if key in found]
            wanted.took(len(page))
            yield page
