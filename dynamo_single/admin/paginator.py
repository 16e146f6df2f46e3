"""Pages of a queryset that is read by a key."""

from __future__ import annotations

from typing import Any

from django.core.paginator import Page, Paginator


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
        return self._get_page(rows[: self.per_page], self.validate_number(number), self)

    def _check_object_list_is_ordered(self) -> None:
        """No warning: every Query comes in the order of its key (private to Django, checked with 5.2)."""
