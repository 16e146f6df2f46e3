"""Run a job in a worker: as its owner, whose permissions are checked before each batch, and without a browser.

Hooks of the project get a request with a user and with messages. What only a browser sends is missing: a hook that uses
it stops the job, which its owner then runs on the job's page.
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

#: The attributes of ``HttpRequest`` that only a browser's request has.
_OF_BROWSERS: Final = ("COOKIES", "META", "resolver_match")


class NeedsBrowser(Exception):
    """A hook used a part of the request that a worker does not have. This exception stays inside the admin."""


class WorkerRequest(HttpRequest):
    """The request of a job in a worker: POST to the job's page, by its owner, without any data.

    ``missing`` is the first attribute that code has used and that only a browser's request has: cookies, headers, the
    session, and attributes that middleware sets.
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
    """Keeps messages in memory, from where they go to the job."""

    def _get(self, *args: Any, **kwargs: Any) -> tuple[list[Any], bool]:
        return [], True

    def _store(self, messages: Sequence[Any], response: Any, *args: Any, **kwargs: Any) -> list[Any]:
        return []


def run_job(site: Any, arguments: dict[str, str], seconds: float) -> None:
    """Run batches of a job for some seconds, and pass the rest to another task.

    Sends a GetItem, the requests of ``jobs.run_batches()``, those that read the user and the permissions before each
    batch, and a TransactWriteItems if the job is not done. Does nothing if a later task replaces this one, or if the
    job has expired, stopped or is done. While another process works on the job, it only delays the task.
    """
    with translation.override(arguments["language"]):
        job = _current_job(arguments)
        if job is not None and not job.is_claimed:
            job = _run(site, job, arguments, seconds)
        if job is None or job.is_done or job.stopped:
            return
        if job.claimed_at is not None:
            # Saving the job would fail the process that works on it.
            lapses = (CLAIM_TIME - (clock.now() - job.claimed_at)).total_seconds()
            site.enqueue_job(arguments, max(lapses, 0) + 1)
            return
        with suppress(StaleObject):  # another process continues it
            jobs.queue(site, job, arguments)


def _current_job(arguments: dict[str, str]) -> AdminJob | None:
    """Return the job, or ``None`` if this task has nothing left to do for it."""
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
    """Run batches, and return the job as it is stored."""
    modeladmin = views.admin_of(site, job)
    request = WorkerRequest(site, views.url_of(site, job))
    refusal = _refusal(request, modeladmin, job, arguments)
    try:
        jobs.run_batches(request, modeladmin, job, seconds=seconds, refusal=refusal)
    except StaleObject:
        return _current_job(arguments)
    except NeedsBrowser:
        pass  # outside of a batch; inside, the batch has stopped the job
    except DAMAGE_ERRORS as error:
        logger.exception("The job %s of %s stopped at an item that cannot be read.", job.pk, job.label)
        user = request.__dict__.get("user")
        job.stopped = str(error) if user is not None and is_developer(user) else type(error).__name__
        job.save()
    if request.missing:
        logger.warning(
            "The job %s of %s uses request.%s, which workers do not have. It continues on its page. Set "
            "jobs_need_request = True on %s.",
            job.pk,
            job.label,
            request.missing,
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
    """Return a function that reads the user again, and returns the reason why the job may not continue."""

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
    """Return the user as the session's backend does, or ``None`` if the user or the backend is gone."""
    if arguments["backend"] not in settings.AUTHENTICATION_BACKENDS:
        return None
    try:
        key = get_user_model()._meta.pk.to_python(arguments["user_key"])
        return load_backend(arguments["backend"]).get_user(key)
    except (InvalidValue, ObjectDoesNotExist, ValidationError):
        return None
