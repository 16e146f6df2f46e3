"""The project with an SQL database, and the engine on a second alias."""

from tests.backend_project.settings import *  # noqa: F403 - settings modules build on each other by names

DATABASES = {
    "default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"},
    "nosql": {"ENGINE": "dynamo_single.backend"},
}
