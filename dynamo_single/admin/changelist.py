"""The list page: rows in a key's order, pages without a count, and links only for what a key serves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.contrib.admin import SimpleListFilter
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ChangeList
from django.core.paginator import EmptyPage, InvalidPage, Page, PageNotAnInteger, Paginator
from django.db.models import ForeignKey
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from dynamo_single.exceptions import DynamoSingleError, NotSupported, UnknownField
from dynamo_single.orm.query.queryset import QuerySet
from dynamo_single.orm.query.state import state_of
from dynamo_single.orm.results import rows


class TrashFilter(SimpleListFilter):
    """Live objects, or the ones in the trash."""

    title = _("state")
    parameter_name = "trash"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """The one state beside the live ones."""
        return [("yes", _("In the trash"))]

    def choices(self, changelist: Any) -> Iterator[Any]:
        """The live ones are shown unless the trash is asked for."""
        everything, *states = super().choices(changelist)
        yield {**everything, "display": _("Live")}
        yield from states

    def get_facet_queryset(self, changelist: Any) -> dict[str, int]:
        """How many objects are in the trash: one Query with Select=COUNT."""
        listed = changelist.get_queryset(self.request, exclude_parameters=self.expected_parameters())
        return {"0__c": listed.with_visibility("deleted").count()}

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        """The trash is read by its own key: one Query."""
        return queryset.with_visibility("deleted") if self.value() else queryset


def shows_trash(request: HttpRequest) -> bool:
    """Whether the list page shows the trash."""
    return bool(request.GET.get(TrashFilter.parameter_name))


class KeyChangeList(ChangeList):
    """Django's list, which sorts by nothing that no key serves."""

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> Any:
        """The rows' queryset; a column is sortable if a key serves its order among these rows."""
        try:
            queryset = super().get_queryset(request, exclude_parameters)
        except IncorrectLookupParameters as error:
            # Django would show the whole list in the place of a filter that is wrong; the page says what is wrong.
            if error.args and isinstance(error.args[0], DynamoSingleError):
                raise error.args[0] from error
            raise
        unordered: Any = queryset.order_by()
        self.sortable_by = [name for name in self.sortable_by or () if self._is_served(unordered, name)]
        return queryset

    def apply_select_related(self, qs: Any) -> Any:
        """The references of the columns, each read in batches, those that may be empty too."""
        if self.list_select_related is False:
            shown = [field.name for field in map(self._field, self.list_display) if isinstance(field, ForeignKey)]
            return qs.select_related(*shown) if shown else qs
        if self.list_select_related is True:
            references = [field.name for field in self.lookup_opts.concrete_fields if isinstance(field, ForeignKey)]
            return qs.select_related(*references) if references else qs
        return super().apply_select_related(qs)

    def _field(self, column: Any) -> Any:
        names = {field.name: field for field in self.lookup_opts.concrete_fields}
        return names.get(column) if isinstance(column, str) else None

    def _is_served(self, queryset: QuerySet[Any], column: Any) -> bool:
        order = self.get_ordering_field(column)
        if order is None:
            return False
        try:
            rows.plan(state_of(queryset.order_by(order)))
        except (NotSupported, UnknownField):
            return False
        return True

    def _get_deterministic_ordering(self, ordering: Any) -> list[Any]:
        # Django adds "-pk", which few keys serve; a key's own order is total already (private to Django).
        return list(ordering)

    def get_results(self, request: HttpRequest) -> None:
        """Read the page: one Query, and one that counts if there is more than one page."""
        admin: Any = self.model_admin
        self.paginator = admin.get_paginator(request, self.queryset, self.list_per_page)
        self.show_full_result_count = False
        if request.method == "POST" and "_save" not in request.POST:
            # An action works on its own queryset and answers with a redirect or a page without this list.
            self.result_list: Any = []
            self.result_count = 0
        else:
            try:
                self.result_list = self.paginator.page(self.page_num).object_list
            except InvalidPage as error:
                raise IncorrectLookupParameters from error
            self.result_count = self.paginator.count
        self.can_show_all = self.result_count <= self.list_max_show_all
        self.multi_page = self.result_count > self.list_per_page
        # Where nothing narrows the list the two counts are one; elsewhere the template says "Show all".
        self.full_result_count = None if self.query or self.has_active_filters else self.result_count
        self.show_admin_actions = bool(self.result_list)
        if self.show_all and self.can_show_all and self.multi_page:
            self.result_list = list(self.queryset)


class KeyPaginator(Paginator):  # type: ignore[type-arg]  # not generic at run time
    """Counts only when a page does not tell: the last page, and an only one, cost one Query and no count."""

    def page(self, number: Any) -> Page[Any]:
        """The page's rows: one Query for one row more than are shown; a second one counts if there are more."""
        rows: list[Any] = []
        try:
            position = int(number)
        except ValueError:  # as of Python 3.11 also for more digits than int() reads
            position = 0
        if position > 0:
            bottom = (position - 1) * self.per_page
            rows = list(self.object_list[bottom : bottom + self.per_page + 1])
            if len(rows) <= self.per_page and (rows or position == 1):
                self.__dict__["count"] = bottom + len(rows)  # fills Paginator's cached property
        return Page(rows[: self.per_page], self.validate_number(number), self)

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
