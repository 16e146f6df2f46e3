"""The demo's settings, and an app with migrations whose SQL model refers to a company in DynamoDB."""

from project.settings import INSTALLED_APPS as DEMO_APPS
from tests.backend_project.settings_dynamo_users import *  # noqa: F403 - settings modules build on each other by names

INSTALLED_APPS = [*DEMO_APPS, "tests.backend_project.parcels"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
