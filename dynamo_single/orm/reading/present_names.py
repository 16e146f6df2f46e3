"""The attribute names of each page: a rename may begin or end while a query is being read.

A query keeps the names of its beginning: its conditions, its order and its readers go by them. Only requests and their
answers are translated. This module must not know models.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dynamo_single.orm.rollout import knowledge
from dynamo_single.orm.schema.layout import ModelLayout, Twin
from dynamo_single.table.answers import ResponseDecoder
from dynamo_single.table.request import NewItem, Request, Response, with_names
from dynamo_single.table.table import Table


def in_present_names(table: Table, layout: ModelLayout) -> Table:
    """The table for a query that was planned with a layout: what it asks has the names that are in use by then.

    Without an open rename it is the table itself. Otherwise each request may be preceded by a GetItem, as by
    ``knowledge.ask()``.
    """
    return _RenamingTable(table, layout) if layout.twins and not isinstance(table, _RenamingTable) else table


def with_both_names(item: NewItem, twins: tuple[Twin, ...]) -> NewItem:
    """An item with what is being renamed under both names: whoever reads it may go by the one or the other."""
    found = {**item}
    for twin in twins:
        found.pop(twin.other, None)
        if twin.used in item:
            found[twin.other] = item[twin.used]
    return found


class _RenamingTable(Table):
    """A table whose requests and answers are translated; everything else is the table's own."""

    def __init__(self, table: Table, layout: ModelLayout) -> None:
        self.__dict__.update(table.__dict__)
        self._table = table
        self._layout = layout

    def __eq__(self, other: object) -> bool:
        return other is self._table or other is self

    def __hash__(self) -> int:
        return hash(self._table)

    async def ask(self, request: Request, form: ResponseDecoder | None = None) -> Response:
        names = await self._names()
        if all(name == twin.used for twin, name in names.items()):
            return await self._table.ask(request, form)
        present = {other: name for twin, name in names.items() for other in (twin.used, twin.other)}
        # What decodes an answer at once has the names of the beginning.
        answer = await self._table.ask(Request(request.operation, _with_names(request.params, present)))
        return _as_planned(answer, names)

    async def _names(self) -> dict[Twin, str]:
        """The name that each renamed attribute has now."""
        attributes = (await knowledge.renewed(self._layout)).attributes
        planned = {info.stored: name for name, info in self._layout.attributes.items()}
        return {twin: attributes[planned[twin.used]].stored for twin in self._layout.twins}


def _with_names(params: Mapping[str, Any], present: Mapping[str, str]) -> Mapping[str, Any]:
    if "RequestItems" not in params:
        return with_names(params, present)
    asked = {name: with_names(each, present) for name, each in params["RequestItems"].items()}
    return {**params, "RequestItems": asked}


def _as_planned(answer: Response, names: Mapping[Twin, str]) -> Response:
    """The answer with the names that the query was planned with, as well as those of now."""

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
