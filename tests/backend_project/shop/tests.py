"""Tests that the project's own test runner runs, with each of Django's test classes."""

import threading
from typing import Any, ClassVar
from urllib.request import urlopen

from asgiref.sync import sync_to_async
from django.contrib.auth.models import Group
from django.db import connection, connections, transaction
from django.test import LiveServerTestCase, SimpleTestCase, TestCase, TransactionTestCase

from dynamo_single.exceptions import NotSupported


class Behaviour:
    """Shared tests of every test class."""

    client: Any
    assertEqual: Any
    assertRaisesMessage: Any

    def test_a_callback_runs_after_the_outermost_block(self) -> None:
        """A callback waits for the end of the outermost block."""
        ran: list[str] = []
        with transaction.atomic():
            with transaction.atomic():
                transaction.on_commit(lambda: ran.append("inner"))
            self.assertEqual(ran, [])
        self.assertEqual(ran, ["inner"])

    def test_a_view_with_a_transaction_answers(self) -> None:
        """A view that opens a transaction works with the test client."""
        self.assertEqual(self.client.get("/").content, b"answered")

    def test_a_query_is_refused(self) -> None:
        """A query of an SQL model raises, whatever the test class allows."""
        with self.assertRaisesMessage(NotSupported, "Cannot query auth.Group"):
            list(Group.objects.all())

    def test_each_thread_has_its_transaction(self) -> None:
        """Threads open and finish transactions of their own."""
        ran: list[int] = []

        def work(number: int) -> None:
            with transaction.atomic():
                transaction.on_commit(lambda: ran.append(number))
            connections.close_all()

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(ran), [0, 1, 2, 3])

    async def test_a_transaction_opens_from_asynchronous_code(self) -> None:
        """A transaction opens in a function that sync_to_async runs."""

        def work() -> bool:
            with transaction.atomic():
                return connection.in_atomic_block

        self.assertEqual(await sync_to_async(work)(), True)


class InSimpleTestCase(Behaviour, SimpleTestCase):
    """The class that keeps SQL away."""


class InTestCase(Behaviour, TestCase):
    """The class that rolls back."""

    made: ClassVar[int] = 0

    @classmethod
    def setUpTestData(cls) -> None:
        """Count the creations of data."""
        cls.made += 1

    def test_data_is_created_once_for_the_class(self) -> None:
        """The writes of each test are undone."""
        self.assertEqual(self.made, 1)

    def test_a_callback_runs_after_the_outermost_block(self) -> None:
        """The outermost block is the test's, as with SQL: Django's context manager runs the callback."""
        ran: list[str] = []
        with self.captureOnCommitCallbacks(execute=True), transaction.atomic():
            transaction.on_commit(lambda: ran.append("inner"))
        self.assertEqual(ran, ["inner"])


class InTransactionTestCase(Behaviour, TransactionTestCase):
    """The class that would empty the database."""

    reset_sequences = True
    serialized_rollback = True


class InLiveServerTestCase(LiveServerTestCase):
    """The class that starts a server."""

    def test_the_server_answers(self) -> None:
        """A view that opens a transaction works in the server's thread."""
        with urlopen(self.live_server_url) as response:  # noqa: S310 - the test's own server
            self.assertEqual(response.read(), b"answered")
