"""Read the steps of a queryset over relations, and replace its conditions by their keys.

The number of keys that all steps hold is bounded, together with the matches of the queryset itself. This module sends
requests.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, NoReturn

from django.db.models import Q
from msgspec.structs import replace

from dynamo_single.exceptions import NoAccessPattern, NotSupported
from dynamo_single.orm.reading.limits import ObjectSteps, Steps
from dynamo_single.orm.relations import filters
from dynamo_single.orm.relations.filters import in_steps
from dynamo_single.orm.results.state import DEFAULT_LIMIT, Asked

#: Reads the values of a queryset, given the name of the condition that it is in.
ValuesReader = Callable[[str, Any], Awaitable[list[Any]]]
#: Replaces each queryset in a condition by its values.
ConditionReader = Callable[[Q, ValuesReader], Awaitable[Q]]


def is_bounded(queryset: Any) -> bool:
    """Return whether the caller has set a bound: by ``allow_in_memory()``, or by a slice."""
    asked = queryset._asked
    return asked.in_memory is not None or asked.steps is not None or queryset.query.high_mark is not None


def source(asked: Asked, steps: Steps, model: Any) -> Any:
    """Return the queryset of a step: the live objects, read as the queryset that the step belongs to."""
    queryset = model._base_manager.order_by()
    inner = replace(
        queryset._asked,
        visibility="live",
        in_memory=steps.limit,
        in_memory_bytes=asked.in_memory_bytes,
        steps=steps,
        consistent=asked.consistent,
        allow_scan=asked.allow_scan,
        allow_reads=asked.allow_reads,
        no_secrets=asked.no_secrets,
    )
    return queryset._asking(inner)


def checked(queryset: Any, condition: Any, *, is_negated: bool) -> Any:
    """Return a condition in steps, to check its names and values. Sends no requests."""
    asked = queryset._asked
    return in_steps(queryset.model, condition, partial(source, asked, Steps(DEFAULT_LIMIT)), is_negated=is_negated)


async def narrowed(
    queryset: Any, read_all: ConditionReader, read: ValuesReader, objects: Sequence[Any] | None = None
) -> Any:
    """Return the queryset with the keys of its steps as conditions.

    ``read`` reads the keys of a queryset, and ``read_all`` replaces each queryset in a condition by its keys. Sends
    the requests of each step. Raises ``NotSupported`` without a bound, and ``TooManyMatches`` above it.

    With ``objects``, the conditions hold for these objects only. The steps begin at them: a BatchGetItem for each
    hundred references, and for each object a Query of one match in a relation to several.
    """
    asked = queryset._asked
    if not is_bounded(queryset):
        _refuse(queryset)
    kind = Steps if objects is None else ObjectSteps
    steps = asked.steps or kind(asked.in_memory or DEFAULT_LIMIT)
    result = queryset._asking(replace(asked, inside=(), steps=steps))
    steps.has_several |= any(filters.leads_to_several(queryset.model, each) for _, each in asked.inside)
    values = partial(_values, result, read, objects)
    for is_negated, condition in asked.inside:
        found = in_steps(queryset.model, condition, partial(source, asked, steps), is_negated=is_negated)
        found = await read_all(found, values)
        result.query.add_q(~found if is_negated else found)
    if asked.in_memory is not None:
        result._asked = replace(result._asked, in_memory=steps.left)
    return result


async def _values(outer: Any, read: ValuesReader, objects: Sequence[Any] | None, name: str, queryset: Any) -> list[Any]:
    """Return the keys of a step; if no key supports it, the possible keys of the outer objects are read first."""
    steps = queryset._asked.steps
    if steps is None and outer._asked.in_memory is not None:
        # A queryset of the caller's after __in, which shares the limit.
        shared = replace(queryset._asked, steps=outer._asked.steps, in_memory_bytes=outer._asked.in_memory_bytes)
        return await read(name, queryset._asking(shared))
    if steps is None or not steps.starts_at_objects:
        try:
            return await read(name, queryset)
        except NoAccessPattern:
            if steps is None:
                raise
    near = name.removesuffix("__in")
    if objects is None:
        whole = outer._chain()
        whole.query.clear_limits()
        known = await read(name, whole.order_by().values_list(near, flat=True))
    else:
        known = [key for key in dict.fromkeys(getattr(each, near) for each in objects) if key is not None]
    (column,) = queryset._asked.columns.names
    if column == "pk" or not steps.starts_at_objects:
        return await read(name, queryset.filter(**{f"{column}__in": known}))
    # Whether there is a match is enough: one object may have any number of them.
    return [key for each in known for key in await read(name, queryset.filter(**{column: each})[:1])]


def _refuse(queryset: Any) -> NoReturn:
    """Raise the error of Django's own query, which names the steps as queries."""
    plain = queryset._asking(replace(queryset._asked, inside=()))
    why = f"{queryset.model._meta.label} cannot be filtered by related objects: DynamoDB has no joins."
    try:
        for is_negated, condition in queryset._asked.inside:
            plain._add_as_django(~condition if is_negated else condition)
        plain._plan()
    except NotSupported as error:
        why = str(error)
    raise NotSupported(f"{why} Or call .allow_in_memory(limit={DEFAULT_LIMIT}), which reads the related objects first.")
