"""Types are part of the API: what a checker sees without a plugin."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests import children

ROOT = Path(__file__).resolve().parent.parent.parent


def test_mypy_knows_the_types_of_the_public_api() -> None:
    """mypy, strict as for the app and without a plugin, finds every type that is asserted and every mistake."""
    # A process of its own: mypy lets the garbage collector look again at what tests/conftest.py has put aside.
    done = children.run(["-m", "mypy", "--config-file", "pyproject.toml", "tests/typing/api.py"], env=os.environ)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


def test_pyright_knows_the_types_of_the_public_api() -> None:
    """pyright, strict, finds the same in the same file."""
    pyright = ROOT / "node_modules/pyright/index.js"
    command = ["node", pyright, "--project", ROOT, "--pythonpath", sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
