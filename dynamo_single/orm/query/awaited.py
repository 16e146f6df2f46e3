"""The asynchronous twins of what a queryset reads: awaited in the event loop, where nothing of a project is passed by.

What a project's class overrides, computes after reading or asks by another queryset is Django's twin: the synchronous
method in a thread.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any

from asgiref.sync import sync_to_async

from dynamo_single.later import Later
from dynamo_single.orm.items import native
from dynamo_single.orm.query import by_key, streaming
from dynamo_single.orm.query.planned import ObjectIterable, RowIterable
from dynamo_single.orm.query.state import along_of, state_of
from dynamo_single.orm.query.writing import WritingQuerySet
from dynamo_single.orm.results import objects, related
from dynamo_single.orm.results.state import QueryState
from dynamo_single.orm.schema.kinds import M
from dynamo_single.orm.where.lookup import members
from dynamo_single.table.flow import local, run
from dynamo_single.table.listeners import capture_requests

if TYPE_CHECKING:
    from dynamo_single.orm.results import pages
    from dynamo_single.orm.results.pages import Page
else:
    pages = Later("dynamo_single.orm.results.pages")

#: The methods that a twin passes by.
_PASSED_BY = (*by_key.BETWEEN, "_to_evaluate", "get", "count", "exists", "first", "last", "reverse", "in_bulk", "page")


class AwaitedQuerySet(WritingQuerySet[M]):
    """The twins that read."""

    # Private to Django.
    _prefetch_done: bool

    def _is_native(self) -> bool:
        """Whether the loop may read by itself."""
        return (
            native.are_plain(type(self), _PASSED_BY)
            and native.makes_objects(self.model)
            and self._iterable_class in (ObjectIterable, RowIterable)
            and self._computation is None
            and not self._asked.inside
        )

    async def _known_state(self) -> QueryState:
        """What is asked, once it is known in which form the items are that it is planned for."""
        state = state_of(self)
        await objects.know(state)
        return state

    def __aiter__(self) -> AsyncIterator[M]:
        """The results, which are read with the first of them and kept."""

        async def results() -> AsyncIterator[M]:
            for each in await self._awaited():
                yield each

        return results()

    async def _awaited(self) -> list[M]:
        """All results, as they are kept."""
        if self._result_cache is None and self._is_native():
            self._result_cache = [each async for each in objects.aread(await self._known_state())]
            along = along_of(self)
            if along:
                await local(partial(related.fetch, self._result_cache, along))
        if self._result_cache is None or (self._prefetch_related_lookups and not self._prefetch_done):
            await sync_to_async(self._fetch_all)()
        return self._result_cache or []

    async def aiterator(self, chunk_size: int = streaming.CHUNK_SIZE) -> AsyncIterator[M]:
        """The objects page by page, nothing is kept; ``chunk_size`` bounds how many are read along with related ones.

        Without related objects a page is sent for with its first object, or where a project's code is called in a
        thread, at most one page ahead of what was taken.
        """
        along = along_of(self)
        if self._is_native():
            found = streaming.aread_along(objects.aread(await self._known_state()), along, chunk_size)
        else:
            found = streaming.aiterate(self._iterable_class(self), along, chunk_size)
        async with aclosing(found):
            async for each in found:
                yield each

    async def aget(self, *args: object, **kwargs: Any) -> M:
        """``get()``, awaited."""
        if not self._is_native():
            return await super().aget(*args, **kwargs)
        key = by_key.key_of_one(self, kwargs) if kwargs and not args else None
        found = await (self._two(args, kwargs)._awaited() if key is None else by_key.objects(self, (key,)))
        return self._only(found, args, kwargs)

    async def ain_bulk(self, id_list: Any = None, *, field_name: str = "pk") -> dict[Any, M]:
        """``in_bulk()``; by ``pk`` alone it is awaited, and otherwise done in a thread."""
        if id_list is not None and self._is_native():
            id_list = members(field_name, id_list)
            keys = by_key.keys_of_several(self, id_list) if field_name == "pk" else None
            if keys is not None:
                return await by_key.by_pk(self, keys)
        return await sync_to_async(self.in_bulk)(id_list, field_name=field_name)

    async def acount(self) -> int:
        """``count()``, awaited."""
        if not self._is_native():
            return await super().acount()
        if self._result_cache is not None:
            return len(self._result_cache)
        return await objects.count(await self._known_state())

    async def aexists(self) -> bool:
        """``exists()``, awaited."""
        if not self._is_native():
            return await super().aexists()
        return (
            bool(self._result_cache)
            if self._result_cache is not None
            else await objects.exists(await self._known_state())
        )

    async def afirst(self) -> M | None:
        """``first()``, awaited."""
        return await _first_of(self) if self._is_native() else await super().afirst()

    async def alast(self) -> M | None:
        """``last()``, awaited."""
        return await _first_of(self.reverse()) if self._is_native() else await super().alast()

    async def acreate(self, **kwargs: Any) -> M:
        """``create()``, awaited."""
        model = self.model
        is_native = native.are_plain(type(self), ("create",)) and native.are_plain(model, ("__init__",))
        # What is no attribute has Django's own error.
        if not (is_native and native.makes_objects(model) and kwargs.keys() <= model._settable()):
            return await super().acreate(**kwargs)
        obj: M = model(**kwargs)
        await obj.asave(force_insert=True, using=self.db)
        return obj

    async def apage(self, size: int, cursor: str | None = None, *, max_requests: int | None = None) -> Page[M]:
        """``page()``, awaited."""
        if not self._is_native():
            return await sync_to_async(self.page)(size, cursor, max_requests=max_requests)
        pages.check_size(size, max_requests)
        await self._known_state()
        return await self._paged(size, cursor, max_requests)

    async def _paged(self, size: int, cursor: str | None, max_requests: int | None) -> Page[M]:
        pages.check_size(size, max_requests)
        with capture_requests() as sent:
            page = await pages.page(state_of(self), size, cursor, max_requests)
        return pages.with_costs(page, sent)

    def page(self, size: int, cursor: str | None = None, *, max_requests: int | None = None) -> Page[M]:
        """The first objects, or those from a cursor on: as many as ``size``, whatever the conditions leave out.

        One request reads a page where nothing is filtered. Otherwise reading goes on until one match more than ``size``
        is found, the end is reached, or ``max_requests`` were sent. A cursor of another query is ``InvalidCursor``.
        """
        return run(self._paged(size, cursor, max_requests))

    def _two(self, args: object, kwargs: object) -> Any:
        """The queryset of the one object that is asked for, and of a second one if there are several."""
        raise NotImplementedError

    def _only(self, found: list[M], args: object, kwargs: object) -> M:
        """The one object that was found."""
        raise NotImplementedError


async def _first_of(queryset: Any) -> Any:
    found = queryset[:1]
    # A slice of what was read already is a list.
    return next(iter(found if isinstance(found, list) else await found._awaited()), None)
