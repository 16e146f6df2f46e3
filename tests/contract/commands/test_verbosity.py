"""``--verbosity 0``: a command writes errors alone, unless its output is what it is for."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import override_settings

from tests.catalog.models import Sample

pytestmark = pytest.mark.usefixtures("table")

SILENT: list[Sequence[Any]] = [
    ("dynamo_setup",),
    ("dynamo_rebuild", "catalog.Sample"),
    ("dynamo_verify",),
]


@pytest.mark.parametrize("line", SILENT, ids=str)
def test_verbosity_0_is_silent(line: Sequence[Any], capsys: pytest.CaptureFixture[str]) -> None:
    """This includes a given stream; a higher verbosity prints messages."""
    Sample.objects.create(sample_id="a")
    given = StringIO()
    call_command(*line, verbosity=0, stdout=given)
    call_command(*line, verbosity=0)
    assert (given.getvalue(), capsys.readouterr().out) == ("", "")
    call_command(*line)
    assert capsys.readouterr().out


@pytest.mark.parametrize("line", [("dynamo_status",), ("dynamo_patterns",), ("dynamo_setup", "--dry-run")], ids=str)
def test_verbosity_0_shows_what_a_command_is_for(line: Sequence[Any], capsys: pytest.CaptureFixture[str]) -> None:
    call_command(*line, verbosity=0)
    assert capsys.readouterr().out


@override_settings(MIGRATION_MODULES={})
def test_makemigrations_writes_those_of_the_other_apps(capsys: pytest.CaptureFixture[str]) -> None:
    """A message explains that an installed app has no place for its own; alone, it raises an error."""
    call_command("makemigrations", "catalog", "dynamo_single", dry_run=True)
    written = capsys.readouterr()
    assert "Add model Sample" in written.out
    assert written.err.startswith(
        "No migrations are written for dynamo_single. The migrations of dynamo_single would be"
    )
    with pytest.raises(CommandError, match=r"MIGRATION_MODULES = \{'dynamo_single': 'project"):
        call_command("makemigrations", "dynamo_single", dry_run=True)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (("nosuch",), "No installed app with label 'nosuch'."),
        (("directory", "0099"), "Cannot find a migration matching '0099' from app 'directory'."),
    ],
)
def test_rehearsal_names_what_is_not_there(line: Sequence[str], said: str) -> None:
    """The error names the missing part, as in Django's ``migrate``; in the past, it printed the ``repr()`` of a key."""
    with pytest.raises(CommandError) as raised:
        call_command("migrate", *line, rehearse=True)
    assert str(raised.value) == said
