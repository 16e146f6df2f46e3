"""The common limits of the steps of one evaluation, which ``allow_in_memory()`` sets.

This module does not send requests.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dynamo_single.exceptions import TooManyMatches
from dynamo_single.orm.schema.keys.values import item_size


class Size:
    """The bytes of the objects that several steps have read until now."""

    bytes = 0


class Steps:
    """The steps of one evaluation: the querysets that were read, and how many keys or objects each returned.

    ``limit`` bounds the keys and objects of all steps and the matches of the queryset itself together. The steps share
    their ``size`` with those ``before`` them. ``holds_results`` is set for the steps of one ``prefetch_related()``: the
    results of each ``Prefetch`` are held as well, after it was evaluated.
    """

    #: Whether each step reads only what known objects refer to, rather than all that meets its condition.
    starts_at_objects = False

    def __init__(self, limit: int, before: Steps | None = None, *, holds_results: bool = False) -> None:
        self.limit = limit
        self.holds_results = holds_results
        self.held: int = 0 if before is None else before.held
        #: Whether a condition is about a relation to several objects.
        self.has_several: bool = before is not None and before.has_several
        self.size: Size = Size() if before is None else before.size
        self.read: list[tuple[Any, int]] = []

    @property
    def left(self) -> int:
        """How many keys and matches may still be held."""
        return self.limit - self.held

    def take(self, queryset: Any, found: int) -> None:
        """Record a step; raise ``TooManyMatches`` if it found more than may be held."""
        if found > self.left:
            raise TooManyMatches(
                f"{queryset.model._meta.label}: a step finds more than {self.left} keys or objects, and other steps "
                f"found {self.held}. All together may be {self.limit}. Nothing was cut off, so there is no "
                "result. Filter by more, or allow more: .allow_in_memory(limit=...).",
                limit=self.limit,
            )
        self.held += found
        self.read.append((queryset, found))

    def hold(self, queryset: Any, found: Iterable[Any], max_bytes: int) -> None:
        """Record the objects of a step; raise ``TooManyMatches`` for too many of them or too many bytes."""
        objects = list(found)
        self.take(queryset, len(objects))
        self.size.bytes += size_of(objects)
        if self.size.bytes > max_bytes:
            raise TooManyMatches(
                f"{queryset.model._meta.label}: the objects of all steps have {self.size.bytes} bytes, and "
                f"allow_in_memory(max_bytes={max_bytes}) allows no more. Nothing was cut off, so there is no result. "
                "Filter by more, or allow more: .allow_in_memory(limit=..., max_bytes=...).",
                limit=max_bytes,
            )


class ObjectSteps(Steps):
    """The steps of conditions on known objects: each reads only what the objects of the step before refer to."""

    starts_at_objects = True


def size_of(objects: Iterable[Any]) -> int:
    """Return the bytes of the items of some objects, as DynamoDB counts them; those of SQL have none."""
    return sum(item_size(getattr(obj, "_stored", None) or {}) for obj in objects)
