"""``manage.py dumpdata``: Django's, for models in DynamoDB too."""

from __future__ import annotations

from typing import Any

from django.core.management.commands import dumpdata

from dynamo_single.orm.query.state import InKeyOrder


class Command(dumpdata.Command):
    """Django's command asks for the order of ``pk``, which no key has; here objects come in the order of their key."""

    def handle(self, *app_labels: str, **options: Any) -> Any:
        """Write the fixture: for each named model the requests of ``Model.objects.all()``."""
        # The alias is the one thing of ours that Django's command hands to every queryset.
        options["database"] = InKeyOrder(options["database"])
        return super().handle(*app_labels, **options)
