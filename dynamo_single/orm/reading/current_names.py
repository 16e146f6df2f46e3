"""Send each request of a plan under the current revision of the table's state.

A migration may move on between the planning of a query and its requests, or between two pages. The conditions, the
order and the readers of a query keep the names from its planning. This module translates only requests and responses.
If queries may no longer use a key or unique rule, the query raises an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from dynamo_single.exceptions import BeginAgain, KeyNotFilled
from dynamo_single.orm.plan.plan import Plan
from dynamo_single.orm.rollout import knowledge
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.bindings import ModelBinding, binding_if_known
from dynamo_single.orm.schema.layout import ModelLayout, Twin
from dynamo_single.table.answers import ResponseDecoder
from dynamo_single.table.request import NewItem, Request, Response, with_names
from dynamo_single.table.table import Table

#: How often to repeat a read request if the state changes before it, or if it is too late.
ATTEMPTS = 5


def following_table(table: Table, plan: Plan) -> Table:
    """Return the table for a plan: each request follows the table's state at that time.

    The state may be read first, as ``knowledge.binding_for()`` does.
    """
    return table if isinstance(table, _FollowingTable) else _FollowingTable(table, plan)


def with_both_names(item: NewItem, twins: tuple[Twin, ...]) -> NewItem:
    """Return an item with each renamed attribute under both names, since its readers may use either."""
    found = {**item}
    for twin in twins:
        found.pop(twin.other, None)
        if twin.used in item:
            found[twin.other] = item[twin.used]
    return found


class _FollowingTable(Table):
    """A table that sends requests under the lease of the model's binding; everything else is that of the table."""

    def __init__(self, table: Table, plan: Plan) -> None:
        self.__dict__.update(table.__dict__)
        self._table = table
        self._plan = plan
        self._model = registry.model_of(plan.layout)

    def __eq__(self, other: object) -> bool:
        return other is self._table or other is self

    def __hash__(self) -> int:
        return hash(self._table)

    async def ask(
        self, request: Request, decoder: ResponseDecoder | None = None, head: dict[str, str] | None = None
    ) -> Response:
        for attempt in range(ATTEMPTS):
            binding = binding_if_known(self._model, self._table) or await knowledge.binding_for(self._model)
            if binding.rollout is None and binding.layout is self._plan.layout:
                sent, names = request, {}
            else:
                _refuse_hidden(self._plan, binding, request)
                names = _present_names(self._plan.layout, binding.layout)
                sent = replace(request, params=_with_names(request.params, names)) if names else request
            try:
                # A compiled reader has the names from the query's planning.
                form = None if names else decoder
                leased = replace(sent, lease=binding.lease) if binding.lease else sent
                answer = await self._table.ask(leased, form, head)
            except BeginAgain:
                knowledge.stale()
                if attempt == ATTEMPTS - 1:
                    raise
                continue
            return _as_planned(answer, names) if names else answer
        raise AssertionError  # not reached


def _refuse_hidden(plan: Plan, binding: ModelBinding, request: Request) -> None:
    """Raise ``KeyNotFilled`` if a migration makes the key or the unique rule of a plan incomplete."""
    missing = binding.missing
    index = request.params.get("IndexName")
    hidden = [key.name for key in plan.layout.index_keys if key.index == index and key.name in missing.hidden_keys]
    # The trash has a separate key on the index of another key.
    planned = {part.key.name for part in (plan, *plan.parts) if part.key is not None and part.key.index == index}
    hidden = [name for name in hidden if not planned or name in planned]
    lookups = [part.lookup for part in (plan, *plan.parts) if part.lookup is not None]
    unclaimed = [lookup.name for lookup in lookups if lookup.fingerprint in missing.unclaimed]
    for what, name in (*(("key", name) for name in hidden), *(("unique rule", name) for name in unclaimed)):
        raise KeyNotFilled(
            f"{plan.layout.label}: a migration is changing the {what} {name}, which this query uses. The "
            "results read so far are incomplete. Run the query again after manage.py migrate has finished."
        )


def _present_names(planned: ModelLayout, present: ModelLayout) -> dict[str, str]:
    """Return the current physical names, by the names in a query's plan, if they differ."""
    pairs = ((info.stored, present.attributes[name].stored) for name, info in planned.attributes.items())
    names = {old: new for old, new in pairs if old != new}
    for twin in planned.twins:
        for name in (twin.used, twin.other):
            if (found := names.get(twin.used, twin.used)) != name:
                names.setdefault(name, found)
    return names


def _with_names(params: Mapping[str, Any], present: Mapping[str, str]) -> Mapping[str, Any]:
    if "RequestItems" not in params:
        return with_names(params, present)
    asked = {name: with_names(each, present) for name, each in params["RequestItems"].items()}
    return {**params, "RequestItems": asked}


def _as_planned(answer: Response, names: Mapping[str, str]) -> Response:
    """Return the response with the names from the query's planning, in addition to the current names."""

    def planned(item: NewItem) -> NewItem:
        found = {**item}
        for old, new in names.items():
            if new in item:
                found[old] = item[new]
            else:
                found.pop(old, None)
        return found

    changed: Response = {**answer}
    if answer.get("Item"):
        changed["Item"] = planned(answer["Item"])
    if "Items" in answer:
        changed["Items"] = [planned(each) for each in answer["Items"]]
    if "Responses" in answer:
        changed["Responses"] = {name: [planned(each) for each in items] for name, items in answer["Responses"].items()}
    return changed
