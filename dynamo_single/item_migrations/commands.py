"""What ``makemigrations`` and ``migrate`` do besides Django's own, as mixins for a project's or another app's subclass.

``class Command(MakemigrationsMixin, other.Command)`` in an app that stands before ``dynamo_single`` in
``INSTALLED_APPS``; both commands' ``autodetector`` is a documented attribute since Django 5.2:
https://docs.djangoproject.com/en/5.2/ref/django-admin/#overriding-commands
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from django.db.migrations.autodetector import MigrationAutodetector

from dynamo_single.exceptions import DynamoSingleError
from dynamo_single.item_migrations.autodetector import Autodetector

_OWN_APP = "dynamo_single"


class WithAutodetector:
    """A command that finds changes of models in DynamoDB as well, besides what its own autodetector finds."""

    autodetector: type[MigrationAutodetector] = Autodetector

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Put ours on top of the one that the command has otherwise."""
        super().__init_subclass__(**kwargs)
        found = (vars(base).get("autodetector") for base in cls.__mro__ if not issubclass(base, WithAutodetector))
        theirs = next((each for each in found if each is not None), MigrationAutodetector)
        if "autodetector" not in vars(cls):
            cls.autodetector = _on_top_of(theirs)

    def handle(self, *args: Any, **options: Any) -> Any:
        """Run the command; an error of ours ends it with status 1 and its message."""
        command: Any = super()
        try:
            return command.handle(*args, **options)
        except CommandError:
            raise
        except DynamoSingleError as error:
            raise CommandError(str(error)) from error


def _on_top_of(theirs: type[MigrationAutodetector]) -> type[MigrationAutodetector]:
    if issubclass(theirs, Autodetector):
        return theirs
    return Autodetector if theirs is MigrationAutodetector else type("Autodetector", (Autodetector, theirs), {})


class MakemigrationsMixin(WithAutodetector):
    """``makemigrations`` for models in DynamoDB and in SQL alike."""

    def handle(self, *app_labels: str, **options: Any) -> Any:
        """Write the migrations; those of this app's own models only where the settings say."""
        if _OWN_APP in app_labels and _OWN_APP not in settings.MIGRATION_MODULES:
            raise CommandError(
                f"The migrations of {_OWN_APP} would be written into the installed package. Name a module of the "
                f"project for them: MIGRATION_MODULES = {{{_OWN_APP!r}: 'project.migrations.{_OWN_APP}'}}."
            )
        return super().handle(*app_labels, **options)


class MigrateMixin(WithAutodetector):
    """``migrate`` for models in DynamoDB and in SQL alike."""
