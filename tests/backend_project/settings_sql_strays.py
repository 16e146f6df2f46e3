"""The project with SQL models whose references to models in DynamoDB cannot work."""

from tests.backend_project.settings_sql_reference import *  # noqa: F403 - settings modules build on each other by names
from tests.backend_project.settings_sql_reference import INSTALLED_APPS as APPS

INSTALLED_APPS = [*APPS, "tests.backend_project.strays"]
