"""Turn deletions and restores of more objects than one request can handle into jobs."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from django.contrib import messages
from django.contrib.admin.actions import delete_selected
from django.http import HttpRequest, HttpResponseRedirect
from django.utils.translation import gettext as _

from dynamo_single.admin import trash
from dynamo_single.admin.trash import restore_selected
from dynamo_single.admin.types import AdminMixin
from dynamo_single.exceptions import InvalidValue, ItemTooLarge
from dynamo_single.lazy_modules import LazyModule

if TYPE_CHECKING:
    from dynamo_single.admin.batch_actions import confirmations, views
    from dynamo_single.admin.batch_actions import jobs as batch_actions_run

else:
    # They have a model, and Django imports this module before models.
    batch_actions_run = LazyModule("dynamo_single.admin.batch_actions.jobs")
    confirmations = LazyModule("dynamo_single.admin.batch_actions.confirmations")
    views = LazyModule("dynamo_single.admin.batch_actions.views")

#: The most objects of an immediate action, and of a job.
MAX_IMMEDIATE: Final = 50
MAX_JOB_OBJECTS: Final = 5000

Action = Callable[[Any, HttpRequest, Any], Any]


class BatchActionsMixin(AdminMixin):
    """A ``ModelAdmin`` whose "delete selected" becomes a job for many objects. It does not change a custom action."""

    #: Whether hooks of these jobs use the session, cookies or headers, so that workers cannot run them.
    jobs_need_request = False

    def get_actions(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """Return Django's actions with that action."""
        actions: Any = super().get_actions(request, *args, **kwargs)
        entry = actions.get("delete_selected")
        return actions if entry is None else {**actions, "delete_selected": batched_action(entry, "delete")}


def batched_action(entry: Any, action: str) -> Any:
    """Return an entry of ``get_actions()`` whose action becomes a job for more than ``MAX_IMMEDIATE`` objects are
    selected.

    The entry is a tuple before Django 6.1. It returns a custom action of the project unchanged.
    """
    function = entry[0] if isinstance(entry, tuple) else entry.func
    if function not in (delete_selected, restore_selected):
        return entry
    if isinstance(entry, tuple):
        return (_job_action(function, action), *entry[1:])
    return dataclasses.replace(entry, func=_job_action(function, action))


def _with_confirmation(modeladmin: Any, action: str, response: Any) -> Any:
    """Add the text that confirms a deletion, with the numbers that Django's page has counted."""
    context = getattr(response, "context_data", None)
    if context is not None and "model_count" in context:
        uses_trash = action == "delete" and trash.has_trash(modeladmin.model)
        what = confirmations.objects_text(dict(context["model_count"]))
        context["question"] = confirmations.text_for(modeladmin.model, what, uses_trash=uses_trash)
    return response


def _job_action(function: Action, action: str) -> Action:
    @functools.wraps(function)
    def run(modeladmin: Any, request: HttpRequest, queryset: Any) -> Any:
        # Django has already shown the confirmation page, with the objects that the deletion includes.
        if "post" in request.POST:
            return function(modeladmin, request, queryset)
        # "Select all" may include any number of objects. The objects of one page are already in memory.
        chosen = queryset[: MAX_JOB_OBJECTS + 1] if request.POST.get("select_across") == "1" else queryset
        keys = [str(obj.pk) for obj in chosen]
        if len(keys) <= MAX_IMMEDIATE:
            return _with_confirmation(modeladmin, action, function(modeladmin, request, queryset))
        job = None
        with suppress(InvalidValue, ItemTooLarge):
            if len(keys) <= MAX_JOB_OBJECTS:
                job = batch_actions_run.create_job(request, modeladmin, action, keys)
        if job is None:
            text = _("You selected too many objects. Nothing was changed. Select fewer objects.")
            modeladmin.message_user(request, text, messages.ERROR)
            return None
        return HttpResponseRedirect(views.url_of(modeladmin.admin_site, job))

    return run
