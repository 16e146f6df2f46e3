"""The output of ``dynamo_inspect`` for many designs loads, passes ``check``, and keeps every item unchanged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from dynamo_single.table import Table
from tests.contract.adoption.designs import DESIGNS, Design
from tests.contract.adoption.inspected_project import InspectedProject, without
from tests.contract.adoption.other_programs import other_table
from tests.unit.inspection.tables import primary_keys


class Outcome(Struct, frozen=True):
    """The sources by table, what the child found, and the items before and after."""

    sources: Mapping[str, str]
    result: Mapping[str, Any]
    before: Mapping[str, list[dict[str, Any]]]
    after: Mapping[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def outcome(engine: Table, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outcome]:
    """Inspect every table, and let one child process read and write all objects."""
    folder: Path = tmp_path_factory.mktemp("inspected")
    project = InspectedProject(folder, str(engine.settings.endpoint_url))
    with ExitStack() as stack:
        tables = {}
        for each in DESIGNS:
            found = other_table(engine, each.name, each.keys, indexes=each.indexes, local=each.local, ttl=each.ttl)
            tables[each.name] = stack.enter_context(found)
            tables[each.name].put(*each.items)
        sources = {name: project.add(table) for name, table in tables.items()}
        before = {name: table.items() for name, table in tables.items()}
        result = project.run("--write")
        yield Outcome(sources, result, before, {name: table.items() for name, table in tables.items()})


by_design = pytest.mark.parametrize("design", DESIGNS, ids=lambda design: design.name)


@by_design
def test_keys_are_recognized(outcome: Outcome, design: Design) -> None:
    """Each model has the templates of the design."""
    found = primary_keys(outcome.sources[design.name])
    assert found == (design.models or found)


@by_design
def test_check_accepts_the_models(outcome: Outcome, design: Design) -> None:
    """No message but the hint that an app has no migrations."""
    messages = outcome.result["messages"].get(f"adopted_{design.name.replace('-', '_')}", [])
    assert [each for each in messages if "W906" not in each] == []


def test_check_accepts_the_settings(outcome: Outcome) -> None:
    """No message without a model names a table."""
    assert [each for each in outcome.result["messages"].get("", []) if "adopted" in each or "shop" in each] == []


@by_design
def test_all_items_are_listed(outcome: Outcome, design: Design) -> None:
    """The models list as many objects as there are items."""
    found = outcome.result["found"][design.name.replace("-", "_")]
    assert (found["failed"], sum(found["listed"].values())) == ("", len(design.items))


@by_design
def test_objects_are_written_as_they_were(outcome: Outcome, design: Design) -> None:
    """The raw items of deleted and recreated objects are equal."""
    before, after = (without(each[design.name], design.undeclared) for each in (outcome.before, outcome.after))
    assert after == before
