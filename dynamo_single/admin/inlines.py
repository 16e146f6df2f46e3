"""Inlines for children that live in DynamoDB."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from django.contrib.admin.options import StackedInline, TabularInline
from django.http import HttpRequest

from dynamo_single.admin import fitting, trash
from dynamo_single.admin.editing.merging import MergesEdits
from dynamo_single.admin.editing.page import ExtendsForm
from dynamo_single.admin.editing.rows import HasRows
from dynamo_single.admin.forms import KeyInlineFormSet
from dynamo_single.admin.references import KnowsReferences
from dynamo_single.admin.secrets import HidesSecrets
from dynamo_single.admin.viewing.rows import all_rows, only_visible
from dynamo_single.backend.errors import is_stored_in_dynamodb
from dynamo_single.orm.schema.kinds import DynamoModel


class _Children(HidesSecrets, MergesEdits, HasRows, KnowsReferences):
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


def of_parent(queryset: Any, obj: DynamoModel) -> Any:
    """Return the children to show below an object: for one in the trash, those that were deleted with it."""
    if not trash.is_deleted(obj) or not is_stored_in_dynamodb(queryset.model) or not trash.has_trash(queryset.model):
        return queryset
    return trash.went_along(queryset, obj)


class ReadsInlinesTogether(ExtendsForm):
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
            formset(instance=obj, queryset=of_parent(inline.get_queryset(request), obj)) for formset, inline in found
        ]
        _read_together(formsets)
        for (formset, inline), shown in zip(found, formsets, strict=True):
            yield _showing(formset, shown.get_queryset()), inline

    def _create_formsets(self, request: HttpRequest, obj: object, change: bool) -> tuple[list[object], list[object]]:
        django: Any = super()
        formsets, inlines = django._create_formsets(request, obj, change)
        if change and len(formsets) > 1:
            _read_together(formsets)
        if change:
            for formset, inline in zip(formsets, inlines, strict=True):
                fitting.read_rows(formset, inline)
        return formsets, inlines

    def _prepare_form(self, request: HttpRequest, context: dict[str, Any], obj: Any) -> None:
        super()._prepare_form(request, context, obj)
        if obj is not None:
            fitting.leave_out(request, context["adminform"].form, context.get("inline_admin_formsets", ()), obj)


def _showing(formset: Any, rows: Sequence[DynamoModel]) -> type:
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
