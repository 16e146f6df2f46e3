"""Pages by cursor.

A project sets ``"DEFAULT_PAGINATION_CLASS"`` in ``REST_FRAMEWORK`` to ``CursorPagination``, by its path.
"""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from rest_framework import pagination
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import remove_query_param, replace_query_param
from rest_framework.views import APIView

from dynamo_single.exceptions import InvalidCursor
from dynamo_single.orm.query.queryset import QuerySet
from dynamo_single.pagination import MAX_SIZE, CursorPage, CursorPaginator


class CursorPagination(pagination.CursorPagination):  # type: ignore[misc]  # the package has no types
    """Pages of ``PAGE_SIZE`` objects with the links ``next`` and ``previous``, in the order of the queryset.

    A page sends the requests of ``QuerySet.page()``: one Query if nothing is filtered. With ``max_requests``, a page
    may contain fewer objects and still have a next page. An invalid cursor returns a 404. The
    ``page_size_query_param`` allows at most ``max_page_size`` objects, up to 1000.
    """

    max_page_size = MAX_SIZE
    max_requests: int | None = None
    _page: CursorPage
    _address: str

    def paginate_queryset(self, queryset: QuerySet[Any], request: Request, view: APIView | None = None) -> Any:
        """Return the objects of the page that a request names; ``None`` without a page size."""
        self.request = request
        size = self.get_page_size(request)
        if not size:
            return None
        self._address = request.build_absolute_uri()
        cursor = request.query_params.get(self.cursor_query_param, "")
        try:
            self._page = CursorPaginator(queryset, size, max_requests=self.max_requests).page(cursor)
        except InvalidCursor as error:
            raise NotFound(_("Invalid cursor")) from error
        return [*self._page]

    def get_next_link(self) -> str | None:
        """Return the address of the next page."""
        return self._link(self._page.next_cursor) if self._page.has_next() else None

    def get_previous_link(self) -> str | None:
        """Return the address of the previous page."""
        return self._link(self._page.previous_cursor) if self._page.has_previous() else None

    def _link(self, cursor: str | None) -> str:
        if not cursor:
            return str(remove_query_param(self._address, self.cursor_query_param))
        return str(replace_query_param(self._address, self.cursor_query_param, cursor))

    def get_paginated_response(self, data: Any) -> Response:
        """Return a page; there is no count, for which the whole list would have to be read."""
        return Response({"next": self.get_next_link(), "previous": self.get_previous_link(), "results": data})

    def get_html_context(self) -> dict[str, str | None]:
        """Return the links for the browsable API."""
        return {"previous_url": self.get_previous_link(), "next_url": self.get_next_link()}
