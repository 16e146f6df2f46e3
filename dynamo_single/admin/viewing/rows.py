"""Omit hidden objects from the rows of an inline, so that they are neither shown nor counted nor saved."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, ClassVar, Final

from django.contrib.admin.sites import AdminSite
from django.http import HttpRequest

from dynamo_single.admin.viewing.rules import may_view, sees_all
from dynamo_single.backend.errors import is_stored_in_dynamodb

#: The most children that a form examines for its visible rows. Further children are treated as hidden.
MAX_ROWS: Final = 20_000


class VisibleRows:
    """A formset, before a project's class, that contains only the rows that the ``viewer`` may see.

    ``max_num``, ``min_num`` and ``extra`` count these rows. A form that is submitted with the key of another row is
    treated as if that row were gone. Sends only the requests of the formset.
    """

    #: The site and the request that the formset is for.
    viewer: ClassVar[tuple[AdminSite, HttpRequest]]
    _all_rows: object = None

    def all_rows(self) -> Any:
        """Return the rows as the formset reads them, with hidden ones; does not read them."""
        formset: Any = super()
        return formset.get_queryset()

    def visible(self, rows: Iterable[Any]) -> Iterator[Any]:
        """Yield the visible ones of the first ``MAX_ROWS`` rows."""
        return (row for row in islice(rows, MAX_ROWS) if may_view(*self.viewer, row))

    def get_queryset(self) -> list[Any]:
        """Return the rows, read once."""
        found = self.all_rows()
        if found is not self._all_rows:
            self._all_rows, self._visible_rows = found, [*self.visible(found)]
        return self._visible_rows


def only_visible(formset: type[Any], site: AdminSite, request: HttpRequest) -> type[Any]:
    """Return a class of formsets that leaves out the rows that the registered admin of their model hides.

    Returns the class itself if the user sees every object, or if the model has no registered admin: then the inline
    decides by its ``get_queryset()`` and ``has_view_permission()``. Does not send a request.
    """
    model = formset.model
    if not is_stored_in_dynamodb(model) or not site.is_registered(model) or sees_all(site, request, model):
        return formset
    members = {"__module__": formset.__module__, "__doc__": formset.__doc__, "viewer": (site, request)}
    return type(formset.__name__, (VisibleRows, formset), members)


def all_rows(formset: Any) -> Any:
    """Return the queryset of a formset's rows, with hidden ones; a list if the rows have been read."""
    return formset.all_rows() if isinstance(formset, VisibleRows) else formset.get_queryset()
