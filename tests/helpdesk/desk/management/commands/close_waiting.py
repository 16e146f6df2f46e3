"""``manage.py close_waiting``: run it every night."""

from django.core.management.base import BaseCommand

from desk.models import Organization
from desk.tasks import close_waiting


class Command(BaseCommand):
    """Close tickets that have waited for their customer too long."""

    help = "Closes tickets that have waited for their customer too long."

    def handle(self, **options):
        """Go through the organizations."""
        for organization in Organization.objects.iterator():
            self.stdout.write(f"{organization}: {close_waiting(organization)} closed")
