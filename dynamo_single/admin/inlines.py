"""Inlines for children that live in DynamoDB."""

from __future__ import annotations

from django.contrib.admin.options import StackedInline, TabularInline


class DynamoTabularInline(TabularInline):  # type: ignore[type-arg]  # not generic at run time
    """Children as rows of a table; reading them is one Query."""

    extra = 0


class DynamoStackedInline(StackedInline):  # type: ignore[type-arg]  # not generic at run time
    """Children one below the other; reading them is one Query."""

    extra = 0
