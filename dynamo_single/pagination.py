"""Pages by cursor for views and templates, in the form that Django's own paginators have, and without a count.

``CompanyList(CursorListMixin, ListView)`` is a list view whose ``?page=`` is a cursor. This module must not know plans.
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
    """A page as templates know it; ``number`` is the cursor that it was asked for by, empty for the first one."""

    paginator: CursorPaginator

    def __init__(self, page: Page[Any], cursor: str, paginator: CursorPaginator) -> None:
        super().__init__(list(page), cursor, paginator)  # type: ignore[arg-type]  # a cursor for Django's number
        self.page = page

    def __repr__(self) -> str:
        return f"<Page of {len(self)} objects>"

    @property
    def next_cursor(self) -> str | None:
        """The cursor of the page after this one."""
        return self.page.next_cursor

    @property
    def previous_cursor(self) -> str | None:
        """The cursor of the page before this one."""
        return self.page.previous_cursor

    def has_next(self) -> bool:
        """Whether there is a page after this one."""
        return self.page.has_next

    def has_previous(self) -> bool:
        """Whether there is a page before this one."""
        return self.page.has_previous

    def next_page_number(self) -> str:  # type: ignore[override]  # a cursor for Django's number
        """The cursor of the page after this one; ``EmptyPage`` if there is none."""
        return _existing(self.next_cursor)

    def previous_page_number(self) -> str:  # type: ignore[override]  # as above
        """The cursor of the page before this one; ``EmptyPage`` if there is none."""
        return _existing(self.previous_cursor)

    def start_index(self) -> NoReturn:
        """Refused: nothing says how many objects come before a page."""
        _uncounted("start_index()")

    def end_index(self) -> NoReturn:
        """Refused, as ``start_index()``."""
        _uncounted("end_index()")


class CursorPaginator(django_paginator.Paginator):  # type: ignore[type-arg]  # not generic at run time
    """Pages of a queryset by cursor: ``paginator.get_page(request.GET.get("page"))``.

    One page is what ``QuerySet.page()`` sends. ``count``, ``num_pages`` and ``page_range`` are ``NotSupported``;
    iterating gives all pages, one after the other.
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
        """The page of a cursor; the first one without. ``InvalidCursor`` if it is not this queryset's."""
        cursor = "" if number in (None, 1, "1") else number
        queryset = cast(QuerySet[Any], self.object_list)  # or a manager, which has the same method
        page = queryset.page(self.per_page, cursor, max_requests=self.max_requests)
        if not (page or cursor or self.allow_empty_first_page or page.has_next):
            raise EmptyPage(self.error_messages["no_results"])
        return CursorPage(page, cursor, self)

    def get_page(self, number: object = None) -> CursorPage:
        """The page of a cursor, or the first one if it is not this queryset's; what was wrong with it is logged."""
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
        """Refused: pages have cursors."""
        _uncounted("validate_number()")

    def get_elided_page_range(self, *args: object, **kwargs: object) -> NoReturn:
        """Refused: nothing says how many pages there are."""
        _uncounted("get_elided_page_range()")

    @property
    def count(self) -> NoReturn:
        """Refused: ``object_list.count()`` reads, and pays for, everything that the query passes over."""
        _uncounted("count")

    @property
    def num_pages(self) -> NoReturn:
        """Refused, as ``count``."""
        _uncounted("num_pages")

    @property
    def page_range(self) -> NoReturn:
        """Refused, as ``count``."""
        _uncounted("page_range")

    def _check_object_list_is_ordered(self) -> None:
        """No warning: every queryset comes in the order of its key (private to Django)."""


class CursorListMixin:
    """For ``ListView``, in front of it: pages by cursor. A cursor that is not the list's is answered with 404.

    ``paginate_max_requests`` is the most requests of one page; without it a page is always filled.
    """

    paginator_class: type[django_paginator.Paginator[Any]] = CursorPaginator
    paginate_max_requests: int | None = None

    def get_paginator(
        self, queryset: Any, per_page: int, orphans: int = 0, allow_empty_first_page: bool = True, **kwargs: Any
    ) -> django_paginator.Paginator[Any]:
        """The paginator of the view's queryset."""
        kwargs.setdefault("max_requests", self.paginate_max_requests)
        return self.paginator_class(queryset, per_page, orphans, allow_empty_first_page, **kwargs)

    def paginate_queryset(self, queryset: object, page_size: int) -> tuple[CursorPaginator, CursorPage, Any, bool]:
        """The page that the request asks for, as Django's list views take it."""
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
        f"{name} is not supported with pages by cursor: DynamoDB knows no number of objects without reading them. "
        "Show has_next and has_previous, or call count() on the queryset, which reads as much as it counts."
    )
