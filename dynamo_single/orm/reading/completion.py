"""Complete the pages of tables with a shape of their own: read what an index lacks, and evaluate the late filter.

The second read of an index that does not project all attributes is a BatchGetItem for each 100 items. It omits items
that processes have deleted or moved in the index since then.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing

from msgspec import Struct
from msgspec.structs import replace

from dynamo_single.orm.conditions.lowering import lower
from dynamo_single.orm.conditions.matching import matches
from dynamo_single.orm.conditions.terms import EVERYTHING, ITEM_TYPE, Condition
from dynamo_single.orm.plan.plan import Plan, attributes_of
from dynamo_single.orm.plan.reach import late_filter, reach_of, read_whole
from dynamo_single.orm.reading.sources import PlanReader
from dynamo_single.orm.requests.actions import key_of
from dynamo_single.orm.requests.compiler import compile_batches
from dynamo_single.table import names
from dynamo_single.table.batches import RemainingItems, get_batches
from dynamo_single.table.request import NewItem, Request, Response
from dynamo_single.table.table import Table


class Completion(Struct, frozen=True):
    """Completes the pages of one plan.

    ``index`` is set if its items have to be read as well. Items of other types than ``item_type`` are omitted, unless
    it is empty.
    """

    index: str = ""
    late: Condition = EVERYTHING
    item_type: str = ""

    async def complete(self, table: Table, request: Request, response: Response) -> Response:
        """Return a response to a Query or Scan with complete items that meet the late filter."""
        if request.params.get("Select") == "COUNT":
            return response
        items: Sequence[NewItem] = response["Items"]
        if self.index and items:
            items = await self._whole(table, items)
        if self.late != EVERYTHING:
            items = [item for item in items if matches(self.late, item)]
        if self.item_type:
            items = [item for item in items if item.get(names.ITEM_TYPE, {}).get("S") == self.item_type]
        return {**response, "Items": items, "Count": len(items)}

    async def _whole(self, table: Table, entries: Sequence[NewItem]) -> list[NewItem]:
        keys = [key_of(entry) for entry in entries]
        requests = compile_batches(keys, table.name, {})
        async with aclosing(get_batches(table, requests, RemainingItems(None))) as batches:
            found = {key_of(item): item async for batch in batches for item in batch}
        kept = names.key_names(self.index)
        pairs = [(entry, found[key]) for entry, key in zip(entries, keys, strict=True) if key in found]
        return [item for entry, item in pairs if all(entry.get(name) == item.get(name) for name in kept)]


def completed(reader: PlanReader, plan: Plan) -> tuple[PlanReader, Plan]:
    """Return the reader and the plan of a Query or Scan whose pages need completion; otherwise the same."""
    reach = reach_of(plan)
    if reach is None:
        return reader, plan
    late = lower(late_filter(plan), plan.layout)
    skips = reach.skips_foreign and ITEM_TYPE not in attributes_of(plan.filter)
    index = "" if reach.projected is None else plan.index or ""
    if not index and late == EVERYTHING and not skips:
        return reader, plan
    completion = Completion(index, late, plan.layout.item_type if skips else "")
    return replace(reader, form=None, completion=completion), read_whole(plan)
