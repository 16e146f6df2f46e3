"""Models in DynamoDB and in SQL side by side, in one test."""

from __future__ import annotations

from django.core.management import call_command
from django.db import transaction
from django.test import TestCase, TransactionTestCase

from tests.isolated_project.notes.models import Note, Row


class Both:
    """The tests of each class."""

    assertEqual = TestCase.assertEqual

    def _write(self) -> None:
        self.assertEqual((Row.objects.count(), Note.objects.count()), (0, 0))
        Row.objects.create(name="same")
        Note.objects.create(note_id="same")

    def test_first(self) -> None:
        """Write."""
        self._write()

    def test_second(self) -> None:
        """Write the same."""
        self._write()


class InTestCase(Both, TestCase):
    """The class that rolls SQL back."""

    def test_queries_and_requests_are_counted(self) -> None:
        """A query and a request count as two."""
        with self.assertNumQueries(2):
            self.assertEqual((Row.objects.count(), Note.objects.count()), (0, 0))


class InTransactionTestCase(Both, TransactionTestCase):
    """The class that empties both."""

    def test_flush_leaves_what_is_not_in_sql(self) -> None:
        """Django's command empties the SQL database."""
        self._write()
        call_command("flush", interactive=False, verbosity=0)
        self.assertEqual((Row.objects.count(), Note.objects.count()), (0, 1))


class WithData(TestCase):
    """Data of a class in both."""

    @classmethod
    def setUpTestData(cls) -> None:
        """Make a row and a note."""
        Row.objects.create(name="data")
        Note.objects.create(note_id="data")

    def test_a_deletion(self) -> None:
        """Delete both."""
        with transaction.atomic():
            Row.objects.all().delete()
            Note.objects.get(pk="data").delete()

    def test_both_are_there(self) -> None:
        """Both objects are unchanged."""
        self.assertEqual((Row.objects.count(), Note.objects.count()), (1, 1))
