"""The settings of the tests: the demo's, with an unused endpoint until an engine is started."""

from importlib.util import find_spec

from project.settings import *  # noqa: F403 - settings modules build on each other by names

INSTALLED_APPS = [*INSTALLED_APPS, "tests.catalog", "tests.histories"]  # noqa: F405 - the demo's
#: ``TEST_TRANSPORT=botocore`` runs the same tests on botocore's request path.
TRANSPORT = env.str("TEST_TRANSPORT", "direct")  # noqa: F405 - the demo's
#: ``TEST_PATIENCE`` is how many seconds a request of a test with very many items may take.
PATIENCE = env.int("TEST_PATIENCE", 10)  # noqa: F405 - the demo's
# Port 1 is never used: a test that does not request an engine fails immediately. Processes that a test starts get its
# engine.
DYNAMO_SINGLE = {
    "default": env.str(  # noqa: F405 - the demo's
        "DYNAMO_TEST_URL",
        f"dynamodb://127.0.0.1:1/single-table?region=us-east-1&indexes=gs1,gs2,gs3&transport={TRANSPORT}"
        f"&read_timeout={PATIENCE}&total_timeout={1.5 * PATIENCE}",
    ),
    # The user service has a key of each user on three indexes.
    "service": f"dynamodb://127.0.0.1:1/service?region=us-east-1&indexes=gs1,gs2,gs3&transport={TRANSPORT}",
    # The differential test's models share partitions, which would show in every other model's plans.
    "kinds": f"dynamodb://127.0.0.1:1/kinds?region=us-east-1&transport={TRANSPORT}",
}
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
del ACCOUNTS  # noqa: F821 - the demo's; tests of accounts begin with the defaults
# Test tables are not migrated.
MIGRATION_MODULES = {"records": None, "service": None, "chat": None}

# Django has tasks since 6.0.
if find_spec("django.tasks") is not None:
    INSTALLED_APPS += ["dynamo_single.contrib.tasks"]
    TASKS = {
        "default": {
            "BACKEND": "dynamo_single.contrib.tasks.backend.DynamoTaskBackend",
            "QUEUES": ["default", "mails"],
            "OPTIONS": {"lease": 1, "retry_delay": 0},
        }
    }
