"""The settings of what is measured beside SQL in one process: the tests' own, and a table in SQLite's memory."""

from tests.settings import *  # noqa: F403 - settings modules build on each other by names

INSTALLED_APPS = [*INSTALLED_APPS, "benchmarks.sql"]  # noqa: F405 - the tests' own
DATABASES = {
    **DATABASES,  # noqa: F405 - the tests' own
    "sqlite": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"},
}
# Nothing is written down for anybody while it is measured.
DEBUG = False
