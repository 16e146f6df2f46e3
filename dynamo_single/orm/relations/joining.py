"""Join in memory: the rows of Django's query, with the related objects of each alias, read by keys.

A row contains an item for each alias, as SQL's ``FROM`` does. Inner joins leave out rows without a related object, and
left joins keep them. Each model is read once for each join, for all rows together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any

from django.db.models.sql.constants import LOUTER
from msgspec import Struct

from dynamo_single.exceptions import NoAccessPattern, NotSupported, TooManyMatches
from dynamo_single.orm.conditions.terms import EVERYTHING, Condition
from dynamo_single.orm.conditions.wording import COMPUTE_IN_PYTHON
from dynamo_single.orm.items import decode
from dynamo_single.orm.items.decode import Item
from dynamo_single.orm.items.readers import value_reader
from dynamo_single.orm.reading.limits import Steps
from dynamo_single.orm.relations import steps
from dynamo_single.orm.results import objects
from dynamo_single.orm.results.state import DEFAULT_LIMIT, QueryState
from dynamo_single.orm.schema import registry
from dynamo_single.orm.schema.fields.base import IdentityField
from dynamo_single.orm.schema.identities import example_value_of

#: The items of a row by alias; ``None`` if a left join finds no object.
Row = Mapping[str, Item | None]
#: Returns the queryset of a model's live objects.
Source = Callable[[Any], Any]


def joins_of(query: Any) -> list[tuple[str, Any]]:
    """Return the joins that a query uses, by alias, each after its parent; the base table is none."""
    used = query.alias_map.items()
    return [(alias, join) for alias, join in used if join.parent_alias is not None and query.alias_refcount[alias]]


class StepRead(Struct, frozen=True):
    """The objects of a step, for ``explain()``: what they are for, and a queryset with an example of their keys."""

    words: str
    queryset: Any
    where: Condition = EVERYTHING


def reads_of(state: QueryState) -> Iterator[StepRead]:
    """Yield the reads of the joins of Django's query. Sends no requests."""
    source = partial(steps.source, state.asked, Steps(DEFAULT_LIMIT))
    for _, join in joins_of(state.interpretation.query):
        ((_, far),) = join.join_fields
        words = f"joins {far.model._meta.label} by {far.name} in the values of all matches"
        yield StepRead(words, with_example(_chosen(source, join, far.model), far))


def with_example(queryset: Any, field: Any) -> Any:
    """Return the queryset with a condition on a field, for a plan that does not depend on the value."""
    attributes = [registry.attributes_of(field.model)[name] for name in getattr(field, "names", (field.attname,))]
    values = {each.name: example_value_of(each) for each in attributes}
    return queryset.filter(**{f"{name}__in": [value] for name, value in values.items()})


def check(query: Any) -> None:
    """Raise ``NotSupported`` for joins other than references, reverse, generic and many-to-many relations."""
    for alias, join in joins_of(query):
        restricted = (
            not _conditions(join) and join.join_field.get_extra_restriction(alias, join.parent_alias) is not None
        )
        fields: tuple[Any, ...] = join.join_fields or ()
        if restricted or join.filtered_relation is not None or len(fields) != 1:
            raise NotSupported(
                f"{query.model._meta.label}: the app does not join FilteredRelation() and generic relations from their "
                f"other side. Filter by the relation, or {COMPUTE_IN_PYTHON}."
            )
        if not hasattr(fields[0][1].model, "_stored"):
            raise NotSupported(
                f"{query.model._meta.label}: {fields[0][1].model._meta.label} is stored in an SQL database, and is not "
                f"joined. Query it by itself, and {COMPUTE_IN_PYTHON}."
            )


def _conditions(join: Any) -> dict[str, object]:
    """Return the values that the objects of a join have besides its key: the content type of a generic relation."""
    field: Any = getattr(join.join_field, "field", None)  # Django joins by the other side of the relation
    if not hasattr(field, "object_id_field_name"):
        return {}
    return {field.content_type_field_name: field.get_content_type().pk}


def _chosen(source: Source, join: Any, model: Any) -> Any:
    """Return the queryset of the objects that a join can find."""
    return source(model).filter(**_conditions(join))


async def joined(query: Any, items: Iterable[Item], source: Source, budget: Steps) -> Sequence[Row]:
    """Return the rows of a query, given the items of its own model.

    Sends the requests of one queryset for each join. Raises ``TooManyMatches`` if related objects and rows are more
    than ``budget`` allows.
    """
    rows: list[dict[str, Item | None]] = [{query.get_initial_alias(): item} for item in items]
    for alias, join in joins_of(query):
        ((near, far),) = join.join_fields
        read = field_reader(near)
        keys = [None if (item := row[join.parent_alias]) is None else read(item) for row in rows]
        found = await related_items(far, keys, partial(_chosen, source, join), budget)
        none = (None,) if join.join_type == LOUTER else ()
        matches = [found.get(key) or none for key in keys]
        # Before they are made: two lists within the limit can have a product far beyond it.
        _check_rows(query, sum(map(len, matches)), budget)
        rows = [{**row, alias: item} for row, match in zip(rows, matches, strict=True) for item in match]
    return rows


def _check_rows(query: Any, number: int, budget: Steps) -> None:
    if number > budget.limit:
        raise TooManyMatches(
            f"{query.model._meta.label}: {number} rows of objects with their related objects are more than "
            f"allow_in_memory(limit={budget.limit}) allows. The query returns no partial result. Raise the limit: "
            ".allow_in_memory(limit=...).",
            limit=budget.limit,
        )


async def related_items(far: Any, keys: Iterable[Any], source: Source, budget: Steps) -> dict[Any, list[Item]]:
    """Return the items of a model by the value of its field ``far``, which is one of the keys."""
    wanted = list(dict.fromkeys(key for key in keys if key is not None))
    if not wanted:
        return {}
    name = "pk" if far.primary_key else far.attname
    queryset = source(far.model)
    chosen = queryset.filter(**{f"{name}__in": wanted})
    try:
        items = await matching_items((await chosen._state()).unordered(), budget.left + 1)
    except NoAccessPattern:
        # No key has the reference: all objects of the model are read, if a key lists them.
        chosen = queryset
        items = await matching_items((await chosen._state()).unordered(), budget.left + 1)
    budget.take(chosen, len(items))
    read, found = field_reader(far), dict[Any, list[Item]]()
    for item in items:
        found.setdefault(read(item), []).append(item)
    return found


async def matching_items(state: QueryState, most: int) -> list[Item]:
    """Return the items that a query matches, in any order and up to ``most``."""
    found: list[Item] = []
    if not state.is_empty:
        async with aclosing(objects.matches(state, objects.plan_of_matches(state), None)) as pages:
            async for page in pages:
                found += page
                if len(found) >= most:
                    break
    for item in found:
        decode.check_type(state.model, item)
    return found[:most]


def field_reader(field: Any) -> Callable[[Item], Any]:
    """Return the function that reads a field's value from an item; a ``pk`` of several values is joined."""
    if not isinstance(field, IdentityField):
        return value_reader(field.model, field.attname)
    model: Any = field.model
    parts = [value_reader(model, name) for name in field.names]
    return lambda item: field.joined([read(item) for read in parts])
