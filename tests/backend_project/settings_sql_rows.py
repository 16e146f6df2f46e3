"""SQL models next to users and companies in DynamoDB, whose table a test names."""

from project.settings import DYNAMO_SINGLE as NAMED
from tests.backend_project.settings_sql_reference import *  # noqa: F403 - settings modules build on each other by names

DYNAMO_SINGLE = NAMED
# Django's own takes a third of a second for each password.
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
