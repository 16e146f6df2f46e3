"""Pages of a queryset that is read by a key."""

from __future__ import annotations

from typing import Any

from django.core.paginator import EmptyPage, Page, PageNotAnInteger, Paginator


class KeyPaginator(Paginator):  # type: ignore[type-arg]  # not generic at run time
    """Counts only when a page does not tell: the last page, and an only one, cost one Query and no count."""

    def page(self, number: Any) -> Page[Any]:
        """The page's rows: one Query for one row more than are shown; a second one counts if there are more."""
        rows: list[Any] = []
        position = int(number) if str(number).isdecimal() else 0
        if position > 0:
            bottom = (position - 1) * self.per_page
            rows = list(self.object_list[bottom : bottom + self.per_page + 1])
            if len(rows) <= self.per_page and (rows or position == 1):
                self.__dict__["count"] = bottom + len(rows)  # fills Paginator's cached property
        return Page(rows[: self.per_page], self.validate_number(number), self)

    def get_page(self, number: Any) -> Page[Any]:
        """As in Django, the nearest page for a number that is none; it does not count beforehand."""
        try:
            return self.page(number)
        except PageNotAnInteger:
            return self.page(1)
        except EmptyPage:
            return self.page(self.num_pages)

    def _check_object_list_is_ordered(self) -> None:
        """No warning: every Query comes in the order of its key (private to Django, checked with 5.2)."""
