"""Holds the project to one contract about imports, for the test that imports for typing are counted."""

from __future__ import annotations

import io
import json
import tempfile
import tomllib
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from importlinter import configuration
from importlinter.application import use_cases

ROOT = Path(__file__).resolve().parent.parent

configuration.configure()


def settings() -> dict[str, Any]:
    """Return import-linter's part of ``pyproject.toml``."""
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    return found


def broken(contract: dict[str, Any]) -> str:
    """Return import-linter's report of one contract with the project's options; empty text if it is kept."""
    options = {name: each for name, each in settings().items() if name != "contracts"}
    lines = ["[tool.importlinter]", *_lines(options), "[[tool.importlinter.contracts]]", *_lines(contract)]
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "contract.toml"
        path.write_text("\n".join(lines))
        with redirect_stdout(io.StringIO()) as report:
            kept = use_cases.lint_imports(config_filename=str(path), cache_dir=None, no_logo=True)
    return "" if kept else report.getvalue()


def _lines(options: dict[str, Any]) -> list[str]:
    # TOML writes texts, numbers, booleans and lists of them as JSON does.
    return [f"{name} = {json.dumps(each)}" for name, each in options.items()]
