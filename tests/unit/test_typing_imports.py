"""Imports for typing obey the import contracts as well; ``make check`` runs the contracts."""

from __future__ import annotations

import ast

import pytest

from tests.typing_imports import ROOT, broken, settings

#: A module with an import for typing alone, and what it imports.
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
    """A contract that forbids it is broken."""
    forbidden = {"source_modules": [IMPORTER], "forbidden_modules": [IMPORTED], "allow_indirect_imports": True}
    report = broken({"name": "No import", "type": "forbidden", **forbidden})
    assert "BROKEN" in report
    assert f"{IMPORTER} is not allowed to import {IMPORTED}" in " ".join(report.split())


@pytest.mark.parametrize("name", ["The mapping: every floor imports downwards only", "No import cycles"])
def test_contract_holds_with_imports_for_typing(name: str) -> None:
    """Nothing is ignored for the sake of types."""
    assert settings()["exclude_type_checking_imports"] is False
    assert "ignore_imports" not in contract(name)
    assert broken(contract(name)) == ""
