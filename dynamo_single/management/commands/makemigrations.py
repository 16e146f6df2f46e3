"""``makemigrations``, which finds changes of models in DynamoDB too."""

from __future__ import annotations

from django.core.management.commands import makemigrations

from dynamo_single.evolution.commands import MakemigrationsMixin


class Command(MakemigrationsMixin, makemigrations.Command):
    """Django's, and what ours add."""
