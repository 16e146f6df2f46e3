"""Django's paginator for what keys answer: numbered pages of which none is counted before it has to be."""

from __future__ import annotations

from typing import Any

from django.core.paginator import EmptyPage, Page, PageNotAnInteger, Paginator


class KeyPage(Page):  # type: ignore[type-arg]  # not generic at run time
    """A page that knows whether there is one after it, without a count."""

    def __init__(self, rows: Any, number: int, paginator: Any, *, has_more: bool) -> None:
        super().__init__(rows, number, paginator)
        self._has_more = has_more

    def has_next(self) -> bool:
        """Whether there is a page after this one."""
        return self._has_more


class KeyPaginator(Paginator):  # type: ignore[type-arg]  # not generic at run time
    """Counts only when it is asked to and the pages do not tell: the last page, and an only one, need no count."""

    def page(self, number: Any) -> Page[Any]:
        """The page's rows: one Query for one row more than are shown."""
        try:
            position = int(number)
        except (TypeError, ValueError):  # as of Python 3.11 also for more digits than int() reads
            raise PageNotAnInteger(self.error_messages["invalid_page"]) from None
        if position < 1:
            raise EmptyPage(self.error_messages["min_page"])
        bottom = (position - 1) * self.per_page
        rows = list(self.object_list[bottom : bottom + self.per_page + 1])
        if position > 1 and not rows:
            raise EmptyPage(self.error_messages["no_results"])
        if len(rows) <= self.per_page:
            self.__dict__["count"] = bottom + len(rows)  # fills Paginator's cached property
        return KeyPage(rows[: self.per_page], position, self, has_more=len(rows) > self.per_page)

    def get_page(self, number: object) -> Page[Any]:
        """As in Django, the nearest page for a number that is none; it does not count beforehand."""
        try:
            return self.page(number)
        except PageNotAnInteger:
            return self.page(1)
        except EmptyPage:
            return self.page(self.num_pages)

    def _check_object_list_is_ordered(self) -> None:
        """No warning: every Query comes in the order of its key (private to Django)."""
