"""A plan in words: how a query is read, its requests, and the items that it discards.

This module turns finished plans into text and must not make or change any.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from dynamo_single.conf import table_settings
from dynamo_single.conf.shapes import Shape
from dynamo_single.orm.conditions.terms import EVERYTHING
from dynamo_single.orm.conditions.wording import condition_text, hides, ordering_text
from dynamo_single.orm.plan.advice import describe_key, query_text
from dynamo_single.orm.plan.plan import KeyCondition, Plan
from dynamo_single.orm.schema import secrecy
from dynamo_single.orm.schema.keys.secret_values import MASK
from dynamo_single.orm.schema.layout import ModelLayout
from dynamo_single.table import names
from dynamo_single.table.request import MAX_BATCH_KEYS, Request
from dynamo_single.table.shaped.declared import models_of
from dynamo_single.table.shaped.shown_keys import shown_pairs, shown_value
from dynamo_single.table.shaped.sortable import Unstorable
from dynamo_single.table.shaped.translator import Translator

#: How many keys and requests are printed before the rest is only counted.
_SHOWN = 3
_VALUE = re.compile(r":\w+")
_NAME = re.compile(r"#\w+")
#: A place in an item, whose steps are names and numbers of elements.
_PATH = re.compile(r"#\w+(?:\.#\w+|\[\d+\])*")
_ALL_WANTED = "none: all that is read is wanted"
_OPERATIONS = {"get": "GetItem", "batch_get": "BatchGetItem", "query": "Query", "scan": "Scan"}


def describe(plan: Plan, requests: Sequence[Request] = (), *, afterwards: Iterable[tuple[str, str]] = ()) -> str:
    """Describe a plan, its first requests, and the steps ``afterwards``, each line with its label."""
    lines = [f"{plan.layout.label}: {query_text(plan.query)}"]
    lines += (f"  {label:<9} {text}" for label, text in _lines(plan))
    lines += (f"  {'not used':<9} {describe_key(each.key)}: {each.reason}." for each in plan.rejected)
    for request in requests[:_SHOWN]:
        operation, shown = _sent(plan.layout, request)
        lines.append(f"  {'sends':<9} {operation}")
        lines += (f"  {'':<9}   {name}: {_plain(value)}" for name, value in shown.items())
    if len(requests) > _SHOWN:
        lines.append(f"  {'sends':<9} … and {len(requests) - _SHOWN} more like these")
    lines += (f"  {label:<9} {text}" for label, text in afterwards)
    return "\n".join(lines)


def _sent(layout: ModelLayout, request: Request) -> tuple[str, Mapping[str, Any]]:
    """Return the operation and the parameters as the table takes them, with the secrets masked."""
    shown, shape = masked_params(layout, request.params), table_settings(layout.alias).shape
    if shape.is_own:
        return request.operation, shown
    try:
        return Translator(shape, models_of(layout.alias)).request(request.operation, shown)
    except Unstorable:
        return request.operation, shown  # a masked key is not a number


def _lines(plan: Plan) -> Iterable[tuple[str, str]]:
    if plan.kind == "empty":
        yield "reads", f"nothing: {plan.reason}. No request is sent."
        return
    if plan.kind == "union":
        yield from _union(plan)
        return
    if plan.kind == "held":
        of_reach = _lines(replace(plan.parts[0], in_memory=plan.in_memory))
        yield from ((label, "none" if text == _ALL_WANTED else text) for label, text in of_reach)
        yield "matched", f"in memory: {condition_text(plan.filter, plan.layout)} ({plan.reason})"
        return
    yield "reads", reads_text(plan)
    yield "because", f"{plan.reason}."
    for text in _keys(plan):
        yield "key", text
    if plan.key is not None and plan.key.sharding is not None:
        yield "shards", _shards(plan)
    yield "filter", _filter(plan)
    if plan.projection:
        yield "only", f"{', '.join(plan.projection)} (the whole item is paid for all the same)"
    yield "order", _order(plan)
    yield "requests", _requests(plan)


def reads_text(plan: Plan) -> str:
    """Return the operation of a plan and what it is on."""
    if plan.lookup is not None:
        claims = f"the claim on {plan.lookup.name}" if plan.single else f"the claims on {plan.lookup.name}"
        objects = "the object that holds it" if plan.single else "the objects that hold them"
        operation = _OPERATIONS["get" if plan.single else "batch_get"]
        return f"{operation} on {claims}, and then on {objects}"
    if plan.kind == "empty":
        return "nothing"
    if plan.parts:
        return " and ".join(dict.fromkeys(map(reads_text, plan.parts)))
    return f"{_OPERATIONS[plan.kind]} on {describe_key(plan.key) if plan.key else 'the whole table'}"


def _shards(plan: Plan) -> str:
    """Describe the shards that can contain matches."""
    there = f"there {'is' if str(plan.query.schedule).startswith('1 ') else 'are'} {plan.query.schedule}"
    if plan.kind == "query":
        alias = plan.layout.alias
        found = ", ".join(secrecy.masked_key(alias, each.partition, "")[0] for each in plan.conditions[:_SHOWN])
        rest = f" and {len(plan.conditions) - _SHOWN} more" if len(plan.conditions) > _SHOWN else ""
        return f"{found}{rest}, read side by side and merged by the sort key; {there}"
    return f"each object is looked up in the shards that can contain it; {there}"


def _union(plan: Plan) -> Iterable[tuple[str, str]]:
    yield "reads", f"{len(plan.parts)} parts, each by itself; an item that several find is given once"
    yield "because", f"{plan.reason}."
    for number, part in enumerate(plan.parts, 1):
        yield f"part {number}", query_text(part.query)
        yield from _lines(part)
    merged = "merged" if plan.merged_by else "one part after the other"
    order = f"{ordering_text(plan.query.ordering) or 'none requested'}: {merged}"
    yield "order", order if plan.in_memory is None else str(plan.in_memory)


def _keys(plan: Plan) -> Iterable[str]:
    alias = plan.layout.alias
    shape = table_settings(alias).shape
    texts = [_key_text(shape, secrecy.masked_key(alias, *key)) for key in plan.keys[:_SHOWN]]
    texts += [_key_condition(plan.layout.alias, each, plan.index) for each in plan.conditions[:_SHOWN]]
    yield from texts
    rest = len(plan.keys) + len(plan.conditions) - len(texts)
    if rest:
        yield f"… and {rest} more"


def _key_text(shape: Shape, key: tuple[str, str]) -> str:
    """Return the key of an item by the table's own names."""
    return ", ".join(f"{name} = {value}" for name, value in shown_pairs(shape, *key))


def _key_condition(alias: str, condition: KeyCondition, index: str | None) -> str:
    partition, sort = names.key_names(index)
    shape = table_settings(alias).shape
    keys = dict(shape.pairs)
    first, second = keys.get(partition, shape.partition), keys.get(sort)
    text = f"{first.name} = {shown_value(first, secrecy.masked_key(alias, condition.partition, '')[0])}"
    if second is None or not condition.operator:
        return text
    operands = [
        shown_value(second, secrecy.masked_key(alias, condition.partition, each)[1]) for each in condition.operands
    ]
    if condition.operator == "begins_with":
        return f"{text} and {second.name} begins with {operands[0]}"
    if condition.operator == "between":
        return f"{text} and {second.name} between {operands[0]} and {operands[1]}"
    return f"{text} and {second.name} {condition.operator} {operands[0]}"


def _filter(plan: Plan) -> str:
    if plan.filter == EVERYTHING:
        return _ALL_WANTED
    if plan.kind in ("get", "batch_get", "claim"):
        return f"{condition_text(plan.filter, plan.layout)} (checked after reading)"
    whole = f"it reads all of {plan.layout.label}: " if reads_whole_model(plan) else ""
    return f"{condition_text(plan.filter, plan.layout)} ({whole}discarded items are read and charged, too)"


def reads_whole_model(plan: Plan) -> bool:
    """Return whether a query reads every object of its model: by a listing key without any known part."""
    key = plan.key
    if plan.kind != "query" or key is None or key.partition.variables:
        return False
    return all(
        not condition.operator or (condition.operator == "begins_with" and condition.operands[0] == key.sort.head)
        for condition in plan.conditions
    )


def _order(plan: Plan) -> str:
    if plan.in_memory is not None:
        return str(plan.in_memory)
    if plan.single:
        return "at most one item"
    if not plan.query.ordering:
        return "none requested" if plan.forward else "none requested, read backwards"
    if plan.kind == "batch_get":
        return f"{ordering_text(plan.query.ordering)}, put in order by key"
    direction = "as the sort key" if plan.forward else "as the sort key, read backwards"
    several = ""
    if len(plan.conditions) > 1:
        several = ", partitions merged" if plan.merge == "sort_key" else ", one partition after the other"
    return f"{ordering_text(plan.query.ordering)}: {direction}{several}"


def _requests(plan: Plan) -> str:
    if plan.kind == "get":
        return "1"
    if plan.kind == "claim":
        return _requests_of_claims(plan)
    if plan.kind == "batch_get":
        count = -(-len(plan.keys) // MAX_BATCH_KEYS)
        at_once = ", several at once" if count > 1 else ""
        return f"{count}{at_once}, and more if DynamoDB leaves keys unprocessed"
    count = max(len(plan.conditions), 1)
    return f"{count}, and one more for each further page of 1 MB that is read"


def _requests_of_claims(plan: Plan) -> str:
    if plan.single:
        return "2, strongly consistent; 1 if nothing holds it"
    count = -(-len(plan.keys) // MAX_BATCH_KEYS)
    return f"{2 * count}, strongly consistent, and more if DynamoDB leaves keys unprocessed"


def _plain(value: object) -> object:
    return dict(value) if isinstance(value, Mapping) else value


def masked_params(layout: ModelLayout, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request's parameters with the secrets masked: in its keys, and in all values of a filter that names one.

    Values of a key's condition are masked in it.
    """
    found = dict(params)
    for name in ("Key", "ExclusiveStartKey"):
        if name in found:
            found[name] = _masked_item(layout.alias, found[name])
    if "RequestItems" in found:
        found["RequestItems"] = {
            table: {**asked, "Keys": [_masked_item(layout.alias, key) for key in asked["Keys"]]}
            for table, asked in found["RequestItems"].items()
        }
    values = dict(found.get("ExpressionAttributeValues", {}))
    condition, filtered = found.get("KeyConditionExpression", ""), found.get("FilterExpression", "")
    texts = {name: values[name]["S"] for name in _VALUE.findall(condition) if "S" in values.get(name, {})}
    if texts:
        # The partition comes first.
        first, *others = texts
        values[first] = {"S": secrecy.masked_key(layout.alias, texts[first], "")[0]}
        values |= {name: {"S": secrecy.masked_key(layout.alias, texts[first], texts[name])[1]} for name in others}
    given = found.get("ExpressionAttributeNames", {})
    paths = ([given.get(name, "") for name in _NAME.findall(path)] for path in _PATH.findall(filtered))
    if any(hides(layout, first, tuple(steps)) for first, *steps in paths):
        values |= {name: {"S": MASK} for name in _VALUE.findall(filtered)}
    return {**found, "ExpressionAttributeValues": values} if values else found


def _masked_item(alias: str, key: Mapping[str, Any]) -> dict[str, Any]:
    """Return a key as the API has it, of the table and of an index, with the secrets masked."""
    found = dict(key)
    for name in [name for name in found if name.lower().endswith("pk")]:
        other = name[:-2] + ("sk" if name.endswith("pk") else "SK")
        if other in found:
            partition, sort = secrecy.masked_key(alias, found[name]["S"], found[other]["S"])
            found |= {name: {"S": partition}, other: {"S": sort}}
    return found
