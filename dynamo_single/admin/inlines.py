"""Inlines for children that are stored in DynamoDB.

Django shows a form for each child. A page with more inputs than ``DATA_UPLOAD_MAX_NUMBER_FIELDS`` returns a bad request
(400) when it is submitted, after the user has entered everything. Such inlines are therefore left out of a form:
https://docs.djangoproject.com/en/stable/ref/settings/#data-upload-max-number-fields
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from django.conf import settings
from django.contrib.admin.options import StackedInline, TabularInline
from django.forms import MultiWidget, Widget
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.http import urlencode

from dynamo_single.admin import trash
from dynamo_single.admin.editing.merging import MergingMixin, RowFieldsMixin
from dynamo_single.admin.editing.saving import FormContextMixin
from dynamo_single.admin.forms import KeyInlineFormSet
from dynamo_single.admin.lists.autocomplete import AutocompleteMixin
from dynamo_single.admin.references import ReferencesMixin, read_by_pages
from dynamo_single.admin.secrets import SecretsMixin
from dynamo_single.admin.viewing.choices import VisibleRows, all_rows, only_visible
from dynamo_single.backend.errors import is_stored_in_dynamodb
from dynamo_single.orm.schema.types import DynamoModel

#: The template that replaces the rows.
TEMPLATE = "dynamo_single/admin/left_out.html"
#: The suffix of the hidden input with which a submitted form reports that it did not show the rows.
_MARK = "LEFT_OUT"
#: The additional inputs of a form: the management form of a formset, or the buttons and the token of the page.
_BESIDE = 5


def limit_of(inline: object) -> int | None:
    """Return the most rows that an inline shows; ``None`` for Django's inlines, and for one without a bound."""
    found: int | None = getattr(inline, "max_rows", None)
    return found


def read_rows(formset: Any, inline: object) -> None:
    """Read at most one row more than the inline shows: a Query for each megabyte."""
    limit, queryset = limit_of(inline), all_rows(formset)
    if limit is None or formset.is_bound or not is_stored_in_dynamodb(formset.model):
        return
    if getattr(queryset, "_result_cache", ()) is None:
        rows: Iterable[Any] = read_by_pages(queryset)
        _set_rows(formset, [*islice(formset.visible(rows) if isinstance(formset, VisibleRows) else rows, limit + 1)])


def _set_rows(formset: Any, rows: list[Any]) -> None:
    formset.get_queryset = lambda: rows
    formset.__dict__.pop("forms", None)


def replace_large_inlines(request: HttpRequest, form: Any, shown: Iterable[object], obj: Any) -> None:
    """Replace inlines that have too many rows with a sentence; ``shown`` contains Django's ``InlineAdminFormSet``.

    If several inlines are too large together, the largest ones are replaced. They remain replaced if the form is shown
    again with errors. Does not send a request.
    """
    sizes: dict[int, int] = {}
    left: list[Any] = []
    given: list[Any] = [*shown]
    own = [each for each in given if limit_of(each.opts) is not None and is_stored_in_dynamodb(each.formset.model)]
    for each in own:
        if each.formset.is_bound:
            left += [each] if _mark_of(each.formset) in request.POST and not each.formset.forms else []
        elif len(each.formset.get_queryset()) > each.opts.max_rows:
            left.append(each)
        else:
            sizes[id(each)] = each.formset.total_form_count() * _inputs_of_row(each)
    limit = settings.DATA_UPLOAD_MAX_NUMBER_FIELDS
    if limit is not None and not form.is_bound:
        room = limit - _inputs(form) - _BESIDE * (1 + len(own))
        for each in sorted(own, key=lambda each: sizes.get(id(each), 0)):
            room -= sizes.get(id(each), 0)
            if room < 0 and sizes.get(id(each)) and each.formset.initial_form_count():
                left.append(each)
    for each in left:
        _replace_large_inlines(request, each, obj)


def _replace_large_inlines(request: HttpRequest, shown: Any, obj: Any) -> None:
    if not shown.formset.is_bound:
        shown.formset.extra = shown.formset.min_num = 0
        _set_rows(shown.formset, [])
    # An inline and its formset are created for one request.
    shown.opts.template = TEMPLATE
    shown.dynamo_mark = _mark_of(shown.formset)
    shown.dynamo_list_url = _list_url(request, shown, obj)


def _mark_of(formset: Any) -> str:
    return f"{formset.prefix}-{_MARK}"


def _list_url(request: HttpRequest, shown: Any, obj: Any) -> str:
    """Return the address of the list of the children; empty without such a list for this user, and in the trash."""
    meta, site = shown.opts.opts, shown.opts.admin_site
    if trash.is_deleted(obj) or not site.is_registered(shown.opts.model):
        return ""
    if not site.get_model_admin(shown.opts.model).has_view_or_change_permission(request):
        return ""
    try:
        address = reverse(f"{site.name}:{meta.app_label}_{meta.model_name}_changelist")
    except NoReverseMatch:
        return ""
    return f"{address}?{urlencode({f'{shown.formset.fk.name}__exact': obj.pk})}"


def _inputs_of_row(shown: Any) -> int:
    """Return how many inputs a row has; a read-only row has those of its keys."""
    return _inputs(shown.formset.empty_form) if shown.has_change_permission else 2


def _inputs(form: Any) -> int:
    return sum(_inputs_of(field.widget) for field in form.fields.values())


def _inputs_of(widget: Widget) -> int:
    return sum(map(_inputs_of, widget.widgets)) if isinstance(widget, MultiWidget) else 1


class _Children(SecretsMixin, MergingMixin, RowFieldsMixin, ReferencesMixin, AutocompleteMixin):
    """The common base of both kinds of inlines."""

    formset = KeyInlineFormSet
    extra = 0
    #: The most children that a page shows. A sentence replaces more children, or more inputs than a request may have.
    max_rows = 200

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return what Django does; nothing can be added to an object in the trash."""
        inline: Any = super()
        return not trash.is_deleted(obj) and bool(inline.has_add_permission(request, obj))

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return what Django does; children of an object in the trash are read-only."""
        return not trash.is_deleted(obj) and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return what Django does; ``False`` on the page of an object in the trash."""
        return not trash.is_deleted(obj) and super().has_delete_permission(request, obj)

    def get_formset(self, request: HttpRequest, obj: Any = None, **kwargs: object) -> Any:
        """Return Django's formset without the rows that the registered admin of their model hides."""
        inline: Any = self
        return only_visible(super().get_formset(request, obj, **kwargs), inline.admin_site, request)


class DynamoTabularInline(_Children, TabularInline):  # type: ignore[type-arg, misc]  # not generic at run time
    """Children as rows of a table: one Query, which several inlines share if their rows are in one partition."""


class DynamoStackedInline(_Children, StackedInline):  # type: ignore[type-arg, misc]  # not generic at run time
    """Children below each other: one Query, as for ``DynamoTabularInline``."""


def children_of(queryset: Any, obj: DynamoModel) -> Any:
    """Return the children to show below an object: for one in the trash, those that were deleted with it."""
    if not trash.is_deleted(obj) or not is_stored_in_dynamodb(queryset.model) or not trash.has_trash(queryset.model):
        return queryset
    return trash.deleted_with(queryset, obj)


class InlinesMixin(FormContextMixin):
    """A ``ModelAdmin`` whose pages read the children of several inlines with one Query if they are adjacent."""

    def get_formsets_with_inlines(self, request: HttpRequest, obj: Any = None) -> Iterator[tuple[Any, Any]]:
        """Return Django's formsets; the rows of a read-only page are read together, which Django reads one by one."""
        django: Any = super()
        found = list(django.get_formsets_with_inlines(request, obj))
        is_shown = obj is not None and request.method != "POST" and len(found) > 1
        if not is_shown or all(inline.has_change_permission(request, obj) for _, inline in found):
            yield from found
            return
        formsets = [
            formset(instance=obj, queryset=children_of(inline.get_queryset(request), obj)) for formset, inline in found
        ]
        _read_together(formsets)
        for (formset, inline), shown in zip(found, formsets, strict=True):
            yield _formset_with_rows(formset, shown.get_queryset()), inline

    def _create_formsets(self, request: HttpRequest, obj: object, change: bool) -> tuple[list[object], list[object]]:
        django: Any = super()
        formsets, inlines = django._create_formsets(request, obj, change)
        if change and len(formsets) > 1:
            _read_together(formsets)
        if change:
            for formset, inline in zip(formsets, inlines, strict=True):
                read_rows(formset, inline)
        return formsets, inlines

    def _prepare_form(self, request: HttpRequest, context: dict[str, Any], obj: Any) -> None:
        super()._prepare_form(request, context, obj)
        if obj is not None:
            replace_large_inlines(request, context["adminform"].form, context.get("inline_admin_formsets", ()), obj)


def _formset_with_rows(formset: Any, rows: Sequence[DynamoModel]) -> type:
    """Return a class of formsets whose rows have been read."""
    return type(formset.__name__, (formset,), dict.fromkeys(("get_queryset", "all_rows"), lambda self: rows))


def _read_together(formsets: Sequence[Any]) -> None:
    # A submitted form only needs the rows that it contains.
    shown = [formset for formset in formsets if not formset.is_bound or formset.initial_form_count()]
    querysets = [all_rows(formset) for formset in shown if is_stored_in_dynamodb(formset.model)]
    # The rows of formsets that have been evaluated are lists.
    unread = [queryset for queryset in querysets if getattr(queryset, "_result_cache", ()) is None]
    if len(unread) > 1:
        unread[0]._fetch_with(unread[1:])
