"""A project with an SQL database, and its users in DynamoDB: Django's own log, which refers to users, is left out."""

from project.settings import *  # noqa: F403 - settings modules build on each other by names

MIGRATION_MODULES = {"admin": None}
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
