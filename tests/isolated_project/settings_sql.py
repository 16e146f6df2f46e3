"""The same project with an SQL database alone, beside which the models in DynamoDB stand."""

from tests.isolated_project.settings import *  # noqa: F403 - settings modules build on each other by names

DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
