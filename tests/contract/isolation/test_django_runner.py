"""``manage.py test``: Django's own test classes write into test tables, and leave nothing in any table."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from msgspec.structs import replace

from dynamo_single.table import Request, Table, schema
from dynamo_single.test_tables import run_locks
from tests.contract.isolation.runs import Development, development
from tests.deep import deep
from tests.isolated_project import OF_A_CLASS

PROJECT = "tests.isolated_project"
STOCK = f"{PROJECT}.stock"
#: A project without SQL, one with SQL alone, and one with both, whose tests name the SQL database only.
SETTINGS = ["settings", "settings_sql", "settings_mixed"]


@pytest.fixture
def running() -> Iterator[Development]:
    """An engine with a development table."""
    with development() as found:
        yield found


@pytest.mark.parametrize(
    ("settings", "parallel"),
    [
        ("settings", ()),
        pytest.param("settings_sql", (), marks=deep),
        ("settings_sql", ("--parallel", "2")),
        ("settings_mixed", ()),
    ],
)
def test_the_stock_test_classes_touch_no_table_but_their_own(
    running: Development, settings: str, parallel: tuple[str, ...]
) -> None:
    """Every test finds its table empty, and the development table and the engine are as before."""
    before = running.state()
    said = running.django(STOCK, "--noinput", *parallel, settings=settings)
    assert "Ran 39 tests" in said
    assert said.endswith("ended with 0"), said
    assert running.state() == before


@pytest.mark.parametrize("parallel", [pytest.param((), marks=deep), ("--parallel", "2")])
def test_a_table_whose_key_is_id_alone_has_a_test_table_of_its_form(
    running: Development, parallel: tuple[str, ...]
) -> None:
    before = running.state()
    said = running.django(f"{PROJECT}.by_id", "--noinput", *parallel, settings="settings_by_id")
    assert "Ran 3 tests" in said
    assert said.endswith("ended with 0"), said
    assert running.state() == before


@pytest.mark.parametrize("parallel", [(), pytest.param(("--parallel", "2"), marks=deep)])
def test_an_adopted_table_and_its_companion_have_test_tables(running: Development, parallel: tuple[str, ...]) -> None:
    before = running.state()
    said = running.django(f"{PROJECT}.adopted", "--noinput", *parallel, settings="settings_adopted")
    assert "Ran 3 tests" in said
    assert said.endswith("ended with 0"), said
    assert running.state() == before


@pytest.mark.parametrize("settings", SETTINGS[:2])
def test_many_tests_write_the_same_keys_in_parallel(running: Development, settings: str) -> None:
    """No process sees the writes of another process."""
    before = running.state()
    said = running.django(f"{PROJECT}.same_keys", "--noinput", "--parallel", "4", settings=settings)
    assert f"Ran {8 * OF_A_CLASS} tests" in said
    assert said.endswith("ended with 0"), said
    assert running.state() == before


@pytest.mark.parametrize("settings", SETTINGS)
def test_what_was_there_when_the_tests_began_comes_back(running: Development, settings: str) -> None:
    """Handlers of ``post_migrate`` and ``serialized_rollback`` fill the table again."""
    said = running.django(f"{PROJECT}.seeded", "--noinput", settings=settings, DYNAMO_TEST_SEED="1")
    assert said.endswith("ended with 0"), said


@pytest.mark.parametrize(
    ("settings", "label"),
    [("settings", "refused"), ("settings_sql", "refused"), ("settings_sql", "refused.InSimpleTestCase")],
)
def test_a_test_reaches_no_table_but_its_own(running: Development, settings: str, label: str) -> None:
    """Requests outside test tables raise an error, even if no test uses a database."""
    before = running.state()
    said = running.django(f"{PROJECT}.{label}", "--noinput", settings=settings)
    assert said.endswith("ended with 0"), said
    assert running.state() == before


@pytest.mark.parametrize(("settings", "parallel"), [("settings_sql", ("--parallel", "2")), ("settings_mixed", ())])
def test_rows_and_items_are_given_back_together(running: Development, settings: str, parallel: tuple[str, ...]) -> None:
    """Next to an SQL database, each test and each class restores both."""
    said = running.django(f"{PROJECT}.beside_sql", "--noinput", *parallel, settings=settings)
    assert said.endswith("ended with 0"), said


def test_without_sql_a_test_can_flush(running: Development) -> None:
    """Django's command empties the test table."""
    said = running.django(f"{PROJECT}.nosql", "--noinput")
    assert said.endswith("ended with 0"), said


def test_a_runner_without_our_command_makes_test_tables_too(running: Development) -> None:
    """Without SQL, the engine creates them for any runner."""
    before = running.state()
    said = running.python("tests.isolated_project.own_runner", f"{STOCK}.InTestCase")
    assert said.endswith("ended with 0"), said
    assert running.state() == before


def test_the_test_table_is_made_on_the_engine_that_runs(running: Development) -> None:
    """The output names the table's place."""
    said = running.django(f"{STOCK}.AfterData", "--noinput")
    assert re.search(f"Test table 'test_notes_run[0-9a-f]{{8}}' at {running.table.settings.place}\\.", said)


def test_a_table_that_is_not_local_is_never_used(running: Development) -> None:
    """Tests of a project whose table is at AWS run on an engine that they start."""
    said = running.django(f"{STOCK}.AfterData", "--noinput", settings="settings_aws")
    assert re.search("Test table 'test_notes_run[0-9a-f]{8}' at http://127.0.0.1:", said)
    assert ", an engine in memory that ends with the tests." in said
    assert said.endswith("ended with 0"), said


def test_keepdb_keeps_the_table_and_empties_it(running: Development) -> None:
    """The second run uses the first one's table, and empties it first."""
    first = running.django(f"{STOCK}.AfterData", "--keepdb")
    assert "test_notes" in running.tables(), first
    keys = {"pk": {"S": "NOTE#left"}, "sk": {"S": "#METADATA"}, "gs1pk": {"S": "NOTE"}, "gs1sk": {"S": "left"}}
    running.table.call("PutItem", {"TableName": "test_notes", "Item": {**keys, "itemType": {"S": "Note"}}})
    second = running.django(f"{STOCK}.AfterData", "--keepdb")
    assert second.endswith("ended with 0"), second


def test_two_runs_at_the_same_time_share_no_table(running: Development) -> None:
    """Each writes the same keys as the other one."""
    with ThreadPoolExecutor(2) as pool:
        label = f"{PROJECT}.same_keys"
        said = list(pool.map(lambda _: running.django(label, "--noinput"), range(2)))
    assert [text.rpartition("\n")[2] for text in said] == ["ended with 0"] * 2, said


def test_the_table_of_a_killed_run_is_removed(running: Development) -> None:
    """The next run names it without a prompt."""
    running.django(f"{PROJECT}.killed", "--noinput")
    (left,) = {*running.tables()} - {"notes"}
    said = running.django(f"{STOCK}.AfterData")
    assert f"Removed the test table {left!r} of a run that was interrupted." in said
    assert running.tables() == ["notes"]


def test_the_table_of_a_run_that_goes_on_is_kept(running: Development) -> None:
    """Its process holds the lock."""
    name = f"test_notes_{run_locks.run_suffix('gw3')}"
    try:
        schema.apply(Table(replace(running.table.settings, table_name=name)))
        running.django(f"{STOCK}.AfterData")
        assert name in running.tables()
    finally:
        run_locks.end()


def test_the_table_of_an_unknown_run_is_kept_for_a_day(running: Development) -> None:
    """The table may belong to a container with separate files."""
    name = "test_notes_run0123abcd"
    assert not run_locks.is_left_over(name, lambda: time.time() - 23 * 3600)
    assert run_locks.is_left_over(name, lambda: time.time() - 25 * 3600)
    assert not run_locks.is_left_over("test_notes", lambda: 0)


@pytest.mark.parametrize("settings", SETTINGS[:2])
def test_a_tests_writes_are_undone_without_a_scan(running: Development, settings: str) -> None:
    """Data of a class are created once; writes of other clients and processes are found anyway."""
    said = running.django(f"{PROJECT}.recorded", "--noinput", settings=settings)
    assert "Ran 10 tests" in said
    assert said.endswith("ended with 0"), said


@pytest.mark.parametrize("settings", SETTINGS[:2])
def test_a_preparation_that_fails_leaves_nothing(running: Development, settings: str) -> None:
    """Partly written fixtures or class data are not in the next test's table."""
    said = running.django(f"{PROJECT}.broken", "--noinput", settings=settings)
    assert "FAILED (errors=4)" in said, said


def test_a_process_of_a_run_without_tables_is_refused(running: Development) -> None:
    before = running.state()
    said = running.django(f"{PROJECT}.unplugged.InSimpleTestCase", "--noinput")
    assert said.endswith("ended with 0"), said
    assert running.state() == before


def test_by_hand_flush_empties_nothing(running: Development) -> None:
    """Outside of tests the command leaves every table as it is."""
    before = running.state()
    said = running.manage("flush", "--noinput")
    assert "Items in DynamoDB are not touched" in said
    assert running.state() == before
    assert running.table.send(Request("Scan"))["Count"] == 1
