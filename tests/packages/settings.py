"""The settings of the tests with the packages in ``requirements.txt``."""

from tests.settings import *  # noqa: F403

DEBUG = True
INTERNAL_IPS = ["127.0.0.1"]
CONTRIB = ("dynamo_single.contrib.observability", "dynamo_single.contrib.rest_framework")
INSTALLED_APPS = [*INSTALLED_APPS, "debug_toolbar", *CONTRIB]  # noqa: F405
MIDDLEWARE = ["debug_toolbar.middleware.DebugToolbarMiddleware", *MIDDLEWARE]  # noqa: F405
DEBUG_TOOLBAR_PANELS = ["dynamo_single.contrib.observability.panels.DynamoPanel"]
DEBUG_TOOLBAR_CONFIG = {
    "IS_RUNNING_TESTS": False,
    "RENDER_PANELS": True,
    "SHOW_TOOLBAR_CALLBACK": lambda request: True,
}
ROOT_URLCONF = "tests.packages.urls"
