"""Results in Django's cache, which is in the table."""

from tests.packages.case import start

PACKAGE = "django-celery-results"
RESULT = "with lines"
LINES = '`CELERY_RESULT_BACKEND = "django-cache"`, and `CACHES` with `dynamo_single.cache.DynamoCache`; its own models are rows of SQL'

start(
    "django_celery_results",
    CACHES={"default": {"BACKEND": "dynamo_single.cache.DynamoCache", "LOCATION": "default"}},
)

from celery import Celery

app = Celery("test", broker="memory://", backend="django_celery_results.backends.CacheBackend")
app.backend.store_result("some-task", {"found": 3}, "SUCCESS")
assert app.AsyncResult("some-task").get(timeout=5) == {"found": 3}
