"""The demo's settings with an unused endpoint: these commands do not send requests."""

from project.settings import *  # noqa: F403 - settings modules build on each other by names

DYNAMO_SINGLE = {"default": "dynamodb://127.0.0.1:1/single-table?region=us-east-1&indexes=gs1,gs2,gs3"}
del ACCOUNTS  # noqa: F821 - the demo's: checks of telephone numbers ask the table
MIGRATION_MODULES = {"records": None, "service": None, "chat": None}
