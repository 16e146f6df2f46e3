"""``manage.py migrate``: Django's, which misses no migration of models in DynamoDB."""

from __future__ import annotations

from django.core.management.commands import migrate

from dynamo_single.management.autodetector import Autodetector


class Command(migrate.Command):
    """Django's command with an autodetector of ours, by which it says what has no migration yet."""

    autodetector = Autodetector
