"""Another run completes an import that ended at any point."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from dynamo_single.table import Request, Table
from tests import children
from tests.catalog.library import Aisle
from tests.catalog.servers import GameGuild
from tests.contract.robustness.crashing import Crash, crash_behind, ends_of, put_back
from tests.contract.sql_import.conftest import OLD, Rows
from tests.contract.sql_import.test_import import a_volume
from tests.contract.tables import assert_consistent, everything
from tests.deep import examples

ROOT = Path(__file__).resolve().parents[3]
SETTINGS = """
from tests.settings import *

DATABASES = {**DATABASES, "old": {"ENGINE": "django.db.backends.sqlite3", "NAME": "old.sqlite3"}}
"""
#: The number of volumes; a process is killed after each ``STEP`` items.
VOLUMES, STEP = examples(60, 1500), examples(50, 300)


def fill(rows: Rows, volumes: int) -> None:
    """Counted and copying objects with claims, and edges that both sides count."""
    rows.add("Aisle", *({"aisle_id": each, "name": f"Aisle {each}"} for each in "abc"))
    rows.add("Volume", *(a_volume(n, aisle_id="abc"[n % 3], isbn=f"i{n}", slot=n) for n in range(volumes)))
    rows.add("GameFan", *({"fan_id": f"f{n}"} for n in range(20)))
    rows.add("GameGuild", {"guild_id": "x"}, {"guild_id": "y"})
    fans = rows.models["GameGuild"].fans.through
    fans._base_manager.using(OLD).bulk_create(
        [fans(gameguild_id=guild, gamefan_id=f"f{n}") for n in range(20) for guild in "xy"]
    )


def imported(**options: Any) -> None:
    """Import all."""
    call_command("dynamo_import_sql", database=OLD, modules=sorted(Rows.modules), verbosity=0, **options)


def test_a_crash_is_completed_by_another_import(rows: Rows, table: Table) -> None:
    """Wherever the process ends, the second import leaves what one undisturbed import leaves."""
    fill(rows, examples(12, 60))
    stored = everything(table)
    with crash_behind(None) as asked:
        imported(chunk_size=9)
    wanted = everything(table)
    for number in ends_of(len(asked)):
        put_back(stored)
        with pytest.raises(Crash), crash_behind(number):
            imported(chunk_size=9)
        imported(chunk_size=9)
        assert everything(table) == wanted, f"after {number} requests"
    assert_consistent()


def started(folder: Path, table: Table) -> children.Child:
    """A process that imports, with few rows in memory."""
    url = str(table.settings.endpoint_url).replace("http://", "dynamodb://")
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "import_settings",
        "DYNAMO_TEST_URL": f"{url}/{table.name}?region=us-east-1&indexes=gs1,gs2,gs3",
        "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}",
    }
    modules = [option for module in sorted(Rows.modules) for option in ("--from", module)]
    command = ["-m", "django", "dynamo_import_sql", "--database", OLD, *modules]
    with (folder / "said").open("w") as said:
        return children.Child(
            [*command, "--chunk-size", "20"],
            cwd=folder,
            env=environment,
            stdin=said.fileno(),
            stdout=said.fileno(),
            stderr=said.fileno(),
        )


def count(table: Table) -> int:
    """Return the number of items."""
    return sum(int(page["Count"]) for page in table.pages(Request("Scan", {"Select": "COUNT"})))


def test_killed_processes_leave_nothing_twice(rows: Rows, table: Table, database: Path) -> None:
    """Processes are killed during their writes, and the last one completes all of them."""
    fill(rows, VOLUMES)
    folder = database.parent
    (folder / "import_settings.py").write_text(SETTINGS)
    reached, killed = count(table), 0
    while True:
        process = started(folder, table)
        while process.poll() is None and count(table) < reached + STEP:
            time.sleep(0.005)
        if process.poll() is not None:
            break
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        reached, killed = count(table), killed + 1
    assert process.wait() == 0, (folder / "said").read_text()
    assert killed > 1
    assert {each.pk: each.volume_count for each in Aisle.objects.all()} == dict.fromkeys("abc", VOLUMES // 3)
    assert GameGuild.objects.get(pk="x").fans.count() == 20
    imported(check=True)
    assert_consistent()


def test_two_processes_import_at_the_same_time(rows: Rows, table: Table, database: Path) -> None:
    """Only one of the processes creates each object."""
    fill(rows, VOLUMES)
    (database.parent / "import_settings.py").write_text(SETTINGS)
    both = [started(database.parent, table), started(database.parent, table)]
    assert [process.wait() for process in both] == [0, 0], (database.parent / "said").read_text()
    assert {each.pk: each.volume_count for each in Aisle.objects.all()} == dict.fromkeys("abc", VOLUMES // 3)
    imported(check=True)
    assert_consistent()
