"""Types are part of the API: what a checker sees without a plugin."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

import pytest
from mypy import api

ROOT = Path(__file__).resolve().parent.parent.parent


def test_mypy_knows_the_types_of_the_public_api(monkeypatch: pytest.MonkeyPatch) -> None:
    """mypy, strict as for the app and without a plugin, finds every type that is asserted and every mistake."""
    monkeypatch.chdir(ROOT)
    said, problems, status = api.run(["--config-file", "pyproject.toml", "tests/typing/api.py"])
    gc.freeze()  # mypy lets the garbage collector look again at what tests/conftest.py has put aside
    assert (status, problems) == (0, ""), said


def test_pyright_knows_the_types_of_the_public_api() -> None:
    """pyright, strict, finds the same in the same file."""
    pyright = ROOT / "node_modules/pyright/index.js"
    command = ["node", pyright, "--project", ROOT, "--pythonpath", sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
