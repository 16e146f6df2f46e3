"""Imports for typing obey the import contracts as well; ``make check`` runs the contracts."""

from __future__ import annotations

import ast
import io
import json
import tempfile
import tomllib
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from importlinter import configuration
from importlinter.application import use_cases

ROOT = Path(__file__).resolve().parents[2]

configuration.configure()


def settings() -> dict[str, Any]:
    """Return import-linter's part of ``pyproject.toml``."""
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    return found


def broken(contract: dict[str, Any]) -> str:
    """Return import-linter's report for one contract; an empty string if it is kept."""
    options = {name: each for name, each in settings().items() if name != "contracts"}
    lines = ["[tool.importlinter]", *_lines(options), "[[tool.importlinter.contracts]]", *_lines(contract)]
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "contract.toml"
        path.write_text("\n".join(lines))
        with redirect_stdout(io.StringIO()) as report:
            kept = use_cases.lint_imports(config_filename=str(path), cache_dir=None, no_logo=True)
    return "" if kept else report.getvalue()


def _lines(options: dict[str, Any]) -> list[str]:
    # TOML writes strings, numbers, booleans and lists of them like JSON.
    return [f"{name} = {json.dumps(each)}" for name, each in options.items()]


#: A module with an import for typing, and the imported one.
IMPORTER, IMPORTED = "dynamo_single.orm.where.dates", "dynamo_single.orm.schema.fields.base"


def contract(name: str) -> dict[str, object]:
    """A contract of the project."""
    (found,) = (each for each in settings()["contracts"] if each["name"] == name)
    return dict(found)


def test_the_import_is_for_typing_alone() -> None:
    """The next test breaks a contract by an import that no program executes."""
    tree = ast.parse((ROOT / f"{IMPORTER.replace('.', '/')}.py").read_text())
    inside = [each for block in tree.body if isinstance(block, ast.If) for each in ast.walk(block)]
    found = [each for each in ast.walk(tree) if isinstance(each, ast.ImportFrom) and each.module == IMPORTED]
    assert found
    assert all(each in inside for each in found)


def test_contract_counts_an_import_for_typing() -> None:
    """A contract that forbids the import is broken."""
    forbidden = {"source_modules": [IMPORTER], "forbidden_modules": [IMPORTED], "allow_indirect_imports": True}
    report = broken({"name": "No import", "type": "forbidden", **forbidden})
    assert "BROKEN" in report
    assert f"{IMPORTER} is not allowed to import {IMPORTED}" in " ".join(report.split())


@pytest.mark.parametrize("name", ["The mapping: every floor imports downwards only", "No import cycles"])
def test_contract_holds_with_imports_for_typing(name: str) -> None:
    """No import is ignored because of types."""
    assert settings()["exclude_type_checking_imports"] is False
    assert "ignore_imports" not in contract(name)
    assert broken(contract(name)) == ""
