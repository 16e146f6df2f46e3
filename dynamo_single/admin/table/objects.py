"""The way from an object's page to its item in the table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.http import HttpRequest

from dynamo_single.admin.editing.saving import ExtendsForm
from dynamo_single.admin.table import views
from dynamo_single.orm.schema.types import DynamoModel

_STOCK = "admin/change_form.html"
_OURS = "dynamo_single/admin/change_form.html"


class LeadsToItem(ExtendsForm):
    """Has "Show in table" on an object's page, for those who may see the table; a template of the project's wins."""

    def _prepare_form(self, request: HttpRequest, context: dict[str, Any], obj: DynamoModel | None) -> None:
        super()._prepare_form(request, context, obj)
        site: Any = self.admin_site
        if obj is not None and hasattr(site, "is_secret"):
            context["dynamo_item_url"] = views.item_url_of(site, request, obj)

    def _finish_form(self, request: HttpRequest, response: Any, obj: DynamoModel | None) -> None:
        super()._finish_form(request, response, obj)
        templates = getattr(response, "template_name", None)
        if isinstance(templates, Sequence) and not isinstance(templates, str):
            response.template_name = [_OURS if name == _STOCK else name for name in templates]
