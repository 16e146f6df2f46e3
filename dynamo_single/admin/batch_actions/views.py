"""The admin pages of batch actions: the list of the user's jobs, and the page of a job."""

from __future__ import annotations

from typing import Any, Final

from django.apps import apps
from django.contrib.admin.sites import AdminSite
from django.contrib.admin.utils import model_ngettext
from django.contrib.auth import BACKEND_SESSION_KEY
from django.core.exceptions import PermissionDenied
from django.db import connections, transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect, JsonResponse
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.http import urlencode
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from dynamo_single.admin import trash
from dynamo_single.admin.batch_actions import confirmations, jobs
from dynamo_single.admin.batch_actions.jobs import ACTIONS, DAMAGE_ERRORS, is_allowed
from dynamo_single.admin.batch_actions.models import MAX_MESSAGES, AdminJob
from dynamo_single.admin.types import DynamoModelAdmin
from dynamo_single.admin.viewing import spreadsheets
from dynamo_single.admin.viewing.rules import visible_keys
from dynamo_single.exceptions import InvalidValue, StaleObject

#: The number of jobs on a page.
SIZE: Final = 20


def urls(site: AdminSite) -> list[URLPattern]:
    """Return the URL patterns of the list of jobs and of the page of a job."""

    def page(request: HttpRequest, job_id: str) -> HttpResponseBase:
        return job_page(site, request, job_id)

    def page_of_all(request: HttpRequest) -> HttpResponseBase:
        return jobs_page(site, request)

    shown: Any = site.admin_view(page)
    for alias in connections:
        # With ATOMIC_REQUESTS, the log entries would be stored after the end of the batch is recorded.
        shown = transaction.non_atomic_requests(using=alias)(shown)
    return [
        path("dynamodb/jobs/", site.admin_view(page_of_all), name="dynamodb_jobs"),
        path("dynamodb/jobs/<str:job_id>/", shown, name="dynamodb_job"),
    ]


def url_of(site: AdminSite, job: AdminJob) -> str:
    """Return the URL of a job's page."""
    return reverse("admin:dynamodb_job", args=[job.job_id], current_app=site.name)


def may_have_jobs(site: AdminSite, request: HttpRequest) -> bool:
    """Return whether the user may run any action that can become a job. Sends no request."""
    # Only DynamoModelAdmin has this permission.
    admins: list[Any] = [each for each in site._registry.values() if hasattr(each, "has_hard_delete_permission")]
    return any(
        is_allowed(request, each, action)
        for each in admins
        for action in (ACTIONS if trash.has_trash(each.model) else ("delete",))
    )


def jobs_page(site: AdminSite, request: HttpRequest) -> HttpResponseBase:
    """Show the jobs of the user that have not expired, newest first, ``SIZE`` on a page.

    Sends one Query per megabyte. A job with 5,000 objects takes about 200 KB, and no job exceeds 400 KB. The page skips
    a damaged job and logs a warning. If a job is unreadable, another Query reads the newest other jobs.
    """
    if request.method not in {"GET", "HEAD"}:
        return HttpResponseNotAllowed(["GET", "HEAD"])
    if not may_have_jobs(site, request):
        raise PermissionDenied
    user_key = str(request.user.pk)
    own = AdminJob.objects.filter(user_key=user_key).order_by("-job_id")
    cursors: tuple[str | None, str | None] = None, None
    try:
        page = own.page(SIZE, request.GET.get("cursor") or None)
    except DAMAGE_ERRORS:
        found = jobs.newest_jobs(user_key, SIZE)
    else:
        found, cursors = jobs.undamaged_jobs(page), (page.next_cursor, page.previous_cursor)
    context = {
        **site.each_context(request),
        "title": _("Jobs"),
        "jobs": [(job, _title(site, job), url_of(site, job)) for job in found],
        "older": _address(cursors[0]),
        "newer": _address(cursors[1]),
    }
    return TemplateResponse(request, "dynamo_single/admin/jobs.html", context)


def _address(cursor: str | None) -> str:
    return f"?{urlencode({'cursor': cursor})}" if cursor else ""


def job_page(site: AdminSite, request: HttpRequest, job_id: str) -> HttpResponseBase:
    """Show a job, download its failures as CSV, return its state as JSON, or resume it (POST).

    Only the user who created the job can open it; others get a 404 response. Each request checks the permissions again.

    Sends a GetItem. POST also sends the requests of ``run_batches()``, or a TransactWriteItems that passes the job to a
    worker. Undoing a job sends an additional PutItem.
    """
    if request.method not in {"GET", "HEAD", "POST"}:
        return HttpResponseNotAllowed(["GET", "HEAD", "POST"])
    job = _of(request, job_id)
    modeladmin = admin_of(site, job)
    if not is_allowed(request, modeladmin, job.action):
        raise PermissionDenied
    is_for_script = request.headers.get("accept") == "application/json"
    if request.method != "POST":
        if is_for_script:
            return _state(job)
        return (
            _failures(site, request, modeladmin, job)
            if "failures" in request.GET
            else _page(site, request, modeladmin, job)
        )
    if "undo" in request.POST:
        return _undo(site, request, modeladmin, job)
    try:
        _continue(site, request, modeladmin, job)
    except StaleObject:
        # Another process has claimed the job, and the page shows its progress.
        job = _of(request, job_id)
    return _state(job) if is_for_script else HttpResponseRedirect(url_of(site, job))


def _continue(site: AdminSite, request: HttpRequest, modeladmin: Any, job: AdminJob) -> None:
    """Pass a job to the site's worker, or run its next batches if the site has no worker or the user chose this page.

    Do nothing if another process is running a batch.
    """
    if job.is_claimed:
        return
    is_for_worker = not job.is_done and not job.needs_page and not modeladmin.jobs_need_request
    if is_for_worker and "here" not in request.POST:
        # The worker asks this backend whether the user is still active.
        backend = request.session.get(BACKEND_SESSION_KEY)
        arguments = {"user_key": job.user_key, "job_id": job.job_id, "language": get_language() or "en"}
        if job.is_queued or (backend and jobs.queue(site, job, {**arguments, "backend": backend})):
            return
    job.queued_at = None
    jobs.run_batches(request, modeladmin, job)


def _state(job: AdminJob) -> JsonResponse:
    """Return the state of a job for the page's script."""
    state = {"done": job.position, "total": job.total, "failed": job.failed, "stopped": bool(job.stopped)}
    return JsonResponse({**state, "claimed": job.is_claimed, "queued": job.is_queued})


def _of(request: HttpRequest, job_id: str) -> AdminJob:
    user_key = str(request.user.pk)
    try:
        job = AdminJob.objects.consistent().get(user_key=user_key, job_id=job_id)
        if not job.is_damaged:
            return job
    except DAMAGE_ERRORS:
        pass
    except (AdminJob.DoesNotExist, InvalidValue) as error:
        raise Http404(_("This job does not exist or has expired.")) from error
    jobs.log_damaged(user_key, job_id)
    raise Http404(_("This job is damaged and cannot be resumed. Select the remaining objects again."))


def admin_of(site: AdminSite, job: AdminJob) -> Any:
    """Return the admin of a job's model, or raise ``Http404`` if the site has no such admin or action."""
    try:
        model = apps.get_model(job.label)
    except LookupError as error:
        raise Http404 from error
    if not site.is_registered(model) or job.action not in ACTIONS:
        raise Http404
    return site.get_model_admin(model)


def _title(site: AdminSite, job: AdminJob) -> str:
    """Return the title of a job, or an empty string if its action or model is unknown."""
    titles = {
        "delete": _("Delete %(count)d %(items)s"),
        "purge": _("Delete %(count)d %(items)s permanently"),
        "restore": _("Restore %(count)d %(items)s"),
    }
    try:
        modeladmin = admin_of(site, job)
    except Http404:
        return ""
    return titles[job.action] % {"count": job.total, "items": modeladmin.opts.verbose_name_plural}


def may_undo(request: HttpRequest, modeladmin: DynamoModelAdmin, job: AdminJob) -> bool:
    """Return whether a job has moved all its objects to the trash and the user may restore them."""
    is_undone_by_restoring = job.action == "delete" and trash.has_trash(modeladmin.model) and job.is_done
    return is_undone_by_restoring and is_allowed(request, modeladmin, "restore")


def _undo(site: AdminSite, request: HttpRequest, modeladmin: DynamoModelAdmin, job: AdminJob) -> HttpResponseBase:
    """Create and start a job that restores the objects of another job. The button is the confirmation."""
    if not may_undo(request, modeladmin, job):
        raise PermissionDenied
    undoing = jobs.create_undo(request, modeladmin, job)
    _continue(site, request, modeladmin, undoing)
    return HttpResponseRedirect(f"{url_of(site, undoing)}#go-on")


def _seen_failures(site: AdminSite, request: HttpRequest, modeladmin: DynamoModelAdmin, job: AdminJob) -> list[Any]:
    """Return the stored failures, without objects that are hidden from the user."""
    keys = [key for key, _name, _text in job.failures]
    seen = visible_keys(site, request, modeladmin.model, keys) if keys else set()
    return [each for each in job.failures if each[0] in seen]


def _failures(site: AdminSite, request: HttpRequest, modeladmin: DynamoModelAdmin, job: AdminJob) -> HttpResponseBase:
    """Return a CSV file with the key, name and error of each failure."""
    found = _seen_failures(site, request, modeladmin, job)
    rows = [[spreadsheets.quoted(str(cell)) for cell in each] for each in found]
    text = spreadsheets.as_csv([[_("Key"), _("Object"), _("Error")], *rows])
    disposition = 'attachment; filename="failures.csv"'
    return HttpResponse(text, content_type="text/csv; charset=utf-8", headers={"Content-Disposition": disposition})


def _confirmation(request: HttpRequest, modeladmin: DynamoModelAdmin, job: AdminJob) -> dict[str, object]:
    """Return the question that the user confirms before the job starts.

    Sends the requests of ``confirmations.job_text()``.
    """
    if job.is_done or job.position or job.queued_at:
        return {}
    if job.action == "restore":
        return {"items": model_ngettext(modeladmin.opts, job.total)}
    uses_trash = job.action == "delete" and trash.has_trash(modeladmin.model)
    what = confirmations.job_text(request, modeladmin, job)
    return {"question": confirmations.text_for(modeladmin.model, what, uses_trash=uses_trash)}


def _page(site: AdminSite, request: HttpRequest, modeladmin: DynamoModelAdmin, job: AdminJob) -> HttpResponseBase:
    failures = _seen_failures(site, request, modeladmin, job)
    context = {
        **site.each_context(request),
        "title": _title(site, job),
        "job": job,
        "opts": modeladmin.opts,
        "failures": failures,
        "unlisted": job.failed - len(job.failures) if failures else 0,
        **_confirmation(request, modeladmin, job),
        "may_undo": may_undo(request, modeladmin, job),
        "told": MAX_MESSAGES,
    }
    return TemplateResponse(request, "dynamo_single/admin/job.html", context)
