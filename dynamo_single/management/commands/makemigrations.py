"""``manage.py makemigrations``: Django's, which writes nothing for models in DynamoDB."""

from __future__ import annotations

from django.core.management.commands import makemigrations

from dynamo_single.management.autodetector import Autodetector


class Command(makemigrations.Command):
    """Django's command with an autodetector of ours."""

    autodetector = Autodetector
