"""The table contains the record of applied migrations if an app has migrations of items."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from dynamo_single import models
from dynamo_single.backend import migration_record
from dynamo_single.contrib.doctor import verify
from dynamo_single.table import Request, Table
from dynamo_single.testing import assert_requests, setup_table
from tests.histories.app import History, history


@pytest.fixture
def app(tmp_path: Path, table: Table) -> Iterator[History]:
    """Return an app with two unapplied migrations, next to an app whose migrations change no items."""
    with history(tmp_path, beside=["django.contrib.contenttypes"]) as found:
        found.model()
        found.make()
        found.model(town=models.UnicodeAttribute(null=True))
        found.make()
        yield found


def recorded(table: Table) -> list[str]:
    """The keys of the records."""
    items = table.send(Request("Scan"))["Items"]
    return sorted(item["sk"]["S"] for item in items if item["itemType"]["S"] == "Migration")


def test_migrate_records_what_it_applies(app: History, table: Table) -> None:
    """Once; then there is nothing to apply."""
    assert "Applying histories.0002_shop_town... OK" in app.run("migrate", "histories")
    assert recorded(table) == ["APPLIED#histories#0001_initial", "APPLIED#histories#0002_shop_town"]
    assert "No migrations to apply." in app.run("migrate", "histories")


def test_migrate_reads_the_files_for_the_record_once(app: History) -> None:
    """However many migrations it applies; and a command after it reads them again."""
    with mock.patch.object(migration_record, "_read_kinds", wraps=migration_record._read_kinds) as read:
        app.run("migrate", "histories")
        assert read.call_count == 1
        app.run("migrate", "histories")
        assert read.call_count == 2


def test_migrations_are_shown_as_they_are(app: History) -> None:
    """The table determines the state of this app, and files determine the state of other apps."""
    app.run("migrate", "histories", "0001")
    said = app.run("showmigrations", "histories", "contenttypes")
    assert "[X] 0001_initial\n [ ] 0002_shop_town" in said
    assert "[X] 0002_remove_content_type_name" in said


def test_migrating_back_forgets(app: History, table: Table) -> None:
    """Revert a single migration, and then all."""
    app.run("migrate", "histories")
    assert "Unapplying histories.0002_shop_town..." in app.run("migrate", "histories", "0001")
    assert recorded(table) == ["APPLIED#histories#0001_initial"]
    app.run("migrate", "histories", "zero")
    assert recorded(table) == []


def test_a_plan_and_a_fake(app: History, table: Table) -> None:
    """``--plan`` does not write, and ``--fake`` records the migrations."""
    said = app.run("migrate", "histories", "--plan")
    assert "Add attribute town to Shop" in said
    assert recorded(table) == []
    assert "FAKED" in app.run("migrate", "histories", "--fake")
    assert len(recorded(table)) == 2


def test_squashed_migrations(app: History, table: Table) -> None:
    """They are optimized, and count as applied when all replaced ones do."""
    app.run("migrate", "histories")
    app.run("squashmigrations", "histories", "0002", "--noinput")
    assert app.operations("0001_squashed") == ["Add model Shop, stored as Shop"]
    assert "No migrations to apply." in app.run("migrate", "histories")
    assert "[X] 0001_squashed_0002_shop_town (2 squashed migrations)" in app.run("showmigrations", "histories")


def test_the_record_costs_one_query(app: History) -> None:
    """Strongly consistent, so that a second process sees what the first one did."""
    with assert_requests(["Query"]) as sent:
        MigrationRecorder(connection).applied_migrations()
    assert sent[0].params["ConsistentRead"] is True


def test_without_migrations_of_items_the_record_costs_nothing(table: Table) -> None:
    """Every migration on disk counts as applied."""
    with assert_requests([]):
        assert ("contenttypes", "0001_initial") in MigrationRecorder(connection).applied_migrations()


def test_without_a_table_nothing_is_applied(app: History, table: Table) -> None:
    """``showmigrations`` works before ``dynamo_setup``."""
    table.send(Request("DeleteTable"))
    try:
        assert "[ ] 0001_initial" in app.run("showmigrations", "histories")
    finally:
        setup_table()


def test_a_migration_can_be_pruned(app: History, table: Table) -> None:
    """Its file no longer exists."""
    app.run("migrate", "histories")
    (app.folder / "0002_shop_town.py").unlink()
    assert "Pruning histories.0002_shop_town OK" in app.run("migrate", "histories", "--prune")
    assert recorded(table) == ["APPLIED#histories#0001_initial"]


def test_all_records_can_be_deleted(app: History, table: Table) -> None:
    """Django's own tests of migrations do this."""
    app.run("migrate", "histories")
    MigrationRecorder(connection).flush()
    assert recorded(table) == []


def test_record_filters_orders_and_slices(app: History, table: Table) -> None:
    """Its rows are in memory."""
    app.run("migrate", "histories")
    rows = MigrationRecorder(connection).migration_qs
    assert {row.app for row in rows.filter(app__startswith="hist")} == {"histories"}
    assert [row.app for row in rows.exclude(app="histories").order_by("-app")[:1]] == [
        max({row.app for row in rows} - {"histories"})
    ]


def test_verification_knows_the_records(app: History) -> None:
    """They belong to no model, and are not reported."""
    app.run("migrate", "histories")
    assert list(verify()) == []
