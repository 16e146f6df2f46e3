"""Inlines for children that live in DynamoDB."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from django.contrib.admin.options import StackedInline, TabularInline
from django.http import HttpRequest

from dynamo_single.admin.merging import MergesEdits
from dynamo_single.admin.references import KnowsReferences
from dynamo_single.backend.errors import is_stored_in_dynamodb
from dynamo_single.orm.query.queryset import QuerySet
from dynamo_single.orm.schema.kinds import DynamoModel


class DynamoTabularInline(MergesEdits, KnowsReferences, TabularInline):  # type: ignore[type-arg]  # not generic at run time
    """Children as rows of a table; reading them is one Query, which several inlines share if a partition holds them."""

    extra = 0


class DynamoStackedInline(MergesEdits, KnowsReferences, StackedInline):  # type: ignore[type-arg]  # not generic at run time
    """Children one below the other; reading them is one Query, as for ``DynamoTabularInline``."""

    extra = 0


class ReadsInlinesTogether:
    """A ``ModelAdmin`` whose pages read the children of several inlines by one Query, where one gives them."""

    def get_formsets_with_inlines(self, request: HttpRequest, obj: Any = None) -> Iterator[tuple[Any, Any]]:
        """Django's; where a page only shows children, they are read here, as Django reads them one kind at a time."""
        django: Any = super()
        found = list(django.get_formsets_with_inlines(request, obj))
        shows = [not inline.has_change_permission(request, obj) for _, inline in found]
        if obj is None or request.method == "POST" or len(found) < 2 or not any(shows):
            yield from found
            return
        formsets = [formset(instance=obj, queryset=inline.get_queryset(request)) for formset, inline in found]
        _read_together(formsets)
        for (formset, inline), shown in zip(found, formsets, strict=True):
            yield _showing(formset, shown.get_queryset()), inline

    def _create_formsets(self, request: HttpRequest, obj: object, change: bool) -> tuple[list[object], list[object]]:
        django: Any = super()
        formsets, inlines = django._create_formsets(request, obj, change)
        if change and len(formsets) > 1:
            _read_together(formsets)
        return formsets, inlines


def _showing(formset: Any, queryset: QuerySet[DynamoModel]) -> Any:
    """A class of formsets whose rows are read already."""
    return type(formset.__name__, (formset,), {"get_queryset": lambda self: queryset})


def _read_together(formsets: Sequence[Any]) -> None:
    # Of a form that was sent, only what it holds is looked up.
    shown = [formset for formset in formsets if not formset.is_bound or formset.initial_form_count()]
    querysets = [formset.get_queryset() for formset in shown if is_stored_in_dynamodb(formset.model)]
    unread = [queryset for queryset in querysets if queryset._result_cache is None]
    if len(unread) > 1:
        unread[0]._fetch_with(unread[1:])
