"""The settings of the tests: the demo's, and an endpoint where nothing listens until an engine was started."""

from project.settings import *  # noqa: F403 - settings modules build on each other by names

INSTALLED_APPS = [*INSTALLED_APPS, "tests.catalog"]  # noqa: F405 - the demo's
# Port 1 is never in use: a test that forgot to ask for an engine fails at once.
# Processes that a test starts are told where its engine is.
DYNAMO_SINGLE = {
    "default": env.str("DYNAMO_TEST_URL", "dynamodb://127.0.0.1:1/single-table?region=us-east-1"),  # noqa: F405 - the demo's
    # The differential test's models share partitions, which would show in every other model's plans.
    "kinds": "dynamodb://127.0.0.1:1/kinds?region=us-east-1",
}
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
