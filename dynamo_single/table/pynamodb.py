"""The connection of PynamoDB's own calls, which sends their requests through the table.

No other module imports PynamoDB's connections.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pynamodb.connection import Connection, TableConnection
from pynamodb.connection.base import MetaTable

from dynamo_single.conf import TableSettings
from dynamo_single.exceptions import NotSupported
from dynamo_single.table import names
from dynamo_single.table.request import READS, Item, Parameters, Response, key_schema, with_names

#: Send an operation with its parameters, and return the response.
Call = Callable[[str, Parameters], Response]


#: Reads by complete keys, which do not support filters: hidden items are removed from the response.
_WHOLE = frozenset({"GetItem", "BatchGetItem", "TransactGetItems"})


def _hide_nothing(item: Item) -> bool:
    return False


def _visible(operation: str, answer: Response, is_hidden: Callable[[Item], bool]) -> Response:
    """Return a response without hidden items."""
    if operation == "BatchGetItem":
        found = {name: [each for each in items if not is_hidden(each)] for name, items in answer["Responses"].items()}
        return {**answer, "Responses": found}
    if operation == "TransactGetItems":
        return {**answer, "Responses": [_without(each, is_hidden) for each in answer["Responses"]]}
    return _without(answer, is_hidden)


def _without(answer: Mapping[str, Any], is_hidden: Callable[[Item], bool]) -> dict[str, Any]:
    hidden = answer.get("Item") and is_hidden(answer["Item"])
    return {name: value for name, value in answer.items() if not (hidden and name == "Item")}


class _PynamodbClient:
    """The replacement of PynamoDB's botocore client."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self.is_hidden: Callable[[Item], bool] = _hide_nothing

    def _make_api_call(self, operation: str, params: Parameters) -> dict[str, object]:
        asked = [params, *params.get("RequestItems", {}).values()] if operation in READS else []
        if any("ProjectionExpression" in each for each in asked):
            raise NotSupported(
                "attributes_to_get is not supported: an object that lacks attributes would be saved with wrong keys. "
                "Leave it out; values() and values_list() of a queryset pick attributes."
            )
        answer = self._call(operation, params)
        return _visible(operation, answer, self.is_hidden) if operation in _WHOLE else answer


class _PynamodbConnection(Connection):
    """PynamoDB's connection, which turns errors into PynamoDB's own."""

    def __init__(self, settings: TableSettings, call: Call) -> None:
        super().__init__(region=settings.region, host=settings.endpoint_url)
        self._seam: Any = _PynamodbClient(call)

    def __repr__(self) -> str:
        return f"Connection<{self.host or self.region}>"

    @property
    def client(self) -> Any:
        return self._seam


class PynamodbTable(TableConnection):
    """PynamoDB's view of one table, with its keys, so that PynamoDB does not send DescribeTable."""

    def __init__(self, settings: TableSettings, call: Call) -> None:
        self.table_name = settings.table_name
        connection = _PynamodbConnection(settings, call)
        connection.add_meta_table(_meta_table(settings))
        self.connection = connection
        self._seam: _PynamodbClient = connection.client

    def hide(self, is_hidden: Callable[[Item], bool]) -> None:
        """Remove items for which ``is_hidden()`` returns ``True`` from reads by complete keys."""
        self._seam.is_hidden = is_hidden


class RenamingPynamodbTable(PynamodbTable):
    """The view during a rename: the expressions of each request use the current names from ``names_in_use()``.

    The expressions of a transaction use the names at the time when it was built.
    """

    def __init__(self, settings: TableSettings, call: Call, names_in_use: Callable[[], Mapping[str, str]]) -> None:
        super().__init__(settings, lambda operation, params: call(operation, with_names(params, names_in_use())))
        self._names_in_use = names_in_use

    def get_operation_kwargs(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Return PynamoDB's parameters of one action."""
        return {**with_names(super().get_operation_kwargs(*args, **kwargs), self._names_in_use())}


def _meta_table(settings: TableSettings) -> MetaTable:
    pairs = {index: names.key_names(index) for index in settings.indexes}
    own = (names.PARTITION_KEY, names.SORT_KEY)
    return MetaTable(
        {
            "TableName": settings.table_name,
            "KeySchema": key_schema(own),
            "AttributeDefinitions": [
                {"AttributeName": name, "AttributeType": "S"} for pair in (own, *pairs.values()) for name in pair
            ],
            "GlobalSecondaryIndexes": [
                {"IndexName": index, "KeySchema": key_schema(pair)} for index, pair in pairs.items()
            ],
        }
    )
