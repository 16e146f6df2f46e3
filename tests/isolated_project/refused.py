"""Tables that a test must not use, and a separate table for a test."""

from __future__ import annotations

import threading
from typing import Any

from django.conf import settings
from django.test import SimpleTestCase, TestCase, override_settings

from dynamo_single.exceptions import AccessOutsideTest, DynamoSingleError
from dynamo_single.testing import intercept, local_engine
from tests.isolated_project.notes.models import Note
from tests.isolated_project.stock import write


class InSimpleTestCase(SimpleTestCase):
    """The class that keeps databases away."""

    def test_a_request_is_refused(self) -> None:
        """Code that catches the app's errors does not catch this one."""
        with self.assertRaisesMessage(AccessOutsideTest, "Use the django_db mark or fixture, TestCase or"):
            try:
                write()
            except DynamoSingleError:
                self.fail("caught")

    def test_a_request_of_a_thread_is_refused(self) -> None:
        """A thread does not get past it."""
        refused: list[BaseException] = []

        def work() -> None:
            try:
                write()
            except AccessOutsideTest as error:
                refused.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        self.assertEqual(len(refused), 1)

    def test_an_engine_of_its_own_is_reached(self) -> None:
        """Within local_engine() the test has a table."""
        with local_engine():
            write()
            self.assertEqual(Note.objects.count(), 1)
        with self.assertRaises(AccessOutsideTest):
            write()

    def test_an_answer_of_the_test_is_no_request(self) -> None:
        """An interceptor's response does not send a request."""

        def answer(operation: str, params: Any) -> dict[str, Any]:
            return {"Items": [], "Count": 0, "ScannedCount": 0}

        with intercept(answer):
            self.assertEqual(list(Note.objects.all()), [])


class InTestCase(TestCase):
    """The class may use only its test database."""

    def test_a_table_at_aws_is_refused(self) -> None:
        """A table outside this machine is never used."""
        with (
            override_settings(DYNAMO_SINGLE={"default": "dynamodb:///single-table?region=eu-west-1"}),
            self.assertRaisesMessage(AccessOutsideTest, "'single-table' at AWS eu-west-1, which is not a table of"),
        ):
            write()

    def test_another_table_is_refused(self) -> None:
        """This includes a table at the endpoint of the settings."""
        other = settings.DYNAMO_SINGLE["default"].replace("/notes", "/other")
        with override_settings(DYNAMO_SINGLE={"default": other}), self.assertRaises(AccessOutsideTest):
            write()

    def test_other_options_of_the_same_table_are_taken(self) -> None:
        """The test table also replaces it if a test changes the connection's options."""
        url = f"{settings.DYNAMO_SINGLE['default']}&max_attempts=1"
        with override_settings(DYNAMO_SINGLE={"default": url}):
            write()
        self.assertEqual(Note.objects.count(), 1)

    def test_an_engine_of_its_own_is_reached(self) -> None:
        """Within local_engine(), the test also has a table."""
        write()
        with local_engine():
            write()
        self.assertEqual(Note.objects.count(), 1)


class WithoutItsDatabase(TestCase):
    """A class that names no database."""

    databases = frozenset[str]()

    def test_a_request_is_refused(self) -> None:
        """Without a database there is no table."""
        with self.assertRaises(AccessOutsideTest):
            write()
