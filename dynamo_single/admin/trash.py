"""The trash in the admin: what may be done with an object there, and the words for it."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.admin.decorators import action
from django.contrib.admin.utils import model_ngettext, quote, unquote
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseNotAllowed, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from dynamo_single.admin.errors import REFUSALS

MOVED = gettext_lazy("Moved to the trash.")
DELETED = gettext_lazy("Deleted for good.")
RESTORED = gettext_lazy("Restored from the trash.")
FOR_GOOD = gettext_lazy("Delete selected %(verbose_name_plural)s for good")


def has_trash(model: Any) -> bool:
    """Whether the model has soft delete."""
    return hasattr(model, "deleted_objects")


def is_deleted(obj: Any) -> bool:
    """Whether the object is in the trash."""
    return bool(getattr(obj, "is_deleted", False))


@action(permissions=["change"], description=gettext_lazy("Restore selected %(verbose_name_plural)s"))
def restore_selected(modeladmin: Any, request: HttpRequest, queryset: Any) -> None:
    """Restore each object: one request or transaction each; those that are refused are named and stay."""
    restored = 0
    for obj in queryset:
        restored += _restore(modeladmin, request, obj)
    if restored:
        found = {"count": restored, "items": model_ngettext(modeladmin.opts, restored)}
        modeladmin.message_user(request, _("Restored %(count)d %(items)s.") % found, messages.SUCCESS)


def restore_view(modeladmin: Any, request: HttpRequest, object_id: str) -> HttpResponseBase:
    """Restore one object, from the button on its page."""
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    if not modeladmin.has_change_permission(request):
        raise PermissionDenied
    opts = modeladmin.opts
    obj = modeladmin.get_object(request, unquote(object_id))
    if obj is None:
        missing: HttpResponseBase = modeladmin._get_obj_does_not_exist_redirect(request, opts, object_id)
        return missing
    if _restore(modeladmin, request, obj):
        text = _("The %(name)s “%(obj)s” was restored.") % {"name": opts.verbose_name, "obj": obj}
        modeladmin.message_user(request, text, messages.SUCCESS)
    return HttpResponseRedirect(change_url(modeladmin, obj))


def change_url(modeladmin: Any, obj: Any) -> str:
    """The address of an object's page."""
    name = f"admin:{modeladmin.opts.app_label}_{modeladmin.opts.model_name}_change"
    return reverse(name, args=(quote(obj.pk),), current_app=modeladmin.admin_site.name)


def _restore(modeladmin: Any, request: HttpRequest, obj: Any) -> bool:
    try:
        obj.restore()
    except REFUSALS as refusal:
        modeladmin.message_user(request, str(refusal), messages.ERROR)
        return False
    modeladmin.log_change(request, obj, str(RESTORED))
    return True
