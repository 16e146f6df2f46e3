"""``manage.py dumpdata``: Django's, for models in DynamoDB too."""

from __future__ import annotations

from typing import Any

from django.core.management.commands import dumpdata

from dynamo_single.orm.where.arguments import in_any_order


class Command(dumpdata.Command):
    """Django's command asks for the order of ``pk``, which no key has; here objects come in the order of their key."""

    def handle(self, *app_labels: str, **options: Any) -> Any:
        """Write the fixture: for each named model the requests of ``Model.objects.all()``."""
        with in_any_order():
            return super().handle(*app_labels, **options)
