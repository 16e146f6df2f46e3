"""The demo's settings with Django's own admin app, whose log is an SQL model that refers to the user."""

from project.settings import INSTALLED_APPS as DEMO_APPS
from tests.backend_project.settings_dynamo_users import *  # noqa: F403 - settings modules build on each other by names

INSTALLED_APPS = ["django.contrib.admin" if app.endswith("DynamoAdminConfig") else app for app in DEMO_APPS]
