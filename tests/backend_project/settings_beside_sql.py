"""The demo's models in DynamoDB, next to an app with migrations in an SQL database."""

from project.settings import INSTALLED_APPS as DEMO_APPS
from tests.backend_project.settings_dynamo_users import *  # noqa: F403 - settings modules build on each other by names

INSTALLED_APPS = [*DEMO_APPS, "tests.backend_project.shop"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
