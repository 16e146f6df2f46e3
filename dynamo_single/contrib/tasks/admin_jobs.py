"""The task that runs jobs of the admin. ``DynamoAdminSite.enqueue_job()`` imports this module at its first use."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import Any, Final

from django.contrib.admin.sites import all_sites
from django.core.exceptions import ImproperlyConfigured
from django.tasks import DEFAULT_TASK_QUEUE_NAME, task, task_backends
from django.urls import NoReverseMatch, reverse

from dynamo_single import clock
from dynamo_single.admin.sites import TASK_SECONDS
from dynamo_single.contrib.tasks.backend import DynamoTaskBackend


def _chosen_backend() -> Any:
    """Return the first backend that stores tasks in the table, otherwise any backend."""
    backends = [task_backends[alias] for alias in sorted(task_backends.settings, key=lambda alias: alias != "default")]
    return next((each for each in backends if isinstance(each, DynamoTaskBackend)), backends[0])


_BACKEND: Final = _chosen_backend()
_QUEUE: Final = min(_BACKEND.queues or {DEFAULT_TASK_QUEUE_NAME}, key=lambda name: (name != "default", name))


def enqueue(site_name: str, arguments: dict[str, str], delay: float) -> bool:
    """Enqueue the task for a job: one PutItem. Return ``False`` if no backend stores tasks in the table."""
    if not isinstance(_BACKEND, DynamoTaskBackend):
        return False
    run_after = clock.now() + timedelta(seconds=delay) if delay else None
    run_admin_job.using(run_after=run_after).enqueue(site_name, arguments)
    return True


@task(backend=_BACKEND.alias, queue_name=_QUEUE)
def run_admin_job(site_name: str, arguments: dict[str, str]) -> None:
    """Run batches of a job as its owner. It ends well before the backend's time limit."""
    _site(site_name).run_job(arguments, min(TASK_SECONDS, _BACKEND.time_limit.total_seconds() / 2))


def _site(name: str) -> Any:
    # It imports the addresses, whose module may create the site.
    with suppress(NoReverseMatch):
        reverse("admin:index", current_app=name)
    for site in all_sites:
        if site.name == name and hasattr(site, "run_job"):
            return site
    raise ImproperlyConfigured(
        f"Cannot run a job of the admin: the worker has no admin site {name!r}. Start the worker with the settings of "
        "the web server."
    )
