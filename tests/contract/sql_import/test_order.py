"""References decide in which order ``dynamo_import_sql`` writes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connections

from dynamo_single import models
from dynamo_single.contrib.sql_import import declared
from tests.contract.sql_import.conftest import OLD, Rows
from tests.contract.sql_import.test_import import line, refused, run
from tests.contract.tables import assert_consistent
from tests.unit.declaring import declare, forgotten

TREES = "tests.contract.sql_import.trees"


def checked(to: str) -> Any:
    """Return a reference to an object that must be stored."""
    return models.ReferenceAttribute(to, on_delete=models.PROTECT, null=True, checked=True, related_name="+")


@pytest.fixture
def trees(rows: Rows) -> Iterator[dict[str, Any]]:
    """Create the models in DynamoDB with checked references, and the tables."""
    with forgotten():
        made = {
            "Node": declare(
                "Node",
                ("NODE#{node_id}", "#METADATA"),
                {
                    "by_parent": models.IndexKey("gs1", "NODES#{parent_id}", "{node_id}"),
                    "by_leaf": models.IndexKey("gs2", "NODESOF#{leaf_id}", "{node_id}"),
                },
                node_id=models.UnicodeAttribute(),
                parent=checked("catalog.Node"),
                leaf=checked("catalog.Leaf"),
            ),
            "Leaf": declare(
                "Leaf",
                ("LEAF#{leaf_id}", "#METADATA"),
                {"by_node": models.IndexKey("gs1", "LEAVES#{node_id}", "{leaf_id}")},
                leaf_id=models.UnicodeAttribute(),
                node=checked("catalog.Node"),
            ),
            "Bud": declare(
                "Bud",
                ("BUD#{leaf_id}", "#METADATA"),
                leaf_id=models.UnicodeAttribute(),
                node=models.ReferenceAttribute("catalog.Node", on_delete=models.DO_NOTHING, null=True),
                colour=models.UnicodeAttribute(),
            ),
        }
        found = {each.__name__: each for each in declared.models_of([TREES])}
        with connections[OLD].schema_editor() as editor:
            for model in found.values():
                editor.create_model(model)
        rows.models = {**rows.models, **found}
        yield made


def test_rows_wait_for_rows_of_their_table(
    rows: Rows, trees: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """Rows of a chain come before their references; one page of rows is in memory."""
    rows.add("Node", *({"node_id": f"n{n}", "parent_id": f"n{n + 1}" if n < 9 else None} for n in range(10)))
    said = run(capsys, "Bud=", modules=[TREES], chunk_size=3)
    assert line(said, "catalog.Node") == "10 rows: 10 created."
    assert trees["Node"].objects.get(pk="n0").parent_id == "n1"
    assert_consistent()


def test_rows_wait_for_rows_of_later_tables(
    rows: Rows, trees: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """In any order of tables, a circle of models is imported if its rows are not circular."""
    rows.add("Node", {"node_id": "a", "leaf_id": "y"}, {"node_id": "b"}, {"node_id": "c", "parent_id": "a"})
    rows.add("Leaf", {"leaf_id": "x", "node_id": "c"}, {"leaf_id": "y", "node_id": "b"})
    said = run(capsys, "Bud=", modules=[TREES])
    assert line(said, "catalog.Node") == "3 rows: 3 created."
    assert line(said, "catalog.Leaf") == "2 rows: 2 created."
    assert_consistent()


def test_rows_of_a_circle_are_refused(rows: Rows, trees: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    """Each object would have to be stored before the other."""
    rows.add("Node", {"node_id": "a", "leaf_id": "x"}, {"node_id": "b"})
    rows.add("Leaf", {"leaf_id": "x", "node_id": "a"})
    said = refused(capsys, "Bud=", modules=[TREES])
    assert line(said, "catalog.Node") == "2 rows: 1 created, 1 refused."
    assert "refused: x: refers to an object that is not stored, or is in the trash" in said
    assert_consistent()


def test_inherited_columns_are_read(rows: Rows, trees: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    """A row of a model with multi-table inheritance has the columns of both tables."""
    rows.add("Node", {"node_id": "a"})
    rows.models["Bud"](leaf_id="z", node_id="a", colour="red").save(using=OLD)
    run(capsys, "Bud.leaf_ptr=", modules=[TREES])
    bud = trees["Bud"].objects.get(pk="z")
    assert (bud.node_id, bud.colour) == ("a", "red")
    assert trees["Leaf"].objects.get(pk="z").node_id == "a"


def test_live_objects_need_their_references(rows: Rows, capsys: pytest.CaptureFixture[str]) -> None:
    """A checked reference to a missing or deleted object raises an error, as in ``save()``."""
    rows.add("Theatre", {"theatre_id": "a"}, {"theatre_id": "b", "deleted_at": "2019-01-01T00:00Z"})
    rows.add("Play", *({"play_id": each, "theatre_id": each} for each in "abc"))
    said = refused(capsys)
    assert line(said, "catalog.Play") == "3 rows: 1 created, 2 refused."
    assert_consistent()


def test_unknown_databases_are_refused(rows: Rows) -> None:
    """The engine is never guessed."""
    for alias, problem in (("none", "DATABASES does not contain this alias"), ("default", "this is DynamoDB")):
        with pytest.raises(CommandError, match=problem):
            call_command("dynamo_import_sql", database=alias)


def test_objects_of_the_trash_may_refer_to_the_trash(rows: Rows, capsys: pytest.CaptureFixture[str]) -> None:
    """By a checked reference too."""
    rows.add("Theatre", {"theatre_id": "b", "deleted_at": "2019-01-01T00:00Z"})
    rows.add("Play", {"play_id": "p", "theatre_id": "b", "deleted_at": "2019-01-01T00:00Z"})
    assert line(run(capsys), "catalog.Play") == "1 row: 1 created."
    assert_consistent()
