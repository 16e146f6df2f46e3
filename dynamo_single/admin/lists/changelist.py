"""The list page: keys serve the queries that they support, page by page; the rest is computed from rows in memory.

Above ``list_max_bytes``, or ``list_max_in_memory`` rows, the page does not hold any. It shows what keys support, and
names the omitted parts.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, cast

from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.utils import get_fields_from_path
from django.core.paginator import EmptyPage, InvalidPage
from django.db.models import ForeignKey, Max, Min
from django.http import HttpRequest
from django.template.defaultfilters import filesizeformat
from django.utils.translation import gettext as _

from dynamo_single.admin import paths, secrets
from dynamo_single.admin.errors import is_developer
from dynamo_single.admin.lists import downloads, in_memory, key_advice, related, search, stepwise, tenants
from dynamo_single.admin.lists.filters import bounded_filters, facet_counter, is_unread, row_lookup
from dynamo_single.admin.lists.scanning import ORDER_VAR, ScanningChangeList
from dynamo_single.admin.references import is_exact, is_served_by_keys
from dynamo_single.admin.types import MissingPart
from dynamo_single.admin.viewing.display import hide_in_list
from dynamo_single.admin.viewing.rules import sees_all
from dynamo_single.costs import Costs, measure_requests
from dynamo_single.exceptions import DynamoSingleError, NoAccessPattern, NotSupported, TooManyMatches
from dynamo_single.orm.query.queryset import QuerySet
from dynamo_single.orm.schema.types import DynamoModel, ModelField

#: The parameter with the page size, one of ``list_page_sizes``.
SIZE_VAR = "size"
#: The parameter with the cursor at which a page of a large list begins.
CURSOR_VAR = "cursor"


class KeyChangeList(ScanningChangeList):
    """Django's list. Keys serve what they can; the rest is computed from rows in memory if there are few enough.

    ``held_rows`` is the number of rows in memory, and ``costs`` the cost of reading them. ``left_out`` names the
    omitted parts, and ``missing_keys`` proposes keys for them to developers.
    """

    held_rows: int | None = None
    missing_keys: Sequence[tuple[str, str]] = ()
    _filters: Any = None
    #: Whether the list is known to exceed the bound, so that its rows are not counted.
    _is_large = False
    costs = Costs()
    found_by_keys = ""
    next_cursor: str | None = None
    previous_cursor: str | None = None

    def __init__(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        args, kwargs = secrets.list_arguments(request, *args, **kwargs)
        self.lacking: list[MissingPart] = []
        self.unserved: list[Any] = []
        self.request = request
        self._cursor = request.GET.get(CURSOR_VAR)
        self._scan = request.GET.get(stepwise.SCAN_VAR)
        in_memory.ensure_shared_rows(request)
        with measure_requests() as self.costs:
            super().__init__(*args, **kwargs)
            if not _is_action(request) and not downloads.is_download(request):
                self._ask_filters(request)
                related.warn_of_search(request, self.model_admin, self._searched())
        self._describe(request)
        self._serve_dates_of_others(request)
        hide_in_list(self, request)
        self.tenant = tenants.tenant_of(self.model_admin)
        if self.tenant is not None and self.progress is None:
            tenants.remember(request, self.model_admin, self.tenant)
        if self.offer_scans(request):
            self.params[stepwise.SCAN_VAR] = stepwise.sign_offer(request)  # for the form of the search

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> Any:
        """Return the queryset of the rows."""
        for name in (CURSOR_VAR, stepwise.SCAN_VAR):
            self.params.pop(name, None)
            self.filter_params.pop(name, None)
        self.root_queryset = in_memory.with_cache(request, self.model_admin, self.root_queryset)
        try:
            queryset: Any = super().get_queryset(request, exclude_parameters)
        except IncorrectLookupParameters as error:
            # Django would show the whole list instead of reporting a wrong filter.
            if error.args and isinstance(error.args[0], DynamoSingleError):
                raise error.args[0] from error
            raise
        may_follow = exclude_parameters is None and self._may_compare_rows(request)
        self.followed = ()
        try:
            if not may_follow or self.place is None or not self.place.follows:
                return related.resolved(request, self.model_admin, queryset)
        except related.TooManyRelated:
            is_page = not downloads.is_download(request) and not self._is_scanned and self.place is None
            if is_page and self.query and related.leave_out_search(request, self.model, self._searched()):
                return self.get_queryset(request, exclude_parameters)
            if not may_follow:
                raise
        # The page must not show this queryset without them: ``get_results()`` scans.
        self.followed = queryset._asked.inside
        return related.without_conditions(queryset)

    def _searched(self) -> list[str]:
        return [str(name) for name in self.search_fields]

    def _may_compare_rows(self, request: HttpRequest) -> bool:
        """Return whether a scan may compare conditions: for a page of rows, or for an action on rows that it names."""
        is_named = request.POST.get("select_across", "0") in ("0", "")
        return bool(self.scan_budget) and is_named and not downloads.is_download(request)

    def get_filters_params(self, params: Any = None) -> dict[str, object]:
        """Return Django's parameters without the page's size, which is not a filter."""
        found: dict[str, Any] = super().get_filters_params(params)
        found.pop(SIZE_VAR, None)
        return found

    @property
    def sizes(self) -> list[tuple[int, str]]:
        """The sizes that a page may have and their addresses, if the list is longer than the smallest one."""
        admin: Any = self.model_admin
        offered = sorted({*admin.list_page_sizes, admin.list_per_page})
        if self.is_counted and self.result_count <= offered[0]:
            return []
        return [(size, self.get_query_string({SIZE_VAR: size})) for size in offered]

    def get_filters(self, request: HttpRequest) -> Any:
        """Return Django's filters, created once: they read choices, and facets ask for them repeatedly."""
        if self._filters is None:
            model: Any = self.model
            self.list_filter = bounded_filters(model, self.list_filter)
            self._filters = super().get_filters(request)
        specs, has_filters, params, _has_duplicates, *others = self._filters
        # A condition on relations finds each row once, so that Django need not remove duplicates.
        return ([*specs], has_filters, {**params}, False, *others)

    def apply_select_related(self, qs: Any) -> Any:
        """Read the references of columns and paths in batches, also those that may be empty."""
        if self.list_select_related is False:
            columns = [name.partition("__")[0] for name in self.list_display if isinstance(name, str)]
            shown = [field.name for field in map(self._field, dict.fromkeys(columns)) if isinstance(field, ForeignKey)]
            return qs.select_related(*shown) if shown else qs
        if self.list_select_related is True:
            references = [field.name for field in self.lookup_opts.concrete_fields if isinstance(field, ForeignKey)]
            return qs.select_related(*references) if references else qs
        return super().apply_select_related(qs)

    def _field(self, column: object) -> ModelField | None:
        names = {field.name: field for field in self.lookup_opts.concrete_fields}
        return names.get(column) if isinstance(column, str) else None

    def _is_served(self, queryset: QuerySet[DynamoModel], column: Any) -> bool:
        order = self.get_ordering_field(column)
        if order is None:
            return False
        try:
            ordered = queryset.order_by(order)
        except DynamoSingleError:
            return False
        return is_served_by_keys(ordered) if in_memory.cache_of(queryset) else is_exact(ordered)

    def get_ordering_field(self, field_name: Any) -> Any:
        """Return the order of a column as Django does, except for an order that compares secrets."""
        found = super().get_ordering_field(field_name)
        return None if secrets.is_secret(self.model_admin, found) else found

    def get_ordering(self, request: HttpRequest, queryset: Any) -> list[Any]:
        """Return Django's order without secrets."""
        return secrets.without_secrets(self.model_admin, super().get_ordering(request, queryset))

    def _leave_out_order(self) -> None:
        """Keep the order of the key, and name the order that no key supports: the columns, or the default order."""
        chosen, admin = self.params.pop(ORDER_VAR, None), self.model_admin
        self.filter_params.pop(ORDER_VAR, None)
        if not chosen:
            ordering = secrets.without_secrets(admin, super().get_ordering(self.request, self.root_queryset))
            if ordering:
                self._leave_out(_("its default order"), key_advice.ordering(*ordering))
            return
        numbers = [int(number) for each in chosen.split(".") if (number := each.rpartition("-")[2]).isdecimal()]
        for name in dict.fromkeys(self.list_display[number] for number in numbers if number < len(self.list_display)):
            order = self.get_ordering_field(name)
            if order is not None:
                self._leave_out(*key_advice.column_order(self, name))

    def _get_deterministic_ordering(self, ordering: Any) -> list[str]:
        # Django adds "-pk", which few keys serve; the order of a key is total already (private to Django).
        return list(ordering)

    @property
    def left_out(self) -> list[str]:
        """The parts that the page leaves out."""
        return [each.what for each in self.lacking]

    @property
    def is_too_large(self) -> bool:
        """Whether the page leaves something out because of the number of rows; otherwise no key lists them all."""
        return not self.is_counted or in_memory.is_disabled(self.request) or in_memory.is_exceeded(self.request)

    @property
    def is_heavy(self) -> bool:
        """Whether the page leaves something out because of the bytes of the rows."""
        return self.is_too_large and in_memory.is_heavy(self.request, self.model_admin)

    @property
    def max_bytes(self) -> int:
        """The most bytes that the list may keep in memory."""
        return in_memory.max_bytes_of(self.model_admin)

    def _leave_out(self, what: Any, asked: Any = None, *, is_counted: bool = False) -> None:
        if str(what) not in self.left_out:
            self.lacking.append(MissingPart(str(what), asked, is_counted))

    def _example(self, name: str, operator: str) -> Callable[[QuerySet[DynamoModel]], QuerySet[DynamoModel]]:
        field = self._field(name)
        found = None if field is None else key_advice.example_value(self.result_list, field.attname)
        return key_advice.filtering(f"{name}__{operator}", found)

    def get_results(self, request: HttpRequest) -> None:
        """Read the page by a key, with one Query and a counting one if there are more pages, or from memory."""
        self.show_full_result_count = False
        admin: Any = self.model_admin
        offered = {str(size): size for size in admin.list_page_sizes}
        self.list_per_page = offered.get(request.GET.get(SIZE_VAR, ""), self.list_per_page)
        if downloads.is_download(request):
            self._hold_for_download()
        if _is_action(request):
            # An action has its own queryset, and returns a redirect or a page without this list.
            self.result_list: Any = []
            self.result_count = 0
            return
        if self.place is not None or self.followed:
            self.look_through(self.place or stepwise.ScanProgress())
            return
        if self._cursor is not None:
            self._read_by_keys(request)
            return
        # Rows that the page needs anyway also serve the list. If there are too many, keys do.
        asks_all = self.date_hierarchy or self.add_facets or any(map(row_lookup, self.filter_specs))
        if asks_all and not self._is_held() and in_memory.is_exceeded_by(self.root_queryset):
            self._read_by_keys(request)
            return
        try:
            self._read(request)
        except TooManyMatches:
            if not in_memory.is_exceeded(request):
                raise
            self._read_by_keys(request)
        except NoAccessPattern:
            is_narrowed = self.query or self.get_filters_params()
            if not self.scan_budget or not is_narrowed or tenants.tenant_of(self.model_admin):
                raise
            self.look_through(stepwise.ScanProgress())

    def _read_by_keys(self, request: HttpRequest) -> None:
        """Read a page of a large list, or the first step of a scan if keys do not support it or find a row."""
        # All rows were too many, and need not be counted.
        is_whole = not self.query and not self.get_filters_params()
        self._is_large = is_whole and in_memory.is_exceeded_by(self.root_queryset)
        held = in_memory.disable(request), self.queryset, self.root_queryset
        self.is_complete = not self.query or not self.search_fields
        try:
            self.root_queryset = self.model_admin.get_queryset(request)
            self.queryset = self.get_queryset(request)
            if not self.is_complete:
                self._explain_search(request)
            is_served = self._keep_order_of_key()
        except NotSupported:  # a comparison that only Python supports
            if not self.scan_budget:
                raise
            is_served = False
        if is_served or self._cursor is not None:
            self._read(request)
            if self.result_list or self.is_complete or self._cursor is not None or not self.scan_budget:
                return
        if not self.scan_budget:
            raise in_memory.ListTooLarge(self)
        shared, self.queryset, self.root_queryset = held
        in_memory.enable(request, shared)
        self.found_by_keys = ""
        self.look_through(stepwise.ScanProgress())

    def _keep_order_of_key(self) -> bool:
        """Return whether keys support the query, if necessary without its order, which the page then leaves out."""
        if is_exact(self.queryset):
            return True
        self._leave_out_order()
        unordered = self.queryset.order_by()
        if not is_exact(unordered):
            return False
        self.queryset = unordered
        return True

    def without_search(self) -> Any:
        """Return the rows that match the filters."""
        before, self.query = dict(self.__dict__), ""
        try:
            return self.get_queryset(self.request)
        finally:
            self.__dict__.update(before)  # the page has already decided how it shows its filters

    def _explain_search(self, request: HttpRequest) -> None:
        _found, used = search.search_by_keys(self.without_search(), self._searched(), self.query.strip())
        self.found_by_keys = search.result_text(used, self.query.strip()) if used else ""

    def _read(self, request: HttpRequest) -> None:
        admin: Any = self.model_admin
        self.paginator = admin.get_paginator(request, self.queryset, self.list_per_page)
        if self._cursor is not None:
            self._read_from(self._cursor)
            return
        limit, before = in_memory.limit_of(admin), (self.page_num - 1) * self.list_per_page
        try:
            if limit and (before > limit or (before > in_memory.MAX_OTHERS and not self._has_page())):
                raise EmptyPage
            page = self.paginator.page(self.page_num)
            self.result_list = page.object_list
            self.result_count = self._count(page)
        except InvalidPage as error:
            raise IncorrectLookupParameters from error
        if self.show_all and self.result_count <= self.list_max_show_all and self.result_count > self.list_per_page:
            self.result_list = list(self.queryset)

    def _has_page(self) -> bool:
        """Return whether a list has so many rows: it counts them, before the page reads all rows up to its own."""
        try:
            count = in_memory.count_rows(self.model_admin, self.queryset)
        except TooManyMatches:
            return False
        return count > (self.page_num - 1) * self.list_per_page

    def _hold_for_download(self) -> None:
        """Read the rows of a download within the bounds of the list; then all of them are one page."""
        limit = in_memory.limit_of(self.model_admin)
        with suppress(NotSupported):  # ``downloads.response()`` reports that rows are missing
            if limit:
                in_memory.read_rows(self.queryset)
                self.list_per_page = limit

    def _count(self, page: object) -> int:
        if self._is_large:
            self._give_pages(page)
            return len(self.result_list)
        known = self.paginator.__dict__  # which contains the count if the page knows it
        try:
            if "count" not in known:
                known["count"] = in_memory.count_rows(self.model_admin, self.queryset)
            return int(known["count"])
        except TooManyMatches:
            if in_memory.is_exceeded(self.request):
                raise
            self._give_pages(page)
            return len(self.result_list)

    def _give_pages(self, page: Any) -> None:
        """Prepare the first page of a list that is not counted: the next page begins at its end."""
        if self.page_num != 1:
            raise EmptyPage
        self.is_counted = False
        plain = in_memory.without_cache(self.queryset)
        self.next_cursor = plain.cursor_for(page.object_list[-1]) if page.has_next() else None

    def _read_from(self, cursor: str) -> None:
        plain = in_memory.without_cache(self.queryset)
        if not is_exact(plain):
            raise IncorrectLookupParameters
        page = plain.page(self.list_per_page, cursor)
        self.is_counted = False
        self.result_list = list(page)
        self.result_count = len(self.result_list)
        self.next_cursor, self.previous_cursor = page.next_cursor, page.previous_cursor

    @property
    def csv_link(self) -> str | None:
        """The address of all rows as a file, if their number is known and within the bound of the list."""
        is_offered = self.is_counted and not self.is_popup and self.result_count
        if not is_offered or self.result_count > (in_memory.limit_of(self.model_admin) or self.list_per_page):
            return None
        return self.get_query_string({downloads.CSV_VAR: "", "p": None, SIZE_VAR: None, "all": None})

    @property
    def next_link(self) -> str | None:
        """The address of the next page of a list that is not counted."""
        return self.get_query_string({CURSOR_VAR: self.next_cursor}) if self.next_cursor else None

    @property
    def previous_link(self) -> str | None:
        """The address of the previous page of a list that is not counted."""
        return self.get_query_string({CURSOR_VAR: self.previous_cursor}) if self.previous_cursor else None

    def _ask_filters(self, request: HttpRequest) -> None:
        """Evaluate the values that the template will show. Unsupported parts are omitted and named."""
        if self.date_hierarchy and not self._is_held():
            self._leave_out(_("the dates"), self._example(self.date_hierarchy, "gte"), is_counted=True)
            self.date_hierarchy = None
        if self.add_facets and not self._is_held():
            self._leave_out(_("the numbers next to the filters"), is_counted=True)
            self.add_facets = False
        shown = []
        self._offers_scan = self.offer_scans(request)
        for spec in self.filter_specs:
            if (lookup := row_lookup(spec)) and not self._is_held():
                asked = self._example(getattr(spec, "field_path", ""), lookup)
                self._leave_out(_("the filter by %(title)s") % {"title": spec.title}, asked, is_counted=True)
                continue
            if is_unread(spec, is_counted=self.add_facets):
                self._leave_out(_("the filter by %(title)s") % {"title": spec.title}, is_counted=True)
                continue
            counter = facet_counter(spec, self.model_admin) if self.add_facets else None
            if counter is not None:
                counted: Any = spec
                counted.get_facet_queryset = functools.partial(counter, spec)
            spec.choices = _cached_choices(list(spec.choices(self)))  # type: ignore[method-assign]  # of this request's filter
            shown.append(spec)
        self.filter_specs = shown
        self.has_filters = bool(shown)
        self._offers_scan = False

    def _serve_dates_of_others(self, request: HttpRequest) -> None:
        """Let the template compute dates at a path from the rows and the objects that they refer to.

        Sends the requests of the rows twice, with a batch for each hundred of these objects. The dates are left out for
        users who may not see all of the objects, if they have more bytes than the rows may have, and beyond references.
        """
        path, model = self.date_hierarchy, cast("type[DynamoModel]", self.model)
        if not path or not paths.leads_on(model, path):
            return
        *relations, _last = get_fields_from_path(model, path)
        site, steps = self.model_admin.admin_site, len(relations) + 1
        limit, max_bytes = in_memory.limit_of(self.model_admin), in_memory.max_bytes_of(self.model_admin)
        plain: Any = in_memory.without_cache(self.queryset)
        dates, ends = plain.allow_in_memory(limit * steps, max_bytes=max_bytes * steps), None
        if all(isinstance(each, ForeignKey) and sees_all(site, request, each.related_model) for each in relations):
            with suppress(TooManyMatches):
                ends = dates.aggregate(first=Min(path), last=Max(path))
        if ends is None:
            self._leave_out(_("the dates"))
            self.date_hierarchy = None
            return
        dates.aggregate = lambda **_measures: ends  # the template asks for the same
        self.queryset = dates

    def _is_held(self) -> bool:
        """Return whether all rows of the list are in memory; read them if they may be."""
        if not self.is_counted or not in_memory.cache_of(self.root_queryset):
            return False
        try:
            in_memory.read_rows(self.root_queryset)
        except (TooManyMatches, NotSupported):
            return False
        return True

    def _describe(self, request: HttpRequest) -> None:
        limit = in_memory.limit_of(self.model_admin)
        is_small = self.is_small(request)
        unordered = (self.queryset if is_small else in_memory.without_cache(self.queryset)).order_by()
        sortable = [name for name in self.sortable_by or () if self.get_ordering_field(name) is not None]
        self.sortable_by = [name for name in sortable if self._is_served(unordered, name)]
        self.unserved = [name for name in sortable if name not in self.sortable_by]
        self.list_max_in_memory = limit
        self.held_limit = limit if in_memory.has_row_limit(self.model_admin) else filesizeformat(self.max_bytes)
        # The counts would reveal the number of hidden rows to other users.
        is_costed = sees_all(self.model_admin.admin_site, request, self.model)
        self.held_rows = in_memory.cached_row_count(request) if is_costed else None
        self.can_show_all = self.is_counted and self.result_count <= self.list_max_show_all
        self.multi_page = self.is_counted and self.result_count > self.list_per_page
        # Without a filter or a search the two counts are equal; otherwise the template shows "Show all".
        is_narrowed = self.progress is None and (self.query or self.has_active_filters)
        self.full_result_count = None if is_narrowed else self.result_count
        self.show_admin_actions = bool(self.result_list) or self.progress is not None
        is_part = self.lacking or not is_small
        if is_part and not _is_action(request) and is_developer(request.user):
            self.missing_keys = key_advice.advice(self) if self.progress is None else key_advice.scan_advice(self)


def _is_action(request: HttpRequest) -> bool:
    return request.method == "POST" and "_save" not in request.POST


def _cached_choices(choices: list[object]) -> Any:
    return lambda changelist: iter(choices)
