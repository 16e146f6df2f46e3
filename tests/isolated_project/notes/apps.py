"""The data of the app in a new database."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class NotesConfig(AppConfig):
    """The app of the notes."""

    name = "tests.isolated_project.notes"
    label = "notes"

    def ready(self) -> None:
        """Create a note in each new database, if the settings enable it."""
        post_migrate.connect(_seed, sender=self)


def _seed(**_: Any) -> None:
    from django.conf import settings

    from tests.isolated_project.notes.models import Note

    if getattr(settings, "SEED", False):
        Note(note_id="seed", text="as planted").save()
