"""The trash in the admin: deletions, restores, and their messages."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.contrib.admin.decorators import action
from django.contrib.admin.utils import model_ngettext, quote, unquote
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseNotAllowed, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from dynamo_single.admin.errors import REFUSALS, user_message
from dynamo_single.admin.types import DynamoModelAdmin
from dynamo_single.admin.viewing.rules import may_view
from dynamo_single.orm.model.sql_references import cascading_rows
from dynamo_single.orm.query.queryset import QuerySet
from dynamo_single.orm.schema.types import DynamoModel
from dynamo_single.orm.write import on_delete
from dynamo_single.orm.write.cascade import DELETION, TRASH
from dynamo_single.orm.write.trash import DeletionBatch
from dynamo_single.table.flow import run

#: The attributes that only objects in the trash have.
TRASH_ATTRIBUTES = ("deleted_at", "deleted_with", "purge_at")
MOVED = gettext_lazy("Moved to the trash.")
DELETED = gettext_lazy("Deleted permanently.")
RESTORED = gettext_lazy("Restored from the trash.")
FOR_GOOD = gettext_lazy("Delete selected %(verbose_name_plural)s permanently")


def permanent_deletion(deletion: Any) -> Any:
    """Return Django's delete action with a label for permanent deletion; it is a tuple before Django 6.1."""
    if isinstance(deletion, tuple):
        return (*deletion[:2], FOR_GOOD)
    return replace(deletion, description=FOR_GOOD, plural_description=FOR_GOOD)


def has_trash(model: type[DynamoModel]) -> bool:
    """Return whether the model has soft delete."""
    return hasattr(model, "deleted_objects")


def is_deleted(obj: object) -> bool:
    """Return whether the object is in the trash."""
    return bool(getattr(obj, "is_deleted", False))


def deleted_with(queryset: QuerySet[DynamoModel], obj: DynamoModel) -> QuerySet[DynamoModel]:
    """Return the children of a queryset that went to the trash with an object in the trash."""
    batch = DeletionBatch.of(obj)
    return queryset.with_visibility("deleted").filter(deleted_with=batch.mark, deleted_at=batch.moment)


def deleted_objects(
    modeladmin: DynamoModelAdmin, request: HttpRequest, objs: Iterable[DynamoModel]
) -> tuple[list[object], dict[str, int], set[str], list[object]]:
    """Return the objects of a deletion for Django's confirmation page: names, counts and missing permissions.

    Dependent objects that the user may not view are neither named nor counted. Hidden objects that protect another one
    are shown by their kind.
    """
    named: list[Any] = []
    counts: dict[str, int] = {}
    lacking: set[str] = set()
    protecting: list[Any] = []
    for root in objs:
        operation = TRASH if has_trash(type(root)) and not is_deleted(root) else DELETION
        below = run(operation.below([root]))
        protecting += run(on_delete.protecting_objects([root, *below], operation))
        if operation is DELETION:
            for obj in (root, *below):
                rows, kept = cascading_rows(obj)
                below = [*below, *(row for row in rows if row not in below)]
                protecting += kept
        seen = [obj for obj in below if may_view(modeladmin.admin_site, request, obj)]
        named += [_label(modeladmin, root), *([[_label(modeladmin, obj) for obj in seen]] if seen else [])]
        for obj in (root, *seen):
            plural = str(obj._meta.verbose_name_plural)
            counts[plural] = counts.get(plural, 0) + 1
        for obj in (root, *below):
            responsible = admin_of(modeladmin, obj)
            if responsible is not None and not responsible.has_delete_permission(request, obj):
                lacking.add(str(obj._meta.verbose_name))
    return named, counts, lacking, [label_for(modeladmin, request, obj) for obj in protecting]


def admin_of(modeladmin: DynamoModelAdmin, obj: DynamoModel) -> Any:
    """Return the admin of an object's model; ``None`` for unregistered models, as in Django."""
    if isinstance(obj, modeladmin.model):
        return modeladmin
    site = modeladmin.admin_site
    return site.get_model_admin(type(obj)) if site.is_registered(type(obj)) else None


def label_for(modeladmin: DynamoModelAdmin, request: HttpRequest, obj: DynamoModel) -> str:
    """Return an object's kind and name, or its kind alone if the user may not view it."""
    if may_view(modeladmin.admin_site, request, obj):
        return _label(modeladmin, obj)
    return capfirst(str(obj._meta.verbose_name))


def _label(modeladmin: Any, obj: DynamoModel) -> str:
    responsible = admin_of(modeladmin, obj)
    if responsible is None:
        return f"{capfirst(obj._meta.verbose_name)}: {obj}"
    shown = getattr(responsible, "shown_in_list", None)
    return f"{capfirst(obj._meta.verbose_name)}: {obj}" if shown is None else str(shown(obj))


def delete(request: HttpRequest, obj: DynamoModel) -> None:
    """Delete an object: move it to the trash, or delete it permanently from there."""
    if is_deleted(obj):
        obj.hard_delete()
        _mark_deleted_for_good(request)
        return
    obj.delete()
    if has_trash(type(obj)):
        text = _("The %(name)s “%(obj)s” was moved to the trash.")
        _set_message(request, text % {"name": obj._meta.verbose_name, "obj": obj})


def delete_all(modeladmin: DynamoModelAdmin, request: HttpRequest, objects: Iterable[DynamoModel]) -> None:
    """Delete each object: one request or transaction each."""
    moved = 0
    for obj in objects:
        moved += has_trash(type(obj)) and not is_deleted(obj)
        modeladmin.delete_model(request, obj)
    if moved:
        text = _("Moved %(count)d %(items)s to the trash.")
        _set_message(request, text % {"count": moved, "items": model_ngettext(modeladmin.opts, moved)})


def _mark_deleted_for_good(request: Any) -> None:
    request._deleted_for_good = True


def is_deleted_for_good(request: HttpRequest) -> bool:
    """Return whether ``delete()`` has deleted the object of a request permanently."""
    return "_deleted_for_good" in request.__dict__


# Django adds "was deleted" right after a deletion, inside its views.
def _set_message(request: Any, text: str) -> None:
    request._said_of_trash = text


def trash_message(request: object, message: object, level: int | str) -> object:
    """Return the message for a move to the trash instead of Django's success message."""
    if level != messages.SUCCESS:
        return message
    return request.__dict__.pop("_said_of_trash", message)


@action(permissions=["restore"], description=gettext_lazy("Restore selected %(verbose_name_plural)s"))
def restore_selected(modeladmin: DynamoModelAdmin, request: HttpRequest, queryset: QuerySet[DynamoModel]) -> None:
    """Restore each object: one request or transaction each. Rejected objects are named and stay in the trash."""
    restored = 0
    for obj in queryset:
        if not modeladmin.has_restore_permission(request, obj):
            text = _("You do not have permission to restore the %(name)s “%(obj)s”.")
            modeladmin.message_user(request, text % {"name": obj._meta.verbose_name, "obj": obj}, messages.ERROR)
            continue
        restored += _restore(modeladmin, request, obj)
    if restored:
        found = {"count": restored, "items": model_ngettext(modeladmin.opts, restored)}
        modeladmin.message_user(request, _("Restored %(count)d %(items)s.") % found, messages.SUCCESS)


def restore_view(modeladmin: Any, request: HttpRequest, object_id: str) -> HttpResponseBase:
    """Restore one object, from the button on its page."""
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    obj = modeladmin.get_object(request, unquote(object_id))
    if not modeladmin.has_restore_permission(request, obj):
        raise PermissionDenied
    opts = modeladmin.opts
    if obj is None:
        missing: HttpResponseBase = modeladmin._get_obj_does_not_exist_redirect(request, opts, object_id)
        return missing
    if _restore(modeladmin, request, obj):
        text = _("The %(name)s “%(obj)s” was restored.") % {"name": opts.verbose_name, "obj": obj}
        modeladmin.message_user(request, text, messages.SUCCESS)
    return HttpResponseRedirect(change_url(modeladmin, obj))


def change_url(modeladmin: Any, obj: Any) -> str:
    """Return the address of an object's page."""
    name = f"admin:{modeladmin.opts.app_label}_{modeladmin.opts.model_name}_change"
    return reverse(name, args=(quote(obj.pk),), current_app=modeladmin.admin_site.name)


def _restore(modeladmin: DynamoModelAdmin, request: HttpRequest, obj: Any) -> bool:
    if not is_deleted(obj):
        text = _("The %(name)s “%(obj)s” is not in the trash.") % {"name": obj._meta.verbose_name, "obj": obj}
        modeladmin.message_user(request, text, messages.WARNING)
        return False
    try:
        obj.restore()
    except REFUSALS as refusal:
        modeladmin.message_user(request, user_message(request, refusal), messages.ERROR)
        return False
    modeladmin.log_change(request, obj, str(RESTORED))
    return True
