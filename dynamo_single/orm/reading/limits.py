"""The limits that ``allow_in_memory()`` sets for all steps of one evaluation.

This module does not send requests.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dynamo_single.exceptions import TooManyMatches
from dynamo_single.orm.schema.keys.values import item_size


class Size:
    """The total size, in bytes, of the objects that all steps have read so far."""

    bytes = 0


class Steps:
    """The steps of one evaluation: the evaluated querysets, each with its number of keys or objects.

    ``limit`` is the maximum for the keys and objects of all steps plus the matches of the queryset itself. ``before``
    contains earlier steps, which share the ``size``. ``holds_results`` is set for the steps of a
    ``prefetch_related()``, which also keeps the results of each evaluated ``Prefetch`` in memory.
    """

    #: Whether each step reads only the targets of known objects, rather than all objects that match its condition.
    starts_at_objects = False

    def __init__(self, limit: int, before: Steps | None = None, *, holds_results: bool = False) -> None:
        self.limit = limit
        self.holds_results = holds_results
        self.held: int = 0 if before is None else before.held
        #: Whether a condition follows a relation to several objects.
        self.has_several: bool = before is not None and before.has_several
        self.size: Size = Size() if before is None else before.size
        self.read: list[tuple[Any, int]] = []

    @property
    def left(self) -> int:
        """The number of keys and matches that the limit still allows."""
        return self.limit - self.held

    def take(self, queryset: Any, found: int) -> None:
        """Record a step, or raise ``TooManyMatches`` if it exceeds the limit."""
        if found > self.left:
            raise TooManyMatches(
                f"{queryset.model._meta.label}: a step finds more than {self.left} keys or objects, and other steps "
                f"found {self.held}. The limit for all steps is {self.limit}. No partial result is returned. Narrow "
                "the query, or raise the limit with .allow_in_memory(limit=...).",
                limit=self.limit,
            )
        self.held += found
        self.read.append((queryset, found))

    def hold(self, queryset: Any, found: Iterable[Any], max_bytes: int) -> None:
        """Record the objects of a step, or raise ``TooManyMatches`` if their number or size exceeds a limit."""
        objects = list(found)
        self.take(queryset, len(objects))
        self.size.bytes += size_of(objects)
        if self.size.bytes > max_bytes:
            raise TooManyMatches(
                f"{queryset.model._meta.label}: the objects of all steps have {self.size.bytes} bytes, more than "
                f"allow_in_memory(max_bytes={max_bytes}) allows. No partial result is returned. Narrow the query, or "
                "raise the limits with .allow_in_memory(limit=..., max_bytes=...).",
                limit=max_bytes,
            )


class ObjectSteps(Steps):
    """Steps that start at known objects: each reads only the targets of the previous step's objects."""

    starts_at_objects = True


def size_of(objects: Iterable[Any]) -> int:
    """Return the total size of the objects' items, in bytes as DynamoDB counts them; objects from SQL count as 0."""
    return sum(item_size(getattr(obj, "_stored", None) or {}) for obj in objects)
