"""Test classes whose preparation fails after a write, and one that must not find it."""

from __future__ import annotations

from django.test import TestCase, TransactionTestCase

from tests.isolated_project.notes.models import Note
from tests.isolated_project.stock import write


class ABrokenFixture(TransactionTestCase):
    """The second file of fixtures is missing."""

    fixtures = ("notes.json", "missing.json")

    def test_nothing(self) -> None:
        """Never run."""


class ABrokenFixtureInTestCase(TestCase):
    """The same for the other class."""

    fixtures = ("notes.json", "missing.json")

    def test_nothing(self) -> None:
        """Never run."""


class BBrokenData(TestCase):
    """The data of the class fail."""

    @classmethod
    def setUpTestData(cls) -> None:
        write()
        raise LookupError("broken on purpose")

    def test_nothing(self) -> None:
        """Never run."""


class CBrokenSetUp(TestCase):
    """The class itself fails after Django has prepared it."""

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        write()
        raise LookupError("broken on purpose")

    def test_nothing(self) -> None:
        """Never run."""


class DClean(TestCase):
    """Do not find objects of earlier classes."""

    def test_nothing_is_left(self) -> None:
        """The table has no objects of the classes above."""
        self.assertFalse(Note.objects.exists())


class EClean(TransactionTestCase):
    """Do not find objects of earlier classes either."""

    def test_nothing_is_left(self) -> None:
        """The table has no objects of the classes above."""
        self.assertFalse(Note.objects.exists())
