"""How far a request on a table with names of its own walks beyond one on a table of the app's own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import dynamo_single
from benchmarks.walks.trace import follow
from dynamo_single import models
from dynamo_single.table import Table
from tests.contract.adoption.foreign import ALIAS, foreign_table
from tests.contract.adoption.test_named import SHOP
from tests.unit.declaring import declare, forgotten

PACKAGE = Path(dynamo_single.__file__).parent
#: The most calls that the names of the table add to an operation, which may become fewer.
BOUNDS = {"get": 3, "save": 7}


@pytest.fixture(scope="module")
def walks(engine: Table) -> Iterator[dict[str, tuple[Counter[Any], Counter[Any]]]]:
    """The calls of each operation on a table of the app's own, and on one with other names."""
    gs1 = {"gs1": SHOP["INDEXES"]["gs1"]}
    with foreign_table(**{**SHOP, "INDEXES": gs1}), forgotten():
        own, named = (_operations(alias) for alias in ("default", ALIAS))
        yield {name: (_walked(own[name]), _walked(named[name])) for name in BOUNDS}


def _operations(alias: str) -> dict[str, Callable[[], Any]]:
    options = {"table": alias}
    model: Any = declare(f"Walked{alias.title()}", ("OWNER#{owner}", "#"), options=options, owner=TEXT(), title=TEXT())
    held = model.objects.create(owner="o", title="")
    held = model.objects.get(pk=held.pk)

    def save() -> None:
        held.title += "x"
        held.save()

    return {"get": lambda: model.objects.get(pk=held.pk), "save": save}


TEXT = models.UnicodeAttribute


def _walked(operation: Callable[[], Any]) -> Counter[Any]:
    for _ in range(3):
        operation()
    return Counter(follow(operation, PACKAGE).steps)


@pytest.mark.parametrize("operation", BOUNDS)
def test_names_of_a_table_add_few_calls(walks: Any, operation: str) -> None:
    own, named = walks[operation]
    assert (named - own).total() <= BOUNDS[operation], named - own


@pytest.mark.parametrize("operation", BOUNDS)
def test_names_of_a_table_add_no_other_module(walks: Any, operation: str) -> None:
    own, named = walks[operation]
    assert {module for module, _ in named - own} == {"table.table", "table.shaped.translator"}


@pytest.mark.parametrize("operation", BOUNDS)
def test_table_of_the_app_s_own_enters_no_module_of_shapes(walks: Any, operation: str) -> None:
    own, _ = walks[operation]
    assert [module for module, _ in own if module.startswith("table.shaped")] == []
