"""A task that writes, run eagerly."""

from tests.packages.case import start

PACKAGE = "celery"
RESULT = "unchanged"

start()

from celery import Celery

from project.directory.models import Company

app = Celery("test", broker="memory://", backend="cache+memory://")
app.conf.task_always_eager = True


@app.task
def add(name):
    return Company.objects.create(name=name).pk


pk = add.delay("Acme").get()
assert Company.objects.get(pk=pk).name == "Acme"
