"""Passes of migrations over an adopted table and its companion, in processes that the system kills."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import override_settings

from dynamo_single.table import Table, get_table
from dynamo_single.test_tables import contents
from dynamo_single.testing import setup_table
from tests import children
from tests.contract.item_migrations.cases import CASES
from tests.contract.item_migrations.test_operations import run
from tests.contract.item_migrations.things import scanned
from tests.contract.item_migrations.writers import World, seeded
from tests.deep import deep, examples

ROOT = Path(__file__).resolve().parents[3]
KILLS = examples(1, 6)
ITEMS = examples(20, 200)
#: The case of a normal run, which takes claims.
USUAL = "add_unique"


@pytest.fixture
def tables(table: Table) -> Iterator[list[Table]]:
    """The adopted default table and its companion, empty."""
    declared = settings.DYNAMO_SINGLE
    place = str(table.settings.endpoint_url).removeprefix("http://")
    query = "region=us-east-1&indexes=gs1,gs2,gs3"
    adopted = {
        "default": f"dynamodb://{place}/migrated?{query}&owns=false&companion=own",
        "own": f"dynamodb://{place}/migrating?{query}",
    }
    with override_settings(DYNAMO_SINGLE={**declared, **adopted}):
        yield [setup_table(alias) for alias in adopted]


def operator(place: str, name: str) -> children.Dialogue:
    """A process that carries a case out."""
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.adopted_project.migrating", "DYNAMO_PLACE": place}
    arguments = ["-m", "tests.contract.item_migrations.operating", name]
    return children.Dialogue(arguments, cwd=ROOT, env=environment, stderr=sys.__stderr__)


@pytest.mark.parametrize("name", [each if each == USUAL else pytest.param(each, marks=deep) for each in CASES])
def test_killed_passes_leave_what_one_run_leaves(tables: list[Table], name: str) -> None:
    case, chance = CASES[name](), random.Random(name)
    place = str(tables[0].settings.endpoint_url).removeprefix("http://")
    seeded(World(), case, ITEMS)
    before = [contents.read(each) for each in tables]
    run(get_table(), case)
    wanted: list[Any] = [scanned(each) for each in tables]
    for each, items in zip(tables, before, strict=True):
        contents.restore(each, items)
    for _ in range(KILLS):
        process = operator(place, name)
        for _ in range(chance.randrange(1, ITEMS)):
            process.answer()
        process.kill()
        process.close()

    process = operator(place, name)
    while line := process.answer():
        said = line
    assert (said, process.close()) == ("done\n", 0)
    assert [scanned(each) for each in tables] == wanted
    assert all(item["itemType"] != {"S": "UniqueClaim"} for item in wanted[0].values())
