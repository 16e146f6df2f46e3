"""Inlines for children that live in DynamoDB."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.admin.options import BaseModelAdmin, InlineModelAdmin, StackedInline, TabularInline
from django.http import HttpRequest

if TYPE_CHECKING:
    _Base = InlineModelAdmin[Any, Any]
else:
    _Base = InlineModelAdmin


class _OwnPermissions(_Base):
    """The child model's own permissions decide.

    Django takes an auto-created model for a many-to-many table and asks for permission on its other side; ours are
    marked so only to be hidden from migrations.
    """

    extra = 0

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whether the user may add objects of the child model."""
        return BaseModelAdmin.has_add_permission(self, request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whether the user may change objects of the child model."""
        return BaseModelAdmin.has_change_permission(self, request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whether the user may delete objects of the child model."""
        return BaseModelAdmin.has_delete_permission(self, request, obj)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whether the user may see objects of the child model."""
        return BaseModelAdmin.has_view_permission(self, request, obj)


class DynamoTabularInline(_OwnPermissions, TabularInline):  # type: ignore[type-arg]  # not generic at run time
    """Children as rows of a table; reading them is one Query."""


class DynamoStackedInline(_OwnPermissions, StackedInline):  # type: ignore[type-arg]  # not generic at run time
    """Children one below the other; reading them is one Query."""
