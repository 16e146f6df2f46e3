"""Code that sends requests is a coroutine: only synchronous entry points run one in a thread."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache

import pytest

from tests.unit import foreign_names

#: The functions that run coroutines and streams in a thread.
DRIVERS = {"run", "iterate_stream", "iterate_pages"}
#: Their callers in the mapping and the table: Django's methods, our public ones, and their helpers.
FACES = {
    "orm/items/decode": {"reload"},
    "orm/items/refresh": {"complete", "read_rest"},
    "orm/model/bases": {"delete", "restore"},
    "orm/model/movable": {"move", "move_tree"},
    "orm/model/model": {"save_base", "_save_table", "hard_delete", "refresh_from_db"},
    "orm/model/pynamodb": {"_check_plain_write"},
    "orm/model/validation": {"_errors"},
    "orm/query/async_methods": {"page"},
    "orm/query/base": {"_results", "_fetch_all", "_fetch_with"},
    "orm/query/explain": {"execute"},
    "orm/query/iterate": {"_chunk"},
    "orm/query/many_to_many": {
        *("add", "remove", "clear", "set", "set_base", "create", "get_or_create", "update_or_create"),
    },
    "orm/query/queryset": {"count", "exists", "get", "in_bulk", "aggregate"},
    "orm/query/state": {"state_of"},
    "orm/query/write_methods": {"delete", "hard_delete", "restore", "update", "bulk_create", "bulk_update"},
    "orm/rollout/knowledge": {"binding_now", "change", "lease_now", "recorded_schedule"},
    "orm/rollout/shard_record": {"check_owner", "claim_table"},
    "orm/schema/fields/references": {"add", "set", "remove"},
    "orm/rollout/tolerance": {"accepted_ages"},
    "table/table": {"call", "send", "send_patiently"},
}
#: Synchronous functions that would send requests in the event loop's thread. Each has a coroutine.
SYNCHRONOUS = {"reload", "complete", "read_rest", "send_patiently", "binding_now", "_fetch_with"}

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@cache
def modules() -> list[tuple[str, list[tuple[Function | None, str, bool]]]]:
    """Return the calls in the package's modules, except for the driver itself.

    Modules that name neither the driver nor a sending function have none.
    """
    named = re.compile(rf"\b(flow|{'|'.join(SYNCHRONOUS)})\b")
    texts = foreign_names.sources().items()
    return [
        (name, list(calls(foreign_names.tree(name))))
        for name, text in texts
        if name != "table/flow" and named.search(text)
    ]


def calls(tree: ast.Module) -> Iterator[tuple[Function | None, str, bool]]:
    """Yield each call of a name: its function, the name, and whether it is the driver's."""
    drivers = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "dynamo_single.table.flow"
        for alias in node.names
        if alias.name in DRIVERS
    }

    awaited: set[ast.AST] = set()
    left: list[tuple[ast.AST, Function | None]] = [(tree, None)]
    while left:
        node, function = left.pop()
        if isinstance(node, Function):
            function = node
        # An awaited call is a coroutine with the same name.
        awaited.update([node.value] if isinstance(node, ast.Await) else [])
        if isinstance(node, ast.Call) and node not in awaited:
            called = node.func
            if isinstance(called, ast.Name):
                yield function, called.id, called.id in drivers
            elif isinstance(called, ast.Attribute):
                of_flow = isinstance(called.value, ast.Name) and called.value.id == "flow" and called.attr in DRIVERS
                yield function, called.attr, of_flow
        left += [(child, function) for child in ast.iter_child_nodes(node)]


def driven() -> dict[str, set[str]]:
    """The functions of each module that carry a coroutine out."""
    used: dict[str, set[str]] = {}
    for module, called_there in modules():
        for function, _, is_driver in called_there:
            if is_driver:
                used.setdefault(module, set()).add(getattr(function, "name", "<lambda>"))
    return used


def test_the_driver_stands_in_no_coroutine() -> None:
    """There it would be a second one, and in an event loop a request that holds the loop up."""
    inside = {
        f"{module}: {function.name}"
        for module, called_there in modules()
        for function, _, is_driver in called_there
        if is_driver and isinstance(function, ast.AsyncFunctionDef)
    }
    assert inside == set()


def test_the_mapping_and_the_table_are_driven_at_their_faces_only() -> None:
    """A new caller must be one of these, and a removed one is deleted here."""
    found = {module: names for module, names in driven().items() if module.startswith(("orm/", "table/"))}
    assert found == FACES


@pytest.mark.parametrize("name", sorted(SYNCHRONOUS))
def test_no_coroutine_calls_what_sends_in_a_thread(name: str) -> None:
    """It awaits the coroutine instead."""
    assert {
        f"{module}: {function.name}"
        for module, called_there in modules()
        for function, called, _ in called_there
        if called == name and isinstance(function, ast.AsyncFunctionDef)
    } == set()
