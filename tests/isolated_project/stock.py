"""Django's own test classes, whose tests write the same keys: they fail if one leaves data."""

from __future__ import annotations

import os
import threading
import warnings
from typing import Any, ClassVar
from urllib.request import urlopen

from asgiref.sync import sync_to_async
from django.test import LiveServerTestCase, TestCase, TransactionTestCase

from tests import children
from tests.isolated_project.notes.models import Note


def write() -> None:
    """Create the note that every test creates: it fails if there is one."""
    Note.objects.create(note_id="same")


class SameKeys:
    """The tests of each class."""

    client: Any
    assertEqual: Any
    assertNumQueries: Any

    def test_first(self) -> None:
        """Write."""
        write()

    def test_second(self) -> None:
        """Write the same."""
        write()

    def test_many(self) -> None:
        """Leave more items than one batch deletes."""
        for number in range(60):
            Note.objects.create(note_id=f"note{number}")
        self.assertEqual(Note.objects.count(), 60)

    def test_a_thread(self) -> None:
        """Write in another thread."""
        thread = threading.Thread(target=write)
        thread.start()
        thread.join()
        self.assertEqual(Note.objects.count(), 1)

    def test_a_forked_process(self) -> None:
        """Write in a forked process."""
        with warnings.catch_warnings():  # Python 3.12 warns of threads, which this child does not need
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if not child:
            write()
            os._exit(0)
        _, status = os.waitpid(child, 0)
        self.assertEqual((status, Note.objects.count()), (0, 1))

    def test_a_view(self) -> None:
        """Write in a view."""
        self.assertEqual(self.client.get("/same/").content, b"1")

    async def test_asynchronous_code(self) -> None:
        """Write in a coroutine."""
        await Note.objects.acreate(note_id="same")
        self.assertEqual(await sync_to_async(Note.objects.count)(), 1)

    def test_requests_are_counted(self) -> None:
        """A request counts as a query."""
        with self.assertNumQueries(2):
            write()
            Note.objects.get(pk="same")

    async def test_requests_of_asynchronous_code_are_counted(self) -> None:
        """A request of a coroutine counts as a query."""
        # The log belongs to the thread of the work, as with SQL.
        counted = await sync_to_async(self.assertNumQueries)(1)
        await sync_to_async(counted.__enter__)()
        await Note.objects.acreate(note_id="same")
        await sync_to_async(counted.__exit__)(None, None, None)


class InTestCase(SameKeys, TestCase):
    """The class rolls back if possible."""


class InTransactionTestCase(SameKeys, TransactionTestCase):
    """The class that empties the database."""


class InLiveServerTestCase(SameKeys, LiveServerTestCase):
    """The class that starts a server."""

    def test_the_server(self) -> None:
        """Write in a thread of the server."""
        with urlopen(f"{self.live_server_url}/same/") as response:  # noqa: S310 - the test's own server
            self.assertEqual(response.read(), b"1")
        self.assertEqual(Note.objects.count(), 1)


class WithData(TestCase):
    """Data of a class, which each test finds unchanged."""

    note: ClassVar[Note]

    @classmethod
    def setUpTestData(cls) -> None:
        """Make a note."""
        cls.note = Note.objects.create(note_id="data", text="as made")

    def test_a_change(self) -> None:
        """Change it, in the table and in the object."""
        self.note.text = "changed"
        self.note.save()
        self.assertEqual(Note.objects.get(pk="data").text, "changed")

    def test_a_deletion(self) -> None:
        """Delete it."""
        self.note.delete()
        self.assertFalse(Note.objects.exists())

    def test_an_addition(self) -> None:
        """Add to it."""
        write()
        self.assertEqual(Note.objects.count(), 2)

    def test_it_is_as_it_was_made(self) -> None:
        """The object and the stored item have the given values."""
        self.assertEqual((self.note.text, Note.objects.get(pk="data").text), ("as made", "as made"))
        self.assertEqual(Note.objects.count(), 1)


class AfterData(TestCase):
    """A class that comes after one with data."""

    def test_the_data_are_gone(self) -> None:
        """The other class's data is gone."""
        self.assertFalse(Note.objects.exists())


class WithFixtures(TestCase):
    """Fixtures, which each test finds as they are in the file."""

    fixtures = ("notes.json",)

    def test_a_deletion(self) -> None:
        """Delete what the fixture made."""
        Note.objects.get(pk="fixture").delete()
        self.assertFalse(Note.objects.exists())

    def test_it_is_as_in_the_file(self) -> None:
        """The note has the values of the file."""
        self.assertEqual([note.text for note in Note.objects.all()], ["from a fixture"])


class WithFixturesInTransactionTestCase(TransactionTestCase):
    """The same for the other class."""

    fixtures = ("notes.json",)

    test_a_deletion = WithFixtures.test_a_deletion
    test_it_is_as_in_the_file = WithFixtures.test_it_is_as_in_the_file


class ByHand(TransactionTestCase):
    """Other manual operations of a test."""

    def test_a_process(self) -> None:
        """Write in a process that is started again, with the project's settings."""
        command = "from tests.isolated_project.stock import write; write()"
        child = children.run(["-m", "django", "shell", "--command", command], env=os.environ)
        self.assertEqual(child.returncode, 0, child.stderr)
        self.assertEqual(Note.objects.count(), 1)

    def test_the_process_left_nothing(self) -> None:
        """The started process's writes are gone, whichever test is first."""
        self.assertFalse(Note.objects.exists())
