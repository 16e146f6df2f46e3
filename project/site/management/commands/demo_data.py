"""``manage.py demo_data``: load the demo's data unless they are loaded."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from dynamo_single.conf import table_settings


class Command(BaseCommand):
    """Write missing companies, books, users, servers and messages, all invented: about 1,200 items."""

    help = "Loads the demo's data into a local engine; what is there already stays."

    def handle(self, *args: Any, **options: Any) -> None:
        """Load the missing data."""
        # Import late, so that Django can list the command and show its help even if the demo's models are broken.
        from project.chat import demo as chat
        from project.directory import demo as directory
        from project.records import demo as records
        from project.service import demo as service

        table = table_settings()
        if not table.is_local:
            raise CommandError(f"The demo's data are for a local engine only; DYNAMO_URL points at {table.place}.")
        parts = {"companies": directory, "books": records, "users": service, "servers": chat}
        for what, part in parts.items():
            if not part.is_loaded():
                self.stdout.write(f"Loading the demo data: {what}")
                part.load()
