"""SQL models with references to DynamoDB models: the use of foreign keys, and rows of deleted objects."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from dynamo_single.table import Table
from dynamo_single.testing import setup_table
from tests import children

ROOT = Path(__file__).resolve().parents[3]


def run(table: Table, steps: str) -> Any:
    """Return the results of steps of ``tests.backend_project.sql_rows``, in a project with SQLite and this table."""
    settings = table.settings
    endpoint = str(settings.endpoint_url).removeprefix("http://")
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.backend_project.settings_sql_rows",
        "DYNAMO_URL": f"dynamodb://{endpoint}/{settings.table_name}?region={settings.region}",
        "PYTHONPATH": str(ROOT),
    }
    done = children.run(["-m", "tests.backend_project.sql_rows", steps], env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


JOIN = "OperationalError: no such table: company (in DynamoDB)"
#: Uses of a foreign key, their results, and the requests to DynamoDB.
READING: dict[str, tuple[Any, list[str]]] = {
    "column": (["acme", "acme~~ann"], []),
    "object": ("Acme", ["GetItem"]),
    "two parts": ("Ann", ["GetItem"]),
    "by object": (2, []),
    "by pk": (2, []),
    "other side": (2, []),
    "select_related": (["Acme", "Acme"], ["GetItem", "GetItem"]),
    "select_related()": ("Ann", ["GetItem"]),
    "prefetch_related": (["Acme", "Acme"], ["GetItem"]),
    "prefetched": ([2], ["Query"]),
    "join": (JOIN, []),
}


@pytest.fixture(scope="module")
def reading(engine: Table) -> Any:
    """Return the results of the reading steps."""
    setup_table()
    return run(engine, "reading")


@pytest.mark.parametrize("name", READING)
def test_a_foreign_key_reads_by_key(reading: Any, name: str) -> None:
    """The column contains the pk, which reads the object without a join."""
    assert tuple(reading[name]) == READING[name]


@pytest.mark.parametrize(
    ("name", "refusal"),
    [
        ("from our side", "NotSupported: Cannot filter directory.Company by parcels.Parcel.id"),
        ("moved", "NotSupported: directory.Company with pk 'alone' cannot move: rows of parcels.Parcel refer to it"),
    ],
)
def test_what_rows_stand_in_the_way_of_is_refused(reading: Any, name: str, refusal: str) -> None:
    """A query from our side has no join, and a row cannot follow an object to another key."""
    assert reading[name][0].startswith(refusal)


@pytest.fixture(scope="module")
def deleting(engine: Table) -> Any:
    """Return the results of the deleting steps."""
    setup_table()
    return run(engine, "deleting")


def left(rows: Any, name: str) -> dict[str, int]:
    """Return the number of rows of each kind that refer to a company."""
    return {
        "parcels": rows["parcels"].count(name),
        "labels": rows["labels"].count(name),
        "visits": sum(row[0] == name for row in rows["visits"]),
    }


ALL = {"parcels": 1, "labels": 1, "visits": 2}
NONE = {"parcels": 0, "labels": 0, "visits": 0}


def test_the_trash_keeps_the_rows(deleting: Any) -> None:
    """An object in the trash is there still."""
    assert left(deleting["in the trash"], "acme") == ALL


def test_rows_go_with_an_object_as_on_delete_says(deleting: Any) -> None:
    """Cascading rows are deleted with their dependents and their children's rows; others are set to NULL."""
    assert left(deleting["for good"], "acme") == NONE
    assert left(deleting["for good"], "stays") == ALL
    assert deleting["for good"]["visits"] == [["stays", "stays~~stays"], ["stays", None], [None, None]]


def test_rows_go_with_many_objects(deleting: Any) -> None:
    """Deleting by a queryset does the same; the counts are of the objects."""
    counts, rows = deleting["many"]
    assert counts == {"directory.Company": 1, "directory.Person": 1}
    assert left(rows, "many") == NONE


def test_a_protected_object_stays(deleting: Any) -> None:
    """``PROTECT`` raises an error before any request, so every other row is kept."""
    error, exists, rows = deleting["protected"]
    assert error.startswith("ProtectedError: ")
    assert exists
    assert left(rows, "held") == ALL


def test_rows_go_when_a_block_is_sent(deleting: Any) -> None:
    """A failed block keeps the object and its rows, and a completed one deletes both."""
    assert deleting["discarded"] == [True, ["stays", "held", "block"]]
    assert deleting["in a block"] == [False, ["stays", "held"]]


def test_rows_go_with_an_awaited_deletion(deleting: Any) -> None:
    """An awaited deletion queries SQL in its own thread."""
    exists, rows = deleting["awaited"]
    assert not exists
    assert left(rows, "awaited") == NONE


def test_rows_go_with_an_object_of_a_proxy(deleting: Any) -> None:
    """Signals name the proxy then."""
    exists, rows = deleting["proxy"]
    assert not exists
    assert left(rows, "proxied") == NONE


def test_a_token_goes_with_its_user(deleting: Any) -> None:
    """The user has the other side of a one-to-one relation; Django's log has no entries of users in DynamoDB."""
    assert (deleting["other side"], deleting["user"]) == ("k", [[], ["parcels.Token"]])


def test_a_deletion_that_is_refused_keeps_the_rows(deleting: Any) -> None:
    """Rows are deleted only after the object."""
    error, parcels = deleting["refused"]
    assert error.startswith("ConditionNotMet: ")
    assert "stale" in parcels


def test_the_admin_of_an_sql_model_chooses_users(engine: Table) -> None:
    """Pages show the user, forms check that it exists, and the confirmation page names the rows to delete."""
    setup_table()
    assert run(engine, "admin") == {
        "parcels/token/": 200,
        "parcels/token/k/change/": 200,
        "parcels/token/k/delete/": 200,
        "parcels/token/add/": 200,
        "added": 302,
        "unknown": 200,
        "list": True,
        "rows": ["k", "l"],
        "deletion names the row": True,
        "protected": [True, True],
    }
