"""``manage.py migrate``, which also applies the migrations of models in DynamoDB."""

from __future__ import annotations

from django.core.management.commands import migrate

from dynamo_single.evolution.commands import MigrateMixin


class Command(MigrateMixin, migrate.Command):
    """Django's command, extended to models in DynamoDB."""
