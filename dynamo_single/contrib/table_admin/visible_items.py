"""Who may see which parts of a table: a permission for each page, and the view permission of an item's model."""

from __future__ import annotations

from django.contrib.admin.sites import AdminSite
from django.http import HttpRequest
from django.utils.translation import gettext as _

from dynamo_single.admin.viewing.pages import Wrong
from dynamo_single.admin.viewing.rules import is_narrowed, may_view, may_view_model, sees_all
from dynamo_single.conf import aliases
from dynamo_single.contrib.table_admin.item_view import model_shown
from dynamo_single.exceptions import InvalidValue, UnexpectedItem
from dynamo_single.orm.items.decode import instance
from dynamo_single.orm.requests.actions import Item
from dynamo_single.orm.schema.registry import model_of_type
from dynamo_single.table import names

#: The permissions for the pages; ``dynamo_single.permissions`` contains their names.
TABLE, PATTERNS, HEALTH, COSTS = (
    f"dynamo_single.view_{page}" for page in ("table", "access_patterns", "health", "costs")
)


def may_view_item(site: AdminSite, request: HttpRequest, alias: str, item: Item) -> bool:
    """Return whether a user may see an item, by ``may_view()`` of its object. Sends no request.

    An item that belongs to an object, such as a claim, and an unreadable item are visible to users who may see every
    object of the model. An item whose model is not registered or not installed is hidden if any admin hides objects of
    the table.
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


def alias_of(request: HttpRequest) -> str:
    """Return the alias in the address; raise ``Wrong`` for an alias that is not declared."""
    name = request.GET.get("alias", "default")
    if name not in aliases():
        raise Wrong(_("There is no table with this alias."))
    return name
