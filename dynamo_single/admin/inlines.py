"""Inlines for children that live in DynamoDB."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib.admin.options import StackedInline, TabularInline
from django.http import HttpRequest

from dynamo_single.admin.merging import MergesEdits
from dynamo_single.admin.references import KnowsReferences
from dynamo_single.backend.errors import is_stored_in_dynamodb


class DynamoTabularInline(MergesEdits, KnowsReferences, TabularInline):  # type: ignore[type-arg]  # not generic at run time
    """Children as rows of a table; reading them is one Query, which several inlines share if a partition holds them."""

    extra = 0


class DynamoStackedInline(MergesEdits, KnowsReferences, StackedInline):  # type: ignore[type-arg]  # not generic at run time
    """Children one below the other; reading them is one Query, as for ``DynamoTabularInline``."""

    extra = 0


class ReadsInlinesTogether:
    """A ``ModelAdmin`` whose pages read the children of several inlines by one Query, where one gives them."""

    def _create_formsets(self, request: HttpRequest, obj: object, change: bool) -> tuple[list[object], list[object]]:
        django: Any = super()
        formsets, inlines = django._create_formsets(request, obj, change)
        if change and len(formsets) > 1:
            _read_together(formsets)
        return formsets, inlines


def _read_together(formsets: Sequence[Any]) -> None:
    # Of a form that was sent, only what it holds is looked up.
    shown = [formset for formset in formsets if not formset.is_bound or formset.initial_form_count()]
    querysets = [formset.get_queryset() for formset in shown if is_stored_in_dynamodb(formset.model)]
    unread = [queryset for queryset in querysets if queryset._result_cache is None]
    if len(unread) > 1:
        unread[0]._fetch_with(unread[1:])
