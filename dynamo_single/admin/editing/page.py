"""The page of an object's form: what parts of a model's admin add to it, before and after Django has made it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.admin import ModelAdmin
from django.http import HttpRequest

from dynamo_single.orm.schema.kinds import DynamoModel

if TYPE_CHECKING:
    _Base = ModelAdmin[Any]
else:
    _Base = object


class ExtendsForm(_Base):
    """Asks each of its classes what the page has; a project's ``render_change_form()`` is called as ever."""

    def _prepare_form(self, request: HttpRequest, context: dict[str, Any], obj: DynamoModel | None) -> None:
        """Add to the page's context; ``obj`` is ``None`` on a page that adds one."""

    def _finish_form(self, request: HttpRequest, response: Any, obj: DynamoModel | None) -> None:
        """Change the page that was made."""

    def render_change_form(
        self,
        request: HttpRequest,
        context: dict[str, Any],
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: Any = None,
    ) -> Any:
        """Django's page, with what the classes add."""
        self._prepare_form(request, context, obj)
        response = super().render_change_form(request, context, add, change, form_url, obj)
        self._finish_form(request, response, obj)
        return response
