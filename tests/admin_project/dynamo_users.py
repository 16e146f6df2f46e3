"""A project with an SQL database, and its users in DynamoDB."""

from project.settings import *  # noqa: F403 - settings modules build on each other by names

DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
ROOT_URLCONF = "tests.admin_project.urls"
# Django's own takes a third of a second for each password.
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
