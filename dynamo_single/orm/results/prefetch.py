"""Prefetch related objects for ``prefetch_related()`` and ``select_related()``, level by level.

Django's own code reads each level and assigns its objects (``async_rerun``). In a thread Django's function does all of
it. Before that, it reads the relations of one level together if their objects are adjacent in the table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ObjectDoesNotExist
from django.db.models import Model, Prefetch, prefetch_related_objects
from django.db.models.query import get_prefetcher, normalize_prefetch_lookups, prefetch_one_level
from msgspec.structs import replace

from dynamo_single.lazy_modules import LazyModule
from dynamo_single.orm.results import async_rerun
from dynamo_single.orm.results.state import RelatedReads
from dynamo_single.orm.schema.fields.fetching import set_modes
from dynamo_single.orm.schema.types import DynamoModel, all_plain
from dynamo_single.table.flow import call_sync, is_run

if TYPE_CHECKING:
    from dynamo_single.orm.reading import limits
    from dynamo_single.orm.reading.limits import Steps
else:
    limits = LazyModule("dynamo_single.orm.reading.limits")


async def fetch_related(objects: Sequence[object], related_reads: RelatedReads) -> None:
    """Read the references that ``select_related()`` named, and set the fetch mode of the objects."""
    set_modes(objects, related_reads.mode)
    await prefetch(objects, related_reads.references)


async def read_related(objects: Sequence[object], related_reads: RelatedReads) -> None:
    """Read the relations of ``select_related()`` and ``prefetch_related()`` for some objects."""
    await fetch_related(objects, related_reads)
    await prefetch(objects, related_reads.prefetch_related, related_reads.in_memory)


async def prefetch(objects: Sequence[Any], lookups: Sequence[Any], in_memory: tuple[int, int] | None = None) -> None:
    """Do what ``prefetch_related_objects()`` does, in a coroutine: the same requests in the same order.

    Relations of several names whose objects are adjacent in the table are read by one Query for each partition. If
    items and bytes ``in_memory`` are limited, the querysets of each ``Prefetch`` share the limits with ``objects``.
    """
    if not objects or not lookups:
        return
    if in_memory is not None and any(map(_shares, lookups)):
        limit, max_bytes = in_memory
        steps = limits.Steps(limit, holds_results=True)
        steps.held, steps.size.bytes = len(objects), limits.size_of(objects)
        lookups = _within(lookups, steps, max_bytes)
    await _read_together(objects, _tree_of(lookups))
    if is_run():
        await call_sync(partial(prefetch_related_objects, list(objects), *lookups))
        return
    await _Prefetching(objects).run(lookups)


def _shares(lookup: Any) -> bool:
    """Return whether a lookup has a queryset of ours that does not have a limit of its own."""
    asked = getattr(getattr(lookup, "queryset", None), "_asked", None)
    return asked is not None and asked.in_memory is None


def _within(lookups: Sequence[Any], steps: Steps, max_bytes: int) -> tuple[Any, ...]:
    """Return lookups whose own querysets share a limit, and may work in memory as well, at any depth."""
    return tuple(_sharing(each, steps, max_bytes) if _shares(each) else each for each in lookups)


def _sharing(lookup: Any, steps: Steps, max_bytes: int) -> Any:
    found, queryset = copy(lookup), lookup.queryset
    asked = replace(queryset._asked, in_memory=steps.limit, in_memory_bytes=max_bytes, steps=steps)
    found.queryset = queryset._asking(asked)
    found.queryset._prefetch_related_lookups = _within(queryset._prefetch_related_lookups, steps, max_bytes)
    return found


#: The names of relations to read for some objects, each with the relations of its own objects.
_Tree = dict[str, Any]


def _tree_of(lookups: Sequence[Any]) -> _Tree:
    """Return the relations of lookups; leave those that begin with a ``Prefetch`` to Django."""
    others = {each.prefetch_to.partition("__")[0] for each in lookups if not isinstance(each, str)}
    others |= {each.prefetch_through.partition("__")[0] for each in lookups if not isinstance(each, str)}
    tree: _Tree = {}
    for lookup in lookups:
        first, *below = lookup.split("__") if isinstance(lookup, str) else ("",)
        if first and first not in others:
            level = tree.setdefault(first, {})
            for name in below:
                level = level.setdefault(name, {})
    return tree


def _has_several(tree: _Tree) -> bool:
    """Return whether any level has several relations, so that some may be read together."""
    return len(tree) > 1 or any(map(_has_several, tree.values()))


async def _read_together(objects: Sequence[Any], tree: _Tree) -> None:
    """Read the relations of each level that are adjacent in the table, and assign them; Django reads the others."""
    if not _has_several(tree) or not objects or not all(isinstance(obj, Model) for obj in objects):
        return
    works = {name: work for name in tree if (work := _work_of(objects, name)) is not None}
    querysets = {name: async_rerun.first_queryset(work) for name, work in works.items()}
    unread = [each for each in querysets.values() if each is not None]
    if len(unread) > 1:
        await unread[0]._read_with(unread[1:])
    for name, work in works.items():
        queryset = querysets[name]
        found = None if queryset is None else queryset._result_cache
        # The app may have to read others together below it. Django handles lookups with a custom queryset.
        leads_on = _has_several(tree[name]) and not getattr(queryset, "_prefetch_related_lookups", ())
        if found is not None or leads_on:
            await async_rerun.rerun(work, found)
    for name, below in tree.items():
        if _has_several(below) and _is_read(objects, name):
            await _read_together(_related(objects, name), below)


def _work_of(objects: Sequence[Any], name: str) -> Callable[[], object] | None:
    """Return Django's function that reads a relation of some objects.

    ``None`` if there is nothing to read, if it would call a project's code twice, or if Django will raise an error.
    """
    for obj in objects:
        obj.__dict__.setdefault("_prefetched_objects_cache", {})
    found: Any = get_prefetcher(objects[0], name, name)
    prefetcher, _, _, is_fetched = found
    if prefetcher is None or not _is_native(prefetcher):
        return None
    missing = [obj for obj in objects if not is_fetched(obj)]
    return partial(prefetch_one_level, missing, prefetcher, Prefetch(name), 0) if missing else None


def _is_read(objects: Sequence[Any], name: str) -> bool:
    """Return whether all objects already have the objects of a relation."""
    found: Any = get_prefetcher(objects[0], name, name)
    prefetcher, _, _, is_fetched = found
    return prefetcher is not None and all(map(is_fetched, objects))


class _Prefetching:
    """One prefetch: Django's rules for which lookups are followed, and which objects each level has."""

    def __init__(self, objects: Sequence[DynamoModel]) -> None:
        self.objects = objects
        self.done: dict[str, Sequence[Any]] = {}
        self.automatic: set[Any] = set()
        self.followed: set[Any] = set()
        self.waiting: list[Any] = []

    async def run(self, lookups: Sequence[Any]) -> None:
        """Follow lookups, and those of the querysets that they read."""
        self.waiting = normalize_prefetch_lookups(lookups[::-1])
        while self.waiting:
            lookup = self.waiting.pop()
            if lookup.prefetch_to not in self.done:
                await self._follow(lookup)
            elif lookup.queryset is not None:
                # Django's message.
                raise ValueError(
                    f"'{lookup.prefetch_to}' lookup was already seen with a different queryset. You may need to adjust "
                    "the ordering of your lookups."
                )

    async def _follow(self, lookup: Any) -> None:
        objects = self.objects
        names = lookup.prefetch_through.split("__")
        for level, name in enumerate(names):
            to = lookup.get_current_prefetch_to(level)
            if not objects or not all(isinstance(obj, Model) for obj in objects):
                return
            if to in self.done:
                objects = self.done[to]
                continue
            for obj in objects:
                obj.__dict__.setdefault("_prefetched_objects_cache", {})
            found: Any = get_prefetcher(objects[0], name, lookup.get_current_to_attr(level)[0])
            prefetcher, descriptor, is_found, is_fetched = found
            _check(lookup, objects[0], name, is_found, is_last=level == len(names) - 1, prefetcher=prefetcher)
            missing = [] if prefetcher is None else [obj for obj in objects if not is_fetched(obj)]
            if not missing:
                # A property of the project may send requests.
                related = partial(_related, objects, name)
                objects = await call_sync(related) if prefetcher is None else related()
                continue
            objects, more = await _one_level(missing, prefetcher, lookup, level)
            if not (to in self.done and lookup in self.automatic and descriptor in self.followed):
                self.done[to] = objects
                added = normalize_prefetch_lookups(more[::-1], to)
                self.automatic.update(added)
                self.waiting.extend(added)
            self.followed.add(descriptor)


def _check(lookup: Any, first: Any, name: str, is_found: bool, *, is_last: bool, prefetcher: Any) -> None:
    """Raise Django's errors for lookups without prefetching."""
    if not is_found:
        raise AttributeError(
            f"Cannot find '{name}' on {type(first).__name__} object, '{lookup.prefetch_through}' is an invalid "
            "parameter to prefetch_related()"
        )
    if is_last and prefetcher is None:
        raise ValueError(
            f"'{lookup.prefetch_through}' does not resolve to an item that supports prefetching - this is an invalid "
            "parameter to prefetch_related()."
        )


def _related(objects: Sequence[DynamoModel], name: str) -> list[DynamoModel]:
    """Return the loaded objects of a relation."""
    found: list[Any] = []
    for obj in objects:
        known = obj._prefetched_objects_cache.get(name)
        if known is not None:
            found += known
            continue
        try:
            related = getattr(obj, name)
        except ObjectDoesNotExist:
            continue
        if related is not None:
            found += related if isinstance(related, list) else [related]
    return found


async def _one_level(objects: list[DynamoModel], prefetcher: Any, lookup: Any, level: int) -> tuple[Any, Any]:
    if not _is_native(prefetcher):
        found: tuple[Any, Any] = await call_sync(partial(prefetch_one_level, objects, prefetcher, lookup, level))
        return found
    return await async_rerun.rerun(partial(prefetch_one_level, objects, prefetcher, lookup, level))


def _is_native(prefetcher: Any) -> bool:
    """Return whether a relation's querysets are ours, and created without code of the project."""
    model: Any = getattr(prefetcher, "prefetches", None)
    if not hasattr(model, "_options"):
        return False
    made = ("get_queryset", "get_prefetch_querysets")
    return all_plain(type(prefetcher), made) and all_plain(type(model._base_manager), made)
