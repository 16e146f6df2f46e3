"""A command that, like ``runserver``, warns of migrations that are not applied."""

from typing import Any

from django.core.management.base import BaseCommand


class Command(BaseCommand):
    """Only warn."""

    requires_migrations_checks = True

    def handle(self, *args: Any, **options: Any) -> None:
        """Print that the command ran."""
        self.stdout.write("ran")
