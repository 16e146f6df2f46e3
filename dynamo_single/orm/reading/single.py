"""Single items: by whole primary keys, and by the claims on unique values that name their keys.

This module depends on the table and its responses, but not on models.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from msgspec.structs import replace

from dynamo_single import clock
from dynamo_single.exceptions import NotSupported, UnexpectedItem
from dynamo_single.orm.conditions.lowering import lower
from dynamo_single.orm.conditions.matching import matches
from dynamo_single.orm.conditions.terms import EVERYTHING
from dynamo_single.orm.plan.plan import PartialItem, Plan, PlanKind
from dynamo_single.orm.reading.current_names import following_table, with_both_names
from dynamo_single.orm.requests import atomic_block
from dynamo_single.orm.requests.actions import ItemKey, key_of
from dynamo_single.orm.requests.compiler import compile_batches, compile_plan, compile_reads, item_key
from dynamo_single.table import masking, names
from dynamo_single.table.answers import ResponseDecoder
from dynamo_single.table.batches import RemainingItems, get_batches, get_responses
from dynamo_single.table.flow import Pages
from dynamo_single.table.request import MAX_ACTIONS, MAX_BATCH_KEYS, NewItem, Request, Response
from dynamo_single.table.request import Item as StoredItem
from dynamo_single.table.shown_keys import key_text
from dynamo_single.table.table import Table

Item = NewItem


def projected_items(plan: Plan, found: Sequence[Item]) -> Sequence[Item]:
    """Return the items of a plan's responses: whole, or only the attributes of its projection."""
    twins = plan.layout.twins
    if twins:
        found = [with_both_names(item, twins) for item in found]
    if not plan.projection:
        return found
    read = frozenset((*plan.projection, *(twin.other for twin in twins if twin.used in plan.projection)))
    return [PartialItem(item, read) for item in found]


async def item_of_key_plan(table: Table, plan: Plan) -> list[Item]:
    """Return the item of a plan with one complete primary key, if there is a matching one."""
    item: Item | None = None
    if atomic_block.current() is not None:
        item = atomic_block.pending_put(table.settings.alias, plan.keys)
        if item is None:
            atomic_block.check_plan(table.settings.alias, plan)
    if item is None:
        (request,) = compile_plan(plan)
        item = (await following_table(table, plan).ask(request)).get("Item")
    return [item] if item is not None and matches(plan.filter, item, plan.layout) else []


async def items_of_keys_plan(
    table: Table,
    plan: Plan,
    stop: int | None,
    form: ResponseDecoder | None = None,
    found_in: Callable[[Response], Mapping[ItemKey, Any]] | None = None,
) -> Pages[Any]:
    """Yield the items of a plan of complete primary keys, in the order of the keys: a page for each hundred.

    With a ``form``, by which items are decoded, it yields what ``found_in()`` makes of each response; the plan has no
    filter then.
    """
    table, requests = following_table(table, plan), compile_plan(plan, table_name=table.name)
    wanted, condition = RemainingItems(stop), lower(plan.filter, plan.layout)
    unread = iter(requests)
    async with aclosing(get_responses(table, requests, wanted, form)) as batches:
        async for responses in batches:
            found: dict[ItemKey, Any] = {}
            for response in responses:
                found |= found_in(response) if found_in else _by_key(response["Responses"].get(table.name, ()))
            keys = map(key_of, next(unread).params["RequestItems"][table.name]["Keys"])
            page = [found[key] for key in keys if key in found]
            if condition != EVERYTHING:
                page = [item for item in page if matches(condition, item)]
            wanted.took(len(page))
            yield page


def _by_key(items: Iterable[Item]) -> dict[ItemKey, Item]:
    return {key_of(item): item for item in items}


async def items_of_claims_plan(table: Table, plan: Plan) -> Pages[Item]:
    """The items that hold some claims and match, in the order of the claims: a page for each hundred.

    An item that holds several of them appears once, in the position of the first.
    """
    condition = lower(plan.filter, plan.layout)
    given: set[ItemKey] = set()
    for start in range(0, len(plan.keys), MAX_BATCH_KEYS):
        keys = plan.keys[start : start + MAX_BATCH_KEYS]
        held = await _holders(table, replace(plan, keys=keys))
        found = {key_of(held[key]): held[key] for key in keys if key in held}
        yield [item for key, item in found.items() if key not in given and matches(condition, item)]
        given.update(found)


async def items_by_plan_key(table: Table, plan: Plan) -> dict[ItemKey, Item]:
    """The matching items by the plan's own keys, at most a hundred: whole primary keys, or claims."""
    if plan.kind == "claim":
        condition = lower(plan.filter, plan.layout)
        held = await _holders(table, plan)
        return {key: item for key, item in held.items() if matches(condition, item)}
    return _by_key(await items_by_primary_key(table, plan))


def plan_key_of(plan: Plan, item: StoredItem) -> ItemKey | None:
    """Return the key by which a plan of keys returns an item: its own, or that of the first of its claims."""
    if plan.lookup is None:
        return key_of(item)
    held = [key for key in plan.lookup.claim_keys(item) if key in plan.keys]
    return min(held, key=plan.keys.index) if len(held) > 1 else next(iter(held), None)


async def _holders(table: Table, plan: Plan) -> dict[ItemKey, Item]:
    """The items that hold some claims, by these: a consistent GetItem, or BatchGetItem, of claims and one of items.

    The two reads are sequential. If the item does not hold the claim, another process may have taken or released it in
    between, so it reads both again. If they do not fit together then, it raises ``UnexpectedItem``.
    """
    found: dict[ItemKey, Item] = {}
    left: Sequence[ItemKey] = plan.keys
    for _ in range(2):
        claims = await get_items(table, left)
        owners = {key: owner_of(claim) for key, claim in claims.items() if not has_expired(claim)}
        items = await _items_of(table, plan, owners.values())
        for key, owner in owners.items():
            if owner in items and plan.lookup is not None and key in plan.lookup.claim_keys(items[owner]):
                found[key] = items[owner]
        left = [key for key in owners if key not in found]
        if not left:
            return found
    key, name, alias = left[0], plan.lookup.name if plan.lookup else "", plan.layout.alias
    claim, _ = masking.shown_key(alias, *key)
    raise UnexpectedItem(
        f"{plan.layout.label}: the claim on {name} {claim!r} names the object "
        f"{key_text(alias, owners[key])}, which does not hold it. manage.py dynamo_verify reports such claims, "
        "and dynamo_rebuild repairs them."
    )


async def _items_of(table: Table, plan: Plan, owners: Iterable[ItemKey]) -> dict[ItemKey, Item]:
    keys = tuple(dict.fromkeys(owners))
    if not keys:
        return {}
    kind: PlanKind = "get" if len(keys) == 1 else "batch_get"
    consistent = replace(plan.query, consistent=True)
    whole = replace(plan, kind=kind, query=consistent, keys=keys, filter=EVERYTHING, lookup=None)
    return _by_key(await items_by_primary_key(table, whole))


def owner_of(claim: StoredItem) -> ItemKey:
    """Return the key of the item that owns a stored claim; raise ``UnexpectedItem`` if the claim does not contain
    it."""
    try:
        return claim[names.CLAIM_OWNER_PARTITION]["S"], claim[names.CLAIM_OWNER_SORT]["S"]
    except KeyError as error:
        raise UnexpectedItem(
            "A claim on a unique value is damaged: it does not name the object that holds it. Run manage.py "
            "dynamo_verify to find the claim, and dynamo_rebuild to repair it."
        ) from error


def has_expired(item: StoredItem) -> bool:
    """Return whether an item is past its time to live, although DynamoDB still stores it."""
    expires = item.get(names.EXPIRES_AT, {}).get("N")
    return expires is not None and float(expires) <= clock.timestamp()


async def items_by_primary_key(table: Table, plan: Plan) -> Sequence[Item]:
    """Yield the items of a plan with complete primary keys, at most a hundred for each request."""
    if plan.kind == "get":
        return projected_items(plan, await item_of_key_plan(table, plan))
    atomic_block.check_plan(table.settings.alias, plan)
    return projected_items(plan, [item async for page in items_of_keys_plan(table, plan, None) for item in page])


async def transactional_items(table: Table, plans: Sequence[Plan]) -> list[list[Item]]:
    """Return the items of plans with complete primary keys at one time, by one TransactGetItems; retry on a
    conflict."""
    for plan in plans:
        atomic_block.check_plan(table.settings.alias, plan)
    keys = list(dict.fromkeys(key for plan in plans for key in plan.keys))
    if len(keys) > MAX_ACTIONS:
        raise NotSupported(f"Cannot read {len(keys)} items in one request: DynamoDB allows {MAX_ACTIONS}.")
    answers = (await table.ask_patiently(compile_reads(keys, table.name)))["Responses"] if keys else []
    found = {key: answer["Item"] for key, answer in zip(keys, answers, strict=True) if answer.get("Item")}
    return [
        [found[key] for key in plan.keys if key in found and matches(plan.filter, found[key], plan.layout)]
        for plan in plans
    ]


async def get_item(table: Table, key: tuple[str, str]) -> Item | None:
    """Read one item by its key, strongly consistent: one GetItem."""
    atomic_block.check_keys(table.settings.alias, [key])
    return await stored_item(table, key)


async def stored_item(table: Table, key: tuple[str, str]) -> Item | None:
    """Read the same, regardless of a block's pending writes to the item."""
    answer = await table.ask(Request("GetItem", {"Key": item_key(key), "ConsistentRead": True}))
    item: Item | None = answer.get("Item")
    return item


async def get_items(table: Table, keys: Collection[ItemKey]) -> dict[ItemKey, Item]:
    """The items that are there under some keys, strongly consistent: one GetItem, or a BatchGetItem for each 100."""
    wanted = list(dict.fromkeys(keys))
    atomic_block.check_keys(table.settings.alias, wanted)
    return await stored_items(table, wanted)


async def stored_items(table: Table, wanted: Sequence[ItemKey]) -> dict[ItemKey, Item]:
    """Read the same for distinct keys, regardless of a block's pending writes."""
    if len(wanted) == 1:
        item = await stored_item(table, wanted[0])
        return {} if item is None else {wanted[0]: item}
    async with aclosing(get_batches(table, compile_batches(wanted, table.name), RemainingItems(None))) as batches:
        return {key_of(item): item async for batch in batches for item in batch}
