"""Plans and actions written as requests of DynamoDB's API.

This is the last step before sending: a request is a value that can be printed and compared. The table adds the option
for consumed capacity, and its own name, except if the API requires the name inside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from dynamo_single.exceptions import ItemTooLarge, NotSupported
from dynamo_single.orm.conditions.terms import EVERYTHING, And, Condition, Stored
from dynamo_single.orm.plan.plan import KeyCondition, Plan, SortOperator
from dynamo_single.orm.plan.reach import sent_filter
from dynamo_single.orm.requests.actions import ITEM_MISSING, Action, Check, Delete, ItemKey, Put, Update
from dynamo_single.orm.requests.expressions import (
    ExpressionBuilder,
    ExpressionTooLong,
    compile_change,
    compile_condition,
)
from dynamo_single.orm.schema.keys.template import prefix_end
from dynamo_single.table import names
from dynamo_single.table.request import (
    LIMITS,
    MAX_ACTIONS,
    MAX_BATCH_KEYS,
    MAX_EXPRESSION,
    MAX_ITEM_SIZE,
    MAX_OPERATORS,
    MAX_PAGE_ITEMS,
    Request,
)
from dynamo_single.table.shown_keys import key_text

__all__ = [
    "MAX_ACTIONS",
    "MAX_BATCH_KEYS",
    "MAX_PAGE_ITEMS",
    "ExpressionBuilder",
    "compile_action",
    "compile_batches",
    "compile_condition",
    "compile_plan",
    "compile_reads",
    "compile_transaction",
    "item_key",
    "with_page",
]

_STRONGLY: dict[str, Any] = {"ConsistentRead": True}
_VALUES = "ExpressionAttributeValues"


def compile_plan(
    plan: Plan, *, table_name: str = "", count: bool = False, limit: int | None = None
) -> tuple[Request, ...]:
    """Return a plan's first requests: none if it is empty, one for each partition, one for each 100 keys of a batch.
    For claims, return the reads of the claims, which determine the items to read next.

    ``limit`` counts items read, before the filter, and is sent up to ``MAX_PAGE_ITEMS``; ``table_name`` is needed for a
    batch_get. ``count`` requests only the number of items from queries and scans. Further pages are ``with_page`` of
    the same request.
    """
    if plan.kind == "get":
        (key,) = plan.keys
        return (Request("GetItem", {"Key": item_key(key), **_projection(plan.projection), **_consistency(plan)}),)
    if plan.kind == "claim":
        if plan.single:
            return (Request("GetItem", {"Key": item_key(plan.keys[0]), **_STRONGLY}),)
        return compile_batches(plan.keys, table_name)
    if plan.kind == "batch_get":
        return compile_batches(plan.keys, table_name, {**_projection(plan.projection), **_consistency(plan)})
    if plan.kind == "empty":
        return ()
    if plan.parts:
        return tuple(
            request for part in plan.parts for request in compile_plan(part, table_name=table_name, limit=limit)
        )
    paging: dict[str, Any] = {"Select": "COUNT"} if count else {}
    if count:
        plan = replace(plan, projection=())  # DynamoDB rejects a projection with COUNT
    if limit is not None:
        paging["Limit"] = min(limit, MAX_PAGE_ITEMS)
    if plan.kind == "scan":
        return (
            Request(
                "Scan", {**_expressions(plan.projection, plan, ExpressionBuilder()), **_consistency(plan), **paging}
            ),
        )
    return tuple(Request("Query", {**_query(plan, condition), **paging}) for condition in plan.conditions)


def with_page(request: Request, *, start_key: Mapping[str, object] | None = None, limit: int | None = None) -> Request:
    """Return the request for the page after ``start_key``, the previous page's ``LastEvaluatedKey``.

    ``limit`` is sent up to ``MAX_PAGE_ITEMS``.
    """
    changes: dict[str, Any] = {}
    if start_key is not None:
        changes["ExclusiveStartKey"] = start_key
    if limit is not None:
        changes["Limit"] = min(limit, MAX_PAGE_ITEMS)
    return replace(request, params={**request.params, **changes})


def compile_action(action: Action, *, returns_item: bool = False) -> Request:
    """Return one action as PutItem, UpdateItem or DeleteItem.

    With ``returns_item``, the response to an update contains the whole new item. If the condition fails, the error
    contains the stored item.
    """
    if isinstance(action, Put):
        return Request("PutItem", _put(action))
    if isinstance(action, Update):
        returned = {"ReturnValues": "ALL_NEW"} if returns_item else {}
        return Request("UpdateItem", {**_update(action), **returned})
    if isinstance(action, Delete):
        return Request("DeleteItem", _keyed(action))
    raise NotSupported("A check cannot be sent alone: DynamoDB checks conditions with a write or in a transaction.")


def compile_transaction(actions: Sequence[Action], table_name: str, token: str) -> Request:
    """Write all actions as one TransactWriteItems; ``token`` makes sending it again within ten minutes harmless.

    More than 100 actions, or two on one item, are refused here, before anything is sent.
    """
    if not actions:
        raise NotSupported("A transaction has at least one action.")
    if len(actions) > MAX_ACTIONS:
        raise NotSupported(
            f"Cannot send a transaction of {len(actions)} actions: DynamoDB accepts at most {MAX_ACTIONS}, "
            "including those for unique attributes and children. Nothing was written. Split it into parts "
            "that can be written separately."
        )
    seen: set[ItemKey] = set()
    for action in actions:
        if action.key in seen:
            raise NotSupported(
                f"A transaction cannot touch one item twice: {key_text(None, action.key)}. "
                "Make both changes in one action."
            )
        seen.add(action.key)
    entries = [_entry(action, table_name) for action in actions]
    return Request("TransactWriteItems", {"TransactItems": entries, "ClientRequestToken": token})


def compile_reads(keys: Sequence[ItemKey], table_name: str) -> Request:
    """Write the reading of up to 100 items as one TransactGetItems."""
    gets = [{"Get": {"TableName": table_name, "Key": item_key(key)}} for key in keys]
    return Request("TransactGetItems", {"TransactItems": gets})


def item_key(key: ItemKey) -> dict[str, dict[str, str]]:
    """Give an item's key as attribute values."""
    return {names.PARTITION_KEY: {"S": key[0]}, names.SORT_KEY: {"S": key[1]}}


def _consistency(plan: Plan) -> dict[str, object]:
    return _STRONGLY if plan.consistent else {}


def compile_batches(
    keys: Sequence[ItemKey], table_name: str, options: Mapping[str, object] = _STRONGLY
) -> tuple[Request, ...]:
    """Return BatchGetItems for some keys, a hundred each; strongly consistent, unless ``options`` override this."""
    chunks = (keys[start : start + MAX_BATCH_KEYS] for start in range(0, len(keys), MAX_BATCH_KEYS))
    return tuple(
        Request("BatchGetItem", {"RequestItems": {table_name: {"Keys": list(map(item_key, chunk)), **options}}})
        for chunk in chunks
    )


def _query(plan: Plan, condition: KeyCondition) -> dict[str, object]:
    texts, index = _key_texts(condition), None if plan.key is None else plan.key.index
    reading = (index, condition.operator, plan.projection, plan.forward, plan.query.consistent)
    if plan.filter != EVERYTHING:
        return _written(texts, *reading, plan)
    fixed = _unfiltered(len(texts), *reading)
    values = {placeholder: {"S": text} for placeholder, text in zip(fixed[_VALUES], texts, strict=True)}
    return {**fixed, _VALUES: values}


def _key_texts(condition: KeyCondition) -> tuple[str, ...]:
    """Return the partition, and the comparisons of the sort keys."""
    if condition.operator == "begins_with":
        # The same keys lie between the prefix and its end. begins_with() on a key ignores the case of ASCII letters in
        # Dynoxide 1.2.1; BETWEEN is alike on every engine.
        (prefix,) = condition.operands
        return condition.partition, prefix, prefix_end(prefix)
    return (condition.partition, *condition.operands)


@lru_cache(maxsize=512)
def _unfiltered(
    texts: int, index: str | None, operator: SortOperator, projection: tuple[str, ...], forward: bool, consistent: bool
) -> dict[str, Any]:
    """Return the parameters of all Queries with this shape without a filter, with empty strings in the key."""
    return _written(("",) * texts, index, operator, projection, forward, consistent)


def _written(
    texts: Sequence[str],
    index: str | None,
    operator: SortOperator,
    projection: tuple[str, ...],
    forward: bool,
    consistent: bool,
    filtered: Plan | None = None,
) -> dict[str, Any]:
    builder = ExpressionBuilder()
    params: dict[str, Any] = {} if index is None else {"IndexName": index}
    params["KeyConditionExpression"] = _key_condition(texts, index, operator, builder)
    params |= _expressions(projection, filtered, builder)
    if not forward:
        params["ScanIndexForward"] = False
    return params | (_STRONGLY if consistent else {})


def _key_condition(texts: Sequence[str], index: str | None, operator: SortOperator, builder: ExpressionBuilder) -> str:
    partition, sort = names.key_names(index)
    text = f"{builder.name(partition)} = {builder.value({'S': texts[0]})}"
    if not operator:
        return text
    name = builder.name(sort)
    values = [builder.value({"S": each}) for each in texts[1:]]
    if operator in ("begins_with", "between"):
        return f"{text} AND {name} BETWEEN {values[0]} AND {values[1]}"
    return f"{text} AND {name} {operator} {values[0]}"


def _expressions(projection: tuple[str, ...], filtered: Plan | None, builder: ExpressionBuilder) -> dict[str, str]:
    """Add the filter of a query or scan, and its projection."""
    text = ""
    if filtered is not None:
        condition = sent_filter(filtered) if filtered.query.layout.reaches else filtered.filter
        text = compile_condition(condition, filtered.layout, builder)
    return {**({"FilterExpression": text} if text else {}), **_projection(projection, builder), **builder.params()}


def _projection(projection: tuple[str, ...], builder: ExpressionBuilder | None = None) -> dict[str, str]:
    """Add the projection of each item; with separate placeholders for a request without another expression."""
    if not projection:
        return {}
    if builder is not None:
        return {"ProjectionExpression": ", ".join(map(builder.name, projection))}
    alone = ExpressionBuilder()
    return {**_projection(projection, alone), **alone.params()}


def _conditional(condition: Condition, builder: ExpressionBuilder) -> dict[str, object]:
    text = compile_condition(condition, None, builder)
    params = {"ConditionExpression": text, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"} if text else {}
    return {**params, **builder.params()}


def _put(action: Put) -> dict[str, object]:
    size = action.size
    if size > MAX_ITEM_SIZE:
        raise ItemTooLarge(
            f"The item {key_text(None, action.key)} has {size} bytes; DynamoDB stores at most "
            f"{MAX_ITEM_SIZE}. Nothing was written. Store large contents elsewhere and keep a reference, or "
            "divide them among several items."
        )
    is_new = action.condition is ITEM_MISSING
    conditional = _of_a_new_item() if is_new else _conditional(action.condition, ExpressionBuilder())
    return {"Item": action.item, **conditional}


@cache
def _of_a_new_item() -> dict[str, object]:
    """The parameters for putting a new item, the usual case."""
    return _conditional(ITEM_MISSING, ExpressionBuilder())


def _keyed(action: Delete | Check) -> dict[str, object]:
    return {"Key": item_key(action.key), **_conditional(action.condition, ExpressionBuilder())}


#: The operators of the conditions that an item is as it was read.
_USUAL = frozenset({"=", "exists", "missing"})
_NO_VALUE = {"NULL": True}


def _update(action: Update) -> dict[str, object]:
    """Write an update by the text that it shares with updates of the same names, if it has one."""
    if action.add or action.discard or action.changes:
        return _whole_update(action)
    terms, values = [], [*action.set.values()]
    for term in action.condition.children if type(action.condition) is And else (action.condition,):
        if type(term) is not Stored or term.path or term.operator not in _USUAL:
            return _whole_update(action)
        terms.append((term.name, term.operator))
        values += term.operands
    text = _shared_update((*action.set,), action.remove, (*terms,))
    if text is None:
        return _whole_update(action)
    params = {"Key": item_key(action.key), **text.params}
    if values:
        params[_VALUES] = dict(zip(text.placeholders, values, strict=True))
    return params


class _UpdateText(Struct, frozen=True):
    """The parameters of an update that depend on its names only, and the placeholders of its values in their order."""

    params: dict[str, object]
    placeholders: tuple[str, ...]


@lru_cache(maxsize=512)
def _shared_update(
    put: tuple[str, ...], removed: tuple[str, ...], terms: tuple[tuple[str, str], ...]
) -> _UpdateText | None:
    """Write an update of names under conditions; return ``None`` if it is too long or changes nothing."""
    conditions = tuple(Stored(name, operator, (_NO_VALUE,) if operator == "=" else ()) for name, operator in terms)
    try:
        params = _whole_update(Update(("", ""), dict.fromkeys(put, _NO_VALUE), removed, condition=And(conditions)))
    except NotSupported:
        return None
    values: Any = params.pop(_VALUES, {})
    return _UpdateText({name: each for name, each in params.items() if name != "Key"}, (*values,))


def _whole_update(action: Update) -> dict[str, object]:
    builder = ExpressionBuilder()
    clauses = {
        "SET": [f"{builder.name(name)} = {builder.value(value)}" for name, value in action.set.items()],
        "REMOVE": [builder.name(name) for name in action.remove],
        "ADD": [f"{builder.name(name)} {builder.value(value)}" for name, value in action.add.items()],
        "DELETE": [f"{builder.name(name)} {builder.value(value)}" for name, value in action.discard.items()],
    }
    for change in action.changes:
        keyword, part = compile_change(change, builder)
        clauses[keyword].append(part)
    text = " ".join(f"{keyword} {', '.join(parts)}" for keyword, parts in clauses.items() if parts)
    if not text:
        # DynamoDB would make an empty item, or refuse the whole transaction.
        raise NotSupported(f"The update of {key_text(None, action.key)} does not change the item; remove it.")
    parts = sum(map(len, clauses.values()))
    if len(text) > MAX_EXPRESSION or parts > MAX_OPERATORS:
        raise ExpressionTooLong(
            f"The update of {key_text(None, action.key)} changes {parts} places, an expression of "
            f"{len(text)} bytes; DynamoDB takes {MAX_EXPRESSION} bytes and {MAX_OPERATORS} operators ({LIMITS}). Write "
            "fewer attributes at once."
        )
    return {"Key": item_key(action.key), "UpdateExpression": text, **_conditional(action.condition, builder)}


def fits(action: Update) -> bool:
    """Return whether an update's expressions are within DynamoDB's limits."""
    try:
        _update(action)
    except ExpressionTooLong:
        return False
    return True


def _entry(action: Action, table_name: str) -> dict[str, object]:
    table = {"TableName": table_name}
    if isinstance(action, Put):
        return {"Put": {**table, **_put(action)}}
    if isinstance(action, Update):
        return {"Update": {**table, **_update(action)}}
    name = "Delete" if isinstance(action, Delete) else "ConditionCheck"
    return {name: {**table, **_keyed(action)}}
