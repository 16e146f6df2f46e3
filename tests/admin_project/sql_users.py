"""A project with users in an SQL database, next to models in DynamoDB."""

from project.settings import *  # noqa: F403 - settings modules build on each other by names
from project.settings import INSTALLED_APPS as DEMO_APPS

# The migrations of records know the demo's users, who make them.
INSTALLED_APPS = [
    *(app for app in DEMO_APPS if not app.endswith(("accounts", "project.records"))),
    "django.contrib.sessions",
]
AUTH_USER_MODEL = "auth.User"
AUTHENTICATION_BACKENDS = ["django.contrib.auth.backends.ModelBackend"]
SESSION_ENGINE = "django.contrib.sessions.backends.db"
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
ROOT_URLCONF = "tests.admin_project.urls"
# Django's own takes a third of a second for each password.
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
