"""Who sees what of a table: a permission for each page, and for each item the one to view its model."""

from __future__ import annotations

from typing import Any

from django.contrib.admin.sites import AdminSite
from django.contrib.auth import get_permission_codename
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest

from dynamo_single.orm.schema.kinds import DynamoModel

#: The permissions of the pages; ``dynamo_single.permissions`` has their names.
TABLE, PATTERNS, HEALTH, COSTS = (
    f"dynamo_single.view_{page}" for page in ("table", "access_patterns", "health", "costs")
)


class TableSite(AdminSite):
    """A site that has these pages."""

    def is_secret(self, model: type[DynamoModel], name: str) -> bool:
        """Return whether the site adds an attribute, by either of its names, to those that are secrets already.

        The model is ``None`` for an item of no known type. No site can remove a secret.
        """
        return False


def allows(request: HttpRequest, permission: str) -> bool:
    """Whether the user has the permission of a page."""
    user: Any = request.user
    return bool(user.is_active and user.has_perm(permission))


def demand(request: HttpRequest, permission: str) -> None:
    """Raise ``PermissionDenied`` for a user who has not the permission of a page."""
    if not allows(request, permission):
        raise PermissionDenied


def may_view(site: AdminSite, request: HttpRequest, model: Any) -> bool:
    """Whether the user may see objects of a model: as its admin says, or by its permission; of no model, everybody."""
    if model is None:
        return True
    if site.is_registered(model):
        return site.get_model_admin(model).has_view_permission(request)
    options = model._meta
    user: Any = request.user
    return any(
        user.has_perm(f"{options.app_label}.{get_permission_codename(action, options)}")
        for action in ("view", "change")
    )
