"""The project, with a setting that promises a rollback."""

from tests.backend_project.settings import *  # noqa: F403 - settings modules build on each other by names

DATABASES = {"default": {"ENGINE": "dynamo_single.backend", "ATOMIC_REQUESTS": True}}
