"""``manage.py test``: Django's command, which creates test tables even if no database uses our engine."""

from __future__ import annotations

from django.core.management.commands import test

from dynamo_single.test_tables import hooks


class Command(test.Command):
    """Django's command with any test runner."""

    def handle(self, *test_labels: str, **options: object) -> None:
        """Run the tests. Their requests can reach only test tables and engines of the tests."""
        with hooks.wrapped_hooks():
            super().handle(*test_labels, **options)
