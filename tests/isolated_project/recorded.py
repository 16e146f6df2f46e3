"""Test classes whose writes are undone from a record of them, without a Scan for each test."""

from __future__ import annotations

import subprocess
import sys
from typing import Any, ClassVar

from botocore.session import Session
from django.test import TestCase

from dynamo_single.table import get_table, transport
from tests.isolated_project.notes.models import Note
from tests.isolated_project.stock import write

#: The operations sent to the test tables, also between the tests.
_sent: list[str] = []


class _Counting(TestCase):
    """Count requests below everything that a test sees."""

    @classmethod
    def setUpClass(cls) -> None:
        original = transport.send

        def send(settings: Any, operation: str, *arguments: Any) -> Any:
            _sent.append(operation)
            return original(settings, operation, *arguments)

        transport.send = send  # type: ignore[assignment]
        cls.addClassCleanup(setattr, transport, "send", original)
        _sent.clear()
        super().setUpClass()


class DataOfAClass(_Counting):
    """Data of the class: created once, and as they were for each test."""

    called: ClassVar[int] = 0

    @classmethod
    def setUpTestData(cls) -> None:
        DataOfAClass.called += 1
        for number in range(60):
            Note.objects.create(note_id=f"data{number:02}", text="as made")

    def _change(self) -> None:
        self.assertEqual(Note.objects.filter(text="as made").count(), 60)
        Note.objects.get(pk="data00").delete()
        Note.objects.filter(pk="data01").update(text="changed")
        write()

    test_first = test_second = test_third = _change

    def test_the_data_were_created_once(self) -> None:
        """Not once for each test."""
        self.assertEqual(DataOfAClass.called, 1)

    def test_zz_one_scan_was_sent(self) -> None:
        """When its data were there: none between the tests."""
        self.assertEqual(_sent.count("Scan"), 1)
        self.assertGreater(_sent.count("BatchWriteItem"), 2)


class OtherClient(TestCase):
    """Writes of another client are found, also on a connection that it keeps open."""

    client_of_botocore: ClassVar[Any]

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        table = get_table().settings
        cls.client_of_botocore = Session().create_client(
            "dynamodb", table.region, endpoint_url=table.endpoint_url, aws_access_key_id="a", aws_secret_access_key="b"
        )
        cls.addClassCleanup(cls.client_of_botocore.close)

    def _write(self) -> None:
        self.assertFalse(Note.objects.exists())
        keys = {"pk": {"S": "NOTE#same"}, "sk": {"S": "#METADATA"}, "gs1pk": {"S": "NOTE"}, "gs1sk": {"S": "same"}}
        item = {**keys, "itemType": {"S": "Note"}}
        self.client_of_botocore.put_item(TableName=get_table().name, Item=item)
        self.assertTrue(Note.objects.exists())

    test_first = test_second = test_third = _write


class OtherProcess(TestCase):
    """Writes of a process are found."""

    def test_a_write(self) -> None:
        """Write in a new interpreter."""
        program = "import django; django.setup(); from tests.isolated_project.stock import write; write()"
        subprocess.run([sys.executable, "-c", program], check=True)  # noqa: S603 - the program above
        self.assertTrue(Note.objects.exists())

    def test_b_nothing_is_left(self) -> None:
        """The class has not ended by then."""
        self.assertFalse(Note.objects.exists())
