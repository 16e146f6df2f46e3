"""``update()`` with expressions that DynamoDB cannot compute, and with conditions that it cannot evaluate.

Each object is read, computed in Python, and written on the condition that the values that were read are unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.models import Model, Q
from msgspec.structs import replace

from dynamo_single.exceptions import NotSupported, StaleObject
from dynamo_single.orm.expressions import interpreter
from dynamo_single.orm.expressions.plain_columns import columns_in
from dynamo_single.orm.expressions.scope import Scope, value_of
from dynamo_single.orm.query import interpreted
from dynamo_single.orm.requests.atomic_block import Block
from dynamo_single.orm.results import objects
from dynamo_single.orm.results.state import Asked, QueryState

#: How often an object is read and computed again because another process changed it.
ATTEMPTS = 5


async def update(
    queryset: Any, given: Mapping[str, object], pending: Block | None, refusal: NotSupported | None = None
) -> int:
    """Return the number of updated objects: one read of all, then one conditional update for each, sequentially.

    An object that changes in between is read and computed again, up to ``ATTEMPTS`` times; then it raises
    ``StaleObject``. Raises ``refusal`` for values that cannot be computed in memory.
    """
    aliases = {f"computed_{name}": each for name, each in given.items() if hasattr(each, "resolve_expression")}
    found = interpreted.annotate(queryset, (), aliases, select=True, refusal=refusal)
    plain = {name: each for name, each in given.items() if f"computed_{name}" not in aliases}
    return await _updated(found, plain, tuple(aliases), pending, ATTEMPTS)


async def _updated(
    found: Any, plain: Mapping[str, object], aliases: tuple[str, ...], pending: Block | None, attempts: int
) -> int:
    state = await found._state()
    if state.is_empty:
        return 0
    if state.interpretation.is_grouped or state.interpretation.shape is not None:
        raise NotSupported("Cannot update rows of values(). Nothing was written. Call update() on the objects.")
    written = 0
    for scope in await interpreter.held(state, "update() with expressions"):
        obj = objects.instance(state, scope.row[scope.statement.base] or {})
        target = found.__class__(model=found.model, using=found.db)
        target._asked = replace(Asked(), visibility=state.asked.visibility)
        values = {**plain, **{alias.removeprefix("computed_"): scope.known[alias] for alias in aliases}}
        changed = await target.filter(_unchanged(state, scope, obj))._updated(values, pending)
        if not changed:
            changed = await _again(found.filter(pk=obj.pk), obj, plain, aliases, pending, attempts, written)
        written += changed
    return written


async def _again(
    found: Any,
    obj: Model,
    plain: Mapping[str, object],
    aliases: tuple[str, ...],
    pending: Block | None,
    attempts: int,
    written: int,
) -> int:
    if not attempts:
        raise StaleObject(
            f"Cannot update {obj._meta.label} {obj.pk!r}: other processes changed it {ATTEMPTS} times while the "
            f"app computed its new values. The app wrote {written} objects, but not this object. Call update() "
            "again."
        )
    return await _updated(found, plain, aliases, pending, attempts - 1)


def _unchanged(state: QueryState, scope: Scope, obj: Model) -> Q:
    """Return the condition that an object still has every value that decided what is written."""
    query = state.interpretation.query
    columns = {
        each.target.attname: each for part in (*query.annotations.values(), query.where) for each in columns_in(part)
    }
    condition = Q(pk=obj.pk)
    for name, column in columns.items():
        if name in ("pk", obj._meta.pk.attname, *state.layout.identity):
            continue
        value = value_of(scope, column)
        condition &= Q(**({f"{name}__isnull": True} if value is None else {name: value}))
    return condition
