"""The admin site for projects whose users or data are stored in DynamoDB."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.conf import settings
from django.contrib.admin import ModelAdmin
from django.contrib.admin.sites import AdminSite
from django.contrib.auth.decorators import login_not_required
from django.db import models, router
from django.http import Http404, HttpRequest, HttpResponseBadRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _

from dynamo_single.admin.errors import unavailable_on_error
from dynamo_single.admin.history import LoggedModelAdmin, is_in_dynamodb, log_entries
from dynamo_single.admin.lists import in_memory
from dynamo_single.admin.lists.autocomplete import ChoicesView
from dynamo_single.admin.secrets import SecretsMixin
from dynamo_single.admin.viewing.display import hide_in_view
from dynamo_single.admin.viewing.pages import Listed, index_entries
from dynamo_single.admin.viewing.rules import VisibleEntries
from dynamo_single.backend.errors import is_stored_in_dynamodb
from dynamo_single.backend.router import uses_engine
from dynamo_single.exceptions import InvalidValue, UnknownField
from dynamo_single.lazy_modules import LazyModule
from dynamo_single.orm.schema.keys.secret_values import hide
from dynamo_single.orm.schema.types import DynamoModel

if TYPE_CHECKING:
    from dynamo_single.admin.batch_actions import views as jobs
    from dynamo_single.admin.batch_actions import worker
else:
    # They have a model, and this module is imported before models can be imported.
    jobs = LazyModule("dynamo_single.admin.batch_actions.views")
    worker = LazyModule("dynamo_single.admin.batch_actions.worker")

#: The only place where the core reaches these folders, which are above the admin.
logbook = LazyModule("dynamo_single.contrib.logbook")
table_admin = LazyModule("dynamo_single.contrib.table_admin")
admin_tasks = LazyModule("dynamo_single.contrib.tasks.admin_jobs")

#: The seconds after which a worker's task starts no further batch of a job.
TASK_SECONDS = 20.0

logger = logging.getLogger("dynamo_single.admin")


class DynamoAdminSite(AdminSite):
    """Django's site with its log stored with the users, and an error page while DynamoDB cannot be reached."""

    #: The form for the user's own password. A form with ``takes_request`` gets the request as an argument.
    password_change_form: Any = None

    def register(
        self, model_or_iterable: Any, admin_class: type[ModelAdmin[Any]] | None = None, **options: object
    ) -> None:
        """Register as Django does. If the users are in DynamoDB, the admin of an SQL model also logs there."""
        if is_in_dynamodb():
            admin_class = _logged(admin_class or ModelAdmin)
        super().register(model_or_iterable, admin_class, **options)

    def get_log_entries(self, request: HttpRequest) -> Any:
        """Return the log for "recent actions": one Query when it is read."""
        return log_entries() if is_in_dynamodb() else super().get_log_entries(request)

    def each_context(self, request: HttpRequest) -> Any:
        """Return the context of every page, with the log entries about objects that the user may see."""
        context = super().each_context(request)
        entries = context.get("log_entries")
        return context if entries is None else {**context, "log_entries": VisibleEntries(self, request, entries)}

    def is_secret(self, model: type[DynamoModel], name: str) -> bool:
        """Return whether the site adds an attribute, by either of its names, to the secrets.

        The model is ``None`` for an item of unknown type. A site cannot remove a secret.
        """
        return False

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[object]:
        """Return the models that can be stored and used.

        SQL models are omitted in a project without SQL, and ``auth.Group`` if no user can be in such a group.
        """
        found: list[Any] = super().get_app_list(request, app_label)
        for app in found:
            app["models"] = [entry for entry in app["models"] if _is_of_use(entry["model"])]
        found = [app for app in found if app["models"]]
        if app_label:
            return found
        pages: list[Listed] = [*table_admin.listed(), *logbook.listed()]
        if jobs.may_have_jobs(self, request):
            pages.append((_("Jobs"), "dynamodb_jobs", None))
        return [*found, *index_entries(self, request, pages)]

    def password_change(self, request: HttpRequest, extra_context: dict[str, object] | None = None) -> Any:
        """Change the user's own password; ``password_change_form`` is an attribute of Django's site since 6.0."""
        from django.contrib.admin.forms import AdminPasswordChangeForm
        from django.contrib.auth import views

        form: Any = self.password_change_form or AdminPasswordChangeForm
        if getattr(form, "takes_request", False):
            form = functools.partial(form, request=request)
        defaults: dict[str, Any] = {
            "form_class": form,
            "success_url": reverse("admin:password_change_done", current_app=self.name),
            "extra_context": {**self.each_context(request), **(extra_context or {})},
        }
        if self.password_change_template is not None:
            defaults["template_name"] = self.password_change_template
        request.current_app = self.name
        return views.PasswordChangeView.as_view(**defaults)(request)

    def get_urls(self) -> list[Any]:
        """Return Django's addresses. "View on site" returns 404 for an identifier that no object can have."""
        urls: list[Any] = super().get_urls()
        for each in urls:
            if getattr(each, "name", None) == "view_on_site":
                each.callback = _or_missing(each.callback)
        return [*table_admin.urls(self), *logbook.urls(self), *jobs.urls(self), *urls]

    def _item_url(self, request: HttpRequest, obj: DynamoModel) -> str:
        """Return the address of an object's item, or an empty string if the user may not see it."""
        address: str = table_admin.item_url_of(self, request, obj)
        return address

    def enqueue_job(self, arguments: dict[str, str], delay: float = 0) -> bool:
        """Pass a job of many objects to a worker after ``delay`` seconds; return whether the site has one.

        The worker calls ``run_job(arguments)``. By default it is ``manage.py dynamo_worker``, if
        ``dynamo_single.contrib.tasks`` is installed and ``TASKS`` has its backend: one PutItem, within the transaction
        that stores the job. An override for another queue must wait for that transaction.
        """
        if not apps.is_installed("dynamo_single.contrib.tasks"):
            return False
        is_enqueued: bool = admin_tasks.enqueue(self.name, arguments, delay)
        return is_enqueued

    def run_job(self, arguments: dict[str, str], seconds: float = TASK_SECONDS) -> None:
        """Run batches of a job for some seconds, and call ``enqueue_job()`` for the rest.

        The user's permissions are read again before each batch. Call it in a worker, with the arguments of
        ``enqueue_job()``.
        """
        worker.run_job(self, arguments, seconds)

    def autocomplete_view(self, request: HttpRequest) -> Any:
        """Return the results of a field's search, as in a list, or the object with the entered key.

        Returns a bad request (400) for an invalid address.
        """
        in_memory.share_rows(request)
        try:
            found: Any = ChoicesView.as_view(admin_site=self)(request)
            return found
        except (InvalidValue, UnknownField) as error:
            logger.warning("The search of %s failed: %s", hide(request.get_full_path()), error)
            return HttpResponseBadRequest(str(error) if settings.DEBUG else "", content_type="text/plain")

    def admin_view(self, view: Any, cacheable: bool = False) -> Any:
        """Wrap a view as Django does; returns a page with status 503 while DynamoDB cannot be reached.

        Returns 404 for models that cannot be stored, such as ``auth.Group`` without an SQL database. Pages of Django's
        own ``ModelAdmin`` hide the same secrets and objects as those of ``DynamoModelAdmin``.
        """
        owner = getattr(view, "__self__", None)
        model = getattr(owner, "model", None)
        shown = view if model is None or _is_stored(model) else _missing
        if isinstance(owner, ModelAdmin) and not isinstance(owner, SecretsMixin):
            shown = hide_in_view(owner, shown)
        panel: Any = table_admin.with_panel
        return panel(self, unavailable_on_error(super().admin_view(shown, cacheable)))

    @method_decorator(login_not_required)  # overriding removes the marker that LoginRequiredMiddleware checks
    def login(self, request: HttpRequest, extra_context: dict[str, object] | None = None) -> Any:
        """Show the login page."""
        return unavailable_on_error(super().login)(request, extra_context)


def _or_missing(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    @functools.wraps(view)
    def guarded(request: HttpRequest, content_type_id: str, object_id: str) -> HttpResponseBase:
        try:
            return view(request, content_type_id, object_id)
        except InvalidValue as error:  # an identifier that no object can have
            raise Http404(str(error)) from error

    return guarded


def _logged(admin_class: Any) -> Any:
    """Return a class with our logging between the project's own methods and Django's."""
    if issubclass(admin_class, LoggedModelAdmin):
        return admin_class
    bases: Iterable[Any] = (admin_class, LoggedModelAdmin)
    if issubclass(LoggedModelAdmin, admin_class):
        bases = (LoggedModelAdmin,)
    members = {"__module__": admin_class.__module__, "__doc__": admin_class.__doc__}
    return type(admin_class)(admin_class.__name__, tuple(bases), members)


def _is_of_use(model: type[models.Model]) -> bool:
    if is_stored_in_dynamodb(model):
        return True
    return _is_stored(model) and not (model._meta.label == "auth.Group" and is_in_dynamodb())


def _is_stored(model: type[models.Model]) -> bool:
    return is_stored_in_dynamodb(model) or not uses_engine(router.db_for_read(model))


def _missing(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
    raise Http404(_("This site cannot store objects of this type."))
