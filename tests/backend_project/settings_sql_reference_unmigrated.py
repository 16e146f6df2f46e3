"""The same project, with the SQL model in an app without migrations."""

from tests.backend_project.settings_sql_reference import *  # noqa: F403 - settings modules build on each other by names

MIGRATION_MODULES = {"parcels": None}
