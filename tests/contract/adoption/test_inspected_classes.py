"""Eight tables of PynamoDB classes: the models of ``dynamo_inspect`` work next to PynamoDB."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import replace
from pynamodb.models import Model

from dynamo_single.conf.shapes import OWN
from dynamo_single.table import Table
from dynamo_single.table.table import table_at
from tests.contract.adoption import pynamodb_classes as classes
from tests.contract.adoption.inspected_project import InspectedProject, inspected
from tests.contract.adoption.other_programs import OtherTable

PATH = "tests.contract.adoption.pynamodb_classes"
Items = Mapping[str, list[dict[str, Any]]]
Objects = Mapping[str, list[dict[str, Any]]]


class Outcome(Struct, frozen=True):
    """The child's findings, and the items and PynamoDB's objects before and after it wrote all of them again.

    ``reread`` is what a second child found after PynamoDB saved every object.
    """

    result: Mapping[str, Any]
    reread: Mapping[str, Any]
    items: tuple[Items, Items]
    objects: tuple[Objects, Objects]


def from_items(name: str, model: type[Model]) -> str:
    """Inspect the table."""
    return inspected(name)


def from_class(name: str, model: type[Model]) -> str:
    """Inspect the class, whose table is on the tests' engine."""
    return inspected(model=f"{PATH}.{model.__name__}")


@pytest.fixture(scope="module", params=[from_items, from_class], ids=["items", "class"])
def outcome(engine: Table, request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outcome]:
    """PynamoDB writes; a child process with the inspected models reads, deletes and writes; PynamoDB reads."""
    inspect: Callable[[str, type[Model]], str] = request.param
    folder: Path = tmp_path_factory.mktemp("beside")
    project = InspectedProject(folder, str(engine.settings.endpoint_url))
    classes.connect(str(engine.settings.endpoint_url))
    tables = {}
    for model in classes.CLASSES:
        name = str(model.Meta.table_name)
        model.create_table(wait=True)
        for each in classes.objects(model):
            each.save()
        tables[name] = OtherTable(table_at(replace(engine.settings, table_name=name, shape=OWN)))
        project.write(name, inspect(name, model))
    try:
        items, objects = {name: table.items() for name, table in tables.items()}, read_by_pynamodb()
        result = project.run("--write")
        after = {name: table.items() for name, table in tables.items()}, read_by_pynamodb()
        for model in classes.CLASSES:
            for each in model.scan():
                each.save()
        yield Outcome(result, project.run(), (items, after[0]), (objects, after[1]))
    finally:
        for model in classes.CLASSES:
            model.delete_table()


def read_by_pynamodb() -> Objects:
    """Return the values of all objects that PynamoDB reads, in an order of their own."""
    return {
        str(model.Meta.table_name): sorted((plain(each.to_dynamodb_dict()) for each in model.scan()), key=repr)
        for model in classes.CLASSES
    }


def plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values in an order that does not depend on the response."""
    return {
        name: {kind: sorted(held) if kind in ("SS", "NS", "BS") else held for kind, held in value.items()}
        for name, value in sorted(read_json(values).items())
    }


by_class = pytest.mark.parametrize("model", classes.CLASSES, ids=lambda model: model.__name__)


@by_class
def test_check_accepts_the_model(outcome: Outcome, model: type[Model]) -> None:
    """No message but the hint that an app has no migrations."""
    messages = outcome.result["messages"].get(f"adopted_{alias_of(model)}", [])
    assert [each for each in messages if "W906" not in each] == []


@by_class
def test_all_items_are_listed(outcome: Outcome, model: type[Model]) -> None:
    """The model lists as many objects as PynamoDB has saved."""
    found = outcome.result["found"][alias_of(model)]
    assert (found["failed"], sum(found["listed"].values())) == ("", len(classes.objects(model)))


@by_class
def test_items_are_written_as_pynamodb_wrote_them(outcome: Outcome, model: type[Model]) -> None:
    """The raw items are equal, except that JSON strings are compared by value."""
    before, after = ([read_json(item) for item in each[model.Meta.table_name]] for each in outcome.items)
    assert after == before


@by_class
def test_pynamodb_reads_the_written_items(outcome: Outcome, model: type[Model]) -> None:
    """PynamoDB's objects are equal to the saved ones."""
    before, after = (each[model.Meta.table_name] for each in outcome.objects)
    assert after == before


@by_class
def test_items_that_pynamodb_saves_again_are_listed(outcome: Outcome, model: type[Model]) -> None:
    """PynamoDB puts whole items, with a version that counts its write."""
    found = outcome.reread["found"][alias_of(model)]
    assert (found["failed"], sum(found["listed"].values())) == ("", len(classes.objects(model)))


def alias_of(model: type[Model]) -> str:
    """Return the alias of a class's table."""
    return str(model.Meta.table_name).replace("-", "_")


def read_json(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return an item with parsed JSON strings."""
    found = {}
    for name, value in item.items():
        text = value.get("S", "")
        found[name] = {"JSON": json.loads(text)} if text[:1] in ("{", "[") else value
    return found
