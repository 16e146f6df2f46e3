"""``manage.py loaddata``: Django's, which refuses rows of SQL models where there is no SQL database."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from django.core.management.commands import loaddata
from django.db import router

from dynamo_single.backend.errors import is_stored_in_dynamodb
from dynamo_single.backend.router import uses_engine


class Command(loaddata.Command):
    """Django's command passes over a model that has no table in a database, and succeeds."""

    def save_obj(self, obj: Any) -> bool:
        """Save one object; a row that could be stored nowhere is an error that names its model."""
        model = type(obj.object)
        excluded = model._meta.app_config in self.excluded_apps or model in self.excluded_models
        stored = is_stored_in_dynamodb(model) or router.allow_migrate_model(self.using, model)
        if not excluded and not stored and uses_engine(self.using):
            label = model._meta.label_lower
            instead = f" Users are {settings.AUTH_USER_MODEL} here." if model._meta.app_label == "auth" else ""
            raise CommandError(
                f"{label} is a model of SQL, and {self.using!r} is no SQL database, so that "
                f"{label}(pk={obj.object.pk!r}) can be stored nowhere.{instead} Take its rows out of the fixture, or "
                f"leave them out by --exclude {label}. What stands before it in the fixture is stored."
            )
        saved = bool(super().save_obj(obj))
        if is_stored_in_dynamodb(model):
            # The database is asked in the end to check the tables of these models; ours have none there.
            self.models.discard(model)
        return saved
