"""Tests for a project without SQL."""

from __future__ import annotations

from django.core.management import call_command
from django.test import TransactionTestCase

from tests.isolated_project.notes.models import Note
from tests.isolated_project.stock import write


class ByHand(TransactionTestCase):
    """Commands that tests call."""

    def test_flush_empties_the_test_table(self) -> None:
        """Django's command empties the database of a test."""
        write()
        call_command("flush", interactive=False, verbosity=0)
        self.assertFalse(Note.objects.exists())
