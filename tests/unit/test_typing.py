"""Types are part of the API: what a checker sees without a plugin."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

from project.directory.models import Company
from tests import children
from tests.deep import by_make_check, deep

ROOT = Path(__file__).resolve().parent.parent.parent


@by_make_check
def test_mypy_knows_the_types_of_the_public_api() -> None:
    """mypy, strict and without a plugin, infers every asserted type and finds every mistake."""
    # A separate process is needed, because mypy makes the garbage collector inspect frozen objects again.
    done = children.run(["-m", "mypy", "--config-file", "pyproject.toml", "tests/typing/api.py"], env=os.environ)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


@deep
def test_pyright_knows_the_types_of_the_public_api() -> None:
    """pyright, strict, finds the same in the same file."""
    pyright = ROOT / "node_modules/pyright/index.js"
    command = ["node", pyright, "--project", ROOT, "--pythonpath", sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_declared_members_are_those_of_models() -> None:
    """Each declared member of ``DynamoModel`` exists in models."""
    tree = ast.parse((ROOT / "dynamo_single/orm/schema/types.py").read_text())
    (declared,) = (each for each in ast.walk(tree) if isinstance(each, ast.ClassDef) and each.name == "DynamoModel")
    names = {
        ast.unparse(each.target) if isinstance(each, ast.AnnAssign) else each.name
        for each in declared.body
        if isinstance(each, ast.AnnAssign | ast.FunctionDef | ast.AsyncFunctionDef)
    }
    inherited = (name for cls in Company.__mro__ for name in vars(cls).get("__annotations__", ()))
    assert len(names) > 10
    assert names - {*dir(Company), *inherited} == set()
