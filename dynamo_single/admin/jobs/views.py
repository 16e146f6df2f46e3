"""The page of a job: what is to be done, how far it is, and the button that carries it on."""

from __future__ import annotations

from typing import Any

from django.apps import apps
from django.contrib import messages
from django.contrib.admin.sites import AdminSite
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponseNotAllowed, HttpResponseRedirect, JsonResponse
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _

from dynamo_single.admin.jobs import carrying
from dynamo_single.admin.jobs.models import TOLD, AdminJob
from dynamo_single.admin.kinds import DynamoModelAdmin
from dynamo_single.exceptions import InvalidValue, StaleObject


def urls(site: AdminSite) -> list[URLPattern]:
    """The address of a job."""

    def page(request: HttpRequest, job_id: str) -> HttpResponseBase:
        return job_page(site, request, job_id)

    return [path("dynamodb/jobs/<str:job_id>/", site.admin_view(page), name="dynamodb_job")]


def url_of(site: AdminSite, job: AdminJob) -> str:
    """The address of a job's page."""
    return reverse("admin:dynamodb_job", args=[job.job_id], current_app=site.name)


def job_page(site: AdminSite, request: HttpRequest, job_id: str) -> HttpResponseBase:
    """Show a job, or by POST carry it on; for the user who began it alone: to others it is not there.

    A GetItem; by POST what ``carry_on()`` sends. The rights are asked for again each time.
    """
    if request.method not in {"GET", "HEAD", "POST"}:
        return HttpResponseNotAllowed(["GET", "HEAD", "POST"])
    job = _of(request, job_id)
    modeladmin = _admin_of(site, job)
    if not carrying.is_allowed(request, modeladmin, job.action):
        raise PermissionDenied
    if request.method != "POST":
        return _page(site, request, modeladmin, job)
    try:
        carrying.carry_on(request, modeladmin, job)
    except StaleObject:
        # Another tab is at it: what it has done is shown.
        job = _of(request, job_id)
    # Each deletion leaves a message for the next page, and there are as many as objects.
    _discard_messages(request)
    if request.headers.get("accept") == "application/json":
        return JsonResponse({"done": job.position, "total": job.total, "failed": job.failed})
    return HttpResponseRedirect(url_of(site, job))


def _of(request: HttpRequest, job_id: str) -> AdminJob:
    try:
        return AdminJob.objects.consistent().get(user_key=str(request.user.pk), job_id=job_id)
    except (AdminJob.DoesNotExist, InvalidValue) as error:
        raise Http404(_("There is no such job of yours; it may have expired.")) from error


def _admin_of(site: AdminSite, job: AdminJob) -> Any:
    try:
        model = apps.get_model(job.label)
    except LookupError as error:
        raise Http404 from error
    if not site.is_registered(model) or job.action not in carrying.ACTIONS:
        raise Http404
    return site.get_model_admin(model)


def _discard_messages(request: HttpRequest) -> None:
    list(messages.get_messages(request))
    request.__dict__.pop("_said_of_trash", None)


def _page(site: AdminSite, request: HttpRequest, modeladmin: DynamoModelAdmin, job: AdminJob) -> HttpResponseBase:
    names = {"count": job.total, "items": modeladmin.opts.verbose_name_plural}
    titles = {
        "delete": _("Delete %(count)d %(items)s"),
        "purge": _("Delete %(count)d %(items)s for good"),
        "restore": _("Restore %(count)d %(items)s"),
    }
    context = {
        **site.each_context(request),
        "title": titles[job.action] % names,
        "job": job,
        "opts": modeladmin.opts,
        "unlisted": job.failed - len(job.failures),
        "told": TOLD,
    }
    return TemplateResponse(request, "dynamo_single/admin/job.html", context)
