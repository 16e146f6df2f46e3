"""The Django app: what happens once at start-up."""

from __future__ import annotations

from django.apps import AppConfig


class DynamoSingleConfig(AppConfig):
    """Lets Django find the app's models, checks and commands."""

    name = "dynamo_single"
    verbose_name = "DynamoDB"

    def ready(self) -> None:
        """Keep SQL models away from ``dynamo_single.backend``, if the project uses it."""
        from dynamo_single.backend.router import install_router

        install_router()
