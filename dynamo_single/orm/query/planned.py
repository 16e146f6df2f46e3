"""How Django's evaluation of a queryset comes to our reading: filtering, fetching, and what iterates over the results.

``state`` says what is asked, and ``results`` answers it, page by page. ``queryset`` has the public methods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from django.core.exceptions import FieldError
from django.db import models
from django.db.models.query import BaseIterable, ModelIterable
from msgspec.structs import replace

from dynamo_single.later import Later
from dynamo_single.orm.plan.plan import Plan
from dynamo_single.orm.query import inside, streaming
from dynamo_single.orm.query.state import StatefulQuerySet, along_of, state_of
from dynamo_single.orm.results import computation, objects, related
from dynamo_single.orm.schema.fields.fetching import default_mode
from dynamo_single.orm.schema.kinds import M
from dynamo_single.orm.where.arguments import check_lists, check_nesting, check_number, in_one_order, raise_unknown

if TYPE_CHECKING:
    from dynamo_single.orm.results import rows, together
else:
    rows = Later("dynamo_single.orm.results.rows")
    together = Later("dynamo_single.orm.results.together")


#: How the names of conditions end that take a list.
_TAKE_LISTS = ("__in", "__range")


class ObjectIterable(ModelIterable):  # type: ignore[type-arg]  # not generic at run time
    """Objects, with what they were annotated with."""

    queryset: StatefulQuerySet[Any]

    def __iter__(self) -> Iterator[Any]:
        return _lazily(_objects, self.queryset)


class RowIterable(BaseIterable):  # type: ignore[type-arg]  # not generic at run time
    """Rows: the attributes of each object, or what was computed."""

    queryset: StatefulQuerySet[Any]

    def __iter__(self) -> Iterator[Any]:
        return _lazily(_rows, self.queryset)


def _lazily(read: Callable[[StatefulQuerySet[Any]], Iterator[Any]], queryset: StatefulQuerySet[Any]) -> Iterator[Any]:
    """What is read of a queryset, which begins with the first result: an event loop may stand where this is called."""
    return chain.from_iterable(map(read, (queryset,)))


def _objects(queryset: StatefulQuerySet[Any]) -> Iterator[Any]:
    state = state_of(queryset)
    computed = state.asked.computation
    return objects.read(state) if computed is None else rows.annotated(state, computed)


def _rows(queryset: StatefulQuerySet[Any]) -> Iterator[Any]:
    state = state_of(queryset)
    return objects.read(state) if state.computation is None else rows.rows(state)


class PlannedQuerySet(StatefulQuerySet[M]):
    """A lazy description of what to read, which can be planned, copied and evaluated."""

    # Private to Django, and not iterable in its stubs.
    _iterable_class: Any
    _query: Any

    def __init__(self, model: Any = None, query: Any = None, using: str | None = None, hints: Any = None) -> None:
        super().__init__(model, query, using, hints)
        self._iterable_class = ObjectIterable
        self._fetch_mode = default_mode()

    def _filter_or_exclude_inplace(self, negate: bool, args: Any, kwargs: Any) -> None:
        conditions = (*args, *kwargs.items())
        if args or any(name.endswith(_TAKE_LISTS) for name in kwargs):
            check_nesting(args)
            check_lists(conditions)
            args = tuple(map(in_one_order, args))
            kwargs = dict(map(in_one_order, kwargs.items()))
        if self._asked.computation is not None:
            computation.check_conditions(self.model, self._asked.computation, conditions)
        if inside.is_given(conditions):
            self._ask_later(negate, models.Q(*args, **kwargs))
            return
        try:
            super()._filter_or_exclude_inplace(negate, args, kwargs)  # type: ignore[misc]  # Django's, private
        except FieldError as error:
            raise_unknown(self.model, error)
        # Django's property would carry out a manager's own condition first, which may be this very one.
        check_number(self._query.where.children)

    def _ask_later(self, negate: bool, condition: models.Q) -> None:
        """Keep a condition until its querysets are read; names that are wrong are reported now."""
        empty = inside.replaced(condition, partial(inside.check, self.model))
        self._chain()._filter_or_exclude_inplace(negate, (empty,), {})
        self._asked = replace(self._asked, inside=(*self._asked.inside, (negate, condition)))

    def _plan(self, *, ordered: bool = True) -> Plan:
        """The plan in the order of a key, or in any order."""
        return objects.plan_by_key(state_of(self), ordered=ordered)

    def _fetch_all(self) -> None:
        if self._result_cache is None:
            self._result_cache = list(self._iterable_class(self))
            along = along_of(self)
            if along:
                related.fetch(self._result_cache, along)
        super()._fetch_all()

    def _fetch_with(self, others: Sequence[StatefulQuerySet[Any]]) -> None:
        """Read the results of this queryset and others now if one Query reads several of them; else nothing is read."""
        querysets: tuple[StatefulQuerySet[Any], ...] = (self, *others)
        for queryset, found in zip(querysets, together.read(list(map(state_of, querysets))), strict=True):
            if found is not None:
                queryset._result_cache = found
                related.fetch(found, along_of(queryset))

    def _iterator(self, use_chunked_fetch: bool, chunk_size: int | None) -> Iterator[Any]:
        return streaming.iterate(self._iterable_class(self), along_of(self), chunk_size)
