"""The Django app: what happens once at start-up."""

from __future__ import annotations

from django.apps import AppConfig
from django.core import checks


class DynamoSingleConfig(AppConfig):
    """Lets Django find the app's models, checks and commands."""

    name = "dynamo_single"
    verbose_name = "DynamoDB"

    def ready(self) -> None:
        """Refuse wrong settings, register the checks, and keep SQL models away from ``dynamo_single.backend``."""
        # Models cannot be imported before the apps are ready.
        from dynamo_single.backend.router import install_router
        from dynamo_single.checks import check_models, check_references_from_sql
        from dynamo_single.conf import aliases, table_settings

        for alias in aliases():
            table_settings(alias)
        checks.register(check_models, checks.Tags.models)
        checks.register(check_references_from_sql, checks.Tags.models)
        install_router()
