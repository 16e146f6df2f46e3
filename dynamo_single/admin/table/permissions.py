"""Who sees what of a table: a permission for each page, and for each item the one to view its model."""

from __future__ import annotations

from typing import Any

from django.contrib.admin.sites import AdminSite
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest

from dynamo_single.admin.viewing.rules import is_narrowed, may_view, may_view_model, sees_all
from dynamo_single.doctor.view import model_shown
from dynamo_single.exceptions import InvalidValue, UnexpectedItem
from dynamo_single.orm.items.decode import instance
from dynamo_single.orm.requests.actions import Item
from dynamo_single.orm.schema.registry import all_models, model_of_type
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.table import names

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


def may_view_item(site: AdminSite, request: HttpRequest, alias: str, item: Item) -> bool:
    """Return whether a user may see an item: as ``may_view()`` says of its object. Does not send a request.

    What belongs to an object, such as a claim, and an item that cannot be read, is for users who see every object of
    the model. An item whose model is not registered or not installed is hidden if any admin hides objects of the table.
    """
    model = model_shown(alias, item)
    if model is None or not site.is_registered(model):
        return may_view_model(site, request, model) and not is_narrowed(site, request, alias)
    if sees_all(site, request, model):
        return True
    if model_of_type(alias, item.get(names.ITEM_TYPE, {}).get("S", "")) is not model:
        return False
    try:
        return may_view(site, request, instance(model, {name: dict(value) for name, value in item.items()}))
    except (InvalidValue, UnexpectedItem):
        return False


def sees_whole_table(site: AdminSite, request: HttpRequest, alias: str) -> bool:
    """Return whether a user sees every object of a table, so that figures of a reading tell nothing about others."""
    seen = (sees_all(site, request, model) for model in all_models() if model._options.alias == alias)
    return not is_narrowed(site, request, alias) and all(seen)
