"""Show only the log entries about objects that a user may see."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from django.apps import apps
from django.contrib.admin.sites import AdminSite
from django.http import HttpRequest

from dynamo_single.admin.viewing.rules import visible_keys


class VisibleEntries:
    """The entries of a queryset that a user may see, for Django's template tag: it filters and slices.

    A slice reads as many entries, and may contain fewer.
    """

    def __init__(self, site: AdminSite, request: HttpRequest, queryset: Any) -> None:
        self._asked = site, request
        self._queryset = queryset

    def filter(self, *args: Any, **kwargs: Any) -> VisibleEntries:
        """Narrow the queryset."""
        return VisibleEntries(*self._asked, self._queryset.filter(*args, **kwargs))

    def __getitem__(self, part: slice) -> list[Any]:
        """Read a part of the entries."""
        return visible_entries(*self._asked, self._queryset[part])

    def __iter__(self) -> Iterator[Any]:
        return iter(self[:])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queryset, name)


def visible_entries(site: AdminSite, request: HttpRequest, entries: Iterable[Any]) -> list[Any]:
    """Return the entries about objects that a user may see.

    If that depends on the object, sends a BatchGetItem for each model of an entry. Entries of models that are not
    installed are left out.
    """
    found = [(entry, model_of(entry), str(entry.object_id)) for entry in entries]
    keys: dict[Any, set[str]] = {}
    for _entry, model, key in found:
        keys.setdefault(model, set()).add(key)
    visible = {model: visible_keys(site, request, model, named) for model, named in keys.items() if model is not None}
    return [entry for entry, model, key in found if model is not None and key in visible[model]]


def model_of(entry: Any) -> Any:
    """Return the model of the object that an entry of the log is about; ``None`` if it is not installed."""
    kind = getattr(entry, "object_type", None)
    if kind is None:
        return entry.content_type.model_class() if entry.content_type is not None else None
    try:
        return apps.get_model(kind)
    except LookupError:
        return None
