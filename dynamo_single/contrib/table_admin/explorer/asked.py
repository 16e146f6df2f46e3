"""The query of a table page: the validated parameters of its address, and the addresses of related queries.

This module sends no requests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal
from urllib.parse import urlencode

from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from msgspec import Struct

from dynamo_single.admin.viewing.pages import Wrong
from dynamo_single.contrib.table_admin.explorer.item_filters import Filter, filters_of
from dynamo_single.contrib.table_admin.own_names import check_text, key_text
from dynamo_single.contrib.table_admin.visible_items import alias_of
from dynamo_single.orm.plan.plan import KeyCondition, SortOperator
from dynamo_single.table.names import key_names
from dynamo_single.table.request import PARTITION_KEY_LIMIT, SORT_KEY_LIMIT

#: The prefix of the parameters with the values of a key's variables.
VALUE: Final = "v_"

#: The conditions on a sort key, by their names in the address.
OPERATORS: Final[Mapping[str, SortOperator]] = {
    "eq": "=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "between": "between",
    "begins": "begins_with",
}
#: The same in the user's language.
OPERATOR_LABELS: Final[Mapping[str, Any]] = {
    "eq": "=",
    "lt": "<",
    "le": "≤",
    "gt": ">",
    "ge": "≥",
    "between": gettext_lazy("between"),
    "begins": gettext_lazy("begins with"),
}

View = Literal["columns", "raw"]


class Mistaken(Exception):
    """A value of the form cannot be used; the page shows the form again with this message."""


class Asked(Struct, frozen=True):
    """The parameters of a table page; ``index`` is ``None`` for the table's primary key.

    ``key`` is the name of a model's key, whose variables have the ``values``. Without it, ``partition``, ``operator``,
    ``sort`` and ``to`` are the parts of a key, or ``prefix`` is the beginning of partition keys. ``given`` are all
    parameters as they are in the address, without the position.
    """

    alias: str
    index: str | None
    partition: str
    prefix: str
    after: str
    newest: bool
    key: str
    values: Mapping[str, str]
    operator: str
    sort: str
    to: str
    filters: tuple[Filter, ...]
    view: View
    given: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, request: HttpRequest, indexes: Mapping[str, Sequence[str]]) -> Asked:
        """Return the parameters of a request; raise ``Wrong`` for invalid ones.

        ``indexes`` contains the names of the indexes of each table.
        """
        given = request.GET
        alias = alias_of(request)
        index = given.get("index") or None
        if index is not None and index not in indexes[alias]:
            raise Wrong(_("The table does not have an index with this name."))
        operator = given.get("op", "eq") or "eq"
        if operator not in OPERATORS:
            raise Wrong(_("This comparison does not exist."))
        texts = {name: given.get(name, "") for name in ("pk", "begins", "key", "sort", "to")}
        values = {name.removeprefix(VALUE): given.get(name, "") for name in given if name.startswith(VALUE)}
        for name, text in (*texts.items(), *values.items()):
            check_text(text, SORT_KEY_LIMIT if name in ("sort", "to") else PARTITION_KEY_LIMIT)
        kept = ("alias", "index", "pk", "begins", "key", "op", "sort", "to", "view", "order", "f", "fop", "fv")
        return cls(
            alias=alias,
            index=index,
            partition=texts["pk"],
            prefix=texts["begins"],
            after=given.get("after", ""),
            newest=given.get("order") == "newest",
            key=texts["key"],
            values=values,
            operator=operator,
            sort=texts["sort"],
            to=texts["to"],
            filters=filters_of(request),
            view="raw" if given.get("view") == "raw" else "columns",
            given=tuple(
                (name, value)
                for name, found in given.lists()
                if name in kept or name.startswith(VALUE)
                for value in found
            ),
        )

    def query(self, **changes: str) -> str:
        """Return the query string with some parameters changed, without empty ones."""
        kept = [(name, value) for name, value in self.given if name not in changes]
        is_empty = all(not value for name, value in kept if name == "fv")
        left = [(name, value) for name, value in kept if value or (name in ("f", "fop", "fv") and not is_empty)]
        return urlencode([*left, *((name, value) for name, value in changes.items() if value)])

    def condition(self) -> KeyCondition:
        """Return the condition of the parts of a key as the user wrote them."""
        partition_name, sort_name = key_names(self.index)
        partition = key_text(self.alias, partition_name, self.partition)
        if not self.sort:
            return KeyCondition(partition)
        operands: tuple[str, ...] = (key_text(self.alias, sort_name, self.sort),)
        if self.operator == "between":
            operands = (*operands, key_text(self.alias, sort_name, self.to))
            check_order(operands)
        return KeyCondition(partition, OPERATORS[self.operator], operands)


def check_order(operands: Sequence[str]) -> None:
    """Raise ``Mistaken`` for a range that ends before it begins, which DynamoDB rejects."""
    first, last = (text.encode() for text in operands)
    if first > last:
        raise Mistaken(_("The range ends before it starts. Swap the two values."))
