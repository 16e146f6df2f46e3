"""``manage.py test``: Django's command, with test tables also where no engine of ours is among the databases."""

from __future__ import annotations

from django.core.management.commands import test

from dynamo_single.test_tables import hooks


class Command(test.Command):
    """Takes what Django's command takes, and any test runner."""

    def handle(self, *test_labels: str, **options: object) -> None:
        """Run the tests, whose requests reach test tables and engines of their own only."""
        with hooks.wrapped_hooks():
            super().handle(*test_labels, **options)
