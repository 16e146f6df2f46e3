"""``manage.py makemigrations``, which also detects changes of models in DynamoDB."""

from __future__ import annotations

from django.core.management.commands import makemigrations

from dynamo_single.evolution.commands import MakemigrationsMixin


class Command(MakemigrationsMixin, makemigrations.Command):
    """Django's command, extended to models in DynamoDB."""
