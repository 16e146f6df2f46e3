"""A task that writes, by the immediate backend."""

from tests.packages.case import start

PACKAGE = "django-tasks"
RESULT = "unchanged"

start("django_tasks", TASKS={"default": {"BACKEND": "django_tasks.backends.immediate.ImmediateBackend"}})

from django_tasks import task

from project.directory.models import Company


def add(name):
    return Company.objects.create(name=name).pk


add.__module__, add.__qualname__ = __name__, "add"
result = task()(add).enqueue("Acme")
assert Company.objects.get(pk=result.return_value).name == "Acme"
