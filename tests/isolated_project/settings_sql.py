"""The same project with only an SQL database, next to the models in DynamoDB."""

from tests.isolated_project.settings import *  # noqa: F403 - settings modules build on each other by names

DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
