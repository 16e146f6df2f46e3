"""Tests that write the same keys, in eight classes: a parallel run deals classes out to its processes."""

from __future__ import annotations

from django.test import TestCase

from tests.isolated_project import OF_A_CLASS
from tests.isolated_project.notes.models import Note


def _write(test: TestCase) -> None:
    for number in range(3):
        Note.objects.create(note_id=f"note{number}")
    test.assertEqual(Note.objects.count(), 3)


for _number in range(8):
    _name = f"SameKeys{_number}"
    globals()[_name] = type(
        _name, (TestCase,), {f"test_{number}": _write for number in range(OF_A_CLASS)} | {"__module__": __name__}
    )
