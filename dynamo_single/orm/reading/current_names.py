"""Translate attribute names page by page: a rename may begin or end while a query is being read.

The conditions, the order and the readers of a query keep the names that it was planned with. Only its requests and
responses are translated. This module does not depend on models.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dynamo_single.orm.rollout import knowledge
from dynamo_single.orm.schema.layout import ModelLayout, Twin
from dynamo_single.table.answers import ResponseDecoder
from dynamo_single.table.request import NewItem, Request, Response, with_names
from dynamo_single.table.table import Table


def table_with_current_names(table: Table, layout: ModelLayout) -> Table:
    """Return the table for a query that was planned with a layout: its requests have the names in use at that time.

    Without an open rename this is the table itself. Otherwise a GetItem may precede each request, as in
    ``knowledge.ask()``.
    """
    return _RenamingTable(table, layout) if layout.twins and not isinstance(table, _RenamingTable) else table


def with_both_names(item: NewItem, twins: tuple[Twin, ...]) -> NewItem:
    """Return an item with each renamed attribute under both names, since its readers may use either."""
    found = {**item}
    for twin in twins:
        found.pop(twin.other, None)
        if twin.used in item:
            found[twin.other] = item[twin.used]
    return found


class _RenamingTable(Table):
    """A table that translates requests and responses; everything else is that of the table."""

    def __init__(self, table: Table, layout: ModelLayout) -> None:
        self.__dict__.update(table.__dict__)
        self._table = table
        self._layout = layout

    def __eq__(self, other: object) -> bool:
        return other is self._table or other is self

    def __hash__(self) -> int:
        return hash(self._table)

    async def ask(
        self, request: Request, form: ResponseDecoder | None = None, head: dict[str, str] | None = None
    ) -> Response:
        names = await self._names()
        if all(name == twin.used for twin, name in names.items()):
            return await self._table.ask(request, form, head)
        present = {other: name for twin, name in names.items() for other in (twin.used, twin.other)}
        # A compiled reader has the names that the query was planned with.
        answer = await self._table.ask(request.with_params(_with_names(request.params, present)), None, head)
        return _as_planned(answer, names)

    async def _names(self) -> dict[Twin, str]:
        """Return the current name of each renamed attribute."""
        attributes = (await knowledge.current_layout(self._layout)).attributes
        planned = {info.stored: name for name, info in self._layout.attributes.items()}
        return {twin: attributes[planned[twin.used]].stored for twin in self._layout.twins}


def _with_names(params: Mapping[str, Any], present: Mapping[str, str]) -> Mapping[str, Any]:
    if "RequestItems" not in params:
        return with_names(params, present)
    asked = {name: with_names(each, present) for name, each in params["RequestItems"].items()}
    return {**params, "RequestItems": asked}


def _as_planned(answer: Response, names: Mapping[Twin, str]) -> Response:
    """Return the response with the names that the query was planned with, in addition to the current ones."""

    def planned(item: NewItem) -> NewItem:
        found = {**item}
        for twin, name in names.items():
            for other in (twin.used, twin.other):
                found.pop(other, None)
            if name in item:
                found |= {twin.used: item[name], twin.other: item[name], name: item[name]}
        return found

    changed: Response = {**answer}
    if answer.get("Item"):
        changed["Item"] = planned(answer["Item"])
    if "Items" in answer:
        changed["Items"] = [planned(each) for each in answer["Items"]]
    if "Responses" in answer:
        changed["Responses"] = {name: [planned(each) for each in items] for name, items in answer["Responses"].items()}
    return changed
