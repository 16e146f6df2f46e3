"""The asynchronous read methods of a queryset: awaited in the event loop if a project does not override them.

If a project's class overrides the synchronous method, the asynchronous method runs it in a thread, as Django does.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from asgiref.sync import sync_to_async
from django.db import models
from msgspec.structs import replace

from dynamo_single.lazy_modules import LazyModule
from dynamo_single.orm.query import get, iterate
from dynamo_single.orm.query.base import open_pages
from dynamo_single.orm.query.state import related_reads_of
from dynamo_single.orm.query.write_methods import WritingQuerySet
from dynamo_single.orm.results.state import WHOLE
from dynamo_single.orm.schema.types import M, are_plain
from dynamo_single.orm.where.lookups import membership_values
from dynamo_single.table.flow import call_sync, run
from dynamo_single.table.redirects import capture_requests

if TYPE_CHECKING:
    from dynamo_single.orm.expressions import interpreter
    from dynamo_single.orm.query import annotate
    from dynamo_single.orm.relations import joined_rows
    from dynamo_single.orm.results import async_rerun, pages
    from dynamo_single.orm.results.pages import Page
else:
    annotate = LazyModule("dynamo_single.orm.query.annotate")
    async_rerun = LazyModule("dynamo_single.orm.results.async_rerun")
    interpreter = LazyModule("dynamo_single.orm.expressions.interpreter")
    joined_rows = LazyModule("dynamo_single.orm.relations.joined_rows")
    pages = LazyModule("dynamo_single.orm.results.pages")


class AsyncQuerySet(WritingQuerySet[M]):
    """The asynchronous read methods."""

    def __aiter__(self) -> AsyncIterator[M]:
        """The results, which are read with the first of them and kept."""

        async def results() -> AsyncIterator[M]:
            for each in await self._read():
                yield each

        return results()

    async def aiterator(self, chunk_size: int = iterate.CHUNK_SIZE) -> AsyncIterator[M]:
        """Return the objects page by page without caching; read related objects for ``chunk_size`` objects at a time.

        Without related objects, each page is requested with its first object. If a project's code runs in a thread, it
        reads at most one page ahead.
        """
        related_reads = related_reads_of(self)
        if self._is_native():
            found = iterate.aread_related(
                open_pages(await self._state(), self._iterable_class), related_reads, chunk_size
            )
        else:
            found = iterate.aiterate(self._iterable_class(self), related_reads, chunk_size)
        async with aclosing(found):
            async for each in found:
                yield each

    async def aget(self, *args: object, **kwargs: object) -> M:
        """``get()``, awaited."""
        return await self._got(args, kwargs) if self._is_native() else await super().aget(*args, **kwargs)

    async def _got(self, args: Any, kwargs: Any) -> M:
        key = get.key_of_one(self, kwargs) if kwargs and not args else None
        found = await (self._two(args, kwargs)._read() if key is None else get.one(self, key))
        return self._only(found, args, kwargs)

    async def _one(self, asked: Mapping[str, object]) -> M:
        """``get()`` for a coroutine."""
        return await (self._got((), asked) if self._is_native() else call_sync(partial(self.get, **asked)))

    async def ain_bulk(self, id_list: Any = None, *, field_name: str = "pk") -> dict[Any, M]:
        """``in_bulk()``, awaited."""
        if not self._is_native() or self._asked.columns is not None:
            return await sync_to_async(self.in_bulk)(id_list, field_name=field_name)
        self._check_bulk(field_name)
        if id_list is not None:
            id_list = membership_values(field_name, id_list)
            keys = get.keys_of_several(self, id_list) if field_name == "pk" else None
            if keys is not None:
                return await get.by_pk(self, keys)
        in_bulk = partial(models.QuerySet.in_bulk, self._in_any_order(id_list), id_list, field_name=field_name)
        found: dict[Any, M] = await async_rerun.rerun(in_bulk)
        return found

    async def acount(self) -> int:
        """``count()``, awaited."""
        return await self._counted() if self._is_native() else await super().acount()

    async def aexists(self) -> bool:
        """``exists()``, awaited."""
        return await self._found_any() if self._is_native() else await super().aexists()

    async def acontains(self, obj: Any) -> bool:
        """``contains()``, awaited."""
        if not self._is_native() or not are_plain(type(self), ("contains",)):
            return await super().acontains(obj)
        # The checks that Django makes first.
        checked = self._chain()
        checked._result_cache = [obj] if self._result_cache is None else self._result_cache
        found = models.QuerySet.contains(checked, obj)
        return found if self._result_cache is not None else found and await self.filter(pk=obj.pk)._found_any()

    async def afirst(self) -> M | None:
        """``first()``, awaited."""
        return await _first_of(self) if self._is_native() else await super().afirst()

    async def alast(self) -> M | None:
        """``last()``, awaited."""
        return await _first_of(self.reverse()) if self._is_native() else await super().alast()

    async def aearliest(self, *fields: Any) -> M:
        """``earliest()``, awaited."""
        if not self._is_native() or not are_plain(type(self), ("earliest",)):
            return await super().aearliest(*fields)
        return self._one_of(await _first_of(self._outermost(fields, first=True)))

    async def alatest(self, *fields: Any) -> M:
        """``latest()``, awaited."""
        if not self._is_native() or not are_plain(type(self), ("latest",)):
            return await super().alatest(*fields)
        return self._one_of(await _first_of(self._outermost(fields, first=False)))

    async def aaggregate(self, *args: object, **kwargs: object) -> dict[str, Any]:
        """``aggregate()``, awaited."""
        if not self._is_native() or not are_plain(type(self), ("aggregate",)):
            return await super().aaggregate(*args, **kwargs)
        return await annotate.aggregate(self, args, kwargs)

    async def apage(self, size: int, cursor: str | None = None, *, max_requests: int | None = None) -> Page[M]:
        """``page()``, awaited."""
        if not self._is_native():
            return await sync_to_async(self.page)(size, cursor, max_requests=max_requests)
        return await self._paged(size, cursor, max_requests)

    async def _paged(self, size: int, cursor: str | None, max_requests: int | None) -> Page[M]:
        pages.check_size(size, max_requests)
        with capture_requests() as sent:
            state, made = await self._state(), None
            if state.interpretation is not None:
                interpreter.check_by_itself(state, "page()")
                # The results need more attributes than only() names.
                state = replace(state, loading=WHOLE)
                made = partial(interpreter.results_of, state)
            elif state.asked.columns is not None and state.asked.columns.paths:
                made = partial(joined_rows.rows_of, state)
            page = await pages.page(state, size, cursor, max_requests, made)
        return pages.with_costs(page, sent)

    def page(self, size: int, cursor: str | None = None, *, max_requests: int | None = None) -> Page[M]:
        """The first objects, or those from a cursor on: as many as ``size``, whatever the conditions leave out.

        Without a filter, one request reads a page. Otherwise it reads until one object more than ``size`` matches, the
        end is reached, or ``max_requests`` were sent. A cursor of another query raises ``InvalidCursor``.
        """
        return run(self._paged(size, cursor, max_requests))

    def _two(self, args: object, kwargs: object) -> Any:
        """Return the queryset of a single object, with a limit of two to detect a second match."""
        raise NotImplementedError

    def _only(self, found: list[M], args: object, kwargs: object) -> M:
        """Return the single object."""
        raise NotImplementedError

    def _in_any_order(self, id_list: object) -> Self:
        """The queryset that gives some objects, in any order."""
        raise NotImplementedError

    def _outermost(self, fields: object, *, first: bool) -> Self:
        """The queryset whose first object is the earliest, or the latest."""
        raise NotImplementedError

    def _one_of(self, found: M | None) -> M:
        """An object that was found, if one was."""
        raise NotImplementedError

    def _check_bulk(self, field_name: str) -> None:
        self._refuse_secrets((field_name,))
        computed = self._asked.computation
        if (computed is not None and computed.makes_rows) or self._asked.row_shape is not None:
            raise TypeError("in_bulk() cannot be used with computed rows of values() or values_list().")


async def _first_of(queryset: Any) -> Any:
    found = queryset[:1]
    # A slice of loaded results is a list.
    return next(iter(found if isinstance(found, list) else await found._read()), None)
