"""Where one is led after a save or a deletion of an object of a model that no key lists.

Django leads to the list, which says then that it cannot be shown, though all went well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.admin import ModelAdmin
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from dynamo_single.admin import trash
from dynamo_single.admin.references import as_listed

if TYPE_CHECKING:
    _Base = ModelAdmin[Any]
else:
    _Base = object


class LandsSomewhere(_Base):
    """A ``ModelAdmin`` that leads to the object, or to its app once it is deleted, where there is no list to lead to.

    One that was come from, by a filter that a key answers, is led back to. Sends nothing, but a GetItem for what was
    deleted into the trash.
    """

    def response_post_save_add(self, request: HttpRequest, obj: Any) -> HttpResponseRedirect:
        """Django's, or the object's page."""
        found = super().response_post_save_add(request, obj)
        return HttpResponseRedirect(trash.change_url(self, obj)) if self._leads_nowhere(request, found) else found

    def response_post_save_change(self, request: HttpRequest, obj: Any) -> HttpResponseRedirect:
        """Django's, or the object's page."""
        found = super().response_post_save_change(request, obj)
        return HttpResponseRedirect(trash.change_url(self, obj)) if self._leads_nowhere(request, found) else found

    def response_delete(self, request: HttpRequest, obj_display: str, obj_id: Any) -> HttpResponse:
        """Django's, or the page of what is in the trash now, which no list shows either, or the app's."""
        found = super().response_delete(request, obj_display, obj_id)
        if not self._leads_nowhere(request, found):
            return found
        obj = self.get_object(request, str(obj_id)) if trash.has_trash(self.model) else None
        if obj is not None:
            return HttpResponseRedirect(trash.change_url(self, obj))
        place = {"app_label": self.opts.app_label}
        return HttpResponseRedirect(reverse("admin:app_list", kwargs=place, current_app=self.admin_site.name))

    def _leads_nowhere(self, request: HttpRequest, response: HttpResponse) -> bool:
        """Whether a response leads to the list of all objects, which no key answers."""
        name = f"admin:{self.opts.app_label}_{self.opts.model_name}_changelist"
        if not isinstance(response, HttpResponseRedirect) or self.get_preserved_filters(request):
            return False
        is_list = response.url.partition("?")[0] == reverse(name, current_app=self.admin_site.name)
        queryset: Any = self.get_queryset(request)
        return is_list and not as_listed(queryset)[1]
