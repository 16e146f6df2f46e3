"""``migrate``, which applies the migrations of models in DynamoDB too."""

from __future__ import annotations

from django.core.management.commands import migrate

from dynamo_single.evolution.commands import MigrateMixin


class Command(MigrateMixin, migrate.Command):
    """Django's, and what ours add."""
