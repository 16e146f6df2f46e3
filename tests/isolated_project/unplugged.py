"""Tests of pytest without the app's plugin, and of processes that tests start without a test table."""

from __future__ import annotations

import os
import subprocess
import unittest

import django
import pytest
from django.test import SimpleTestCase

from dynamo_single.exceptions import AccessOutsideTest
from dynamo_single.table.redirects import UNGUARDED, VARIABLE
from dynamo_single.testing import local_engine
from tests import children
from tests.isolated_project import stock

PROGRAM = "import django; django.setup(); from tests.isolated_project.stock import write; write()"


def write_in_a_process(**environment: str) -> subprocess.CompletedProcess[str]:
    """Write the note in another process."""
    return children.run(["-c", PROGRAM], env={**os.environ, **environment})


def test_the_development_table_is_refused() -> None:
    """The message names the plugin to load."""
    django.setup()
    with pytest.raises(AccessOutsideTest, match=r"pytest runs without the plugin.*-p dynamo_single\.pytest_plugin"):
        stock.write()


def test_an_engine_of_its_own_is_reached() -> None:
    """A process reaches it too."""
    django.setup()
    with local_engine():
        stock.write()


def test_a_process_is_refused() -> None:
    """It inherits the information that pytest runs."""
    assert "AccessOutsideTest" in write_in_a_process().stderr


def test_a_process_reaches_the_engine_of_the_test() -> None:
    """The process gets the engine and no other table: the development table raises an error."""
    django.setup()
    with local_engine() as table:
        url = f"{table.settings.place.replace('http', 'dynamodb', 1)}/{table.name}?region=us-east-1"
        reached = write_in_a_process(DYNAMO_TEST_URL=url)
        refused = write_in_a_process()
    assert (reached.returncode, "AccessOutsideTest" in refused.stderr) == (0, True), reached.stderr


def test_the_variable_opens_the_table_to_a_process() -> None:
    """The message says this. The existing item rejects the write, so that the table is unchanged."""
    assert "AlreadyExists" in write_in_a_process(**{VARIABLE: UNGUARDED}).stderr


class InSimpleTestCase(SimpleTestCase):
    """A run without database tests has no test table."""

    @unittest.skipIf("PYTEST_VERSION" in os.environ, "Of Django's runner.")
    def test_a_process_is_refused(self) -> None:
        """A child does not reach the development table."""
        found = write_in_a_process()
        self.assertIn("this process was started by a test run", found.stderr)
