"""Two adopted tables with one companion, and an adopted table next to one with migrations."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import override_settings

from dynamo_single import models
from dynamo_single.contrib.doctor import verify
from dynamo_single.orm.rollout import knowledge
from dynamo_single.table import Table, capture_requests, get_table
from dynamo_single.table.flow import run
from dynamo_single.testing import setup_table
from tests.contract.adoption.conftest import ADOPTED, adopted_table, keys, types
from tests.contract.adoption.test_companion_claims import person
from tests.histories.app import history
from tests.unit.declaring import forgotten

OTHER = "staff"


@pytest.fixture
def both(table: Table) -> Iterator[tuple[Table, Table]]:
    """Two adopted tables with one companion."""
    with adopted_table(), forgotten():
        declared = settings.DYNAMO_SINGLE
        other = {**declared[ADOPTED], "TABLE_NAME": "staff"}
        with override_settings(DYNAMO_SINGLE={**declared, OTHER: other}):
            yield setup_table(ADOPTED), setup_table(OTHER)


def test_equal_values_of_two_tables_have_two_claims(both: Any) -> None:
    for alias, label in ((ADOPTED, "Person"), (OTHER, "Employee")):
        person(label, table=alias, item_type="Human").objects.create(name="ann", email="ann@example.com")

    assert keys(get_table()) == [
        (f"COMPANION#{alias}#UNIQUE#Human#email#ann@example.com", "#CLAIM") for alias in (ADOPTED, OTHER)
    ]
    assert [str(each) for alias in (ADOPTED, OTHER, "default") for each in verify(alias)] == []


def test_two_tables_have_two_states(both: Any, tmp_path: Path) -> None:
    with history(tmp_path) as app:
        app.model("Shop", options={"table": ADOPTED})
        app.model("Team", primary=("TEAM#{shop_id}", "#TEAM"), options={"table": OTHER})
        app.make()
        app.migrate()

    states = [{*run(knowledge.state_of(each)).forms} for each in both]
    assert states == [{"Shop"}, {"Team"}]


def test_migrate_leaves_a_table_without_companion_alone(table: Table, tmp_path: Path) -> None:
    with adopted_table(COMPANION=None) as alias, history(tmp_path) as app:
        setup_table(alias)
        app.model("Shop", name=models.UnicodeAttribute())
        app.make()
        with capture_requests() as sent:
            app.migrate()

        assert [each for each in sent if get_table(alias).name in str(each.params)] == []
        assert (types(get_table(alias)), "MigrationState" in types(get_table())) == ({}, True)


def test_status_of_a_table_without_companion_is_shown(lone: Table) -> None:
    import io

    from django.core.management import call_command

    out = io.StringIO()
    for command in ("dynamo_status", "dynamo_verify", "dynamo_rebuild", "dynamo_setup"):
        call_command(command, "--alias", ADOPTED, stdout=out, stderr=out, no_color=True)

    assert lone.name in out.getvalue()
