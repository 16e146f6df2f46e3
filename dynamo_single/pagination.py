"""Pages by cursor for views and templates, with the interface of Django's paginators but without a count.

``class CompanyList(CursorListMixin, ListView)`` is a list view whose ``?page=`` is a cursor. This module must not
depend on plans.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any, NoReturn, cast

from django.core import paginator as django_paginator
from django.core.paginator import EmptyPage
from django.http import Http404
from django.utils.translation import gettext as _

from dynamo_single.exceptions import ConfigurationError, InvalidCursor, NotSupported
from dynamo_single.orm.query.queryset import QuerySet
from dynamo_single.orm.results.pages import MAX_SIZE, Page

__all__ = ["MAX_SIZE", "CursorListMixin", "CursorPage", "CursorPaginator", "Page"]

logger = logging.getLogger("django.security.InvalidCursor")


class CursorPage(django_paginator.Page):  # type: ignore[type-arg]  # not generic at run time
    """A page for templates; ``number`` is its cursor, or an empty string for the first page."""

    paginator: CursorPaginator

    def __init__(self, page: Page[Any], cursor: str, paginator: CursorPaginator) -> None:
        super().__init__(list(page), cursor, paginator)  # type: ignore[arg-type]  # a cursor instead of Django's number
        self.page = page

    def __repr__(self) -> str:
        return f"<Page of {len(self)} objects>"

    @property
    def next_cursor(self) -> str | None:
        """The cursor of the next page."""
        return self.page.next_cursor

    @property
    def previous_cursor(self) -> str | None:
        """The cursor of the previous page."""
        return self.page.previous_cursor

    def has_next(self) -> bool:
        """Return whether there is a next page."""
        return self.page.has_next

    def has_previous(self) -> bool:
        """Return whether there is a previous page."""
        return self.page.has_previous

    def next_page_number(self) -> str:  # type: ignore[override]  # a cursor instead of Django's number
        """Return the cursor of the next page; raise ``EmptyPage`` if there is none."""
        return _existing(self.next_cursor)

    def previous_page_number(self) -> str:  # type: ignore[override]  # as above
        """Return the cursor of the previous page; raise ``EmptyPage`` if there is none."""
        return _existing(self.previous_cursor)

    def start_index(self) -> NoReturn:
        """Raise ``NotSupported``: the number of objects before a page is unknown."""
        _uncounted("start_index()")

    def end_index(self) -> NoReturn:
        """Raise ``NotSupported``, like ``start_index()``."""
        _uncounted("end_index()")


class CursorPaginator(django_paginator.Paginator):  # type: ignore[type-arg]  # not generic at run time
    """Pages of a queryset by cursor: ``paginator.get_page(request.GET.get("page"))``.

    One page sends the requests of ``QuerySet.page()``. ``count``, ``num_pages`` and ``page_range`` raise
    ``NotSupported``. Iterating yields all pages in order.
    """

    def __init__(
        self,
        object_list: Any,
        per_page: int,
        orphans: int = 0,
        allow_empty_first_page: bool = True,
        error_messages: Any = None,
        *,
        max_requests: int | None = None,
    ) -> None:
        if orphans:
            raise ConfigurationError(
                f"CursorPaginator(orphans={orphans}): which page is the last is known only once it is read, so that "
                "it cannot take the orphans of the next. Leave orphans out."
            )
        if not hasattr(object_list, "page"):
            raise ConfigurationError(
                f"CursorPaginator takes a queryset of dynamo_single, not {type(object_list).__name__}: use "
                "django.core.paginator.Paginator."
            )
        super().__init__(object_list, per_page, orphans, allow_empty_first_page, error_messages)
        self.max_requests = max_requests

    def page(self, number: Any = None) -> CursorPage:
        """Return the page of a cursor, or the first page; raise ``InvalidCursor`` for another queryset's cursor."""
        cursor = "" if number in (None, 1, "1") else number
        queryset = cast(QuerySet[Any], self.object_list)  # or a manager, which has the same method
        page = queryset.page(self.per_page, cursor, max_requests=self.max_requests)
        if not (page or cursor or self.allow_empty_first_page or page.has_next):
            raise EmptyPage(self.error_messages["no_results"])
        return CursorPage(page, cursor, self)

    def get_page(self, number: object = None) -> CursorPage:
        """Return the page of a cursor. For an invalid one, log the reason and return the first page."""
        try:
            return self.page(number)
        except InvalidCursor as error:
            _log(error)
            return self.page()

    def __iter__(self) -> Iterator[CursorPage]:
        page = self.page()
        yield page
        while page.next_cursor is not None:
            page = self.page(page.next_cursor)
            yield page

    def validate_number(self, number: object) -> NoReturn:
        """Raise ``NotSupported``: pages have cursors."""
        _uncounted("validate_number()")

    def get_elided_page_range(self, *args: object, **kwargs: object) -> NoReturn:
        """Raise ``NotSupported``: the number of pages is unknown."""
        _uncounted("get_elided_page_range()")

    @property
    def count(self) -> NoReturn:
        """Raises ``NotSupported``: ``object_list.count()`` would read, and charge for, every skipped item."""
        _uncounted("count")

    @property
    def num_pages(self) -> NoReturn:
        """Raises ``NotSupported``, like ``count``."""
        _uncounted("num_pages")

    @property
    def page_range(self) -> NoReturn:
        """Raises ``NotSupported``, like ``count``."""
        _uncounted("page_range")

    def _check_object_list_is_ordered(self) -> None:
        """Emit no warning: every queryset has the order of its key (private to Django)."""


class CursorListMixin:
    """Pages by cursor for ``ListView``: put it before that class. An invalid cursor returns a 404 response.

    ``paginate_max_requests`` is the most requests of one page. Without it, a page is always filled.
    """

    paginator_class: type[django_paginator.Paginator[Any]] = CursorPaginator
    paginate_max_requests: int | None = None

    def get_paginator(
        self, queryset: Any, per_page: int, orphans: int = 0, allow_empty_first_page: bool = True, **kwargs: Any
    ) -> django_paginator.Paginator[Any]:
        """Return the paginator of the view's queryset."""
        kwargs.setdefault("max_requests", self.paginate_max_requests)
        return self.paginator_class(queryset, per_page, orphans, allow_empty_first_page, **kwargs)

    def paginate_queryset(self, queryset: object, page_size: int) -> tuple[CursorPaginator, CursorPage, Any, bool]:
        """Return the requested page in the form of Django's list views."""
        view: Any = self
        paginator = view.get_paginator(
            queryset, page_size, orphans=view.get_paginate_orphans(), allow_empty_first_page=view.get_allow_empty()
        )
        cursor = view.kwargs.get(view.page_kwarg) or view.request.GET.get(view.page_kwarg)
        try:
            page = paginator.page(cursor)
        except InvalidCursor as error:
            _log(error)
            raise Http404(_("Invalid page: this address is no longer valid.")) from error
        except EmptyPage as error:
            raise Http404(str(error)) from error
        return paginator, page, page.object_list, page.has_other_pages()


def _existing(cursor: str | None) -> str:
    if cursor is None:
        raise EmptyPage(_("That page contains no results"))
    return cursor


def _log(error: InvalidCursor) -> None:
    logger.warning("%s", error)


def _uncounted(name: str) -> NoReturn:
    raise NotSupported(
        f"{name} is not supported with cursor pagination: DynamoDB cannot count objects without reading them. "
        "Show has_next and has_previous, or call count() on the queryset, which reads every object that it "
        "counts."
    )
