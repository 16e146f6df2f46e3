"""The way from an object's page to its item in the table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from django.contrib.admin import ModelAdmin
from django.http import HttpRequest

from dynamo_single.admin.table import views

if TYPE_CHECKING:
    _Base = ModelAdmin[Any]
else:
    _Base = object

_STOCK = "admin/change_form.html"
_OURS = "dynamo_single/admin/change_form.html"


class LeadsToItem(_Base):
    """Has "Show in table" on an object's page, for those who may see the table; a template of the project's wins."""

    def render_change_form(
        self,
        request: HttpRequest,
        context: dict[str, object],
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: Any = None,
    ) -> Any:
        """Django's page, with the address of the item."""
        site: Any = self.admin_site
        if obj is not None and hasattr(site, "is_secret"):
            context["dynamo_item_url"] = views.item_url_of(site, request, obj)
        response: Any = super().render_change_form(request, context, add, change, form_url, obj)
        templates = getattr(response, "template_name", None)
        if isinstance(templates, Sequence) and not isinstance(templates, str):
            response.template_name = [_OURS if name == _STOCK else name for name in templates]
        return response
