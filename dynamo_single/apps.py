"""The Django app: what happens once at start-up."""

from __future__ import annotations

from django.apps import AppConfig
from django.core import checks
from django.db.models.signals import post_migrate


class DynamoSingleConfig(AppConfig):
    """Lets Django find the app's models, checks and commands."""

    name = "dynamo_single"
    verbose_name = "DynamoDB"

    def ready(self) -> None:
        """Refuse wrong settings, register the checks, and keep SQL models away from ``dynamo_single.backend``.

        Where an SQL database holds permissions, ``migrate`` adds those of our models.
        """
        # Models cannot be imported before the apps are ready.
        from dynamo_single.backend.router import install_router
        from dynamo_single.checks.auth import check_admin_logs, check_admin_sites, check_backends
        from dynamo_single.checks.models import check_models, check_references_from_sql
        from dynamo_single.conf import aliases, cost_settings, table_settings
        from dynamo_single.permissions import create_rows

        for alias in aliases():
            table_settings(alias)
        cost_settings()
        checks.register(check_models, checks.Tags.models)
        checks.register(check_references_from_sql, checks.Tags.models)
        checks.register(check_backends, checks.Tags.security)
        checks.register(check_admin_sites, checks.Tags.admin)
        checks.register(check_admin_logs, checks.Tags.admin)
        install_router()
        post_migrate.connect(create_rows, dispatch_uid="dynamo_single.permissions.create_rows")
