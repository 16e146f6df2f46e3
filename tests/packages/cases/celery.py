"""Tasks in a worker of its own; results, groups and chords in the table; a model that a task writes."""

from tests.packages.case import start

PACKAGE = "celery"
RESULT = "with lines"
LINES = '`result_backend = "dynamo_single.contrib.celery.backend:DynamoBackend"`, and `dynamo_single.contrib.celery` in `INSTALLED_APPS`; tasks work without them'

start("dynamo_single.contrib.celery")

from datetime import timedelta

from celery import Celery, chord, group
from celery.contrib.testing.worker import start_worker

from dynamo_single.testing import assert_requests, moved_time
from project.directory.models import Company

BACKEND = "dynamo_single.contrib.celery.backend:DynamoBackend"
app = Celery("test", broker="memory://", backend=BACKEND)
app.conf.update(result_expires=3600, task_track_started=True)


@app.task
def add(name):
    return Company.objects.create(name=name).pk


@app.task
def double(number):
    return 2 * number


@app.task
def total(numbers):
    return sum(numbers)


@app.task
def fail():
    raise ValueError("on purpose")


with start_worker(app, perform_ping_check=False, pool="solo"):
    pk = add.delay("Acme").get(timeout=30)
    assert Company.objects.get(pk=pk).name == "Acme"
    assert group(double.s(number) for number in range(5)).delay().get(timeout=30) == [0, 2, 4, 6, 8]
    assert chord((double.s(number) for number in range(5)), total.s()).delay().get(timeout=30) == 20
    failed = fail.delay()
    try:
        failed.get(timeout=30)
        raise AssertionError("fail() has not failed.")
    except ValueError as error:
        assert "on purpose" in str(error)
    assert failed.state == "FAILURE"
    result = double.delay(4)
    assert result.get(timeout=30) == 8

with assert_requests(["GetItem"]):
    assert app.AsyncResult(result.id).result == 8
with moved_time(timedelta(hours=2)):
    assert app.AsyncResult(result.id).state == "PENDING"
result.forget()
assert app.AsyncResult(result.id).state == "PENDING"
for serializer in ("pickle", "json"):
    app.conf.update(result_serializer=serializer, accept_content=["pickle", "json"])
    backend = Celery("other", backend=BACKEND, set_as_current=False).backend
    backend.store_result(f"some-{serializer}", {"found": 3}, "SUCCESS")
    assert backend.get_result(f"some-{serializer}") == {"found": 3}
