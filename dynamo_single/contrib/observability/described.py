"""A sent request by its table, index, model and cost, without keys and values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

from msgspec import Struct

from dynamo_single import conf
from dynamo_single.costs import Cost
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.keys.codecs import SEPARATOR
from dynamo_single.orm.schema.keys.shards import split_partition
from dynamo_single.orm.schema.keys.template import Template
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.table import names
from dynamo_single.table.redirects import SentRequest

#: The two kinds of key conditions: ``#name = :value``, also with other operators, and ``begins_with(#name, :value)``.
_COMPARED: Final = re.compile(r"(#?\w+)(?:, | [=<>]+ | BETWEEN )(:\w+)")


class Described(Struct, frozen=True):
    """A request without values.

    ``model`` is the label of the model whose keys the request contains, or ``""`` if several models have such keys.
    ``retries`` counts the additional attempts of a successful request.
    """

    cost: Cost
    table: str
    index: str
    model: str
    retries: int


def describe(sent: SentRequest) -> Described:
    """Describe a sent request. Do not send another request."""
    params = sent.params
    table, first = _first(params)
    return Described(Cost.of(sent), table, str(params.get("IndexName", "")), _model(table, first), sent.retries)


def _first(params: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Return the table of a request, and the key attributes of the first item that it names."""
    if "TableName" in params:
        return params["TableName"], params.get("Key") or params.get("Item") or _queried(params)
    for actions in ("TransactItems", "Statements"):
        for action in params.get(actions, ()):
            inner = next((each for each in action.values() if isinstance(each, Mapping)), {})
            return inner.get("TableName", ""), inner.get("Key") or inner.get("Item") or {}
    for table, asked in params.get("RequestItems", {}).items():
        if isinstance(asked, Mapping):
            return table, next(iter(asked.get("Keys", ())), {})
        inner = next((next(iter(each.values())) for each in asked), {})
        return table, inner.get("Key") or inner.get("Item") or {}
    return "", {}


def _queried(params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the partition key of a Query, and the beginning of its sort keys if it has one."""
    found = {}
    for name, value in _COMPARED.findall(params.get("KeyConditionExpression", "")):
        name = params.get("ExpressionAttributeNames", {}).get(name, name)
        found[name] = params.get("ExpressionAttributeValues", {}).get(value, {})
    return found


def _model(table: str, key: Mapping[str, Any]) -> str:
    """Return the label of the model whose templates fit some key attributes best; ``""`` if several fit equally."""
    texts = {name: value["S"] for name, value in key.items() if isinstance(value, Mapping) and "S" in value}
    found: dict[int, set[str]] = {}
    keys = _keys(table) if texts else {}
    for text in texts.values():
        for each in (*keys.get(_head(text), ()), *keys.get("", ())):
            if texts.get(each.names[0]) == text and (literals := each.literals_in(texts)) is not None:
                found.setdefault(literals, set()).add(each.label)
    best = found[max(found)] if found else set[str]()
    return best.pop() if len(best) == 1 else ""


class _Key(Struct, frozen=True):
    """One key of a model: the stored names of its attributes, and their templates."""

    label: str
    names: tuple[str, str]
    partition: Template
    sort: Template

    def literals_in(self, texts: Mapping[str, str]) -> int | None:
        """Return how many literal characters fit; ``None`` if a key attribute does not fit."""
        partition, sort = texts[self.names[0]], texts.get(self.names[1])
        if not self.partition.matches(split_partition(partition)[0]):
            return None
        literals = sum(map(len, self.partition.pattern.literals))
        if sort is None:
            return literals
        return literals + len(self.sort.pattern.literals[0]) if self.sort.could_start_with(sort) else None


def _head(text: str) -> str:
    """Return the beginning that identifies keys: most templates begin with a distinct word and a separator."""
    return text.partition(SEPARATOR)[0]


@cache
def _keys(table: str) -> dict[str, list[_Key]]:
    """Return the keys of all models of a table by the head of their partition templates.

    The keys whose head depends on a value have the head ``""``. The models of a process do not change.
    """
    aliases = {alias for alias in conf.aliases() if conf.table_settings(alias).table_name == table}
    models = [model for model in registry.all_models() if model._options.alias in aliases]
    found: dict[str, list[_Key]] = {}
    for key in (key for model in models for key in _keys_of(model)):
        literal = key.partition.pattern.literals[0]
        is_fixed = SEPARATOR in literal or not key.partition.parts
        found.setdefault(_head(literal) if is_fixed else "", []).append(key)
    return found


def _keys_of(model: type[DynamoModel]) -> Iterator[_Key]:
    shape = conf.table_settings(model._options.alias).shape
    for key in registry.layout_of(model).keys:
        index = key.index
        own = (names.PARTITION_KEY, names.SORT_KEY) if index is None else (f"{index}pk", f"{index}sk")
        yield _Key(model._meta.label, (shape.name_of(own[0]), shape.name_of(own[1])), key.partition, key.sort)
