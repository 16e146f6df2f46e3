"""Settings for comparisons with SQL in one process: the tests' settings, and SQLite in memory."""

from tests.settings import *  # noqa: F403 - settings modules build on each other by names

INSTALLED_APPS = [*INSTALLED_APPS, "benchmarks.sql"]  # noqa: F405 - the tests' own
DATABASES = {
    **DATABASES,  # noqa: F405 - the tests' own
    "sqlite": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"},
}
# With DEBUG, Django records all SQL queries, which distorts the measurements.
DEBUG = False
