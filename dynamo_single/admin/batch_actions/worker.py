"""Run a job in a worker process on behalf of its owner.

The worker checks the owner's permissions before each batch. The project's hooks get a request with a user and
messages, without a session, headers or other data of a browser. If a hook uses such data, the job stops, and its owner
can resume it on the job's page.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

from django.conf import settings
from django.contrib.auth import get_user_model, load_backend
from django.contrib.messages.storage.base import BaseStorage
from django.core.exceptions import ObjectDoesNotExist, ValidationError
from django.http import HttpRequest
from django.utils import translation
from django.utils.translation import gettext as _

from dynamo_single import clock
from dynamo_single.admin.batch_actions import jobs, views
from dynamo_single.admin.batch_actions.jobs import DAMAGE_ERRORS, is_allowed
from dynamo_single.admin.batch_actions.models import CLAIM_TIME, AdminJob
from dynamo_single.admin.errors import is_developer
from dynamo_single.exceptions import InvalidValue, StaleObject

logger = logging.getLogger("dynamo_single.admin")

#: The attributes of ``HttpRequest`` that contain data of a browser.
_OF_BROWSERS: Final = ("COOKIES", "META", "resolver_match")


class NeedsBrowser(Exception):
    """A hook used an attribute that the request of a worker does not have. The admin catches this exception."""


class WorkerRequest(HttpRequest):
    """The request that a worker passes to hooks: a POST request of the job's owner to the job's page, without data.

    ``missing`` is the name of the first attribute that a hook used and that needs a browser: cookies, headers, the
    session, or an attribute that middleware sets.
    """

    def __init__(self, site: Any, path: str) -> None:
        super().__init__()
        self.method = "POST"
        self.path = self.path_info = path
        self.current_app = site.name
        self.missing = ""
        self._messages = _Messages(self)
        for name in _OF_BROWSERS:
            delattr(self, name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        self.missing = self.missing or name
        raise NeedsBrowser(f"request.{name}")


class _Messages(BaseStorage):
    """Keep messages in memory until ``run_job()`` adds them to the job."""

    def _get(self, *args: Any, **kwargs: Any) -> tuple[list[Any], bool]:
        return [], True

    def _store(self, messages: Sequence[Any], response: Any, *args: Any, **kwargs: Any) -> list[Any]:
        return []


def run_job(site: Any, arguments: dict[str, str], seconds: float) -> None:
    """Run batches of a job for ``seconds``, and enqueue another task for the rest.

    Return immediately if a later task has replaced this task, or if the job is done, stopped or expired. If another
    process is running a batch, enqueue the task again for a later time.

    Sends a GetItem and the requests of ``jobs.run_batches()``. Before each batch it reads the user and the user's
    permissions. If the job is not done, it sends a TransactWriteItems.
    """
    with translation.override(arguments["language"]):
        job = _current_job(arguments)
        if job is not None and not job.is_claimed:
            job = _run(site, job, arguments, seconds)
        if job is None or job.is_done or job.stopped:
            return
        if job.claimed_at is not None:
            # Saving the job would make the process that is running it fail.
            lapses = (CLAIM_TIME - (clock.now() - job.claimed_at)).total_seconds()
            site.enqueue_job(arguments, max(lapses, 0) + 1)
            return
        with suppress(StaleObject):  # another process continues it
            jobs.queue(site, job, arguments)


def _current_job(arguments: dict[str, str]) -> AdminJob | None:
    """Return the job, or ``None`` if this task does not need to run it."""
    key = {"user_key": arguments["user_key"], "job_id": arguments["job_id"]}
    try:
        job = AdminJob.objects.consistent().get(**key)
    except AdminJob.DoesNotExist:
        return None
    except DAMAGE_ERRORS:
        jobs.log_damaged(**key)
        return None
    if job.is_damaged:
        jobs.log_damaged(**key)
        return None
    return None if job.is_done or job.stopped or jobs.queue_mark(job) != arguments["queued_at"] else job


def _run(site: Any, job: AdminJob, arguments: dict[str, str], seconds: float) -> AdminJob | None:
    """Run batches, and return the stored job."""
    modeladmin = views.admin_of(site, job)
    request = WorkerRequest(site, views.url_of(site, job))
    refusal = _refusal(request, modeladmin, job, arguments)
    try:
        jobs.run_batches(request, modeladmin, job, seconds=seconds, refusal=refusal)
    except StaleObject:
        return _current_job(arguments)
    except NeedsBrowser:
        pass  # raised outside a batch; run_batches() handles it within one
    except DAMAGE_ERRORS as error:
        logger.exception("The job %s of %s stopped at an item that cannot be read.", job.pk, job.label)
        user = request.__dict__.get("user")
        job.stopped = str(error) if user is not None and is_developer(user) else type(error).__name__
        job.save()
    if request.missing:
        logger.warning(
            "A hook used request.%s, which workers do not have, and stopped job %s of %s. Its page can resume it. To "
            "run such jobs only on their pages, set jobs_need_request = True on %s.",
            request.missing,
            job.pk,
            job.label,
            type(modeladmin).__name__,
        )
        job.needs_page, job.stopped = True, _lacking(request)
    said = job.said
    jobs.keep_messages(request, job)
    if request.missing or job.said != said:
        job.save()
    return job


def _lacking(request: WorkerRequest) -> str:
    return _("A worker cannot run this job, because it lacks request.%(name)s. Resume the job on this page.") % {
        "name": request.missing
    }


def _refusal(request: WorkerRequest, modeladmin: Any, job: AdminJob, arguments: dict[str, str]) -> Callable[[], str]:
    """Return a function that reads the user again, and returns an error message if the user may not run the job."""

    def refusal() -> str:
        if request.missing:
            return _lacking(request)
        user = _user_of(arguments)
        if user is not None:
            request.user = user
            if modeladmin.admin_site.has_permission(request) and is_allowed(request, modeladmin, job.action):
                return ""
        return _("You do not have permission to do this.")

    return refusal


def _user_of(arguments: dict[str, str]) -> Any:
    """Return the user from the backend of the user's session, or ``None`` if one of them no longer exists."""
    if arguments["backend"] not in settings.AUTHENTICATION_BACKENDS:
        return None
    try:
        key = get_user_model()._meta.pk.to_python(arguments["user_key"])
        return load_backend(arguments["backend"]).get_user(key)
    except (InvalidValue, ObjectDoesNotExist, ValidationError):
        return None
