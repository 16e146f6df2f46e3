"""Data from before the tests is restored after any change."""

from __future__ import annotations

from django.test import TestCase, TransactionTestCase

from tests.isolated_project.notes.models import Note


class Seeded:
    """The tests of each class."""

    def test_a_change(self) -> None:
        """Change what is there."""
        Note.objects.filter(pk="seed").update(text="changed")

    def test_a_deletion(self) -> None:
        """Delete what is there."""
        Note.objects.get(pk="seed").delete()

    def test_it_is_as_it_was(self) -> None:
        """The former data exists."""
        assert [note.text for note in Note.objects.all()] == ["as planted"]


class InTestCase(Seeded, TestCase):
    """The class rolls back if possible."""


class InTransactionTestCase(Seeded, TransactionTestCase):
    """The class that empties the database."""


class InSerializedRollback(Seeded, TransactionTestCase):
    """The class that puts in again what was there."""

    serialized_rollback = True
